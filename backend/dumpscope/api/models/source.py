"""The source around the line that made a call, of one side or of both beside each other."""

from __future__ import annotations

from typing import Final, Literal

from dumpscope.api.models.base import Phrase, Wire
from dumpscope.export.source_lines import LineRow
from dumpscope.pipeline.results.call_source import CallSource, SideSource
from dumpscope.texts import english

LINE_LETTERS: Final = 400
"""Letters of a line that are sent."""

FRAME_LETTERS: Final = 2000
"""Letters of a name or line of a call stack."""


class SourceLine(Wire):
    """`number` counts from 1; a long line is cut and ends in …"""

    number: int
    text: str


class SourceRow(Wire):
    """Lines that stand beside each other. `kind`: `plain` where only one side is known, `same`, `changed` (two different lines),
    or the only side that has it; `at`: the line that made the call."""

    kind: Literal["plain", "same", "changed", "target", "golden"]
    at: bool
    target: SourceLine | None
    golden: SourceLine | None


class SourceSide(Wire):
    """The line of the call stack that is shown (the innermost of the user's own code, else of a library of models), and where the
    text comes from: `recorded` with the dump, `read` now from `path` below a source root, or `missing`. `now`: the number of the
    line in that text, null if it is not there; `matches`: whether that line is the one that the call stack holds (null: it holds
    none); `changed`: the file was changed after the program had loaded it. `text` and `said` tell all that in sentences, or why
    there is no source and how to get it."""

    file: str
    line: int | None
    function: str
    code: str
    state: Literal["recorded", "read", "missing"]
    path: str | None
    now: int | None
    matches: bool | None
    changed: bool
    text: str
    said: list[Phrase]


class Source(Wire):
    """`same`: the lines are equal on both sides; `whole`: so are the whole files (null: one of them is not known). A side is null
    if the call is not there."""

    target: SourceSide | None
    golden: SourceSide | None
    same: bool
    whole: bool | None
    rows: list[SourceRow]


def source(found: CallSource) -> Source:
    return Source(
        target=_side(found.target),
        golden=_side(found.golden),
        same=found.same,
        whole=found.whole,
        rows=[_row(row, found) for row in found.rows],
    )


def _row(row: LineRow, found: CallSource) -> SourceRow:
    return SourceRow(
        kind=row.kind, at=row.at, target=_line(row.target, found.target), golden=_line(row.golden, found.golden)
    )


def _line(number: int | None, side: SideSource | None) -> SourceLine | None:
    if number is None or side is None or side.lines is None:
        return None
    return SourceLine(number=number, text=_cut(side.lines[number - 1].rstrip(), LINE_LETTERS))


def _side(side: SideSource | None) -> SourceSide | None:
    if side is None:
        return None
    frame = side.frame
    return SourceSide(
        file="" if frame is None else _cut(frame.file, FRAME_LETTERS),
        line=None if frame is None else frame.line,
        function="" if frame is None else _cut(frame.function, FRAME_LETTERS),
        code="" if frame is None else _cut(frame.code, FRAME_LETTERS),
        state=side.state,
        path=side.path,
        now=side.at,
        matches=side.matches,
        changed=side.changed,
        text=english(side.said),
        said=[Phrase.model_validate(one) for one in side.said],
    )


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"
