"""Files of `dumpscope_capture.monitor`: one a rank, more where a run was resumed; they may still grow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO, Final

import numpy as np

from dumpscope.domain.monitor.tables import Bool, Float32, Float64, Int64, MetricTable, MonitorRank
from dumpscope.errors import LimitError, Problem, UnreadableError
from dumpscope.readers.regular_file import open_regular
from dumpscope.texts import say
from dumpscope_format.monitor import (
    FIRST_LINE,
    HEADER,
    LAYOUT,
    METRICS,
    VALUES,
    Frame,
    Group,
    Layout,
    find_frames,
    frame_start,
    layout_number,
    parse_layout,
    read_scalars,
)
from dumpscope_format.paths import rank_number

SIZE_LIMIT: Final = 16 << 30
PIECE: Final = 32 << 20
"""Bytes of a file in memory at once; more where a frame is longer, or where there is none."""
TOGETHER: Final = 64
"""Steps whose numbers are put into a table at once."""
CELL_LIMIT: Final = 1 << 30
"""Numbers of one table."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A value frame. start: offset of its statistics in the file of its part"""

    step: int
    part: int
    layout: Layout
    start: int


@dataclass(slots=True)
class _Part:
    """A file as far as it was read. end: behind its last whole frame; own: device and inode; lost: bytes that do not count"""

    path: str
    end: int = 0
    own: tuple[int, int] | None = None
    lost: int = 0
    layouts: dict[int, Layout] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class RankFiles:
    """The files of one rank, in the order of their parts: a later one wins where two have a step. No file is kept in memory.

    folder: `rank3`
    """

    def __init__(self, folder: str, paths: Sequence[str]) -> None:
        self._rank = rank_number(folder)
        self._parts = [_Part(path) for path in paths]
        self._blocks: dict[int, _Block] = {}
        self._scalars: dict[str, dict[int, float]] = {}
        self._facts: dict[str, Any] = {}

    def read_on(self, problems: list[Problem]) -> MonitorRank | None:
        """The rank as it is now; only what came after the last whole frame is read. None where no step could be read.

        Raises UnreadableError, also where a file is not the one that was read before; LimitError.
        """
        for number, part in enumerate(self._parts):
            self._read_part(number, part)
            problems += part.problems
            if part.lost:
                problems.append(
                    Problem(loc=part.path, kind="damaged", message=say("monitor.bytes_skipped", count=part.lost))
                )
        if not self._blocks:
            return None
        ordered = [self._blocks[step] for step in sorted(self._blocks)]
        present: dict[str, tuple[str, ...]] = {}
        for group in (group for layout in _layouts(ordered) for group in layout.groups):
            present[group.metric] = tuple(dict.fromkeys((*present.get(group.metric, ()), *group.statistics)))
        order = self._facts.get("parameters")
        names = list(order) if isinstance(order, Mapping) else []
        files = [(part.path, part.own) for part in self._parts]
        return MonitorRank(
            rank=self._rank,
            metrics={one: present[one] for one in (*METRICS, *sorted(present.keys() - set(METRICS))) if one in present},
            load=lambda metric, statistic=None: _table(metric, statistic, ordered, files, names),
            first_step=ordered[0].step,
            last_step=ordered[-1].step,
            scalars={name: _series(values) for name, values in self._scalars.items()},
            facts=self._facts,
        )

    def _read_part(self, number: int, part: _Part) -> None:
        with open_regular(part.path) as stream:
            own = _identity(stream)
            size = os.fstat(stream.fileno()).st_size
            if size > SIZE_LIMIT:
                raise LimitError(say("monitor.file_too_large", gib=SIZE_LIMIT >> 30), where=part.path)
            if part.own is not None and (own != part.own or size < part.end):
                raise UnreadableError(say("monitor.file_replaced"), where=part.path)
            stream.seek(part.end)
            if part.own is None:
                if stream.read(len(FIRST_LINE)) != FIRST_LINE:
                    raise UnreadableError(say("monitor.no_monitor_file"), where=part.path)
                part.end = len(FIRST_LINE)
            part.own = own
            self._read_frames(number, part, stream)

    def _read_frames(self, number: int, part: _Part, stream: BinaryIO) -> None:
        """Read from `part.end` on, in pieces. What no frame was found in is read once more with as much again behind it."""
        rest, piece = b"", PIECE
        while more := stream.read(piece):
            data = memoryview(rest + more)
            end = 0
            for frame in find_frames(data):
                part.lost += frame_start(frame) - end
                end = frame.start + frame.size
                self._take(number, part, frame, data[frame.start : end], part.end + frame.start)
            part.end += end
            rest = bytes(data[end:])
            piece = PIECE if end else 2 * len(rest)

    def _take(self, number: int, part: _Part, frame: Frame, payload: memoryview, start: int) -> None:
        """Note what a frame holds. start: offset of its payload in the file"""
        if frame.kind == HEADER:
            self._facts = _facts(bytes(payload)) or self._facts
        elif frame.kind == LAYOUT:
            _add_layout(part.layouts, bytes(payload), part.path, part.problems)
        elif frame.kind == VALUES:
            layout = _layout_of(part.layouts, frame, payload)
            if layout is None:
                part.lost += frame.size
                return
            known = self._blocks.get(frame.step)
            if known is not None and known.part > number:
                return
            self._blocks[frame.step] = _Block(frame.step, number, layout, start + layout.statistics_start)
            for name, value in zip(layout.scalars, read_scalars(layout, payload), strict=True):
                self._scalars.setdefault(name, {})[frame.step] = value


