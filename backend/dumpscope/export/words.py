"""Numbers, counts and lists as people read them."""

from __future__ import annotations

import math
import re
from typing import Final

from dumpscope.domain.records import State
from dumpscope.texts import tell

_COLOUR: Final = re.compile(r"(\x1b\[(?:0|1|2|31|32|33)m)")


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


def safe(text: str) -> str:
    """Text without control characters except our own colours: a name from a dump must not control the terminal."""
    return "".join(
        part
        if place % 2
        else "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in part)
        for place, part in enumerate(_COLOUR.split(text))
    )
