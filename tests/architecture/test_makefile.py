"""What the make targets would run. Nothing is built: make only prints its commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A folder with the Makefile and one capture test, in which nothing was built."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    capture = tmp_path / "tests" / "capture"
    capture.mkdir(parents=True)
    (capture / "test_one.py").touch()
    return tmp_path


def printed(folder: Path, target: str, **variables: str) -> str:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "DUMPSCOPE_", "MFLAGS"))
    }
    done = subprocess.run(
        ["make", "--dry-run", target],
        cwd=folder,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("target", ["test", "python-tests", "peer"])
def test_msprobe_is_installed_before_the_tests_that_run_it(fresh: Path, target: str) -> None:
    commands = printed(fresh, target)
    installed = commands.index("-m venv --clear .peer")
    assert target == "peer" or installed < commands.index("-m pytest")


def test_a_make_inside_another_installs_msprobe_too(fresh: Path) -> None:
    told = str(fresh / ".peer" / "bin" / "python")
    assert "-m venv --clear .peer" in printed(fresh, "python-tests", DUMPSCOPE_PEER_PYTHON=told)


def test_a_python_with_msprobe_that_the_user_names_is_taken(fresh: Path) -> None:
    assert ".peer" not in printed(fresh, "python-tests", DUMPSCOPE_PEER_PYTHON="/somewhere/bin/python")


def test_msprobe_can_be_left_out(fresh: Path) -> None:
    assert ".peer" not in printed(fresh, "python-tests", MSPROBE="")