def _identity(stream: BinaryIO) -> tuple[int, int]:
    found = os.fstat(stream.fileno())
    return found.st_dev, found.st_ino


def _layouts(blocks: Sequence[_Block]) -> list[Layout]:
    return list({id(block.layout): block.layout for block in blocks}.values())


def _facts(payload: bytes) -> dict[str, Any]:
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _add_layout(layouts: dict[int, Layout], payload: bytes, path: str, problems: list[Problem]) -> None:
    try:
        layout = parse_layout(payload)
    except ValueError as error:
        problems.append(Problem(loc=path, kind="damaged", message=say("monitor.layout_damaged", reason=error)))
        return
    layouts[layout.number] = layout


def _layout_of(layouts: Mapping[int, Layout], frame: Frame, payload: memoryview) -> Layout | None:
    """The layout of a value frame, None where it does not fit."""
    try:
        layout = layouts.get(layout_number(payload))
    except ValueError:
        return None
    return layout if layout is not None and layout.size == frame.size else None


def _series(values: Mapping[int, float]) -> tuple[Int64, Float64]:
    steps = sorted(values)
    return np.array(steps, dtype=np.int64), np.array([values[step] for step in steps], dtype=np.float64)


def _table(
    metric: str,
    statistic: str | None,
    blocks: Sequence[_Block],
    files: Sequence[tuple[str, tuple[int, int] | None]],
    order: Iterable[str],
) -> MetricTable:
    """The table of a metric, names in the order of the model where the header tells it. files: of the parts, as they were read"""
    groups_of = {id(layout): groups for layout in _layouts(blocks) if (groups := _groups(layout, metric))}
    used = [(block, groups_of[id(block.layout)]) for block in blocks if id(block.layout) in groups_of]
    all_groups = [group for groups in groups_of.values() for _, group in groups]
    found = dict.fromkeys(name for group in all_groups for name in group.names)
    known = dict.fromkeys(name for name in order if name in found)
    names = list({**known, **found})
    statistics = tuple(dict.fromkeys(one for group in all_groups for one in group.statistics))
    if statistic is not None:
        statistics = (statistic,)
    if len(used) * len(names) * len(statistics) > CELL_LIMIT:
        raise LimitError(say("monitor.table_too_large", metric=metric, count=CELL_LIMIT))
    values: Float32 = np.empty((len(used), len(names), len(statistics)), dtype=np.float32)
    present: Bool = np.zeros((len(used), len(names)), dtype=np.bool_)
    lacking: Bool = np.ones((len(used), len(statistics)), dtype=np.bool_)
    place_of = {name: place for place, name in enumerate(names)}
    places = {id(group): _Places(group, place_of, statistics) for group in all_groups}
    room = bytearray()
    with ExitStack() as opened:
        streams = [opened.enter_context(_reopen(path, own)) for path, own in files]
        for rows in _alike([block for block, _ in used]):
            some, (block, groups) = [one for one, _ in used[rows]], used[rows.start]
            if not any(places[id(group)].whole for _, group in groups):
                values[rows] = np.nan
            for offset, group in groups:
                starts = [one.start + 4 * offset for one in some]
                numbers = _read_numbers(streams[block.part], starts, (len(group.names), len(group.statistics)), room)
                if numbers is None:
                    raise UnreadableError(say("monitor.file_replaced"), where=files[block.part][0])
                places[id(group)].put(numbers, values[rows], present[rows], lacking[rows])
    steps = np.array([block.step for block, _ in used], dtype=np.int64)
    return MetricTable(
        metric=metric,
        names=tuple(names),
        statistics=statistics,
        steps=steps,
        values=values,
        present=present,
        lacking=lacking if lacking.any() else None,
    )


