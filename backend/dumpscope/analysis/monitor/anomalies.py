"""Anomalies of single series, by medians, with a floor that comes from the run itself.

A series is the norm of one gradient, moment, update or value over the steps, on a logarithmic scale. What is usual in a step
is the median of the blocks before it; how much it varies is their median absolute deviation, and at least the usual one of the
whole series.

    not_finite   NaN or infinite from a step on
    spike        far above what is usual, for at most a block
    exploding    the median of the blocks rises far above that of the first half and stays
    dead         zero for a block of steps, after it was not
    drift        moves away from the other series of its metric, and stays away
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dumpscope.domain.monitor.findings import KINDS, Anomaly, Kind
from dumpscope.domain.monitor.tables import Bool, Float64, Int64, MetricTable

BLOCK: Final = 16
"""Steps of a series that are looked at together."""
HISTORY: Final = 4
"""Blocks before a step that tell what is usual."""
DEVIATIONS: Final = 8.0
SPIKE: Final = 3.0
EXPLODED: Final = 256.0
DRIFTED: Final = 4.0
"""Factors below which a change is none, however quiet the run is."""
TOGETHER: Final = 0.5
"""Share of the series of a metric from which an anomaly of a step is one of the run."""
FEWEST: Final = 5
"""Series of a metric from which one can drift away from the others."""
_SIGMA: Final = 1.4826
_WATCHED: Final = ("norm", "ratio")


def find_anomalies(table: MetricTable) -> list[Anomaly]:
    """Anomalies of a table, the gravest kind first, then by step."""
    found: list[Anomaly] = []
    for statistic in _WATCHED:
        column = table.column(statistic)
        if column is not None and column.size:
            found += _of_column(table, statistic, column)
    return sort_anomalies(found)


def sort_anomalies(found: Sequence[Anomaly]) -> list[Anomaly]:
    """The gravest kind first, then by step and size."""
    return sorted(
        found, key=lambda one: (KINDS.index(one.kind), one.step, -one.series, -abs(_log(one.factor)), one.name)
    )


def _of_column(table: MetricTable, statistic: str, column: Float64) -> list[Anomaly]:
    found: list[Anomaly] = []
    finite_logs: list[tuple[int, Int64, Float64]] = []
    measured = table.measured(statistic)
    for place, name in enumerate(table.names):
        rows = np.flatnonzero(measured[:, place])
        if not len(rows):
            continue
        values = np.abs(column[rows, place])
        series = _Series(table.metric, name, statistic, table.steps[rows], values)
        found += series.not_finite()
        found += series.dead()
        logs = series.logs()
        if len(logs):
            exploding = series.exploding(logs)
            end = (
                exploding[0].step - HISTORY * BLOCK if exploding else np.inf
            )  # what is a spike in its rise is part of it
            found += exploding + [one for one in series.spikes(logs) if one.last_step < end]
            finite_logs.append((place, rows, logs))
    return [*_merged(found, len(table.names)), *_drifts(table, statistic, column, finite_logs)]


class _Series:
    """One series: the steps in which it was measured, and its numbers, which are not negative."""

    def __init__(self, metric: str, name: str, statistic: str, steps: Int64, values: Float64) -> None:
        self.metric = metric
        self.name = name
        self.statistic = statistic
        self.steps = steps
        self.values = values

    def logs(self) -> Float64:
        """Logarithms, base 2; a zero or a number that is not finite counts as the one before it. Empty where there is none."""
        usable = np.isfinite(self.values) & (self.values > 0)
        if not usable.any():
            return np.empty(0)
        first = int(np.argmax(usable))
        last = np.maximum.accumulate(np.where(usable, np.arange(len(usable)), first))
        found: Float64 = np.log2(self.values[last])
        return found

    def not_finite(self) -> list[Anomaly]:
        bad = ~np.isfinite(self.values)
        if self.statistic == "ratio":
            bad = np.isnan(self.values)  # an update of a weight that was zero is infinitely larger
        if not bad.any():
            return []
        first, last = int(np.argmax(bad)), int(len(bad) - 1 - np.argmax(bad[::-1]))
        before = self.values[:first]
        usual = float(np.median(before)) if len(before) else float("nan")
        return [self._anomaly("not_finite", first, last, float(self.values[first]), usual)]

    def dead(self) -> list[Anomaly]:
        zero = self.values == 0
        alive = np.flatnonzero(~zero & np.isfinite(self.values))
        if not len(alive):
            return []
        found = []
        for first, last in runs_of(zero):
            if first > alive[0] and (last - first + 1 >= BLOCK):
                before = self.values[max(0, first - BLOCK) : first]
                found.append(self._anomaly("dead", first, last, 0.0, float(np.median(before))))
        return found

    def spikes(self, logs: Float64) -> list[Anomaly]:
        usual, floor = _expected(logs)
        limit = np.maximum(DEVIATIONS * floor, np.log2(SPIKE))
        high = (logs - usual > limit) & np.isfinite(self.values)
        found = []
        for first, last in runs_of(high):
            after = logs[last + 1 : last + 2]
            if last - first + 1 > BLOCK or (after - usual[first] > limit[first]).any():
                continue  # it did not come back: what is usual has changed
            peak = first + int(np.argmax(logs[first : last + 1]))
            found.append(self._anomaly("spike", first, last, float(self.values[peak]), float(2 ** usual[first])))
        return found

    def exploding(self, logs: Float64) -> list[Anomaly]:
        medians = block_medians(logs)
        if len(medians) < 3:
            return []
        start = float(np.median(medians[: (len(medians) + 1) // 2]))
        high = medians > start + np.log2(EXPLODED)
        if not high[-1]:
            return []
        first = int(len(high) - np.argmax(~high[::-1])) if not high.all() else 0
        if first < 1:
            return []
        row = min(first * BLOCK, len(logs) - 1)
        crossed = np.flatnonzero(logs[max(0, row - BLOCK) :] > start + np.log2(EXPLODED))
        row = max(0, row - BLOCK) + int(crossed[0]) if len(crossed) else row
        return [self._anomaly("exploding", row, len(logs) - 1, float(self.values[-1]), float(2**start))]

    def _anomaly(self, kind: Kind, first: int, last: int, value: float, usual: float) -> Anomaly:
        return Anomaly(
            kind=kind,
            metric=self.metric,
            name=self.name,
            statistic=self.statistic,
            step=int(self.steps[first]),
            last_step=int(self.steps[last]),
            value=value,
            usual=usual,
        )


def runs_of(marks: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last position of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(np.int8)))
    return [(int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def block_medians(values: Float64) -> Float64:
    """Median of each block; a last block that is shorter belongs to the one before it."""
    count = max(1, len(values) // BLOCK)
    last = (count - 1) * BLOCK
    found = np.empty(count)
    found[:-1] = np.median(values[:last].reshape(-1, BLOCK), axis=1)
    found[-1] = np.median(values[last:])
    return found


def _expected(logs: Float64) -> tuple[Float64, Float64]:
    """What is usual in each step, and how far steps are from it usually (one standard deviation)."""
    count = max(1, len(logs) // BLOCK)
    block_of = np.minimum(np.arange(len(logs)) // BLOCK, count - 1)
    medians = block_medians(logs)
    spread = np.abs(logs - medians[block_of])
    deviations = _SIGMA * block_medians(spread)
    quiet = float(np.median(deviations))
    usual, noise = _before(medians), _before(deviations)
    if count > 1:  # a block that lies higher as a whole counts in part: the series may be on its way
        usual[1:] = np.maximum(usual[1:], np.minimum(medians[1:], usual[1:] + np.log2(SPIKE) / 2))
    floor = np.maximum(noise, quiet)
    return usual[block_of], floor[block_of]


def _before(blocks: Float64) -> Float64:
    """Median of the HISTORY blocks before each block, of fewer where there are not so many; of the first block its own."""
    found = np.empty(len(blocks))
    found[0] = blocks[0]
    for at in range(1, min(HISTORY, len(blocks))):
        found[at] = np.median(blocks[:at])
    if len(blocks) > HISTORY:
        found[HISTORY:] = np.median(sliding_window_view(blocks, HISTORY)[:-1], axis=1)
    return found


def _merged(found: list[Anomaly], names: int) -> list[Anomaly]:
    """Anomalies of one kind that most series of the metric have in the same step as one; explosions in any step."""
    together: dict[tuple[Kind, int], list[Anomaly]] = {}
    for one in found:
        together.setdefault((one.kind, -1 if one.kind == "exploding" else one.step), []).append(one)
    out = []
    for some in together.values():
        if len(some) < max(3, TOGETHER * names):
            out += some
            continue
        worst = max(some, key=lambda one: abs(_log(one.factor)))
        out.append(
            Anomaly(
                kind=worst.kind,
                metric=worst.metric,
                name="",
                statistic=worst.statistic,
                step=min(one.step for one in some),
                last_step=max(one.last_step for one in some),
                value=worst.value,
                usual=worst.usual,
                series=len(some),
            )
        )
    return out


def _drifts(
    table: MetricTable, statistic: str, column: Float64, logs: Sequence[tuple[int, Int64, Float64]]
) -> list[Anomaly]:
    """Series that move away from the others: relative to the median of all series, beyond what the others do."""
    if len(logs) < FEWEST or len(table.steps) < 4 * BLOCK:
        return []
    whole = np.full(column.shape, np.nan)
    for place, rows, values in logs:
        whole[rows, place] = values
    blocks = max(4, len(table.steps) // (4 * BLOCK))
    ends = np.linspace(0, len(table.steps), blocks + 1).astype(np.int64)
    medians = np.stack([_nanmedian(whole[first:last]) for first, last in pairwise(ends)])
    relative = medians - np.nanmedian(medians, axis=1, keepdims=True)
    moved = relative[-1] - relative[0]
    usable: Bool = np.isfinite(moved)
    if usable.sum() < FEWEST:
        return []
    centre = float(np.median(moved[usable]))
    floor = _SIGMA * float(np.median(np.abs(moved[usable] - centre)))
    found = []
    limit = max(DEVIATIONS * floor, np.log2(DRIFTED))
    for place in np.flatnonzero(usable & (np.abs(moved - centre) > limit)).tolist():
        path = relative[:, place] - relative[0, place]
        away = np.abs(path - centre * np.linspace(0, 1, blocks)) > limit / 2
        first = int(len(away) - np.argmax(~away[::-1])) if not away.all() else 0
        value, usual = float(2 ** medians[-1, place]), float(2 ** medians[0, place])
        found.append(
            Anomaly(
                kind="drift",
                metric=table.metric,
                name=table.names[place],
                statistic=statistic,
                step=int(table.steps[ends[min(first, blocks - 1)]]),
                last_step=int(table.steps[-1]),
                value=value,
                usual=usual,
            )
        )
    return found


def _nanmedian(values: Float64) -> Float64:
    """Median over steps; NaN where a series has none."""
    some = np.isfinite(values).any(axis=0)
    out = np.full(values.shape[1], np.nan)
    if some.any():
        out[some] = np.nanmedian(values[:, some], axis=0)
    return out


def _log(factor: float) -> float:
    if not np.isfinite(factor):
        return 1024.0
    return float(np.log2(factor)) if factor > 0 else -1024.0
