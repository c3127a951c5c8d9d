"""Values of one item pair of a stored comparison, around one element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dumpscope.errors import TensorError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.item_pairs import get_item_pair
from dumpscope.index.store.database import Database
from dumpscope.pipeline.figures.pair_tensors import load_sides, why_missing, why_unreadable
from dumpscope.plots.pair.window import Box, Landmarks, Window, landmarks, starting_point, window, worst_within
from dumpscope.readers.tensors.arrays import LoadedTensor
from dumpscope.texts import Phrase, phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """dtypes, shapes: of target and golden, None where that side has no tensor; item: its name
    window: None where there is nothing to look at, `said` tells why; landmarks: only of an opening, see `peek`"""

    item: str
    dtypes: tuple[str | None, str | None]
    shapes: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    window: Window | None
    landmarks: Landmarks | None
    said: list[Phrase]


def peek(
    database: Database,
    unit: StoredUnit,
    pair: int,
    *,
    at: Sequence[int] | None,
    within: Box | None = None,
    axes: Sequence[int],
    rows: int,
    columns: int,
) -> Peek:
    """Values around the element `at`; without one around the worst of the part `within`, or else the whole pair is read for the
    places worth looking at, and opened there.

    Raises NotFoundError for an unknown pair, UsageError for an element or dimensions that are not there.
    """
    row = get_item_pair(database, unit, pair)
    leaf = row.target or row.golden
    item = leaf.name if leaf is not None else ""
    try:
        target, golden = load_sides(database, unit, row)
        sides = [side for side in (target, golden) if side is not None]
        if not sides:
            return _without_window(item, target, golden, why_missing(row, None))
        if not any(side.array.size for side in sides):
            return _without_window(item, target, golden, phrase("values.empty"))
        if target is not None and golden is not None and len(target.shape) != len(golden.shape):
            shapes = {"target": str(list(target.shape)), "golden": str(list(golden.shape))}
            return _without_window(item, target, golden, phrase("figure.shapes", **shapes))
        arrays = [None if side is None else side.array for side in (target, golden)]
        found = None
        if at is None and target is not None and golden is not None and target.shape == golden.shape:
            if within:
                at = worst_within(target.array, golden.array, within)
            else:
                found = landmarks(target.array, golden.array)
        if at is None:
            at = starting_point(next(side.shape for side in sides if side.array.size), found)
        window_shown = window(arrays[0], arrays[1], at, axes=axes, rows=rows, columns=columns)
    except TensorError as error:
        return _without_window(item, None, None, why_unreadable(error))
    return _peek(item, target, golden, _describe(window_shown), window_shown, found)


def _without_window(item: str, target: LoadedTensor | None, golden: LoadedTensor | None, why: Phrase) -> Peek:
    return _peek(item, target, golden, [why])


def _peek(
    item: str,
    target: LoadedTensor | None,
    golden: LoadedTensor | None,
    said: list[Phrase],
    window_shown: Window | None = None,
    found: Landmarks | None = None,
) -> Peek:
    return Peek(
        item=item,
        dtypes=(target.dtype if target else None, golden.dtype if golden else None),
        shapes=(target.shape if target else None, golden.shape if golden else None),
        window=window_shown,
        landmarks=found,
        said=said,
    )


def _describe(window_shown: Window) -> list[Phrase]:
    down, across = window_shown.axes
    row = 0 if down is None else window_shown.at[down] - window_shown.row
    value = window_shown.values[row][window_shown.at[across] - window_shown.column]
    index = ", ".join(map(str, window_shown.at))
    sides = [
        phrase(f"peek.{name}", value=text)
        for name, text in (("target", value.target), ("golden", value.golden))
        if text
    ]
    if value.difference is not None:
        sides.append(phrase("peek.equal") if value.equal else phrase("peek.difference", value=value.difference))
    return [phrase("peek.at", index=index, values=sides)]
