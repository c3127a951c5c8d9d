"""Models of monitored runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from dumpscope.analysis.monitor.heat import HeatMap
from dumpscope.api.models.base import Error, Moment, Phrase, Problem, Problems, Real, Wire, moment, real
from dumpscope.domain.monitor.tables import MonitorRank, MonitorRun
from dumpscope.index.monitors.catalogue import MonitorRow
from dumpscope.pipeline.monitor.open_runs import Curve
from dumpscope.texts import english

Path = Annotated[str, Field(min_length=1, max_length=4096)]
Kind = Literal["not_finite", "exploding", "dead", "spike", "drift"]
LEVELS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
"""Letters of the heat of a cell, from usual to full."""
ABSENT: Final = "-"
NOT_FINITE: Final = "!"


class NewMonitor(BaseModel):
    """Path of a monitored run below a root: a folder of our recorder, a .monitor file, or the output of msprobe's monitor; it may
    still grow. other: a run that is known to be right."""

    model_config = ConfigDict(extra="forbid")

    path: Path
    other: Path | None = None
    name: Annotated[str, Field(min_length=1, max_length=500)] | None = None


class Monitor(Wire):
    """`status`, `job`, `error`: of the last examination; the rest is what the last one that ended found, null until there is one

    `summary`: in a sentence; `said`: the same as phrases; `counts`: anomalies by kind; `step`: the first in which the runs part
    `examined`: when it ended, `seconds`: how long it took
    """

    id: str
    name: str
    path: str
    other: str | None
    status: Literal["pending", "done", "failed", "cancelled"]
    job: str | None
    error: Error | None
    created: Moment
    summary: str | None
    said: list[Phrase] | None
    counts: dict[Kind, int] | None
    strays: int | None
    step: int | None
    examined: str | None
    seconds: float | None


class MonitorMetric(Wire):
    """`statistics`: what is known of each series of the metric; a scalar, such as the loss, has only its own value, `norm`."""

    metric: str
    statistics: list[str]
    scalar: bool


class MonitoredRank(Wire):
    rank: int
    first_step: int
    last_step: int
    metrics: list[MonitorMetric]


class MonitoredRun(Wire):
    path: str
    tool: Literal["dumpscope", "msprobe"]
    ranks: list[MonitoredRank]
    problems: Problems


class DumpBeside(Wire):
    """A dump whose folder lies beside the monitored run's; `steps`: at most 1000 of them."""

    id: str
    name: str
    steps: list[int]


class MonitorRuns(Wire):
    """The runs as they are now. `grown`: they have more steps than the last examination saw."""

    run: MonitoredRun
    other: MonitoredRun | None
    grown: bool
    dumps: list[DumpBeside]


class StrayRank(Wire):
    rank: int
    metric: str
    name: str
    step: int
    series: int
    steps: int
    value: Real
    usual: Real
    said: list[Phrase]


class Departure(Wire):
    metric: str
    name: str
    statistic: str
    target: Real
    golden: Real
    distance: Real


class MonitorDivergence(Wire):
    """Where the runs part on one rank; `step` is null where they do not, `steps` 0 where they have none in common.

    `quiet`: equal up to there; `floor`: the largest distance before; `apart_from`: from here half of all norms differ by half
    """

    rank: int | None
    steps: int
    step: int | None
    first: Departure | None
    first_step: int | None = None
    last_step: int | None = None
    series: int = 0
    only_target: int = 0
    only_golden: int = 0
    module: str | None = None
    others: int = 0
    quiet: bool = False
    floor: Real = None
    apart_from: int | None = None


class MonitorFindings(Wire):
    """`anomalies`: how many there are; a page of them has its own address."""

    summary: str
    said: list[Phrase]
    counts: dict[Kind, int]
    anomalies: int
    divergences: list[MonitorDivergence]
    strays: list[StrayRank]
    problems: list[Problem]


class MonitorAnomaly(Wire):
    """`number`: place, the gravest first; `name`: null where most series of the metric have it, `series`: how many."""

    number: int
    kind: Kind
    rank: int | None
    metric: str
    name: str | None
    statistic: str
    step: int
    last_step: int
    value: Real
    usual: Real
    series: int


