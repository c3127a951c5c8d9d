"""Fixtures that every stage shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("DUMPSCOPE_TEST_DUMPS", Path(__file__).resolve().parents[2] / "shared" / "dumps"))


@pytest.fixture(scope="session")
def dumps() -> Path:
    """Folder of real dumps made with the real msprobe; its README holds the truth about each."""
    if not SHARED.is_dir():
        pytest.fail(f"the real dumps are missing: {SHARED} (set DUMPSCOPE_TEST_DUMPS)")
    return SHARED
