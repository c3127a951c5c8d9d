"""Spreads a job's tasks over an executor. Only paths, ids and small results are sent; progress goes through the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dumpscope.errors import CancelledError, DumpscopeError
from dumpscope.index.store.database import Database, DatabaseError
from dumpscope.index.store.jobs import JobTable
from dumpscope.jobs.executors import lacks_workers
from dumpscope.texts import say

Progress = Callable[[float, str], None]
Cancelled = Callable[[], bool]
T = TypeVar("T")

POLL_SECONDS: Final = 0.2
REPORT_SECONDS: Final = 0.5
WORKERS_SECONDS: Final = 2.0
"""Time between two questions whether a cluster has workers."""
PATIENCE_SECONDS: Final = 600.0
"""How long a job waits for a worker before it fails."""
ABORT: Final = -1
"""Task number whose report tells the other tasks of a job that one of them failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Where a job's tasks run: in `executor` on behalf of `job`, or here, one after another, where there is none."""

    database: Database
    executor: Executor | None = None
    job: str | None = None


def spread(
    work: Work,
    function: Callable[..., T],
    calls: Sequence[tuple[Any, ...]],
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> list[T]:
    """Results of `function(database, *call, progress=..., cancelled=...)` for every call, in order.

    function: a module's function, since it may travel to another process; its arguments must be picklable and small
    Raises CancelledError, or the first error of a task after the others were stopped.
    """
    if work.executor is None or work.job is None:
        return [
            function(work.database, *call, progress=_share(progress, number, len(calls)), cancelled=cancelled)
            for number, call in enumerate(calls)
        ]
    futures = [
        work.executor.submit(_task, work.database.url, work.job, number, function, call)
        for number, call in enumerate(calls)
    ]
    try:
        _watch(work, work.job, _Workers(work.executor), futures, progress, cancelled)
        return [future.result() for future in futures]
    except BrokenExecutor as error:
        raise DumpscopeError(
            say("pipeline.worker_process_died_most_likely_lack"),
            hint=say("pipeline.use_fewer_workers_dumpscope_executor_processes_1"),
        ) from error


def _share(progress: Progress, number: int, total: int) -> Progress:
    return lambda done, message: progress((number + done) / total, message)


def _watch(
    work: Work,
    job: str,
    workers: _Workers,
    futures: list[Future[Any]],
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    board = JobTable(work.database)
    open_futures = set(futures)
    while open_futures:
        done, open_futures = wait(open_futures, timeout=POLL_SECONDS)
        missing = workers.seconds_without()
        failed = next((future for future in done if not future.cancelled() and future.exception() is not None), None)
        if failed is not None or cancelled() or missing > PATIENCE_SECONDS:
            for future in open_futures:
                future.cancel()
            board.report(job, ABORT, 0.0, "")
            if not missing:
                wait(open_futures)
            if failed is not None:
                failed.result()
            if missing > PATIENCE_SECONDS:
                raise DumpscopeError(
                    say("pipeline.no_worker_came", minutes=int(missing / 60)), hint=say("pipeline.start_worker")
                )
            raise CancelledError(say("pipeline.cancelled"))
        reports = board.reports(job)
        shares = [1.0 if future.done() else reports.get(number, (0.0, ""))[0] for number, future in enumerate(futures)]
        busy = [reports[number][1] for number, future in enumerate(futures) if number in reports and not future.done()]
        told = busy[0] if busy else say("pipeline.working")
        progress(sum(shares) / len(futures), say("pipeline.no_worker", seconds=int(missing)) if missing else told)


class _Workers:
    """How long the workers of a cluster have been missing."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._asked = 0.0
        self._since: float | None = None

    def seconds_without(self) -> float:
        """Seconds since the last worker was seen to be missing, 0 while there is one."""
        now = time.monotonic()
        if now - self._asked >= WORKERS_SECONDS:
            self._asked = now
            if not lacks_workers(self._executor):
                self._since = None
            elif self._since is None:
                self._since = now - 1e-3
        return 0.0 if self._since is None else now - self._since


def _task(url: str, job: str, number: int, function: Callable[..., T], call: tuple[Any, ...]) -> T:
    """Runs in the worker."""
    database = _database(url)
    board = _Board(JobTable(database), job, number)
    if board.cancelled():
        raise CancelledError(say("pipeline.cancelled"))
    try:
        return function(database, *call, progress=board.progress, cancelled=board.cancelled)
    finally:
        board.leave()


class _Board:
    """Connects a task to its job; reads and writes not more often than a person can see."""

    def __init__(self, table: JobTable, job: str, number: int) -> None:
        self._table, self._job, self._number = table, job, number
        self._told = self._asked = 0.0
        self._stop = False

    def progress(self, done: float, message: str) -> None:
        now = time.monotonic()
        if now - self._told >= REPORT_SECONDS:
            self._told = now
            self._table.report(self._job, self._number, done, message)

    def cancelled(self) -> bool:
        now = time.monotonic()
        if not self._stop and now - self._asked >= POLL_SECONDS:
            self._asked = now
            self._stop = self._table.stop_asked(self._job) != 0 or self._table.has_reported(self._job, ABORT)
        return self._stop

    def leave(self) -> None:
        """The task is over; nobody asks how far it is."""
        if self._told:
            with suppress(DatabaseError, DumpscopeError):  # its result, or its own error, is what counts
                self._table.withdraw(self._job, self._number)


_open: dict[str, Database] = {}
_opening = threading.Lock()


def release(url: str) -> None:
    """Close the handle that tasks in threads of this process share; a worker process closes its own when it ends."""
    with _opening:
        held = _open.pop(url, None)
    if held is not None:
        held.close()


def _database(url: str) -> Database:
    """One handle per worker process; the server has brought the tables up to date."""
    with _opening:
        if url not in _open:
            _open[url] = Database(url)
        return _open[url]
