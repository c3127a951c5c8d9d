"""The example package of tests/extension, installed as users install one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "extension"


@pytest.fixture(scope="session")
def extended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of processes that see the installed example package."""
    return {**os.environ, "PYTHONPATH": install_example(tmp_path_factory.mktemp("extension"))}


def install_example(folder: Path) -> str:
    """Install the example package into `folder`; returns the PYTHONPATH of processes that see it."""
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", folder, PACKAGE], check=True, timeout=120)
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