def _alike(blocks: Sequence[_Block]) -> Iterator[slice]:
    """Blocks that follow each other in one file with one layout, at most TOGETHER of them."""
    first = 0
    for place, block in enumerate(blocks):
        before = blocks[first]
        if block.part != before.part or block.layout is not before.layout or place - first == TOGETHER:
            yield slice(first, place)
            first = place
    if blocks:
        yield slice(first, len(blocks))


def _read_numbers(stream: BinaryIO, starts: Sequence[int], shape: tuple[int, int], room: bytearray) -> Float32 | None:
    """The numbers of this shape at each of these rising offsets, None where the file is too short.

    room: what they are read into, made larger where it is too small; they last until it is used again

    What lies between them is read too, unless it is more than they are: the system takes longer for a call than to copy it.
    """
    size = 4 * shape[0] * shape[1]
    step = starts[1] - starts[0] if len(starts) > 1 else size
    even = step <= 2 * size and starts[-1] - starts[0] == step * (len(starts) - 1)
    even = even and all(later - earlier == step for earlier, later in pairwise(starts))
    if not even:
        step = size
    wanted = step * (len(starts) - 1) + size
    if len(room) < wanted:
        room.extend(bytes(wanted - len(room)))
    with memoryview(room) as view:
        for place, start in enumerate(starts[:1] if even else starts):
            part = view[:wanted] if even else view[place * size : (place + 1) * size]
            stream.seek(start)
            if stream.readinto(part) < len(part):  # type: ignore[attr-defined]
                return None
    found: Float32 = np.ndarray((len(starts), *shape), "<f4", room, strides=(step, 4 * shape[1], 4))
    return found


class _Places:
    """Where the numbers of a group belong in the rows of a table. whole: they fill them"""

    def __init__(self, group: Group, place_of: Mapping[str, int], statistics: Sequence[str]) -> None:
        names = [place_of[name] for name in group.names]
        taken = [place for place, one in enumerate(group.statistics) if one in statistics]
        kinds = [statistics.index(group.statistics[place]) for place in taken]
        self.whole = whole = names == list(range(len(place_of))) and kinds == list(range(len(statistics)))
        self._kinds = kinds
        # A copy is ten times faster than a list of places, and most groups are all of a row.
        self._names: Any = slice(None) if whole else np.array(names, dtype=np.int64)
        inside = np.array(names)[:, None], np.array(kinds, dtype=np.int64)[None, :]
        self._cells: Any = slice(None) if whole else (slice(None), *inside)
        self._taken: Any = slice(None) if taken == list(range(len(group.statistics))) else taken
        if len(taken) == 1:
            self._taken = slice(taken[0], taken[0] + 1)

    def put(self, numbers: Float32, rows: Float32, present: Bool, lacking: Bool) -> None:
        """numbers: shape (rows, names, statistics) of the group"""
        rows[self._cells] = numbers[:, :, self._taken]
        present[:, self._names] = True
        lacking[:, self._kinds] = False


def _reopen(path: str, own: tuple[int, int] | None) -> BinaryIO:
    """A file that was read before. Raises UnreadableError where it is another one."""
    stream = open_regular(path)
    if _identity(stream) != own:
        stream.close()
        raise UnreadableError(say("monitor.file_replaced"), where=path)
    return stream


def _groups(layout: Layout, metric: str) -> list[tuple[int, Group]]:
    """Groups of a metric, each with the number of statistics before it."""
    found = []
    offset = 0
    for group in layout.groups:
        if group.metric == metric:
            found.append((offset, group))
        offset += len(group.names) * len(group.statistics)
    return found
