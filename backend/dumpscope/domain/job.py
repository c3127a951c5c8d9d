"""A piece of background work as every layer sees it: durable, with progress, cancellable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]

PROVISIONAL_MARK: Final = "; provisional: "
"""Stands in a stored message between what is done and the node of the first origin by statistics."""

JobKind = Literal["ingest", "update", "compare", "rejudge", "precheck", "checkpoints", "monitor"]
"""read a dump, read what is new in it, compare, judge again by another policy, run calls alone, compare checkpoints, examine a
monitored run"""
JobEnd = Literal["done", "failed", "cancelled"]

FINISHED: Final[frozenset[str]] = frozenset({"done", "failed", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """kind: a key of the runner's job kinds; subject: id of the dump or comparison it works on
    payload: plain JSON, enough to start again after a crash
    progress: 0..1; eta: seconds or None where not known yet; version: grows with every change
    error: the wire form of the error that ended it ({"error", "detail", "hint", "status"})
    created, started, finished: seconds since the epoch
    """

    id: str
    kind: str
    subject: str
    status: JobStatus
    payload: dict[str, Any] = field(default_factory=dict)
    progress: float = 0.0
    message: str = ""
    eta: float | None = None
    error: dict[str, Any] | None = None
    cancel: bool = False
    version: int = 0
    created: float = 0.0
    started: float | None = None
    finished: float | None = None

    @property
    def provisional(self) -> str | None:
        """Node of the first origin while tensors are still read, or the result is still stored; None where none is known."""
        return self.message.partition(PROVISIONAL_MARK)[2] or None

    @property
    def over(self) -> bool:
        return self.status in FINISHED


def without_provisional(message: str) -> str:
    """What is done, without the node of a provisional answer."""
    return message.partition(PROVISIONAL_MARK)[0]
