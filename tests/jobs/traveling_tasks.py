"""Tasks that may travel to a worker process, which imports this module and no test."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from dumpscope.errors import CancelledError, UnreadableError
from dumpscope.index.store.database import Database
from dumpscope.jobs.runner import Cancelled, Progress


def count(database: Database, share: int, *, progress: Progress, cancelled: Cancelled) -> int:
    """A task that may travel to a worker."""
    for step in range(share):
        progress(step / share, f"step {step}")
        if cancelled():
            raise CancelledError("cancelled")
        time.sleep(0.01)
    assert database.url
    return share


def fail_or_wait(_database: Database, fails: bool, *, progress: Progress, cancelled: Cancelled) -> None:
    if fails:
        raise UnreadableError("this task fails")
    deadline = time.monotonic() + 20
    while not cancelled():
        assert time.monotonic() < deadline, "nobody told the other task to stop"
        progress(0.1, "waiting")
        time.sleep(0.02)
    raise CancelledError("cancelled")


def die_first(_database: Database, marker: Path | None, *, progress: Progress, cancelled: Cancelled) -> int:
    """Kills its worker until the marker is there: once, always where its folder is missing, never without a marker."""
    if marker is None:
        return 0
    if not marker.exists():
        with suppress(OSError):
            marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1
