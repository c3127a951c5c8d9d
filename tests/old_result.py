"""A result file made by commit d6b1173 with the bundled dumps target_fault and golden (step 0), and what that commit's server
answered about it: `answers.json`, fields of replies that name no sentence."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).parent / "data" / "result_d6b1173.tar.xz"


def unpack(folder: Path) -> tuple[Path, dict[str, Any]]:
    """(the result file, the answers of that time)"""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "result.db", json.loads((folder / "answers.json").read_text())
