"""A run by the recipe waits for its kernels, is alone, and leaves how it was made and how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from warm_python import warm_python


def run(
    folder: Path, program: str, *words: str, python: str = "", **environment: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """What a program said, and the folder of its run. python: where not a warm one"""
    script = folder / "train.py"
    script.write_text(program)
    switches = ("CUDA_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING", "ASCEND_PROCESS_LOG_PATH")
    clean = {key: value for key, value in os.environ.items() if key not in switches}
    command = [
        python or warm_python(),
        "-m",
        "dumpscope_capture.run",
        "--recipe",
        str(folder / "runs"),
        *words,
        str(script),
        "--lr",
        "1",
    ]
    done = subprocess.run(
        command, env={**clean, **environment}, capture_output=True, text=True, check=False, timeout=120, cwd=folder
    )
    return done, max((folder / "runs").glob("*"), key=lambda path: path.stat().st_mtime_ns, default=folder)


def told(room: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((room / "recipe.json").read_text())
    return found


TELLS = (
    "import os, sys, json\n"
    "names = ('CUDA_LAUNCH_BLOCKING', 'ASCEND_LAUNCH_BLOCKING', 'ASCEND_PROCESS_LOG_PATH', 'DUMPSCOPE_RECIPE_FOLDER')\n"
    "print(json.dumps([sys.argv[1:], *(os.environ.get(name) for name in names)]))\n"
)


def test_the_program_has_the_switches_and_a_folder_for_its_logs(tmp_path: Path) -> None:
    done, room = run(tmp_path, TELLS, python=sys.executable)
    assert done.returncode == 0, done.stderr
    log = room / "device_log"
    assert json.loads(done.stdout) == [["--lr", "1"], "1", "1", str(log), None]
    assert log.is_dir()
    kept = told(room)
    assert kept["status"] == "exit 0"
    assert kept["environment"]["ASCEND_LAUNCH_BLOCKING"] == "1"
    assert {"torch", "python", "numpy"} <= set(kept["versions"])
    assert kept["command"][-2:] == ["--lr", "1"]
    assert not (room / "crash.txt").exists()


def test_every_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        run(tmp_path, "pass\n")
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_an_exception_an_exit_status_and_a_crash_are_kept(tmp_path: Path) -> None:
    failing = "import torch\n(torch.ones(2, requires_grad=True) * 2).backward()\n"
    done, room = run(tmp_path, failing, "--explain-backward", "table")
    assert done.returncode == 1
    kept = told(room)
    assert kept["status"] == "raised"
    assert "grad can be implicitly created only for scalar outputs" in kept["error"]

    done, room = run(tmp_path, "raise SystemExit(7)\n")
    assert (done.returncode, told(room)["status"]) == (7, "exit 7")

    done, room = run(tmp_path, "def kernel():\n    import os\n    os.abort()\nkernel()\n")
    assert done.returncode == -6
    assert told(room)["status"] == "running"  # nothing of it could say more
    assert "in kernel" in (room / "crash.txt").read_text()


def test_saved_calls_lie_with_the_run(tmp_path: Path) -> None:
    program = "import torch\ntorch.nn.functional.gelu(torch.ones(3))\n"
    _, room = run(tmp_path, program, "--save-call", "Functional.gelu.0")
    assert list(room.glob("*/saved_calls/Functional.gelu.0/call.json"))


@pytest.mark.parametrize("launcher", [{"RANK": "0", "WORLD_SIZE": "2"}, {"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}])
def test_one_of_several_processes_is_refused(launcher: dict[str, str], tmp_path: Path) -> None:
    done, _ = run(tmp_path, "print('ran')\n", **launcher)
    assert done.returncode == 2
    assert "it is for one process" in done.stderr
    assert "ran" not in done.stdout
    assert not (tmp_path / "runs").exists()
