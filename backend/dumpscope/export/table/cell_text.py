"""Text of a cell, the same in every table format."""

from __future__ import annotations

from typing import Final

from dumpscope.domain.records import Number

Cell = str | int | float | bool

_FORMULA: Final = ("=", "+", "-", "@", "\t")


def guard(text: str) -> str:
    """Text from a dump, made safe for spreadsheets: text that they would run as a formula gets a leading quote."""
    text = text.replace("\r", "\\r")  # a bare carriage return ends a line in some csv readers, quoted or not
    return f"'{text}" if text.startswith(_FORMULA) else text


def guard_all(texts: list[str]) -> list[str]:
    """`guard` for every text; fast if none needs it."""
    if {text[:1] for text in texts}.isdisjoint(_FORMULA) and "\r" not in "".join(texts):
        return texts
    return [guard(text) for text in texts]


def cell(value: Number, absent: str) -> Cell:
    """A number unchanged, text guarded, None as `absent`."""
    if value is None:
        return absent
    return guard(value) if isinstance(value, str) else value


def percent(value: Number, absent: str = "N/A") -> Cell:
    """A relative error as msprobe writes it: 0, `12.5%`, `inf`, `nan`."""
    if value is None or isinstance(value, str):
        return absent
    if value == 0:
        return 0
    if value in (float("inf"), float("-inf")) or value != value:  # noqa: PLR0124 - nan
        return str(value)
    return f"{value * 100}%"
