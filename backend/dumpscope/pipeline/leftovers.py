"""What a server that died in the middle of something has left behind, removed before the next one begins."""

from __future__ import annotations

from dumpscope.index.database import Database
from dumpscope.index.owners import sweep


def remove_leftovers(database: Database) -> None:
    """Remove half-written ranks and results. Nothing where another live server leads: the work may be its own."""
    if database.lead():
        sweep(database)
