"""What a pre-check said of nodes. Keyed like the nodes themselves, so that it goes and is copied with its rank."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Index, SmallInteger, Table, Text

from dumpscope.index.store import tables

precheck: Final = Table(
    "precheck",
    tables.metadata,
    Column("id", tables.Key, primary_key=True, autoincrement=False),  # the entry's key
    Column("word", SmallInteger, nullable=False),  # place in reproduce.alone.WORDS
    Column("facts", Text, nullable=False),  # JSON of reproduce.alone.Alone
    Index(None, "word", "id"),
)
