"""`dumpscope monitor`: what stands out in a monitored training, and where it leaves another one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

from dumpscope.cli.exit_codes import COMPARED, DIVERGED, NOT_FULLY_JUDGED
from dumpscope.cli.options import Json, Ranks, split_commas
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.cli.progress import Progress
from dumpscope.export.document import SCHEMA, problem_document, wire
from dumpscope.export.monitor_report import (
    anomaly_document,
    describe_run,
    divergence_document,
    findings_csv,
    run_document,
    say_divergences,
    say_stray,
    stray_document,
    table_lines,
)
from dumpscope.pipeline.monitor.examine import Examined, examine
from dumpscope.texts import english, rendered, tell, translate

SHOWN: Final = 40
"""Anomalies printed unless --limit says otherwise."""


def monitor(
    target: Annotated[Path, Argument(metavar="RUN")],
    golden: Annotated[Path | None, Argument(metavar="OTHER")] = None,
    rank: Ranks = None,
    metric: Annotated[list[str] | None, Option("--metric", metavar="METRIC")] = None,
    limit: Annotated[int, Option("--limit", min=0)] = SHOWN,
    csv: Annotated[Path | None, Option("--csv", metavar="FILE")] = None,
    json: Json = False,
) -> int:
    """Examine a monitored training, and compare it with another. Returns the exit status."""
    with Progress(quiet=not sys.stderr.isatty()) as progress:
        found = examine(target, golden, ranks=tuple(rank or ()), metrics=split_commas(metric), progress=progress.say)
    anomalies = [(one.rank, one.anomaly) for one in found.anomalies]
    divergences = [(one.rank, one.divergence) for one in found.divergences]
    if csv is not None:
        csv.write_text(findings_csv(anomalies, found.strays, divergences), encoding="utf-8", newline="")
    if json:
        print_json(wire(_document(found)))
    else:
        _print(found, limit)
        if csv is not None:
            line(tell("monitor.wrote", file=csv))
    return exit_status(found)


def exit_status(found: Examined) -> int:
    """Of two runs 1 where they part; of one run 1 where anything stands out. 3 where something could not be read or compared."""
    if found.golden is not None:
        if found.parts is not None:
            return DIVERGED
        incomplete = not found.divergences or any(one.divergence is None for one in found.divergences)
        problems = bool(found.target.problems or found.golden.problems)
        return NOT_FULLY_JUDGED if incomplete or problems else COMPARED
    if found.anomalies or found.strays:
        return DIVERGED
    return NOT_FULLY_JUDGED if found.target.problems else COMPARED


def _document(found: Examined) -> dict[str, Any]:
    said = _said(found)
    problems = [*found.target.problems, *(found.golden.problems if found.golden is not None else ())]
    return {
        "schema": SCHEMA,
        "target": run_document(found.target),
        "golden": None if found.golden is None else run_document(found.golden),
        "summary": english(said) if said else None,
        "divergences": [divergence_document(one.rank, one.divergence) for one in found.divergences],
        "strays": [stray_document(one) for one in found.strays],
        "anomalies": [anomaly_document(one.rank, one.anomaly) for one in found.anomalies],
        "problems": [problem_document(one) for one in problems],
    }


def _said(found: Examined) -> list[Any]:
    """The answer in words; nothing where one run is healthy."""
    if found.golden is None:
        return []
    pairs = [(one.rank, one.divergence) for one in found.divergences]
    return say_divergences(pairs, found.target.path, found.golden.path)


def _print(found: Examined, limit: int) -> None:
    for run in (found.target, found.golden):
        if run is not None:
            line(rendered([describe_run(run)]))
    said = _said(found)
    if said:
        line(styled(rendered(said), "red" if found.parts is not None else "green"))
    for one in found.strays:
        line(styled(rendered([say_stray(one)]), "red"))
    if not found.anomalies:
        line(styled(tell("monitor.no_anomaly"), "green"))
    elif limit:
        line()
        heading, *rows = table_lines([(one.rank, one.anomaly) for one in found.anomalies[:limit]])
        line(styled(heading, "bold"))
        for row in rows:
            line(row)
        if len(found.anomalies) > limit:
            line(tell("monitor.more", count=len(found.anomalies) - limit))
    for problem in [*found.target.problems, *(found.golden.problems if found.golden is not None else ())]:
        line(tell("cli.problem", kind=problem.kind, loc=problem.loc, message=translate(problem.message)))
