"""Notes of a step: what it records in another way than its settings promise, for the log, run.json and every comparison.

A note is a kind (`dumpscope_format.run.NOTE_KINDS`) and the names that it concerns. The first note of a kind is logged.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from dumpscope_capture.context import LOG
from dumpscope_format.run import COMPILED_NOTE, FAST_PATH_NOTE, GRADIENTS_NOTE, NOTE_KINDS, SLICED_NOTE, TRACED_NOTE

NAME_LIMIT: Final = 100
"""Names kept of one kind."""

_TEXTS: Final = {
    COMPILED_NOTE: (
        logging.WARNING,
        "torch.compile is OFF while data is recorded: %s runs eagerly. The numbers of this dump are those of eager code, not of "
        "the compiled program; run.json and every comparison say so",
    ),
    FAST_PATH_NOTE: (
        logging.INFO,
        "%s runs as one fused kernel, as it does without capture: it is recorded from outside and nothing inside it is. run.json "
        "names all such layers",
    ),
    GRADIENTS_NOTE: (
        logging.WARNING,
        "a backward pass ran and no parameter of %s or another module got a gradient: parameters_grad is missing, and run.json "
        "says so",
    ),
    TRACED_NOTE: (
        logging.INFO,
        "%s runs: it makes a graph and trains nothing, so nothing is recorded until it is over; run.json says so",
    ),
    SLICED_NOTE: (
        logging.INFO,
        "of tensors that have it, only %s is recorded; run.json and every comparison say so",
    ),
}


class Notes:
    """The notes of the current step. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, dict[str, None]] = {}
        self._logged: set[str] = set()

    def add(self, kind: str, name: str) -> None:
        """Note something once a step. kind: one of `NOTE_KINDS`"""
        with self._lock:
            names = self._names.setdefault(kind, {})
            if len(names) < NAME_LIMIT:
                names[name] = None
            new = kind not in self._logged
            self._logged.add(kind)
        if new:
            level, text = _TEXTS[kind]
            LOG.log(level, text, name)

    def as_json(self) -> dict[str, list[str]]:
        with self._lock:
            return {kind: list(self._names[kind]) for kind in NOTE_KINDS if kind in self._names}

    def reset(self) -> None:
        """The step ends."""
        with self._lock:
            self._names.clear()
