"""Printing: JSON documents on stdout, text with a little colour for people."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from typing import Any, Final, TextIO

from dumpscope.domain.records import State
from dumpscope.texts import tell

_CODES: Final = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "dim": "2"}
_COLOUR: Final = re.compile(r"(\x1b\[(?:0|1|2|31|32|33)m)")


def print_json(document: Any) -> None:
    """One strict JSON document."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """`text` in a style if the stream is a terminal with colour."""
    stream = stream or sys.stdout
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def safe(text: str) -> str:
    """Text without control characters except our own colours: a name from a dump must not control the terminal."""
    return "".join(
        part
        if place % 2
        else "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in part)
        for place, part in enumerate(_COLOUR.split(text))
    )


def line(text: str = "") -> None:
    sys.stdout.write(safe(text) + "\n")


def number(value: float | int | str | None, state: int = State.FINITE) -> str:
    """A stored number for people, "-" if there is none."""
    if value is None or state == State.ABSENT:
        return "-"
    if state != State.FINITE:
        return {State.NAN: "nan", State.POS_INF: "inf", State.NEG_INF: "-inf"}[State(state)]
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    return str(value)


def plural(count: int, word: str) -> str:
    """A count with its noun: a sentence `count.WORD` of the catalogue."""
    return tell(f"count.{word.replace(' ', '_')}", count=count)


def list_numbers(numbers: list[int], limit: int = 12) -> str:
    shown = ", ".join(map(str, numbers[:limit]))
    return f"{shown}, … ({len(numbers)})" if len(numbers) > limit else shown or tell("cli.none")
