"""Where NaN and infinities began in a stored rank."""

from __future__ import annotations

from functools import lru_cache

from dumpscope.analysis.overflow import Overflow, overflow
from dumpscope.index.database import Database
from dumpscope.index.ranks import load_rank


@lru_cache(maxsize=2)
def stored_overflow(database: Database, job: str | None, rank_id: int) -> Overflow:
    """Findings of a rank; the last two are kept. job: the one that read the dump, so that an id used again is told apart"""
    del job
    return overflow(load_rank(database, rank_id))
