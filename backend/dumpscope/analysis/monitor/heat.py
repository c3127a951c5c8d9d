"""A monitored metric as a map of series and steps: steps in bins, the most unusual number of each, and how unusual it is.

Alone, a number is as unusual as it is far from the median of its series, as a factor. Beside another run it is their distance
over the largest one that counts as noise. Pages are turned quickly, so logarithms and medians are taken of what is shown, not of
every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from dumpscope.analysis.monitor.divergence import distances, pair_names
from dumpscope.domain.monitor.tables import Bool, Float32, Float64, Int64, MetricTable, module_of

SAMPLED: Final = 512
"""Steps, evenly spread, of which the median of a series is taken."""
NOISE: Final = 1.5
"""Factor from the median that every series has now and then: the heat of one run begins there."""
FACTOR: Final = 100.0
"""Factor from the median at which the heat of one run is full."""
FLOORS: Final = 1e4
"""Distance, in floors, at which the heat of two runs is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """names: P series; bins: first and last step of each of B bins

    values: shape (P, B), the number of a bin farthest from the usual one, or the largest distance; NaN where it is none or absent
    scores: shape (P, B), at least 1: how many times farther than usual, inf where a number is not finite; NaN where nothing was
    measured; usual: shape (P,), the median of each series, NaN for two runs; none, full: scores at which the heat is 0 and 1
    """

    names: tuple[str, ...]
    bins: tuple[tuple[int, int], ...]
    values: Float64
    scores: Float64
    usual: Float64
    none: float
    full: float

    @property
    def heat(self) -> Float64:
        """Scores from 0 (usual) to 1, by their logarithm; NaN where nothing was measured."""
        found: Float64 = np.clip(np.log(self.scores / self.none) / np.log(self.full / self.none), 0.0, 1.0)
        return found

    @property
    def worst(self) -> Float64:
        """The largest score of each series, shape (P,); 0 where nothing was measured."""
        found: Float64 = np.nan_to_num(self.scores, nan=0.0, posinf=np.inf).max(axis=1, initial=0.0)
        return found


def map_run(
    table: MetricTable, statistic: str, columns: int, steps: tuple[int | None, int | None] = (None, None)
) -> HeatMap:
    """One run. statistic: one of the table's; columns: bins at most; steps: first and last one that is shown, None for the end"""
    rows = _shown(table.steps, steps)
    numbers = table.values[rows, :, table.statistics.index(statistic)]
    present = table.measured(statistic)[rows]
    starts, bins = _bins(table.steps[rows], columns)
    if not len(starts):
        return _empty(table.names, FACTOR)
    usual = _median(numbers, present)
    shape = len(starts), numbers.shape[1]
    any_present, bad = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    highest, lowest = np.empty(shape), np.empty(shape)
    for place, rows in enumerate(_stretches(starts, len(numbers))):
        there, sizes = present[rows], np.abs(numbers[rows])
        any_present[place] = there.any(axis=0)
        bad[place] = (there & ~np.isfinite(sizes)).any(axis=0)
        measured = sizes if there.all() else np.where(there, sizes, np.float32(np.nan))
        highest[place], lowest[place] = np.fmax.reduce(measured, axis=0), np.fmin.reduce(measured, axis=0)
    up, down = _factor(highest, usual), _factor(lowest, usual)
    values = np.where(up >= down, highest, lowest)
    scores = np.maximum(up, down)
    scores[bad] = np.inf
    values[bad] = np.where(np.isinf(highest[bad]), np.inf, np.nan)
    scores[~any_present] = np.nan
    return HeatMap(names=table.names, bins=bins, values=values.T, scores=scores.T, usual=usual, none=NOISE, full=FACTOR)


def map_pair(
    target: MetricTable,
    golden: MetricTable,
    statistic: str,
    columns: int,
    steps: tuple[int | None, int | None] = (None, None),
    floor: float = 1e-6,
) -> HeatMap:
    """Two runs, over the steps and series that both have. floor: the largest distance that counts as noise"""
    pairs, _ = pair_names(target.names, golden.names)
    names = tuple(target.names[one] for one, _ in pairs)
    common = np.intersect1d(target.steps, golden.steps, assume_unique=True)
    common = common[_shown(common, steps)]
    starts, bins = _bins(common, columns)
    if not len(starts) or not pairs or statistic not in target.statistics or statistic not in golden.statistics:
        return _empty(names, FLOORS)
    values = np.empty((len(starts), len(names)))
    sides = [
        _Side(table, statistic, common, [pair[side] for pair in pairs]) for side, table in enumerate((target, golden))
    ]
    for place, rows in enumerate(_stretches(starts, len(common))):
        (one, own), (other, theirs) = (side.take(rows) for side in sides)
        apart, there = _apart(one, other), own & theirs
        measured = apart if there.all() else np.where(there, apart, np.float32(np.nan))
        values[place] = np.fmax.reduce(measured, axis=0)
    scores = np.maximum(values / floor, 1.0)
    scores[np.isnan(values)] = np.nan
    usual = np.full(len(names), np.nan)
    return HeatMap(names=names, bins=bins, values=values.T, scores=scores.T, usual=usual, none=1.0, full=FLOORS)


