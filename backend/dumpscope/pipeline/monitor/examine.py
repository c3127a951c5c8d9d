"""Examines one monitored run, or two, from start to end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dumpscope.analysis.monitor.anomalies import find_anomalies, sort_anomalies
from dumpscope.analysis.monitor.divergence import compare_runs
from dumpscope.analysis.monitor.ranks import find_stray_ranks
from dumpscope.domain.monitor.findings import Anomaly, Divergence, StrayRank
from dumpscope.domain.monitor.tables import Float64, Int64, MetricTable, MonitorRank, MonitorRun
from dumpscope.errors import UsageError
from dumpscope.readers.monitors.opening import open_monitor
from dumpscope.texts import say

Progress = Callable[[float, str], None]
EXAMINED: Final = ("actv", "actv_grad", "grad_unreduced", "grad_unclipped", "grad_reduced", "update")
"""Metrics whose anomalies are looked for: moments follow gradients, and weights follow updates."""
AGREEING: Final = ("grad_reduced", "grad_unclipped", "param_origin", "param_updated", "exp_avg", "exp_avg_sq")
"""Metrics that ranks may agree about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAnomaly:
    """An anomaly and the rank that has it."""

    rank: int | None
    anomaly: Anomaly


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDivergence:
    """Where two runs part, on one rank of both; divergence: None where they have nothing in common."""

    rank: int | None
    divergence: Divergence | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What came out of one run (golden None) or two.

    anomalies: of the target, the gravest first; strays: its odd ranks; divergences: by rank, in the order in which they part
    """

    target: MonitorRun
    golden: MonitorRun | None
    anomalies: tuple[RankAnomaly, ...]
    strays: tuple[StrayRank, ...]
    divergences: tuple[RankDivergence, ...] = ()

    @property
    def parts(self) -> RankDivergence | None:
        """The rank that parts first, None where none does."""
        first = self.divergences[0] if self.divergences else None
        return (
            first if first is not None and first.divergence is not None and first.divergence.step is not None else None
        )


def examine(
    target: Path | str,
    golden: Path | str | None = None,
    *,
    ranks: Sequence[int] = (),
    metrics: Sequence[str] = (),
    roots: tuple[str, str] = (os.sep, os.sep),
    progress: Progress = lambda done, message: None,
) -> Examined:
    """Examine a run, and compare it with another if one is given.

    ranks, metrics: only these, all if empty; roots: for each run the folder that no link may lead out of
    progress: gets the share done and a sentence; what it raises ends the work
    Raises NotFoundError, UnreadableError, LimitError, UsageError.
    """
    progress(0.0, say("monitor.reading"))
    first = _chosen(open_monitor(target, root=roots[0]), ranks)
    second = None if golden is None else _chosen(open_monitor(golden, root=roots[1]), ranks)
    known = {metric for one in first.ranks for metric in (*one.metrics, *one.scalars)}
    unknown = [metric for metric in metrics if metric not in known]
    if unknown:
        raise UsageError(say("monitor.no_such_metric", metric=unknown[0], metrics=", ".join(sorted(known))))
    anomalies: list[RankAnomaly] = []
    for number, rank in enumerate(first.ranks):
        progress(number / len(first.ranks) / 2, say("monitor.examining", number=number + 1, count=len(first.ranks)))
        anomalies += [RankAnomaly(rank=rank.rank, anomaly=one) for one in _anomalies(rank, metrics)]
    strays = _strays(first, metrics)
    divergences = () if second is None else _divergences(first, second, metrics, progress)
    return Examined(
        target=first, golden=second, anomalies=tuple(anomalies), strays=tuple(strays), divergences=divergences
    )


def _anomalies(rank: MonitorRank, metrics: Sequence[str]) -> list[Anomaly]:
    """Anomalies of a rank. What a gradient has before it is clipped or reduced is not told again for afterwards."""
    found: dict[tuple[object, ...], Anomaly] = {}
    for metric in rank.metrics:
        if metric in metrics if metrics else metric in EXAMINED:
            family = "grad" if metric.startswith("grad_") else metric
            for one in find_anomalies(rank.load(metric)):
                found.setdefault((family, one.kind, one.name, one.step), one)
    for name, (steps, values) in rank.scalars.items():
        if name in metrics if metrics else name != "lr":
            signed = bool((values <= 0).any())  # factors say nothing of it
            for one in find_anomalies(scalar_table(name, steps, values)):
                if one.kind == "not_finite" or not signed:
                    found[name, one.kind, one.name, one.step] = one
    return sort_anomalies(list(found.values()))


def scalar_table(name: str, steps: Int64, values: Float64) -> MetricTable:
    """A scalar, such as the loss, as a table of one series that has its name. Beyond float32 a number becomes its largest."""
    largest = np.finfo(np.float32).max
    values = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    return MetricTable(
        metric=name,
        names=(name,),
        statistics=("norm",),
        steps=steps,
        values=values[:, None, None].astype(np.float32),
        present=np.ones((len(steps), 1), dtype=np.bool_),
    )


def _chosen(run: MonitorRun, ranks: Sequence[int]) -> MonitorRun:
    if not ranks:
        return run
    chosen = tuple(one for one in run.ranks if (one.rank or 0) in ranks)
    missing = sorted(set(ranks) - {one.rank or 0 for one in chosen})
    if missing:
        known = ", ".join(str(one.rank or 0) for one in run.ranks)
        raise UsageError(say("monitor.no_such_rank", rank=missing[0], ranks=known))
    return MonitorRun(path=run.path, tool=run.tool, ranks=chosen, problems=run.problems)


def _strays(run: MonitorRun, metrics: Sequence[str]) -> list[StrayRank]:
    found = []
    for metric in AGREEING:
        if metrics and metric not in metrics:
            continue
        tables = {one.rank: one.load(metric) for one in run.ranks if one.rank is not None and metric in one.metrics}
        found += find_stray_ranks(tables)
    return sorted(found, key=lambda one: (one.step, one.rank))


def _divergences(
    target: MonitorRun, golden: MonitorRun, metrics: Sequence[str], progress: Progress
) -> tuple[RankDivergence, ...]:
    """By rank, in the order in which they part."""
    found = []
    for number, rank in enumerate(target.ranks):
        other = partner_of(rank, target, golden)
        if other is None:
            continue
        progress(
            0.5 + number / len(target.ranks) / 2, say("monitor.comparing", number=number + 1, count=len(target.ranks))
        )
        found.append(RankDivergence(rank=rank.rank, divergence=_compare(rank, other, metrics)))
    return tuple(sorted(found, key=_when))


def partner_of(rank: MonitorRank, target: MonitorRun, golden: MonitorRun) -> MonitorRank | None:
    """The rank of the golden that one of the target is compared with. Of runs of one rank each, whatever its number is."""
    if len(target.ranks) == len(golden.ranks) == 1:
        return golden.ranks[0]
    return next((one for one in golden.ranks if (one.rank or 0) == (rank.rank or 0)), None)


def _compare(target: MonitorRank, golden: MonitorRank, metrics: Sequence[str]) -> Divergence | None:
    both = [one for one in target.metrics if one in golden.metrics and (not metrics or one in metrics)]
    sides: list[dict[str, MetricTable]] = [{metric: side.load(metric) for metric in both} for side in (target, golden)]
    return compare_runs(sides[0], sides[1], (target.scalars, golden.scalars))


def _when(one: RankDivergence) -> tuple[float, int]:
    step = one.divergence.step if one.divergence is not None else None
    return (np.inf if step is None else step), one.rank or 0
