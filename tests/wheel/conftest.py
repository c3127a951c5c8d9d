"""The two wheels of this checkout, each built once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def build(source: Path, folder: Path, environment: dict[str, str] | None = None) -> Path:
    """Build a wheel of `source` (a checkout or an sdist) with the backend that is installed here."""
    command = [*PIP, "-q", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("dumpscope*.whl")
    return wheel


def without_node(*places: Path) -> dict[str, str]:
    return {**os.environ, "PATH": os.pathsep.join(map(str, places))}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def recorder_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "capture", tmp_path_factory.mktemp("recorder"))