class StepBin(Wire):
    first: int
    last: int


class HeatRow(Wire):
    """`heat`: a letter per bin from `0` (usual) to `z`, `!` where a number is not finite, `-` where nothing was measured

    `values`: the most unusual size of each bin, or the largest distance of the two runs, three digits
    `usual`: median of the series; `worst`: how many times farther than usual, or than noise, the farthest is
    `series`: how many a row of a module has, 1 of a series; `hottest`: the farthest of them
    """

    name: str
    series: int
    hottest: str
    heat: str
    values: list[Real]
    usual: Real
    worst: Real


class HeatPage(Wire):
    """`bins`: the columns; `against`: whether the numbers are distances from the other run."""

    rank: int
    metric: str
    statistic: str
    against: bool
    bins: list[StepBin]
    items: list[HeatRow]
    next: str | None
    total: int


class MonitorCurve(Wire):
    """A series of the run, or of the `other` one, thinned to what can be seen: the smallest and largest of each stretch stay, and
    what is not finite. `measured`: numbers before thinning."""

    name: str
    other: bool
    steps: list[int]
    values: list[Real]
    measured: int


class MonitorCurves(Wire):
    rank: int
    metric: str
    statistic: str
    curves: list[MonitorCurve]


def monitor(row: MonitorRow) -> Monitor:
    answer = row.answer or {}
    said = answer.get("said")
    return Monitor.model_validate(
        {
            "id": row.id,
            "name": row.name,
            "path": row.path,
            "other": row.other,
            "status": row.status,
            "job": row.job,
            "error": row.error,
            "created": row.created,
            "summary": english(said) if said else None,
            "said": said,
            "counts": answer.get("counts"),
            "strays": answer.get("strays"),
            "step": answer.get("step"),
            "examined": moment(answer["examined"]) if answer else None,
            "seconds": answer.get("seconds"),
        }
    )


def monitored_run(run: MonitorRun) -> MonitoredRun:
    return MonitoredRun(path=run.path, tool=run.tool, ranks=[_rank(one) for one in run.ranks], problems=_problems(run))


def _problems(run: MonitorRun) -> list[Problem]:
    return [Problem.model_validate(one, from_attributes=True) for one in run.problems]


def _rank(one: MonitorRank) -> MonitoredRank:
    metrics = [
        MonitorMetric(metric=metric, statistics=list(statistics), scalar=False)
        for metric, statistics in one.metrics.items()
    ]
    metrics += [
        MonitorMetric(metric=name, statistics=["norm"], scalar=True) for name in one.scalars if name not in one.metrics
    ]
    return MonitoredRank(rank=one.rank or 0, first_step=one.first_step, last_step=one.last_step, metrics=metrics)


def heat_row(found: HeatMap, place: int, series: Sequence[str]) -> HeatRow:
    """A row of a map. series: names of those that it is of, the farthest first"""
    heat, scores = found.heat[place], found.scores[place]
    levels = np.nan_to_num(np.rint(heat * (len(LEVELS) - 1)), nan=0).astype(int).tolist()
    letters = [
        ABSENT if absent else LEVELS[level] for absent, level in zip(np.isnan(scores).tolist(), levels, strict=True)
    ]
    values = found.values[place].tolist()
    for at in np.flatnonzero(~np.isfinite(found.values[place]) & ~np.isnan(scores)).tolist():
        letters[at] = NOT_FINITE
    sent = [None if letter == ABSENT else _short(value) for letter, value in zip(letters, values, strict=True)]
    usual = float(found.usual[place])
    return HeatRow(
        name=found.names[place],
        series=len(series),
        hottest=series[0],
        heat="".join(letters),
        values=sent,
        usual=None if np.isnan(usual) else _short(usual),
        worst=_short(float(found.worst[place])),
    )


def monitor_curve(curve: Curve) -> MonitorCurve:
    return MonitorCurve(
        name=curve.name,
        other=curve.golden,
        steps=curve.steps.tolist(),
        values=[_short(value, 6) for value in curve.values.tolist()],
        measured=curve.measured,
    )


def _short(value: float, digits: int = 3) -> Any:
    return real(float(f"{value:.{digits}g}") if np.isfinite(value) else value)
