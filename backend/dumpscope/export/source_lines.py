"""The lines around a call in the source of one side, or of both sides beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

AROUND: Final = 8
"""Lines above and below the call's own line."""

REACH: Final = 60
"""Lines above and below in which a line's partner is looked for: a line inserted on one side shifts all others."""

ROWS: Final = 2 * AROUND
"""Rows above, and below, at most: lines of one side only have a row each."""

Kind = Literal["plain", "same", "changed", "target", "golden"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """Numbers of lines that stand beside each other, from 1; None where a side has none.

    kind: `plain` where only one side is known, `changed` for two different lines, a side's name for its own line
    at: the line that made the call
    """

    kind: Kind
    target: int | None
    golden: int | None
    at: bool = False


def find_line(lines: Sequence[str], line: int, code: str) -> tuple[int | None, bool | None]:
    """Where the line of a call is now, and whether the text that the call stack gave for it still stands at `line`.

    code: that text without indent, "" where the stack gives none; then nothing is known (None). The nearest line with this text
    counts as moved. None: no such line.
    """
    there = 0 < line <= len(lines)
    if not code:
        return (line if there else None), None
    if there and lines[line - 1].strip() == code:
        return line, True
    same = [number for number, text in enumerate(lines, start=1) if text.strip() == code]
    moved = min(same, key=lambda number: abs(number - line), default=None)
    return (line if moved is None and there else moved), False


def lines_alone(lines: Sequence[str], at: int, side: Literal["target", "golden"]) -> list[LineRow]:
    """The lines around line `at` of the one side that is known."""
    return [
        LineRow(
            kind="plain",
            target=number if side == "target" else None,
            golden=number if side == "golden" else None,
            at=number == at,
        )
        for number in range(max(1, at - AROUND), min(len(lines), at + AROUND) + 1)
    ]


def side_by_side(target: Sequence[str], target_at: int, golden: Sequence[str], golden_at: int) -> list[LineRow]:
    """The lines around the call of both sides, equal ones in one row; the two lines of the call always share a row."""
    here = LineRow(
        kind="same" if _key(target[target_at - 1]) == _key(golden[golden_at - 1]) else "changed",
        target=target_at,
        golden=golden_at,
        at=True,
    )
    above = _aligned(
        target, range(max(0, target_at - 1 - REACH), target_at - 1),
        golden, range(max(0, golden_at - 1 - REACH), golden_at - 1),
    )  # fmt: skip
    below = _aligned(
        target, range(target_at, min(len(target), target_at + REACH)),
        golden, range(golden_at, min(len(golden), golden_at + REACH)),
    )  # fmt: skip
    return [*reversed(_nearest(above[::-1])), here, *_nearest(below)]


def _key(line: str) -> str:
    """What two lines have in common that count as equal: all but blanks at the end."""
    return line.rstrip()


def _aligned(target: Sequence[str], mine: range, golden: Sequence[str], other: range) -> list[LineRow]:
    ours, theirs = [_key(target[place]) for place in mine], [_key(golden[place]) for place in other]
    rows: list[LineRow] = []
    for tag, first, last, start, stop in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        left, right = (
            range(mine.start + first + 1, mine.start + last + 1),
            range(other.start + start + 1, other.start + stop + 1),
        )
        paired = min(len(left), len(right))
        kind: Kind = "same" if tag == "equal" else "changed"
        rows += [LineRow(kind=kind, target=left[place], golden=right[place]) for place in range(paired)]
        rows += [LineRow(kind="target", target=number, golden=None) for number in left[paired:]]
        rows += [LineRow(kind="golden", target=None, golden=number) for number in right[paired:]]
    return rows


def _nearest(rows: Sequence[LineRow]) -> list[LineRow]:
    """The first rows, until both sides have AROUND lines or all of theirs, and never more than ROWS."""
    wanted = [min(AROUND, sum(one is not None for one in column)) for column in _columns(rows)]
    shown: list[LineRow] = []
    counts = [0, 0]
    for row in rows[:ROWS]:
        if counts[0] >= wanted[0] and counts[1] >= wanted[1]:
            break
        shown.append(row)
        counts = [count + (number is not None) for count, number in zip(counts, (row.target, row.golden), strict=True)]
    return shown


def _columns(rows: Sequence[LineRow]) -> tuple[list[int | None], list[int | None]]:
    return [row.target for row in rows], [row.golden for row in rows]
