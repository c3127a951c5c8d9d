"""Monitored runs that a server keeps open between requests: they are read on while they grow, and their tables are kept."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TypeVar

import numpy as np

from dumpscope.analysis.monitor.divergence import bare_name
from dumpscope.analysis.monitor.heat import HeatMap, map_pair, map_run, thin_curve
from dumpscope.domain.monitor.tables import Float64, Int64, MetricTable, MonitorRank, MonitorRun
from dumpscope.errors import UsageError
from dumpscope.pipeline.monitor.examine import partner_of, scalar_table
from dumpscope.readers.monitors.opening import FollowedRun
from dumpscope.texts import say

RUNS: Final = 16
"""Runs that are kept open."""
BYTES: Final = 512 << 20
"""Memory for tables and maps of all of them."""
PAUSE_SECONDS: Final = 0.5
"""Time between two looks at the files of a run; more where a look takes long."""
LONGEST_PAUSE: Final = 60.0

Result = TypeVar("Result")
Limits = tuple[int | None, int | None]


@dataclass(slots=True)
class _Open:
    """A run and the lock of whoever reads it. due: when its files are looked at again"""

    follower: FollowedRun
    lock: Lock = field(default_factory=Lock)
    run: MonitorRun | None = None
    due: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One series of one run, thinned. steps: ascending; values: as many; measured: how many there are before thinning"""

    name: str
    golden: bool
    steps: Int64
    values: Float64
    measured: int


class OpenRuns:
    """At most RUNS open runs, and BYTES of what was made of them; what was not used for longest goes first. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: OrderedDict[tuple[str, str], _Open] = OrderedDict()
        self._kept: OrderedDict[tuple[Hashable, ...], tuple[tuple[MonitorRun | None, ...], Any, int]] = OrderedDict()
        self._bytes = 0

    def look(self, path: str, root: str) -> MonitorRun:
        """A run as it is now, or was less than PAUSE_SECONDS ago. Raises NotFoundError, UnreadableError, LimitError."""
        with self._lock:
            one = self._open.setdefault((path, root), _Open(FollowedRun(path, root=root)))
            self._open.move_to_end((path, root))
            while len(self._open) > RUNS:
                self._open.popitem(last=False)
        with one.lock:
            start = time.monotonic()
            if one.run is None or start >= one.due:
                one.run = one.follower.look()
                end = time.monotonic()
                one.due = end + min(LONGEST_PAUSE, max(PAUSE_SECONDS, 10 * (end - start)))
            return one.run

    def heat(
        self,
        target: MonitorRun,
        golden: MonitorRun | None,
        *,
        rank: int | None,
        metric: str,
        statistic: str,
        columns: int,
        limits: Limits = (None, None),
        floor: float = 0.0,
    ) -> HeatMap:
        """The map of a metric; of its distances from the golden where there is one. Empty where the golden has nothing of it.

        rank: None for the first; floor: see `map_pair`. Raises UsageError where the target has no such rank, metric or statistic.
        """

        own = rank_of(target, rank)
        statistic = _statistic(own, metric, statistic)

        def make() -> HeatMap:
            table = self.table(target, own, metric, statistic)
            if golden is None:
                return map_run(table, statistic, columns, limits)
            partner = partner_of(own, target, golden)
            if partner is None or not _has(partner, metric, statistic):
                return map_run(table, statistic, 0)
            return map_pair(table, self.table(golden, partner, metric, statistic), statistic, columns, limits, floor)

        key = "heat", target.path, golden and golden.path, rank, metric, statistic, columns, limits, floor
        return self._keep((target, golden), key, make, lambda found: found.values.nbytes * 2)

    def curves(
        self,
        target: MonitorRun,
        golden: MonitorRun | None,
        *,
        rank: int | None,
        metric: str,
        statistic: str,
        names: Sequence[str],
        points: int,
        limits: Limits = (None, None),
    ) -> list[Curve]:
        """Series of the target, each followed by that of the golden where it has it. names: as the target has them

        Raises UsageError where the target has no such rank, metric, statistic or name.
        """
        own = rank_of(target, rank)
        statistic = _statistic(own, metric, statistic)
        partner = None if golden is None else partner_of(own, target, golden)
        table = self.table(target, own, metric, statistic)
        other = None
        if golden is not None and partner is not None and _has(partner, metric, statistic):
            other = self.table(golden, partner, metric, statistic)
        found = []
        for name in names:
            place = place_of(table, name)
            if place is None:
                raise UsageError(say("monitor.no_such_series", name=f"{name[:200]!r}", metric=metric))
            found.append(_curve(table, place, statistic, points, limits, golden=False))
            place = None if other is None else place_of(other, name)
            if other is not None and place is not None:
                found.append(_curve(other, place, statistic, points, limits, golden=True))
        return found

    def table(self, run: MonitorRun, rank: MonitorRank, metric: str, statistic: str) -> MetricTable:
        """One statistic of a metric or scalar. Raises UsageError where the rank has not got it."""
        if metric in rank.scalars and metric not in rank.metrics:
            return scalar_table(metric, *rank.scalars[metric])
        if not _has(rank, metric, statistic):
            if metric in rank.metrics:
                raise UsageError(
                    say("monitor.no_such_statistic", statistic=statistic, statistics=", ".join(rank.metrics[metric]))
                )
            known = ", ".join((*rank.metrics, *rank.scalars))
            raise UsageError(say("monitor.no_such_metric", metric=f"{metric[:100]!r}", metrics=known))
        return self._keep(
            (run,),
            ("table", run.path, rank.rank, metric, statistic),
            lambda: rank.load(metric, statistic),
            lambda table: table.values.nbytes + table.present.nbytes,
        )

    def _keep(
        self,
        runs: tuple[MonitorRun | None, ...],
        key: tuple[Hashable, ...],
        make: Callable[[], Result],
        size: Callable[[Result], int],
    ) -> Result:
        """What `make` returns, made once for a state of the runs."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None and _same(known[0], runs):
                self._kept.move_to_end(key)
                found: Result = known[1]
                return found
        made = make()
        with self._lock:
            old = self._kept.pop(key, None)
            self._bytes += size(made) - (old[2] if old is not None else 0)
            self._kept[key] = runs, made, size(made)
            while self._bytes > BYTES and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][2]
        return made


