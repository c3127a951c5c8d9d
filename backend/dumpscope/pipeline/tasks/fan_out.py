"""Spreads a job's tasks over an executor. Only paths, ids and small results are sent; progress goes through the database."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dumpscope.domain.job import PROVISIONAL_MARK
from dumpscope.errors import CancelledError, DumpscopeError
from dumpscope.index.store.database import Database, DatabaseError
from dumpscope.index.store.jobs import JobTable
from dumpscope.jobs.executors import Processes, lacks_workers
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

log = logging.getLogger(__name__)


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
    sent: Callable[[], None] = lambda: None,
) -> list[T]:
    """Results of `function(database, *call, progress=..., cancelled=...)` for every call, in order.

    function: a module's function, since it may travel to another process; its arguments must be picklable and small. It must be
        idempotent: where a worker process dies, what was open is done again, each call once more in a process of its own.
    sent: called when all tasks are in the executor's queue
    Raises CancelledError, or the first error of a task after the others were stopped.
    """
    if work.executor is None or work.job is None:
        return [
            function(work.database, *call, progress=_share(progress, number, len(calls)), cancelled=cancelled)
            for number, call in enumerate(calls)
        ]
    url, job, executor = work.database.url, work.job, work.executor

    def send(number: int, submit: Callable[..., Future[T]]) -> Future[T]:
        return submit(_task, url, job, number, function, calls[number])

    futures = [send(number, executor.submit) for number in range(len(calls))]
    sent()
    again = (lambda number: send(number, executor.alone)) if isinstance(executor, Processes) else None
    try:
        _watch(work, job, _Workers(executor), futures, again, progress, cancelled)
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
    again: Callable[[int], Future[Any]] | None,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Wait for tasks. again: does a task once more whose worker died; its future takes the place of the one that failed"""
    board = JobTable(work.database)
    open_futures = set(futures)
    repeated: set[int] = set()
    while open_futures:
        done, open_futures = wait(open_futures, timeout=POLL_SECONDS)
        for number, future in enumerate(futures):
            if again is not None and future in done and number not in repeated and _has_lost_worker(future):
                repeated.add(number)
                futures[number] = again(number)
                open_futures.add(futures[number])
                done.discard(future)
                log.warning(
                    "a worker process died: task %d of job %s is done again in a process of its own", number, job
                )
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


def _has_lost_worker(future: Future[Any]) -> bool:
    return not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


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
        self._stop = self._early = False

    def progress(self, done: float, message: str) -> None:
        now = time.monotonic()
        early = PROVISIONAL_MARK in message
        if now - self._told >= REPORT_SECONDS or (early and not self._early):  # a first answer is told at once
            self._told, self._early = now, early
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
