"""Programs of unusual kinds compute bit for bit what they compute without a recording, and no hook of it fails.

`make matrix` runs the same ones with older and newer versions of torch.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_versions import odd_programs

from capture.conftest import forget


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", odd_programs.PROGRAMS)
def test_a_recording_changes_nothing_in_an_unusual_program(tmp_path: Path, name: str) -> None:
    forget()
    try:
        assert odd_programs.differences(name, tmp_path / "dump", level="mix", task="tensor") == []
    finally:
        forget()
    assert list((tmp_path / "dump").glob("step*/*/dump.json"))
