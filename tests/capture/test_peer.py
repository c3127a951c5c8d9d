"""The same models and seeds give msprobe 26.2.0's nodes, order, items and numbers, with the differences that
docs/capture.md lists.

peer_dumps.json.xz holds what msprobe recorded of peer_models.py on torch 2.13 (numbers to 8 digits); DUMPSCOPE_PEER_PYTHON, an
interpreter with msprobe in it, makes the tests run msprobe itself again.
"""

from __future__ import annotations

import json
import lzma
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from capture import peer_models

STORED = Path(__file__).with_name("peer_dumps.json.xz")
OURS = {"counts", "stride", "absent"}
"""Keys of ours that msprobe does not write."""

MISSING = {
    "containers": {"Tensor.__mul__.1.backward"},  # a value nobody uses: msprobe's inserted node gives it zeros
}
EXTRA = {
    "conv": {
        "Module.relu.ReLU.backward.0",
        "Module.bn1.BatchNorm2d.backward.0",
    },  # in-place modules and those before them
    "containers": {"VF.lstm.0.forward", "VF.lstm.0.backward"},  # recurrent kernels
    "checkpoint": {f"Tensor.add_.{number}.forward" for number in range(4)},  # msprobe is deaf after a checkpoint's stop
}
INPLACE = {"conv": {"Functional.relu.0.backward"}}
"""msprobe's inserted nodes give another gradient than autograd's; ours is that of the next node."""


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return dict(json.loads(lzma.decompress(STORED.read_bytes())))


def _cases() -> list[str]:
    return sorted(json.loads(lzma.decompress(STORED.read_bytes())))


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="the stored numbers are those of torch 2.13")
@pytest.mark.parametrize("case", _cases())
def test_nodes_order_items_and_numbers_are_msprobes(make: Any, read: Any, stored: dict[str, Any], case: str) -> None:
    name, level, risk, step = case.split("-")
    debugger = make(level=level, risk_level=risk, backward="msprobe", section={"summary_mode": "md5"})
    peer_models.train(name, debugger)
    dump, peer = read(int(step)), stored[case]
    ours, theirs = dump.data, peer["data"]
    extra = set(EXTRA.get(name, set()))
    if risk == "CORE":  # a missing comma in msprobe's list loses `linear`
        extra |= {node for node in ours if node.startswith("Functional.linear.")}
    assert set(theirs) - set(ours) <= MISSING.get(name, set())
    assert set(ours) - set(theirs) <= extra
    assert [node for node in ours if node in theirs] == [node for node in theirs if node in ours]
    differences = [
        (node, *difference)
        for node in theirs
        if node in ours and node not in INPLACE.get(name, set())
        for difference in _differences(ours[node], theirs[node], "")
    ]
    later = set(_hashes(ours))  # msprobe may hash a tensor after the program has written to it
    assert not [found for found in differences if not (found[1].endswith(".md5") and found[3] in later)]
    _check_construct(dump.construct, peer["construct"], set(ours) | set(theirs))
    stacked = {node for nodes, _ in dump.json("stack.json").values() for node in nodes}
    assert stacked - extra == set(peer["stacks"])
    assert not dump.errors


def _hashes(record: Any) -> Iterator[str]:
    if isinstance(record, dict):
        if "md5" in record:
            yield record["md5"]
        for part in record.values():
            yield from _hashes(part)
    elif isinstance(record, list):
        for part in record:
            yield from _hashes(part)


def _check_construct(ours: dict[str, Any], theirs: dict[str, Any], nodes: set[str]) -> None:
    """Forward parents agree; a backward node's is the backward of its forward's parent, where msprobe's engine order
    says another."""
    for node, parent in theirs.items():
        if ".forward" in node and node in ours:
            assert ours[node] == parent, node
    for node, parent in ours.items():
        if node in theirs and theirs[node] != parent:
            assert ".backward" in node
            assert parent is None or parent.endswith((".backward.0", ".backward.1"))
        if parent is not None and ".backward." in parent and ".forward" not in node:
            assert parent in nodes


def _differences(ours: Any, theirs: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Places where our record is not msprobe's: numbers to 1e-6, and where msprobe has none ours may have one."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in {**theirs, **ours}:
            if key in OURS and key not in theirs:
                continue
            if key not in ours or key not in theirs:
                yield f"{path}.{key}", ours.get(key), theirs.get(key)
            else:
                yield from _differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(one, other, f"{path}.{number}")
    elif ours is None and isinstance(theirs, dict) and theirs.get("Max") == 0 == theirs.get("Min"):
        return  # zeros that msprobe's inserted nodes made of no gradient
    elif theirs is None and path.endswith((".Mean", ".Norm")):
        return  # integers and float64
    elif isinstance(theirs, (int, float)) and isinstance(ours, (int, float)):
        if not (math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-8) or (math.isnan(ours) and math.isnan(theirs))):
            yield path, ours, theirs
    elif ours != theirs:
        yield path, ours, theirs


@pytest.mark.skipif("DUMPSCOPE_PEER_PYTHON" not in os.environ, reason="no interpreter with msprobe was named")
def test_stored_numbers_are_what_msprobe_still_records(tmp_path: Path, stored: dict[str, Any]) -> None:
    script = str(Path(peer_models.__file__))
    for case in ("gpt-mix-FOCUS-0", "conv-L0-FOCUS-0"):
        name, level, risk, step = case.split("-")
        folder = tmp_path / case
        command = [
            os.environ["DUMPSCOPE_PEER_PYTHON"],
            script,
            "msprobe",
            name,
            level,
            "statistics",
            "statistics",
            str(folder),
            risk,
        ]
        subprocess.run(command, check=True, capture_output=True)
        (rank,) = (folder / "dump" / f"step{step}").iterdir()
        again = json.loads((rank / "dump.json").read_text())["data"]
        assert list(again) == list(stored[case]["data"])


@pytest.mark.skipif("DUMPSCOPE_PEER_PYTHON" not in os.environ, reason="no interpreter with msprobe was named")
def test_msprobe_compares_our_dump_with_its_own(tmp_path: Path) -> None:
    script = str(Path(peer_models.__file__))
    peer = os.environ["DUMPSCOPE_PEER_PYTHON"]
    dumps = {}
    for engine, python in (("dumpscope", sys.executable), ("msprobe", peer)):
        subprocess.run(
            [python, script, engine, "gpt", "mix", "tensor", "statistics", str(tmp_path / engine)],
            check=True,
            capture_output=True,
        )
        dumps[engine] = next((tmp_path / engine / "dump" / "step0").iterdir()) / "dump.json"
    command = [
        str(Path(peer).with_name("msprobe")),
        "compare",
        "-tp",
        str(dumps["dumpscope"]),
        "-gp",
        str(dumps["msprobe"]),
        "-o",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (table,) = (tmp_path / "out").glob("compare_result_*.csv")
    forward = [line for line in table.read_text().splitlines() if ".forward" in line]
    assert len(forward) > 100
    assert not [line for line in forward if ",error," in line]
