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
    folder = tmp_path_factory.mktemp("extension")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", folder, PACKAGE], check=True, timeout=120)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
