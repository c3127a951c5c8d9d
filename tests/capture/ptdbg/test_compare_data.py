"""The script beside a .pkl file: written on an Ascend device only, and it compares as it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capture.ptdbg.fake_npu import install
from capture.ptdbg.test_reading_back import run


@pytest.fixture
def npu(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch)


@pytest.mark.parametrize(
    ("form", "switch", "written"),
    [
        ("4.0", {}, True), ("6.0", {"mode": "api_stack"}, True), ("6.0", {"mode": "list", "scope": ["Torch.mul"]}, True),
        ("6.0", {"mode": "stack"}, False), ("2.3", {}, False),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("npu")
def test_it_lies_beside_the_files_of_the_modes_that_can_be_compared(
    form: str, switch: dict[str, Any], written: bool
) -> None:
    dump = run(form, "dump", **switch)
    (pkl,) = dump.rglob("*.pkl")
    assert pkl.with_name("compare_data.py").is_file() == written


def test_it_is_not_written_without_torch_npu() -> None:
    assert not list(run("6.0", "dump").rglob("compare_data.py"))


@pytest.mark.usefixtures("npu")
@pytest.mark.parametrize("tensors", [True, False])
def test_it_compares_its_dump_with_another(tensors: bool) -> None:
    dumps = run("6.0", "npu", scale=1.5), run("6.0", "bench", summary_only=not tensors)
    script, bench = next(dumps[0].rglob("compare_data.py")), next(dumps[1].rglob("*.pkl"))
    done = subprocess.run(
        [sys.executable, script.absolute(), "--bench_pkl_path", bench.absolute(), "--output_path", Path().absolute()],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert "Suspect Nodes: Torch.mul.0.forward" in done.stdout
    (table,) = Path().glob("compare_result*.csv")
    assert ("Cosine" in table.read_text().splitlines()[0]) == tensors
