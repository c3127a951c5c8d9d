"""Where NaN and infinities began in a stored rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dumpscope.analysis.overflow.births import Overflow, find_overflow
from dumpscope.analysis.overflow.tree import Below, roll_up
from dumpscope.index.dumps.load_rank import load_rank
from dumpscope.index.store.database import Database
from dumpscope.index.store.recent import Recent


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOverflow:
    """Findings of a rank, and what each row of its module tree saw."""

    found: Overflow
    below: dict[int, Below]


_RECENT: Final[Recent[tuple[str, str | None, int], StoredOverflow]] = Recent(2)


def stored_overflow(database: Database, job: str | None, rank_id: int) -> StoredOverflow:
    """Findings of a rank; the last two are kept. job: the one that read the dump, so that an id used again is told apart"""

    def load() -> StoredOverflow:
        dump = load_rank(database, rank_id)
        found = find_overflow(dump)
        return StoredOverflow(found=found, below=roll_up(dump.tree, found.findings))

    return _RECENT.get((database.url, job, rank_id), load)
