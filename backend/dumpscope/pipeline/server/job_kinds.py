"""The kinds of jobs of a server, and how the end of one changes its dump or comparison."""

from __future__ import annotations

import shutil
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.job import Job
from dumpscope.errors import CancelledError, FullDiskError, LimitError, NotFoundError, Problem
from dumpscope.index.checkpoints.catalogue import change_checkpoint_diff
from dumpscope.index.comparisons.catalogue import change_comparison, clear_comparison, get_comparison
from dumpscope.index.dumps.catalogue import DumpRow, change_dump, get_dump, stored_ranks
from dumpscope.index.monitors.catalogue import change_monitor
from dumpscope.index.store.database import Database
from dumpscope.jobs.runner import Cancelled, Kind, Progress
from dumpscope.pipeline.compare.on_server import rejudge, run_comparison
from dumpscope.pipeline.operators.precheck_job import PrecheckSetup, run_precheck
from dumpscope.pipeline.server.checkpoint_job import run_checkpoint_diff
from dumpscope.pipeline.server.early_comparison import READING, await_dumps, compare_early, may_begin_early
from dumpscope.pipeline.server.ingest import Source, ingest_dump
from dumpscope.pipeline.server.monitor_job import run_examination
from dumpscope.pipeline.server.unstored_ranks import UnstoredRanks
from dumpscope.pipeline.server.update import update_dump
from dumpscope.pipeline.tasks.cleanup import remove_folder
from dumpscope.pipeline.tasks.fan_out import Work
from dumpscope.texts import say

WORKER_MODULES: Final = (__name__, "dumpscope.readers.msprobe.format")
"""What a worker process needs for its first task, a second's worth of imports."""


def joined_room(unpacked: Path, comparison_id: str) -> Path:
    """Folder for the tensors that a comparison joins."""
    return unpacked / f"{comparison_id}.joined"


def job_kinds(database: Database, executor: Executor, unpacked: Path, lent: PrecheckSetup) -> dict[str, Kind]:
    """Job kind -> what does it. unpacked: archives are unpacked into one folder per dump below it; lent: what runs pre-checks."""
    unstored = UnstoredRanks()

    def ingest(job: Job, progress: Progress, cancelled: Cancelled) -> None:
        folder = unpacked / job.subject
        shutil.rmtree(folder, ignore_errors=True)  # left by an attempt that a crash cut short
        folder.mkdir(parents=True)
        try:
            ingest_dump(
                Work(database=database, executor=executor, job=job.id),
                job.subject,
                job.payload["path"],
                folder,
                source=Source(
                    trusted=bool(job.payload.get("trusted", True)),
                    limit=job.payload.get("limit"),
                    problems=tuple(Problem(**problem) for problem in job.payload.get("problems", ())),
                    side=job.payload.get("side"),
                ),
                unstored=unstored,
                progress=progress,
                cancelled=cancelled,
            )
        finally:
            unstored.tell()
            if not any(folder.iterdir()):
                folder.rmdir()

    def update(job: Job, progress: Progress, cancelled: Cancelled) -> None:
        update_dump(
            Work(database=database, executor=executor, job=job.id),
            job.subject,
            steps=job.payload["steps"],
            folders=frozenset(job.payload["folders"]),
            growing=bool(job.payload["growing"]),
            progress=progress,
            cancelled=cancelled,
        )

    def compare(job: Job, progress: Progress, cancelled: Cancelled) -> None:
        work = Work(database=database, executor=executor, job=job.id)
        folder = joined_room(unpacked, job.subject)
        row = get_comparison(database, job.subject)
        waited = False

        def later(done: float, message: str) -> None:
            progress(READING + (1 - READING) * done if waited else done, message)

        with unstored.wanting({row.target, row.golden} if may_begin_early(work, row) else ()):
            waited, early = await_dumps(work, unstored, row.id, progress, cancelled)
            if early is not None:
                change_comparison(database, row.id, growing=[])
                if compare_early(work, unstored, row.id, early, folder=folder, progress=later, cancelled=cancelled):
                    return
                await_dumps(work, UnstoredRanks(), row.id, later, cancelled)
            _note_growing(database, row.id)
            run_comparison(work, row.id, folder=folder, progress=later, cancelled=cancelled)

    def judge(job: Job, progress: Progress, cancelled: Cancelled) -> None:
        rejudge(
            Work(database=database, executor=executor, job=job.id),
            job.subject,
            job.payload["policy"],
            progress=progress,
            cancelled=cancelled,
        )

    def check(job: Job, progress: Progress, cancelled: Cancelled) -> None:
        run_precheck(database, job, lent, progress=progress, cancelled=cancelled)

    def diff(job: Job, progress: Progress, cancelled: Cancelled) -> None:
        run_checkpoint_diff(database, job, progress=progress, cancelled=cancelled)

    def watched(job: Job, progress: Progress, cancelled: Cancelled) -> None:
        work = Work(database=database, executor=executor, job=job.id)
        run_examination(work, job, progress=progress, cancelled=cancelled)

    return {
        "ingest": ingest,
        "update": update,
        "compare": compare,
        "rejudge": judge,
        "precheck": check,
        "checkpoints": diff,
        "monitor": watched,
    }


