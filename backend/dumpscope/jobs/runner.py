"""Runs durable jobs: several at once, cancellable, started again after a crash."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from dumpscope.domain.job import PROVISIONAL_MARK, Job
from dumpscope.errors import CancelledError, DumpscopeError, full_disk
from dumpscope.texts import say

Progress = Callable[[float, str], None]
Cancelled = Callable[[], bool]
Kind = Callable[[Job, Progress, Cancelled], None]
"""Does one job. Must be idempotent: after a crash it is called again from the start. Raises CancelledError when asked to stop."""

REPORT_SECONDS: Final = 0.3
ETA_SECONDS: Final = 2.0
"""Time over which the rate of a job must be known before the time left is told."""
RATE_SECONDS: Final = 20.0
"""The rate is that of so much time: reading, comparing and judging take their time at different rates."""
LEAST_STEP: Final = 0.02
"""Progress in that time below which no time is told: a guess that is far off is worse than none."""

USER: Final = 1
SHUTDOWN: Final = 2
"""Why a job was asked to stop: it ends as cancelled, or waits for the next start of the server."""

log = logging.getLogger(__name__)


class JobStore(Protocol):
    """What the runner needs kept (see `index.jobs.JobTable`)."""

    def create(self, kind: str, subject: str, payload: dict[str, Any]) -> Job: ...
    def get(self, job_id: str) -> Job: ...
    def claim(self) -> Job | None: ...
    def change(self, job_id: str, **values: Any) -> None: ...
    def finish(self, job_id: str, status: str, error: dict[str, Any] | None = None) -> None: ...
    def cancel(self, job_id: str, why: int = USER) -> Job: ...
    def stop_asked(self, job_id: str) -> int: ...
    def requeue(self) -> Sequence[Job]: ...


class Runner:
    """`slots` jobs run at once, each led by a thread of this process; heavy work belongs into an executor."""

    def __init__(
        self,
        store: JobStore,
        kinds: Mapping[str, Kind],
        *,
        slots: int = 4,
        ended: Callable[[Job], None] = lambda _job: None,
    ) -> None:
        """ended: called with every job that is over (done, failed or cancelled)"""
        self._store = store
        self._kinds = kinds
        self._slots = slots
        self._ended = ended
        self._wake = threading.Condition()
        self._stopping = False
        self._running: set[str] = set()
        self._unstored: list[tuple[Job, str, dict[str, Any] | None]] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Put back what a crash interrupted, then begin to work."""
        for job in self._store.requeue():
            if job.over:
                self._ended(job)
        self._threads = [
            threading.Thread(target=self._work, name=f"job-{slot}", daemon=True) for slot in range(self._slots)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Ask running jobs to stop; they go back into the queue for the next start."""
        with self._wake:
            self._stopping = True
            running = list(self._running)
            self._wake.notify_all()
        for job_id in running:
            self._store.cancel(job_id, SHUTDOWN)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def submit(self, kind: str, subject: str, payload: dict[str, Any] | None = None) -> Job:
        """Queue a job; `kind` must be one of the runner's."""
        if kind not in self._kinds:
            raise ValueError(f"no job kind {kind!r}")
        job = self._store.create(kind, subject, payload or {})
        with self._wake:
            self._wake.notify()
        return job

    def cancel(self, job_id: str) -> Job:
        """End a queued job, ask a running one to stop; one that is over stays as it is."""
        job = self._store.cancel(job_id, USER)
        if job.status == "cancelled":
            self._ended(job)
        return job

    def _work(self) -> None:
        while True:
            with self._wake:
                if self._stopping:
                    return
                unstored, self._unstored = self._unstored, []
            for end in unstored:
                self._end(*end)
            try:
                job = self._store.claim()
            except Exception:
                log.exception("the job queue cannot be read")
                job = None
            if job is None:
                with self._wake:
                    if not self._stopping:
                        self._wake.wait(1.0)
                continue
            with self._wake:
                self._running.add(job.id)
            try:
                self._run(job)
            except Exception:
                log.exception("job %s was lost", job.id)
            finally:
                with self._wake:
                    self._running.discard(job.id)

    def _run(self, job: Job) -> None:
        progress = _Reporter(self._store, job)
        error: dict[str, Any] | None = None
        status = "done"
        try:
            self._kinds[job.kind](job, progress, lambda: self._store.stop_asked(job.id) != 0)
        except CancelledError:
            status = "cancelled"
        except DumpscopeError as failure:
            status, error = "failed", failure.body()
        except MemoryError:
            status, error = (
                "failed",
                DumpscopeError(say("jobs.out_memory"), hint=say("jobs.compare_fewer_ranks_once")).body(),
            )
        except Exception as failure:
            log.exception("job %s (%s of %s) failed", job.id, job.kind, job.subject)
            unexpected = DumpscopeError(
                say("jobs.unexpected", name=type(failure).__name__, failure=failure),
                hint=say("jobs.servers_log_has_details"),
            )
            status, error = "failed", (full_disk(failure) or unexpected).body()
        if status == "cancelled" and self._store.stop_asked(job.id) == SHUTDOWN:
            self._store.change(job.id, status="queued", cancel=0, progress=0.0, message=say("jobs.restarted"), eta=None)
            return
        self._end(job, status, error)

    def _end(self, job: Job, status: str, error: dict[str, Any] | None) -> None:
        """Store the end of a job; where that fails (a full disk), it is tried again until it is stored."""
        try:
            self._store.finish(job.id, status, error)
            self._ended(self._store.get(job.id))
        except Exception:
            log.warning("the end of job %s (%s) cannot be stored yet", job.id, status, exc_info=True)
            with self._wake:
                self._unstored.append((job, status, error))


class _Reporter:
    """Writes progress into the store, not more often than a person can see."""

    def __init__(self, store: JobStore, job: Job) -> None:
        self._store = store
        self._job = job
        self._rate = RecentRate(time.monotonic())
        self._last = 0.0
        self._said: tuple[float, str] = (0.0, "")

    def __call__(self, done: float, message: str) -> None:
        now = time.monotonic()
        said = (round(min(max(done, 0.0), 1.0), 4), message)
        news = (
            PROVISIONAL_MARK in message and PROVISIONAL_MARK not in self._said[1]
        )  # what somebody waits for is told at once
        if said == self._said or (now - self._last < REPORT_SECONDS and not news):
            return
        self._last, self._said = now, said
        self._store.change(self._job.id, progress=said[0], message=message, eta=self._rate.time_left(now, said[0]))


class RecentRate:
    """Time left of a job, by its progress of late. start: when it began, in seconds of any clock"""

    def __init__(self, start: float) -> None:
        self._points: deque[tuple[float, float]] = deque([(start, 0.0)])

    def time_left(self, now: float, done: float) -> float | None:
        """Seconds left at `now`, None where too little is known. done: share of the work, 0..1"""
        points = self._points
        if done < points[-1][1]:  # begun again
            points.clear()
        points.append((now, done))
        while len(points) > 2 and points[1][0] <= now - RATE_SECONDS:
            points.popleft()
        before, share = points[0]
        elapsed, step = now - before, done - share
        return elapsed / step * (1 - done) if elapsed > ETA_SECONDS and step >= LEAST_STEP else None
