"""The pre-check as a job of the server: run by a Python that has torch, then taken into the index."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dumpscope.domain.job import Job
from dumpscope.domain.records import RankRef
from dumpscope.errors import UsageError
from dumpscope.index.dumps.load_rank import rank_places
from dumpscope.index.store.database import Database
from dumpscope.pipeline.operators.precheck import Workers, nothing_to_run, precheck
from dumpscope.pipeline.operators.precheck_import import import_precheck
from dumpscope.pipeline.tasks.cleanup import remove_folder
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress
from dumpscope.texts import say


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecheckSetup:
    """python: one that has torch, "" where the server has none; folder: below it each dump has a folder for results"""

    python: str
    folder: Path


def run_precheck(
    database: Database, job: Job, setup: PrecheckSetup, *, progress: Progress, cancelled: Cancelled
) -> None:
    """Run every call of the dump `job.subject` alone; the payload has `device`, and `steps` and `ranks`, empty for all.

    Started again after a crash it goes on where it was. Raises UsageError where there is nothing to run, CancelledError."""
    if not setup.python:
        raise UsageError(
            say("api.server_has_no_python_torch"), hint=say("pipeline.set_dumpscope_python_run_dumpscope_precheck")
        )
    device = str(job.payload["device"])
    refs = _choose_ranks(list(rank_places(database, job.subject).values()), job.payload)
    results = setup.folder / job.subject
    for other in results.iterdir() if results.is_dir() else ():
        if other.name != job.id:
            remove_folder(other)
    workers = Workers(python=setup.python, device=device, jobs=max(1, (os.cpu_count() or 2) // 2))
    progress(0.0, say("pipeline.starting", device=device))
    answers = precheck(
        refs,
        results / job.id,
        workers,
        resume=True,
        on_call=lambda done, total, name: progress(
            0.98 * done / max(total, 1), say("pipeline.of", done=done, total=total, name=name)
        ),
        cancelled=cancelled,
    )
    if not answers:
        raise UsageError(say("pipeline.nothing_run", nothing_to_run=nothing_to_run(refs)))
    import_precheck(database, job.subject, results / job.id)
    remove_folder(results)


def _choose_ranks(refs: list[RankRef], payload: dict[str, Any]) -> list[RankRef]:
    steps, ranks = payload.get("steps") or (), payload.get("ranks") or ()
    return [ref for ref in refs if (not steps or ref.step in steps) and (not ranks or ref.number in ranks)]
