"""Where NaN and infinities began in a stored rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dumpscope.analysis.overflow.births import Overflow, find_overflow
from dumpscope.analysis.overflow.ranks import join_ranks, waits_for_others
from dumpscope.analysis.overflow.tree import Below, roll_up
from dumpscope.index.dumps.catalogue import DumpRow, StoredRank, stored_ranks
from dumpscope.index.dumps.load_rank import load_rank
from dumpscope.index.store.database import Database
from dumpscope.index.store.recent import Recent


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOverflow:
    """Findings of a rank, and what each row of its module tree saw."""

    found: Overflow
    below: dict[int, Below]


_RECENT: Final[Recent[tuple[str, str | None, int], StoredOverflow]] = Recent(2)


def stored_overflow(database: Database, dump: DumpRow, rank: StoredRank) -> StoredOverflow:
    """Findings of a rank; the last two are kept. The other ranks of its step are looked at if a communication seems to have made
    what is not finite."""

    def load() -> StoredOverflow:
        own = load_rank(database, rank.id)
        found = find_overflow(own)
        if waits_for_others(found):
            others = [one.id for one in stored_ranks(database, dump.id) if one.step == rank.step and one.id != rank.id]
            found = join_ranks([found, *(find_overflow(load_rank(database, other)) for other in others)])[0]
        return StoredOverflow(found=found, below=roll_up(own.tree, found.findings))

    return _RECENT.get((database.url, dump.job, rank.id), load)  # the job tells apart an id that is used again