def record_end(database: Database, job: Job) -> None:
    """Record the end of a job at its dump or comparison."""
    if job.status == "done" or job.kind == "precheck":  # the dump stays what it was
        return
    error = (
        job.error or CancelledError(say("pipeline.cancelled"), hint=say("pipeline.start_again_when_you_want")).body()
    )
    try:
        # a job may end before whoever queued it has noted it, so no job noted yet is as good as this one
        if job.kind == "checkpoints":
            change_checkpoint_diff(database, job.subject, status=job.status, error=job.error)
        elif job.kind == "monitor":
            change_monitor(database, job.subject, status=job.status, error=job.error)
        elif job.kind == "update":
            if get_dump(database, job.subject).status == "pending":  # nothing could be read yet: the watch goes on
                change_dump(database, job.subject, job=None)
        elif job.kind == "ingest":
            if get_dump(database, job.subject).job in (None, job.id):
                change_dump(database, job.subject, status="failed", error=error)
                if error["error"] in (LimitError.code, FullDiskError.code):
                    _remove_files(get_dump(database, job.subject))
        elif job.kind == "compare":
            if get_comparison(database, job.subject).job in (None, job.id):
                clear_comparison(database, job.subject)
                change_comparison(database, job.subject, status=job.status, error=job.error)
        elif get_comparison(database, job.subject).verdict is not None:  # nothing was changed: the old result stands
            change_comparison(database, job.subject, status="done", error=job.error)
        else:
            hint = say("pipeline.rows_judged_part_by_new_policy")
            change_comparison(database, job.subject, status=job.status, error={**error, "hint": hint})
    except NotFoundError:  # deleted in the meantime
        return


def _note_growing(database: Database, comparison_id: str) -> None:
    """Keep with a comparison which sides are still being written, and how far they were."""
    row = get_comparison(database, comparison_id)
    growing: list[dict[str, Any]] = []
    for side, dump_id in (("target", row.target), ("golden", row.golden)):
        watch = get_dump(database, dump_id).watch
        if watch is None or watch.seen.condition != "growing":
            continue
        step = watch.seen.step
        read = [rank.nodes for rank in stored_ranks(database, dump_id) if rank.step == step]
        if read and (not row.options.steps or step in row.options.steps):
            growing.append({"side": side, "step": step, "calls": sum(read)})
    change_comparison(database, comparison_id, growing=growing)


def _remove_files(dump: DumpRow) -> None:
    """Remove an uploaded archive that is too large to be unpacked."""
    path = Path(dump.path)
    folder = next((one for one in (path, *path.parents) if one.name == dump.id), None)
    if dump.owned and folder is not None:
        remove_folder(folder)
