"""The comparison of two checkpoints as a job of the server."""

from __future__ import annotations

import math
from typing import Any

from dumpscope.domain.checkpoints.differences import CheckpointDiff
from dumpscope.domain.job import Job
from dumpscope.errors import CancelledError
from dumpscope.export.checkpoint_diff import summarise, tensor_document
from dumpscope.export.document import problem_document
from dumpscope.index.checkpoints.catalogue import change_checkpoint_diff, get_checkpoint_diff
from dumpscope.index.checkpoints.tensors import store_tensors
from dumpscope.index.store.database import Database
from dumpscope.jobs.runner import Cancelled, Progress
from dumpscope.pipeline.checkpoints.compare import MOST_PROBLEMS, compare_checkpoints
from dumpscope.texts import say

STORED = 0.97
"""Part of the progress that comparing takes; the rest is storing."""


def run_checkpoint_diff(database: Database, job: Job, *, progress: Progress, cancelled: Cancelled) -> None:
    """Compare the checkpoints of `job.subject`. The payload has `roots`, for each side the folder that no link may leave.

    It runs in the thread of the job: the kernels hold no lock while they compare. Raises CancelledError, UnreadableError.
    """
    row = get_checkpoint_diff(database, job.subject)

    def report(done: float, message: str) -> None:
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
        progress(STORED * done, message)

    diff = compare_checkpoints(
        row.target,
        row.golden,
        renames=row.renames,
        threads=1,
        roots=(str(job.payload["roots"][0]), str(job.payload["roots"][1])),
        progress=report,
    )
    store_tensors(
        database,
        row.serial,
        [(tensor_document(one), _known(one.share), _known(one.max_abs)) for one in diff.tensors],
    )
    change_checkpoint_diff(database, row.id, status="done", error=None, answer=_answer(diff))


def _known(value: float | None) -> float:
    return -1.0 if value is None else math.inf if math.isnan(value) else value


def _answer(diff: CheckpointDiff) -> dict[str, Any]:
    worst = diff.tensors[0] if diff.tensors else None
    return {
        "target_kind": diff.target_kind,
        "golden_kind": diff.golden_kind,
        "counts": diff.counts,
        "rules": list(diff.rules),
        "bytes": diff.bytes_read,
        "said": summarise(diff.counts, worst),
        "problems": [problem_document(problem) for problem in diff.problems[:MOST_PROBLEMS]],
    }
