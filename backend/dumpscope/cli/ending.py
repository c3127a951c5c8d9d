"""Ends a server after a signal: at once while it starts, gracefully when it serves.

KeyboardInterrupt is not enough during the start: Python drops an exception that is raised in a destructor or in the
callback of a weak reference, and every import runs some of these. A server interrupted there would start anyway and run on.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn, Protocol

from dumpscope.cli.exit_codes import INTERRUPTED

_NUMBERS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


class Server(Protocol):
    """The used part of uvicorn's server. started: it answers requests"""

    started: bool

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start a graceful end."""


class Ending:
    """Handles the signals that end a process while the block runs. An ignored signal stays ignored (nohup).

    asked: the received signal, or None
    """

    def __init__(self) -> None:
        self.asked: int | None = None
        self._before: dict[int, Any] = {}
        self._removals: list[Callable[[], None]] = []
        self._held = False
        self._server: Server | None = None

    def __enter__(self) -> Ending:
        if threading.current_thread() is threading.main_thread():
            for number in _NUMBERS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self.end)
        atexit.register(self._at_exit)  # the first registered function runs last, after all others have cleaned up
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises KeyboardInterrupt after a signal."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.asked is not None:
            raise KeyboardInterrupt
        atexit.unregister(self._at_exit)

    def begin_serving(self, server: Server) -> None:
        """End this server gracefully as soon as it answers requests."""
        self._server = server

    @contextmanager
    def own(self, make: Callable[[], tuple[Any, Callable[[], None]]]) -> Iterator[Any]:
        """Make what must not outlive the process. `make` returns it and the function that removes it; a signal waits for both."""
        self._held = True
        try:
            made, remove = make()
            self._removals.append(remove)
        finally:
            self._held = False
        if self.asked is not None:
            self._end_now(self.asked)
        try:
            yield made
        finally:
            remove()
            self._removals.remove(remove)

    def end(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        self.asked = number
        if self._server is not None and self._server.started:
            self._server.handle_exit(number, frame)
        elif not self._held:
            self._end_now(number)

    def _end_now(self, number: int) -> None:
        for remove in self._removals:
            with suppress(Exception):
                remove()
        with suppress(OSError):  # the terminal was closed
            os.write(2, b"dumpscope: interrupted\n")
        if number == signal.SIGINT:
            os._exit(INTERRUPTED)
        _die(number)

    def _at_exit(self) -> None:
        """The sender of a signal other than Ctrl-C expects the process to end with this signal."""
        if self.asked is not None and self.asked != signal.SIGINT:
            _die(self.asked)


def _die(number: int) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    os._exit(128 + number)
