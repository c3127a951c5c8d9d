"""A config file that may change while training runs: switching a capture on and off without a restart."""

from __future__ import annotations

import os
import time
from typing import Final

_ON_SECONDS: Final = 0.5
_OFF_SECONDS: Final = 3.0


class Watcher:
    """Looks at a file's time and size, at most every 0.5 s while recording is on and every 3 s while it is off."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen = self._mark()
        self._last = time.monotonic()

    def changed(self, *, enabled: bool) -> bool:
        """Whether the file differs from what was last seen."""
        now = time.monotonic()
        if now - self._last < (_ON_SECONDS if enabled else _OFF_SECONDS):
            return False
        self._last = now
        mark = self._mark()
        if mark == self._seen:
            return False
        self._seen = mark
        return True

    def _mark(self) -> tuple[int, int] | None:
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size
