"""Shared state of the routes: one object per running server."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import Annotated, Final, cast

from fastapi import Depends, Request

from dumpscope.api.job_feed import JobFeed
from dumpscope.domain.job import Job
from dumpscope.errors import ConflictError, NotFoundError
from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable
from dumpscope.jobs.runner import Runner
from dumpscope.pipeline.monitor.open_runs import OpenRuns
from dumpscope.pipeline.server.deliveries import Deliveries
from dumpscope.pipeline.server.watcher import Watcher
from dumpscope.pipeline.uploads.unfinished import UnfinishedUploads
from dumpscope.settings import Settings
from dumpscope.texts import say

STOP_SECONDS: Final = 10.0
"""How long a removal waits for its job to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """results: the result files, if the database is a copy of them"""

    settings: Settings
    database: Database
    executor: Executor
    jobs: JobTable
    runner: Runner
    watcher: Watcher
    deliveries: Deliveries
    unfinished: UnfinishedUploads
    results: tuple[str, ...] = ()
    open_runs: OpenRuns = field(default_factory=OpenRuns)
    closing: Event = field(default_factory=Event)
    feed: JobFeed = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "feed", JobFeed(self.jobs.get, self.closing))

    def stop_job(self, job_id: str) -> None:
        """Cancel a job and wait until it ends; raises ConflictError if that takes too long."""
        job: Job | None = None
        with suppress(NotFoundError):
            job = self.runner.cancel(job_id)
        deadline = time.monotonic() + STOP_SECONDS
        while job is not None and not job.over:
            if time.monotonic() > deadline:
                raise ConflictError(say("api.job_still_stopping"), hint=say("api.try_again_moment"))
            time.sleep(0.1)
            job = self.jobs.get(job_id)


async def _state(
    request: Request,
) -> State:  # no coroutine would be called in a thread, which costs more than all it does
    return cast(State, request.app.state.shared)


Shared = Annotated[State, Depends(_state)]
