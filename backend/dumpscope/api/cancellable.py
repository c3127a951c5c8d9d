"""Runs long work for a request; it is cancelled when the client disconnects."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from dumpscope.errors import CancelledError
from dumpscope.texts import say

Made = TypeVar("Made")


async def run_cancellable(request: Request, work: Callable[[Callable[[], None]], Made]) -> Made:
    """Run `work` in a thread and return its result. `work` calls its argument often; it raises CancelledError on a disconnect."""
    gone = threading.Event()

    def check() -> None:
        if gone.is_set():
            raise CancelledError(say("api.whoever_asked_has_gone"))

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    watching = asyncio.create_task(watch())
    try:
        return await run_in_threadpool(work, check)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
