"""Ranks that were read and are not stored yet: a comparison that waits for two such dumps begins with what was read.

Storing a rank takes as long as comparing it. So where somebody waits, whoever has read a rank puts it aside, says so here, and
stores it when the comparison has begun, beside it. All of it is kept in this process alone: after a crash both jobs start again.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dumpscope.domain.records import DumpIndex, RankDump

LOOK_SECONDS: Final = 0.2
"""Time between two looks whether a job was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredRank:
    """The only rank of a dump, put aside. layout: of its dump; file: `put_aside` made it, it may go at any time after `begin`"""

    layout: DumpIndex
    file: Path


class UnstoredRanks:
    """Where those who read ranks and the comparisons that wait for them meet. Dumps are named by their ids."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._wanted: Counter[str] = Counter()
        self._offered: dict[str, UnstoredRank] = {}
        self._begun: set[str] = set()
        self._stored: dict[str, int] = {}

    # -- who waits for ranks -------------------------------------------------------------------------------------------

    @contextmanager
    def wanting(self, dumps: Collection[str]) -> Iterator[None]:
        """Say that a comparison waits for these dumps, as long as the block lasts."""
        with self._changed:
            self._wanted.update(dumps)
        try:
            yield
        finally:
            with self._changed:
                self._wanted.subtract(dumps)
                for dump in dumps:
                    if self._wanted[dump] <= 0:
                        del self._wanted[dump]
                        self._begun.discard(dump)
                        self._stored.pop(dump, None)
                self._changed.notify_all()

    def find(self, dump: str) -> UnstoredRank | None:
        """What was put aside of a dump, None where nothing is."""
        with self._changed:
            return self._offered.get(dump)

    def begin(self, dumps: Collection[str]) -> None:
        """Let the ranks of these dumps be stored: the comparison is at work, or cannot begin with them."""
        with self._changed:
            self._begun.update(dumps)
            self._changed.notify_all()

    def stored_as(self, dump: str) -> int | None:
        """rank_dump id of what was put aside, once it is stored."""
        with self._changed:
            return self._stored.get(dump)

    def wait(self, seconds: float = LOOK_SECONDS) -> None:
        """Wait until something may have changed."""
        with self._changed:
            self._changed.wait(seconds)

    def tell(self) -> None:
        """Something may have changed for who waits."""
        with self._changed:
            self._changed.notify_all()

    # -- who reads ranks -----------------------------------------------------------------------------------------------

    def offer(self, dump: str, rank: UnstoredRank, *, patience: float, cancelled: Callable[[], bool]) -> None:
        """Say that a rank is read, and wait until it may be stored: a comparison began, none wants it, or time is over.

        patience: seconds that the other side of a comparison may take longer to be read
        """
        deadline = time.monotonic() + patience
        with self._changed:
            self._offered[dump] = rank
            self._changed.notify_all()
            while self._wanted[dump] > 0 and dump not in self._begun:
                left = min(deadline - time.monotonic(), LOOK_SECONDS)
                if left <= 0 or cancelled():
                    return
                self._changed.wait(left)

    def withdraw(self, dump: str, rank: int | None) -> None:
        """The rank is stored as this rank_dump, or (None) will not be."""
        with self._changed:
            self._offered.pop(dump, None)
            if rank is not None and self._wanted[dump] > 0:
                self._stored[dump] = rank
            self._changed.notify_all()


def put_aside(dump: RankDump, file: Path) -> bool:
    """Write a rank that was read into a file; False where there is no room for it."""
    try:
        with file.open("wb") as stream:
            pickle.dump(dump, stream, protocol=pickle.HIGHEST_PROTOCOL)
    except OSError:
        with suppress(OSError):
            file.unlink(missing_ok=True)
        return False
    return True


def take_up(file: Path) -> RankDump:
    """A rank that was put aside. Raises OSError where it is gone."""
    with file.open("rb") as stream:
        dump = pickle.load(stream)
    assert isinstance(dump, RankDump)
    return dump
