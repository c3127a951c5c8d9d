"""The source around the line that made a call: what the recorder kept beside the dump, else what a source root holds now."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dumpscope.domain.records import RankRef
from dumpscope.errors import DumpscopeError
from dumpscope.export.source_lines import LineRow, find_line, lines_alone, side_by_side
from dumpscope.export.stack_frames import Frame, call_frame, user_frame
from dumpscope.index.dumps.load_rank import rank_place
from dumpscope.index.store.database import Database
from dumpscope.readers.msprobe.rank import dump_root
from dumpscope.readers.source_files import ReadFile, SourceRoot, read_below, recorded_file
from dumpscope.texts import Phrase, phrase
from dumpscope_format.source_files import NO_TEXT, SourceFile

State = Literal["recorded", "read", "missing"]

SHOWN: Final = 200
"""Letters of a line in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSource:
    """The source of one side.

    frame: the line of the call stack that is shown, None where no line is known
    line: where it stands in `lines`, from 1; None where it is not there
    lines: of the whole file, None if there is no text; path: the file that was read now
    matches: whether the stack's text of the line stands there, None where the stack has none
    said: where the text comes from and what may be wrong with it, or why there is none
    """

    frame: Frame | None
    state: State
    line: int | None = None
    lines: list[str] | None = None
    path: str | None = None
    changed: bool = False
    matches: bool | None = None
    said: tuple[Phrase, ...] = ()

    @property
    def at(self) -> int | None:
        """The line to show, None where there is nothing to show."""
        return self.line if self.lines is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSource:
    """Both sides (None: the call is not there) and their lines beside each other; whole: whether the two files are equal, None
    where one of them is not known"""

    target: SideSource | None
    golden: SideSource | None
    rows: list[LineRow]
    whole: bool | None

    @property
    def same(self) -> bool:
        """Both sides have the same lines around the call."""
        return bool(self.rows) and all(row.kind == "same" for row in self.rows)


def call_source(target: SideSource | None, golden: SideSource | None) -> CallSource:
    """The lines of both sides beside each other, or of the one that is known."""
    rows: list[LineRow] = []
    whole: bool | None = None
    mine, other = _shown(target), _shown(golden)
    if mine is not None and other is not None:
        rows = side_by_side(mine[0], mine[1], other[0], other[1])
        whole = mine[0] == other[0]
    elif mine is not None:
        rows = lines_alone(*mine, "target")
    elif other is not None:
        rows = lines_alone(*other, "golden")
    return CallSource(target=target, golden=golden, rows=rows, whole=whole)


def _shown(side: SideSource | None) -> tuple[list[str], int] | None:
    return None if side is None or side.lines is None or side.line is None else (side.lines, side.line)


def side_source(database: Database, rank: int, stack: Sequence[str], roots: Sequence[SourceRoot]) -> SideSource:
    """The source of a call of the rank_dump `rank`. stack: its call stack, innermost first"""
    frame = user_frame(stack) or call_frame(stack)
    if frame is None or frame.line is None:
        reason = "source.no_line" if stack else "source.no_stack"
        return SideSource(frame=None, state="missing", said=(phrase(reason),))
    place = rank_place(database, rank)
    kept = None if place is None else recorded_file(place.folder, _root(place), frame.file)
    if kept is not None and kept.text is not None:
        return _with_text(frame, kept.text, kept=kept)
    found = read_below(roots, frame.file, frame.line, frame.code)
    if found is not None:
        return _with_text(frame, found.text, read=found)
    return SideSource(frame=frame, state="missing", said=tuple(_why_missing(frame, place, kept, roots)))


def _root(place: RankRef) -> str:
    try:
        return dump_root(place)
    except DumpscopeError:
        return place.folder


def _with_text(frame: Frame, text: str, *, kept: SourceFile | None = None, read: ReadFile | None = None) -> SideSource:
    assert frame.line is not None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    line, matches = find_line(lines, frame.line, frame.code)
    said: list[Phrase] = []
    if read is not None:
        said.append(phrase("source.read", path=read.path))
    if kept is not None and kept.changed:
        said.append(phrase("source.changed", file=frame.file))
    if matches is False:
        code = frame.code if len(frame.code) <= SHOWN else f"{frame.code[:SHOWN]}…"
        moved = line is not None and line != frame.line
        said.append(
            phrase("source.moved", line=frame.line, code=code, now=line or 0)
            if moved
            else phrase("source.other_text", line=frame.line, code=code)
        )
    elif line is None:
        said.append(phrase("source.too_short", line=frame.line))
    return SideSource(
        frame=frame,
        state="recorded" if read is None else "read",
        line=line,
        lines=lines,
        path=None if read is None else read.path,
        changed=kept is not None and kept.changed,
        matches=matches,
        said=tuple(said),
    )


def _why_missing(
    frame: Frame, place: RankRef | None, kept: SourceFile | None, roots: Sequence[SourceRoot]
) -> list[Phrase]:
    if kept is not None:
        reason = "made" if kept.left_out == NO_TEXT and frame.file.startswith("<") else kept.left_out
        said = [phrase(f"source.{reason}", file=frame.file)]
    elif place is None or not os.path.isdir(place.folder):
        said = [phrase("source.gone", path="" if place is None else place.folder)]
    else:
        said = [phrase("source.none")]
    if not frame.file.startswith("<"):
        said.append(phrase("source.not_below" if roots else "source.give_root", file=frame.file))
    return said
