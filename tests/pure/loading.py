"""Modules of the recorder one by one: the package itself imports torch."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def load(path: str) -> Any:
    """A module below dumpscope_capture that needs neither torch nor another module of it."""
    spec = importlib.util.spec_from_file_location(
        f"recorder_{Path(path).stem}", ROOT / "capture" / "dumpscope_capture" / path
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
