"""Text and stacks stored once: from codes of a rank to ids of the database and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from dumpscope.domain.records import Int64
from dumpscope.index.store.codec import storable, to_json
from dumpscope.index.store.database import Database
from dumpscope.index.store.tables import stack, text

CHUNK = 900  # SQLite's old limit of bound variables is 999
FRESH = 5000
"""New texts of one transaction; a text stays for ever, so it may be there before what uses it."""


def intern_texts(database: Database, texts: Sequence[str]) -> Int64:
    """Ids of the texts, storing those not seen before; shape (len(texts),)."""
    return _intern(database, text, "text", storable(texts))


def intern_stacks(database: Database, stacks: Sequence[tuple[str, ...]]) -> Int64:
    """Ids of the stacks; frames are stored as texts, since neighbours share most of theirs."""
    frames = sorted({frame for frames in stacks for frame in frames})
    known = dict(zip(frames, intern_texts(database, frames).tolist(), strict=True))
    return _intern(database, stack, "frames", [to_json([known[frame] for frame in frames]) for frames in stacks])


def texts_by_id(connection: Connection, ids: Iterable[int | None]) -> dict[int, str]:
    """Texts of these ids; None and unknown ids are left out."""
    wanted = sorted({number for number in ids if number is not None and number > 0})
    found: dict[int, str] = {}
    for chunk in _chunks(wanted):
        rows = connection.execute(select(text.c.id, text.c.text).where(text.c.id.in_(chunk)))
        found.update((row.id, row.text) for row in rows)
    return found


def stacks_by_id(connection: Connection, ids: Iterable[int | None]) -> dict[int, tuple[str, ...]]:
    """Stacks of these ids, innermost frame first; None and unknown ids are left out."""
    wanted = sorted({number for number in ids if number is not None and number > 0})
    frames: dict[int, list[int]] = {}
    for chunk in _chunks(wanted):
        rows = connection.execute(select(stack.c.id, stack.c.frames).where(stack.c.id.in_(chunk)))
        frames.update((row.id, json.loads(row.frames)) for row in rows)
    texts = texts_by_id(connection, {number for numbers in frames.values() for number in numbers})
    return {key: tuple(texts[number] for number in numbers) for key, numbers in frames.items()}


def _digest(value: str) -> bytes:
    return hashlib.blake2b(value.encode(), digest_size=16).digest()


def _intern(database: Database, table: Table, column: str, values: list[str]) -> Int64:
    digests = [_digest(value) for value in values]
    with database.read() as connection:
        ids = _known(connection, table, digests)
    fresh = {digest: value for digest, value in zip(digests, values, strict=True) if digest not in ids}
    rows: list[dict[str, Any]] = [{"digest": digest, column: value} for digest, value in fresh.items()]
    dialect: Any = sqlite if database.kind == "sqlite" else postgresql
    for start in range(0, len(rows), FRESH):
        with database.write() as connection:
            connection.execute(dialect.insert(table).on_conflict_do_nothing(), rows[start : start + FRESH])
    if rows:
        with database.read() as connection:
            ids.update(_known(connection, table, list(fresh)))
    return np.array([ids[digest] for digest in digests], dtype=np.int64)


def _known(connection: Connection, table: Table, digests: list[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for chunk in _chunks(list(dict.fromkeys(digests))):
        rows = connection.execute(select(table.c.digest, table.c.id).where(table.c.digest.in_(chunk)))
        found.update((bytes(row.digest), row.id) for row in rows)
    return found


def _chunks(values: list[Any]) -> Iterable[list[Any]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]