def rank_of(run: MonitorRun, rank: int | None) -> MonitorRank:
    """A rank of a run, the first for None. Raises UsageError where there is no such rank."""
    found = next((one for one in run.ranks if rank is None or (one.rank or 0) == rank), None)
    if found is None:
        known = ", ".join(str(one.rank or 0) for one in run.ranks[:100])
        raise UsageError(say("monitor.no_such_rank", rank=str(rank), ranks=known))
    return found


def place_of(table: MetricTable, name: str) -> int | None:
    """Place of a series; a name without the words of wrappers fits too. None where there is none."""
    if name in table.names:
        return table.names.index(name)
    return next((place for place, one in enumerate(table.names) if bare_name(one) == bare_name(name)), None)


def _same(some: tuple[MonitorRun | None, ...], others: tuple[MonitorRun | None, ...]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


def _statistic(rank: MonitorRank, metric: str, statistic: str) -> str:
    """A scalar has only itself."""
    return "norm" if metric in rank.scalars and metric not in rank.metrics else statistic


def _has(rank: MonitorRank, metric: str, statistic: str) -> bool:
    return statistic in rank.metrics.get(metric, ()) or (metric in rank.scalars and metric not in rank.metrics)


def _curve(table: MetricTable, place: int, statistic: str, points: int, limits: Limits, *, golden: bool) -> Curve:
    at = table.statistics.index(statistic)
    rows = np.flatnonzero(table.measured(statistic)[:, place])
    steps = table.steps[rows]
    inside = np.ones(len(rows), dtype=np.bool_)
    if limits[0] is not None:
        inside &= steps >= limits[0]
    if limits[1] is not None:
        inside &= steps <= limits[1]
    steps, values = steps[inside], table.values[rows[inside], place, at].astype(np.float64)
    kept = thin_curve(values, points)
    return Curve(name=table.names[place], golden=golden, steps=steps[kept], values=values[kept], measured=len(steps))