def group_modules(found: HeatMap) -> tuple[HeatMap, list[Int64]]:
    """A map with a row a module, in the order in which they appear: in each bin the number of its series that is farthest from
    usual. Also the places of the series of each."""
    together: dict[str, list[int]] = {}
    for place, name in enumerate(found.names):
        together.setdefault(module_of(name), []).append(place)
    members = [np.array(places, dtype=np.int64) for places in together.values()]
    if not members:
        return found, []
    known = np.nan_to_num(found.scores, nan=-1.0, posinf=np.inf)
    rows = np.stack([places[np.argmax(known[places], axis=0)] for places in members])
    columns = np.arange(len(found.bins))
    usual = [found.usual[places[0]] if len(places) == 1 else np.nan for places in members]
    grouped = replace(
        found,
        names=tuple(together),
        values=found.values[rows, columns],
        scores=found.scores[rows, columns],
        usual=np.array(usual),
    )
    return grouped, members


def thin_curve(values: Float32 | Float64, points: int) -> Int64:
    """Places of some `points` numbers of a curve that show what all of them do: in each stretch the smallest and the largest one,
    and the first that is not finite. All places where there are no more."""
    count = len(values)
    if count <= points:
        return np.arange(count, dtype=np.int64)
    edges = np.linspace(0, count, max(1, points // 2) + 1).astype(np.int64)
    found: list[int] = [0, count - 1]
    finite = np.isfinite(values)
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        own, sound = values[first:last], finite[first:last]
        if sound.any():
            found.append(first + int(np.where(sound, own, np.inf).argmin()))
            found.append(first + int(np.where(sound, own, -np.inf).argmax()))
        if not sound.all():
            found.append(first + int(sound.argmin()))
    return np.unique(np.array(found, dtype=np.int64))


def _shown(steps: Int64, limits: tuple[int | None, int | None]) -> slice:
    first, last = limits
    start = 0 if first is None else int(np.searchsorted(steps, first))
    stop = len(steps) if last is None else int(np.searchsorted(steps, last, side="right"))
    return slice(start, max(start, stop))


def _bins(steps: Int64, columns: int) -> tuple[Int64, tuple[tuple[int, int], ...]]:
    """Where each bin begins, and its first and last step."""
    count = min(columns, len(steps))
    if not count:
        return np.empty(0, dtype=np.int64), ()
    edges = np.linspace(0, len(steps), count + 1).astype(np.int64)
    bins = zip(steps[edges[:-1]].tolist(), steps[edges[1:] - 1].tolist(), strict=True)
    return edges[:-1], tuple(bins)


def _stretches(starts: Int64, count: int) -> Iterator[slice]:
    """The rows of each bin. What is made of all rows at once does not fit into the caches of a processor, and the system has to
    clear the memory for it: that took five times as long."""
    return (slice(first, last) for first, last in pairwise([*starts.tolist(), count]))


class _Side:
    """The numbers of one run at the steps and for the series that both have."""

    def __init__(self, table: MetricTable, statistic: str, steps: Int64, places: Sequence[int]) -> None:
        self._numbers, self._present = table.values[:, :, table.statistics.index(statistic)], table.measured(statistic)
        self._rows, self._places = np.searchsorted(table.steps, steps), np.array(places)
        self._whole = len(steps) == len(table.steps) and places == list(range(len(table.names)))

    def take(self, rows: slice) -> tuple[Float32, Bool]:
        """Numbers, and where there is one, of some of the steps; shape (steps, series)."""
        if self._whole:
            return self._numbers[rows], self._present[rows]
        cells = self._rows[rows, None], self._places[None, :]
        return self._numbers[cells], self._present[cells]


def _apart(one: Float32, other: Float32) -> Float32:
    """Distances of the numbers of both runs."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        found = np.subtract(one, other)
        np.abs(found, out=found)
        found /= np.maximum(np.abs(one), np.abs(other))
    rare = ~np.isfinite(found)
    if rare.any():
        found[rare] = distances(one[rare], other[rare])
    return found


def _median(numbers: Float32, present: Bool) -> Float64:
    """Median of the sizes of the finite numbers of each series, NaN where it has none."""
    found = np.full(numbers.shape[1], np.nan)
    sample = np.unique(np.linspace(0, len(numbers) - 1, SAMPLED).astype(np.int64))
    for rows in (sample, slice(None)):  # what is measured in few steps may be in none of the sample
        left = np.flatnonzero(np.isnan(found))
        some = np.where(present[rows][:, left], np.abs(numbers[rows][:, left]), np.float32(np.nan))
        some[~np.isfinite(some)] = np.nan
        known = np.isfinite(some).any(axis=0)
        if known.any():
            found[left[known]] = np.nanmedian(some[:, known], axis=0)
        if len(left) == 0 or known.all():
            break
    return found


def _factor(sizes: Float64, usual: Float64) -> Float64:
    """How many times larger or smaller than usual, at least 1."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = sizes / usual
        found = np.maximum(ratio, 1 / ratio)
    found[sizes == usual] = 1.0
    return np.nan_to_num(np.maximum(found, 1.0), nan=1.0, posinf=np.inf)


def _empty(names: Sequence[str], full: float) -> HeatMap:
    nothing = np.empty((len(names), 0))
    return HeatMap(
        names=tuple(names),
        bins=(),
        values=nothing,
        scores=nothing,
        usual=np.full(len(names), np.nan),
        none=1.0,
        full=full,
    )
