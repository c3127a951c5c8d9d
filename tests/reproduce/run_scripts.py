"""Run a generated script in this process."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any


def run(path: Path, *options: object) -> dict[str, Any]:
    """What the script says as JSON, and its exit status under "status"."""
    words, sys.argv = sys.argv, [str(path), "--json", *map(str, options)]
    said = io.StringIO()
    status = None
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv = words
    return {"status": status, **json.loads(said.getvalue().splitlines()[-1])}
