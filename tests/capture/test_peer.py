"""The same models and seeds give msprobe 26.2.0's nodes, order, items and numbers, with the differences that
docs/capture.md lists.

peer_dumps.json.xz holds what msprobe recorded of peer_models.py on torch 2.13 (numbers to 8 digits); test_conformance.py runs
msprobe itself.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from capture import peer_models
from capture.differences import EXTRA, INPLACE, MISSING, differences

STORED = Path(__file__).with_name("peer_dumps.json.xz")


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
    parted = [
        (node, *difference)
        for node in theirs
        if node in ours and node not in INPLACE.get(name, set())
        for difference in differences(ours[node], theirs[node], "")
    ]
    later = set(_hashes(ours))  # msprobe may hash a tensor after the program has written to it
    assert not [found for found in parted if not (found[1].endswith(".md5") and found[3] in later)]
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
        if ".forward" in node:
            assert node in ours, node
            assert ours[node] == parent, node
    for node, parent in ours.items():
        if node in theirs and theirs[node] != parent:
            assert ".backward" in node
            assert parent is None or parent.endswith((".backward.0", ".backward.1"))
        if parent is not None and ".backward." in parent and ".forward" not in node:
            assert parent in nodes
