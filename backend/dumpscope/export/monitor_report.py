"""What came out of monitored runs, as sentences, a table of text, JSON and CSV."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from dumpscope.domain.monitor.findings import Anomaly, Divergence, StrayRank
from dumpscope.domain.monitor.tables import MonitorRun
from dumpscope.export.number_csv import plain_csv
from dumpscope.export.words import list_numbers, number
from dumpscope.texts import Phrase, has, phrase, tell

COLUMNS: Final = (
    "finding", "rank", "step", "last_step", "metric", "name", "statistic", "value", "usual", "series",
)  # fmt: skip
"""Columns of the CSV file. finding: `divergence`, `stray` or the kind of an anomaly; usual: of a divergence the golden's"""

RankedAnomaly = tuple[int | None, Anomaly]
RankedDivergence = tuple[int | None, Divergence | None]


def describe_run(run: MonitorRun) -> Phrase:
    """Ranks, steps and tool of a run in one sentence."""
    ranks = [one.rank for one in run.ranks if one.rank is not None]
    return phrase(
        "monitor.run",
        path=run.path,
        tool=run.tool,
        ranks=list_numbers(ranks) if ranks else "-",
        first=min(one.first_step for one in run.ranks),
        last=max(one.last_step for one in run.ranks),
    )


def say_divergences(divergences: Sequence[RankedDivergence], target: str, golden: str) -> list[Phrase]:
    """Where two runs part, in words: the rank that parts first. divergences: in the order in which they part"""
    rank, first = divergences[0] if divergences else (None, None)
    if first is None:
        return [phrase("monitor.nothing_common")]
    if first.step is None or first.first is None:
        id = (
            "monitor.all_equal"
            if all(one is not None and one.quiet for _, one in divergences)
            else "monitor.stay_close"
        )
        floor = max(one.floor for _, one in divergences if one is not None)
        return [phrase(id, steps=first.steps, series=first.series, share=share(floor))]
    found = first.first
    said = [
        phrase(
            "monitor.parts",
            target=target, golden=golden, step=first.step, metric=metric_words(found.metric), name=found.name,
            value=number(found.target), usual=number(found.golden), share=share(found.distance),
        )
    ]  # fmt: skip
    if first.others:
        said.append(phrase("monitor.others_leave", count=first.others))
    if first.quiet:
        said.append(phrase("monitor.equal_before"))
    elif first.step > first.first_step:
        said.append(phrase("monitor.close_before", share=share(first.floor)))
    if len(divergences) > 1 and rank is not None:
        said.append(phrase("monitor.on_rank", rank=rank))
    if first.apart_from is not None and first.apart_from > first.step:
        said.append(phrase("monitor.apart_from", step=first.apart_from))
    return said


def say_anomalies(anomalies: Sequence[RankedAnomaly], ranks: int) -> list[Phrase]:
    """How many anomalies there are, and the gravest of them. ranks: of the run"""
    if not anomalies:
        return [phrase("monitor.no_anomaly")]
    rank, worst = anomalies[0]
    said = phrase(
        "monitor.anomalies",
        count=len(anomalies), kind=[phrase(f"monitor.kind_{worst.kind}")], step=worst.step,
        series=worst.name or [phrase("monitor.many_series", count=worst.series)], metric=metric_words(worst.metric),
        value=number(worst.value), usual=number(worst.usual),
    )  # fmt: skip
    return [said] if rank is None or ranks < 2 else [said, phrase("monitor.anomaly_rank", rank=rank)]


def say_stray(one: StrayRank) -> Phrase:
    """A stray rank in one sentence."""
    return phrase(
        "monitor.stray",
        rank=one.rank, step=one.step, metric=metric_words(one.metric), name=one.name, value=number(one.value),
        usual=number(one.usual), count=one.series,
    )  # fmt: skip


def metric_words(metric: str) -> list[Phrase] | str:
    """What statistics are of, in words."""
    id = f"monitor.metric_{metric}"
    return [phrase(id)] if has(id) else metric


def share(value: float) -> str:
    """A distance as text: `4.8 %`, `2.1e-07`."""
    return f"{value * 100:.2g} %" if 0.0005 <= value < 10 else f"{value:.2g}"


