"""The examination of a monitored run as a job of the server. It runs in the executor, as it keeps Python busy for seconds."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import Any, Final

from dumpscope.analysis.monitor.divergence import noise_limit
from dumpscope.domain.job import Job
from dumpscope.domain.monitor.findings import KINDS
from dumpscope.domain.monitor.tables import MonitorRun
from dumpscope.errors import CancelledError
from dumpscope.export.document import problem_document, wire
from dumpscope.export.monitor_report import (
    anomaly_document,
    divergence_document,
    say_anomalies,
    say_divergences,
    say_stray,
    stray_document,
)
from dumpscope.index.monitors.catalogue import change_monitor, get_monitor
from dumpscope.index.store.database import Database
from dumpscope.pipeline.monitor.examine import Examined, examine
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress, Work, spread
from dumpscope.texts import Phrase, say

STORED: Final = 5000
"""Anomalies that are kept, the gravest."""
PROBLEMS: Final = 200
Answer = tuple[dict[str, Any], dict[str, Any]]


def run_examination(work: Work, job: Job, *, progress: Progress, cancelled: Cancelled) -> None:
    """Examine the run of `job.subject`. The payload has `roots`, for each run the folder that no link may leave.

    Raises CancelledError, NotFoundError, UnreadableError, LimitError.
    """
    row = get_monitor(work.database, job.subject)
    call = row.path, row.other, tuple(map(str, job.payload["roots"]))
    start = time.time()
    ((answer, findings),) = spread(work, _examine, [call], progress=progress, cancelled=cancelled)
    answer |= {"examined": time.time(), "seconds": time.time() - start}
    change_monitor(work.database, row.id, status="done", error=None, answer=answer, findings=findings)


def _examine(
    database: Database,
    path: str,
    other: str | None,
    roots: tuple[str, str],
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> Answer:
    """In the worker."""

    def report(done: float, message: str) -> None:
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
        progress(done, message)

    return answer_of(examine(path, other, roots=roots, progress=report))


def answer_of(found: Examined) -> Answer:
    """What the catalogue keeps of an examination: in short, and all of it."""
    anomalies = [(one.rank, one.anomaly) for one in found.anomalies]
    kinds = [one.kind for _, one in anomalies]
    said: list[Phrase] = []
    if found.golden is not None:
        names = short_names(found.target.path, found.golden.path)
        said += say_divergences([(one.rank, one.divergence) for one in found.divergences], *names)
    said += [say_stray(one) for one in found.strays[:1]]
    if anomalies or found.golden is None:
        said += say_anomalies(anomalies, len(found.target.ranks))
    parts = found.parts
    problems = [*found.target.problems, *(found.golden.problems if found.golden is not None else ())]
    answer = {
        "said": said,
        "counts": {kind: kinds.count(kind) for kind in KINDS if kind in kinds},
        "strays": len(found.strays),
        "step": parts.divergence.step if parts is not None and parts.divergence is not None else None,
        "limits": [
            [one.rank, noise_limit(one.divergence.floor)] for one in found.divergences if one.divergence is not None
        ],
        "reach": [reach(found.target), None if found.golden is None else reach(found.golden)],
    }
    findings = {
        "anomalies": [anomaly_document(rank, one) for rank, one in anomalies[:STORED]],
        "strays": [{**stray_document(one), "said": [say_stray(one)]} for one in found.strays],
        "divergences": [divergence_document(one.rank, one.divergence) for one in found.divergences],
        "problems": [problem_document(one) for one in problems[:PROBLEMS]],
    }
    return wire(answer), wire(findings)


def reach(run: MonitorRun) -> list[list[int | None]]:
    """Rank and last step of each rank: a run whose reach is another one has grown."""
    return [[one.rank, one.last_step] for one in run.ranks]


def short_names(path: str, other: str) -> tuple[str, str]:
    """The shortest ends of two paths that differ."""
    sides = PurePath(path).parts, PurePath(other).parts
    for count in range(1, max(map(len, sides)) + 1):
        ends = [PurePath(*side[-count:]) for side in sides]
        if ends[0] != ends[1]:
            return str(ends[0]), str(ends[1])
    return path, other
