"""Follows running jobs for all who listen: each job is read once per interval, however many streams show it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Final

from fastapi.concurrency import run_in_threadpool

from dumpscope.domain.job import Job
from dumpscope.errors import BusyError
from dumpscope.texts import say

POLL_SECONDS: Final = 0.3
QUIET_SECONDS: Final = 15.0
"""Time without news after which a listener is told that the job is still followed."""
STREAMS_PER_CLIENT: Final = 200


@dataclass(slots=True)
class _Followed:
    """`news` is set, and replaced, when the job has changed or is followed no longer."""

    job: Job
    listeners: int = 0
    ended: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()


class JobFeed:
    """For the event loop of one server. read: gets a job by its id; closing: set when the server stops"""

    def __init__(self, read: Callable[[str], Job], closing: Event) -> None:
        self._read = read
        self._closing = closing
        self._followed: dict[str, _Followed] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: Counter[str] = Counter()

    def check(self, client: str) -> None:
        """Raise BusyError for a client that has as many streams as it may."""
        if self._clients[client] >= STREAMS_PER_CLIENT:
            raise BusyError(say("api.too_many_streams", limit=STREAMS_PER_CLIENT), hint=say("api.close_or_poll"))

    @contextmanager
    def count(self, client: str) -> Iterator[None]:
        """Count a stream of a client while it is open."""
        self._clients[client] += 1
        try:
            yield
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]

    async def follow(self, job: Job) -> AsyncIterator[Job | None]:
        """Every later state of a job until it is over or the server stops; None after QUIET_SECONDS without one."""
        followed = self._followed.get(job.id)
        if followed is None:
            followed = self._followed[job.id] = _Followed(job)
            task = asyncio.create_task(self._poll(followed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        followed.listeners += 1
        try:
            while not job.over:
                news = followed.news
                if followed.job.version == job.version:
                    if followed.ended:
                        return
                    try:
                        await asyncio.wait_for(news.wait(), QUIET_SECONDS)
                    except asyncio.TimeoutError:
                        yield None
                else:
                    job = followed.job
                    yield job
        finally:
            followed.listeners -= 1

    async def _poll(self, followed: _Followed) -> None:
        try:
            while not followed.job.over and not self._closing.is_set():
                await asyncio.sleep(POLL_SECONDS)
                if not followed.listeners:
                    return
                job = await run_in_threadpool(self._read, followed.job.id)
                if job.version != followed.job.version:
                    followed.job = job
                    followed.tell()
        finally:
            self._followed.pop(followed.job.id, None)
            followed.ended = True
            followed.tell()