def table_lines(anomalies: Sequence[RankedAnomaly]) -> list[str]:
    """Lines of a table for a terminal; the first is the heading."""
    heading = [tell(f"monitor.column_{name}") for name in ("kind", "step", "metric", "name", "value", "usual", "rank")]
    rows = [heading]
    for rank, one in anomalies:
        steps = str(one.step) if one.step == one.last_step else f"{one.step}..{one.last_step}"
        name = one.name or tell("monitor.many_series", count=one.series)
        rows.append(
            [
                tell(f"monitor.kind_{one.kind}"), steps, _of(one), name, number(one.value),
                number(one.usual), "-" if rank is None else str(rank),
            ]
        )  # fmt: skip
    widths = [max(_columns(row[place]) for row in rows) for place in range(len(heading))]
    return [
        "  ".join(cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _of(one: Anomaly) -> str:
    """What the numbers are of; a scalar is only itself."""
    return one.metric if one.metric == one.name else f"{one.metric}.{one.statistic}"


def run_document(run: MonitorRun) -> dict[str, Any]:
    """A run in JSON."""
    return {
        "path": run.path,
        "tool": run.tool,
        "ranks": [
            {"rank": one.rank, "first_step": one.first_step, "last_step": one.last_step, "metrics": list(one.metrics)}
            for one in run.ranks
        ],
    }


def anomaly_document(rank: int | None, one: Anomaly) -> dict[str, Any]:
    """An anomaly in JSON; name is null where most series of the metric have it."""
    return {
        "kind": one.kind,
        "rank": rank,
        "metric": one.metric,
        "name": one.name or None,
        "statistic": one.statistic,
        "step": one.step,
        "last_step": one.last_step,
        "value": one.value,
        "usual": one.usual,
        "series": one.series,
    }


def stray_document(one: StrayRank) -> dict[str, Any]:
    """A stray rank in JSON."""
    return {
        "rank": one.rank,
        "metric": one.metric,
        "name": one.name,
        "step": one.step,
        "series": one.series,
        "steps": one.steps,
        "value": one.value,
        "usual": one.usual,
    }


def divergence_document(rank: int | None, one: Divergence | None) -> dict[str, Any]:
    """Where two runs part on a rank, in JSON; `step` is null where they do not, `steps` 0 where they have none in common."""
    if one is None:
        return {"rank": rank, "steps": 0, "step": None, "first": None}
    first = one.first
    return {
        "rank": rank,
        "steps": one.steps,
        "first_step": one.first_step,
        "last_step": one.last_step,
        "series": one.series,
        "only_target": one.only_target,
        "only_golden": one.only_golden,
        "step": one.step,
        "module": one.module or None,
        "first": None
        if first is None
        else {
            "metric": first.metric,
            "name": first.name,
            "statistic": first.statistic,
            "target": first.target,
            "golden": first.golden,
            "distance": first.distance,
        },
        "others": one.others,
        "quiet": one.quiet,
        "floor": one.floor,
        "apart_from": one.apart_from,
    }


def findings_csv(
    anomalies: Sequence[RankedAnomaly], strays: Sequence[StrayRank], divergences: Sequence[RankedDivergence]
) -> str:
    """All findings as CSV, with the columns COLUMNS."""
    rows: list[list[Any]] = []
    for rank, parts in divergences:
        if parts is not None and parts.first is not None:
            first = parts.first
            rows.append(
                ["divergence", rank, parts.step, parts.last_step, first.metric, first.name, first.statistic, first.target,
                 first.golden, parts.others + 1]
            )  # fmt: skip
    for stray in strays:
        rows.append(
            [
                "stray",
                stray.rank,
                stray.step,
                None,
                stray.metric,
                stray.name,
                "norm",
                stray.value,
                stray.usual,
                stray.series,
            ]
        )
    for rank, one in anomalies:
        rows.append(
            [
                one.kind,
                rank,
                one.step,
                one.last_step,
                one.metric,
                one.name,
                one.statistic,
                one.value,
                one.usual,
                one.series,
            ]
        )
    return plain_csv(COLUMNS, rows)


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
