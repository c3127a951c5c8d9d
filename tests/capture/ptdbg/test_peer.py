"""msprobe 26.2.0 itself reads none of ptdbg's files, and all that the msprobe layout writes.

DUMPSCOPE_PEER_PYTHON names an interpreter that has msprobe 26.2.0; `make test` makes one.
"""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import pytest
from warm_python import warm_python

from capture.launching import IMPORTED, MSPROBE
from capture.ptdbg.test_reading_back import run

PEER = os.environ.get("DUMPSCOPE_PEER_PYTHON", "")
pytestmark = pytest.mark.skipif(not PEER, reason="no interpreter with msprobe was named")


def msprobe(target: Path, golden: Path) -> subprocess.CompletedProcess[str]:
    sides = ["--target_path", str(target.absolute()), "--golden_path", str(golden.absolute())]
    command = [
        warm_python(IMPORTED["msprobe"], PEER),
        "-c",
        MSPROBE,
        "compare",
        *sides,
        "--output_path",
        str(Path("out").absolute()),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize(("form", "given"), [("2.3", "file"), ("4.0", "rank"), ("6.0", "root")])
def test_msprobe_has_no_reader_for_files_of_ptdbg(form: str, given: str) -> None:
    dump = run(form, "dump")
    (pkl,) = dump.rglob("*.pkl")
    path = {"file": pkl, "rank": pkl.parent, "root": dump}[given]
    done = msprobe(path, path)
    assert not list(Path().glob("out/**/compare_result*"))
    assert "Error" in done.stderr + done.stdout or "Exception" in done.stderr + done.stdout


def test_msprobe_compares_what_a_ptdbg_script_writes_in_the_msprobe_layout() -> None:
    sides = [run("msprobe", "target", scale=1.5), run("msprobe", "golden")]
    done = msprobe(*(side / "step0" for side in sides))
    (table,) = Path("out").rglob("compare_result*.csv")
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert done.returncode == 0
    cosine = {row["NPU Name"]: row["Cosine"] for row in rows if row["NPU Name"] == row["Bench Name"]}
    assert float(cosine["Functional.linear.0.forward.output.0"]) == 1
    wrong = {row["NPU Name"] for row in rows if row["MaxAbsErr"] not in ("N/A", "0", "0.0", "unsupported")}
    assert "Torch.mul.0.forward.output.0" in wrong
    assert not any(name.startswith("Functional.linear") and ".forward" in name for name in wrong)
