"""Run a generated script in this process. What all scripts carry alike is compiled once: half of what a script costs."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import types
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, Final

TAIL: Final = '\n\nif __name__ == "__main__":\n'
"""Where the runtime ends, which begins behind the document of the call."""


def run(path: Path, *options: object) -> dict[str, Any]:
    """What the script says as JSON, and its exit status under "status"."""
    words, sys.argv = sys.argv, [str(path), "--json", *map(str, options)]
    said = io.StringIO()
    status = None
    try:
        with contextlib.redirect_stdout(said):
            _run(path)
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv = words
    return {"status": status, **json.loads(said.getvalue().splitlines()[-1])}


def _run(path: Path) -> None:
    """As `python path` does."""
    text = path.read_text(encoding="utf-8")
    call = text.index("\nCALL = ")
    document = text.index("\n", call + 1)
    if text[document - 1] == "{":
        document = text.index("\n}\n", document) + 2
    tail = text.rindex(TAIL)
    main, own = types.ModuleType("__main__"), sys.modules["__main__"]
    main.__file__ = str(path)
    sys.modules["__main__"] = main
    try:
        for code in (
            compile(text[:document], str(path), "exec"),
            _compiled(text[document:tail]),
            compile(text[tail:], str(path), "exec"),
        ):
            exec(code, main.__dict__)
    finally:
        sys.modules["__main__"] = own


@cache
def _compiled(runtime: str) -> CodeType:
    """The part that scripts have in common, under the future import of this module, with which every script begins too."""
    return compile(runtime, "<runtime>", "exec")
