"""Files of `dumpscope_capture.monitor`: one a rank, more where a run was resumed; they may still grow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
CELL_LIMIT: Final = 1 << 30
"""Numbers of one table."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A value frame. start: offset of its statistics in the bytes of its part"""

    step: int
    part: int
    layout: Layout
    start: int


def read_rank(folder: str, paths: Sequence[str], problems: list[Problem]) -> MonitorRank | None:
    """One rank of a run, whose files come in the order of their parts: a later one wins where two have a step.

    folder: `rank3`; None where no step could be read. Raises UnreadableError, LimitError.
    """
    contents = [_contents(path) for path in paths]
    blocks: dict[int, _Block] = {}
    scalars: dict[str, dict[int, float]] = {}
    facts: dict[str, Any] = {}
    for part, (path, data) in enumerate(zip(paths, contents, strict=True)):
        layouts: dict[int, Layout] = {}
        end = len(FIRST_LINE)
        lost = 0
        for frame in find_frames(data, len(FIRST_LINE)):
            lost += frame_start(frame) - end
            end = frame.start + frame.size
            payload = data[frame.start : end]
            if frame.kind == HEADER:
                facts = _facts(payload) or facts
            elif frame.kind == LAYOUT:
                _add_layout(layouts, payload, path, problems)
            elif frame.kind == VALUES:
                layout = _layout_of(layouts, frame, payload)
                if layout is None:
                    lost += frame.size
                    continue
                blocks[frame.step] = _Block(frame.step, part, layout, frame.start + layout.statistics_start)
                for name, value in zip(layout.scalars, read_scalars(layout, payload), strict=True):
                    scalars.setdefault(name, {})[frame.step] = value
        if lost:
            problems.append(Problem(loc=path, kind="damaged", message=say("monitor.bytes_skipped", count=lost)))
    if not blocks:
        return None
    ordered = [blocks[step] for step in sorted(blocks)]
    present = {group.metric for block in ordered for group in block.layout.groups}
    metrics = tuple(one for one in METRICS if one in present) + tuple(sorted(present - set(METRICS)))
    order = facts.get("parameters")
    names = list(order) if isinstance(order, Mapping) else []

    def load(metric: str) -> MetricTable:
        return _table(metric, ordered, contents, names)

    return MonitorRank(
        rank=rank_number(folder),
        metrics=metrics,
        load=load,
        first_step=ordered[0].step,
        last_step=ordered[-1].step,
        scalars={name: _series(values) for name, values in scalars.items()},
        facts=facts,
    )


def _contents(path: str) -> bytes:
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > SIZE_LIMIT:
            raise LimitError(say("monitor.file_too_large", gib=SIZE_LIMIT >> 30), where=path)
        data = stream.readall()  # type: ignore[attr-defined]
    if not data.startswith(FIRST_LINE):
        raise UnreadableError(say("monitor.no_monitor_file"), where=path)
    return bytes(data)


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


def _layout_of(layouts: Mapping[int, Layout], frame: Frame, payload: bytes) -> Layout | None:
    """The layout of a value frame, None where it does not fit."""
    try:
        layout = layouts.get(layout_number(payload))
    except ValueError:
        return None
    return layout if layout is not None and layout.size == frame.size else None


def _series(values: Mapping[int, float]) -> tuple[Int64, Float64]:
    steps = sorted(values)
    return np.array(steps, dtype=np.int64), np.array([values[step] for step in steps], dtype=np.float64)


def _table(metric: str, blocks: Sequence[_Block], contents: Sequence[bytes], order: Iterable[str]) -> MetricTable:
    """The table of a metric, names in the order of the model where the header tells it."""
    layouts = {id(block.layout): block.layout for block in blocks}
    groups_of = {key: groups for key, layout in layouts.items() if (groups := _groups(layout, metric))}
    used = [(block, groups_of[id(block.layout)]) for block in blocks if id(block.layout) in groups_of]
    all_groups = [group for groups in groups_of.values() for _, group in groups]
    found = dict.fromkeys(name for group in all_groups for name in group.names)
    known = dict.fromkeys(name for name in order if name in found)
    names = list({**known, **found})
    statistics = tuple(dict.fromkeys(one for group in all_groups for one in group.statistics))
    if len(used) * len(names) * len(statistics) > CELL_LIMIT:
        raise LimitError(say("monitor.table_too_large", metric=metric, count=CELL_LIMIT))
    values: Float32 = np.full((len(used), len(names), len(statistics)), np.nan, dtype=np.float32)
    present: Bool = np.zeros((len(used), len(names)), dtype=np.bool_)
    place_of = {name: place for place, name in enumerate(names)}
    places: dict[Group, tuple[Any, Any]] = {}
    for row, (block, groups) in enumerate(used):
        for offset, group in groups:
            where = places.get(group)
            if where is None:
                columns = np.array([place_of[name] for name in group.names], dtype=np.int64)
                kinds = np.array([statistics.index(one) for one in group.statistics], dtype=np.int64)
                where = places[group] = columns, kinds
            shape = len(group.names), len(group.statistics)
            numbers = np.frombuffer(contents[block.part], "<f4", shape[0] * shape[1], block.start + 4 * offset)
            values[row, where[0][:, None], where[1][None, :]] = numbers.reshape(shape)
            present[row, where[0]] = True
    steps = np.array([block.step for block, _ in used], dtype=np.int64)
    return MetricTable(
        metric=metric, names=tuple(names), statistics=statistics, steps=steps, values=values, present=present
    )


def _groups(layout: Layout, metric: str) -> list[tuple[int, Group]]:
    """Groups of a metric, each with the number of statistics before it."""
    found = []
    offset = 0
    for group in layout.groups:
        if group.metric == metric:
            found.append((offset, group))
        offset += len(group.names) * len(group.statistics)
    return found
