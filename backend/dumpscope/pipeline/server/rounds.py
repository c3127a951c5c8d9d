"""A thread of the server that looks for work again and again: after the pause that a look names, or as soon as it is asked to."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from typing import final

log = logging.getLogger(__name__)


class Rounds(ABC):
    """name: of the thread; pause: seconds to the next look after one that failed"""

    def __init__(self, name: str, pause: float) -> None:
        self._pause = pause
        self._wake = threading.Condition()
        self._asked = self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def look(self, *, asked: bool = False) -> float:
        """One look. asked: somebody knows of work; returns seconds to the next look"""

    @final
    def start(self) -> None:
        self._thread.start()

    @final
    def stop(self, timeout: float = 2.0) -> None:
        """End the thread; a look that takes longer than `timeout` seconds is not waited for."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        self._thread.join(timeout)

    @final
    def look_soon(self) -> None:
        """Look now, or again when the present look is over."""
        with self._wake:
            self._asked = True
            self._wake.notify_all()

    def _run(self) -> None:
        while True:
            with self._wake:
                if self._stopping:
                    return
                asked, self._asked = self._asked, False
            try:
                wait = self.look(asked=asked)
            except Exception:  # the database is away, say; the next look may do better
                log.exception("%s: a look for work failed", self._thread.name)
                wait = self._pause
            with self._wake:
                if not self._stopping and not self._asked:
                    self._wake.wait(wait)
