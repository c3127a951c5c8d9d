"""Printing: JSON documents on stdout, text with a little colour for people."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final, TextIO

from dumpscope.export.words import safe

_CODES: Final = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "dim": "2"}


def print_json(document: Any) -> None:
    """One strict JSON document."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """`text` in a style if the stream is a terminal with colour."""
    stream = stream or sys.stdout
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def line(text: str = "") -> None:
    sys.stdout.write(safe(text) + "\n")
