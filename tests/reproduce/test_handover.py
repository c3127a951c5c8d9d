"""The archive of a finding runs where it is unpacked, in a Python that knows nothing of us."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dumpscope.cli.app import status

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("warm")


def unpacked(archive: Path, folder: Path) -> Path:
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder


def test_an_archive_holds_all_of_a_finding_and_runs_in_a_clean_folder(dumps: Path, tmp_path: Path) -> None:
    archive, controls = tmp_path / "finding.zip", tmp_path / "controls.json"
    controls.write_text("{}")
    command = ["handover", str(dumps / "target_fault"), "Functional.softmax.1", "-o", str(archive)]
    assert status([*command, "--golden", str(dumps / "golden"), "--attach", str(controls)]) == 0
    clean = unpacked(archive, tmp_path / "clean")
    there = {path.name for path in clean.iterdir()}
    assert there == {
        "README.txt", "reproduce.py", "tensors", "call.json", "environment.json", "stack.txt", "output.txt", "matrix.txt",
        "matrix.json", "logs", "attached", "comparison",
    }  # fmt: skip
    assert "the recorded result is wrong" in (clean / "output.txt").read_text()
    assert "No cell fails: not reproduced on this machine." in (clean / "matrix.txt").read_text()
    assert "models.py" in (clean / "stack.txt").read_text().splitlines()[0]
    assert "exit status 1" in (clean / "logs" / "000" / "output.txt").read_text()
    assert (
        "Differs from the call in the net: the dump does not say on which device" in (clean / "matrix.txt").read_text()
    )
    assert any(path.suffix == ".html" for path in (clean / "comparison").iterdir())
    assert "torch.nn.functional.softmax(float32[2, 2, 6, 6], dim=-1)" in (clean / "README.txt").read_text()
    command = [sys.executable, "-I", str(clean / "reproduce.py"), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["recorded"] == "error"


def test_the_same_call_gives_the_same_archive_and_says_what_is_missing(dumps: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    for target in (one, other):
        command = ["handover", str(dumps / "stat_golden"), "Functional.gelu.0", "--no-run", "-o", str(target)]
        assert status(command) == 0
    assert one.read_bytes() == other.read_bytes()
    said = (unpacked(one, tmp_path / "clean") / "README.txt").read_text()
    assert "numbers are made up between the recorded extremes" in said
    assert "the dump does not say how the run was made" in said
    assert "it was not run where the archive was made" in said


def test_a_file_that_is_not_there_is_refused(dumps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["handover", str(dumps / "stat_golden"), "Functional.gelu.0", "-o", str(tmp_path / "x.zip")]
    assert status([*command, "--attach", str(tmp_path / "none.log")]) == 2
    assert "nothing to attach" in capsys.readouterr().err
    assert not (tmp_path / "x.zip").exists()
