"""Progress on stderr: one rewritten line on a terminal, otherwise a plain line per tenth."""

from __future__ import annotations

import sys
from types import TracebackType

from dumpscope.export.words import safe
from dumpscope.texts import current_language, translate

_WIDTH = 78


class Progress:
    """Use as a context. quiet: print nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._language = current_language()  # work may report from other threads, which start with English
        self._live = not quiet and sys.stderr.isatty()
        self._said = -1
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def say(self, done: float, message: str) -> None:
        """done: 0..1."""
        if self._quiet:
            return
        message = translate(message, language=self._language)
        if self._live:
            sys.stderr.write(f"\r{safe(f'{done:4.0%} {message}')[:_WIDTH]:<{_WIDTH}}")
            sys.stderr.flush()
            self._shown = True
        elif int(done * 10) > self._said:
            self._said = int(done * 10)
            sys.stderr.write(f"{done:4.0%} {safe(message)}\n")

    def clear(self) -> None:
        """Remove the live line before something else is printed."""
        if self._shown:
            sys.stderr.write("\r" + " " * _WIDTH + "\r")
            sys.stderr.flush()
            self._shown = False
