"""Text and stacks stored once: from codes of a rank to ids of the database and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

import numpy as np
from sqlalchemy import Connection, Table

from dumpscope.domain.records import Int64
from dumpscope.index.store.codec import storable, to_json
from dumpscope.index.store.database import Database, fetch_among, insert_new
from dumpscope.index.store.tables import stack, text

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
    return dict(fetch_among(connection, text, ("id", "text"), "id", wanted))


def stacks_by_id(connection: Connection, ids: Iterable[int | None]) -> dict[int, tuple[str, ...]]:
    """Stacks of these ids, innermost frame first; None and unknown ids are left out."""
    wanted = sorted({number for number in ids if number is not None and number > 0})
    rows = fetch_among(connection, stack, ("id", "frames"), "id", wanted)
    frames: dict[int, list[int]] = {number: json.loads(listed) for number, listed in rows}
    texts = texts_by_id(connection, {number for numbers in frames.values() for number in numbers})
    return {key: tuple(texts[number] for number in numbers) for key, numbers in frames.items()}


def _digest(value: str) -> bytes:
    return hashlib.blake2b(value.encode(), digest_size=16).digest()


def _intern(database: Database, table: Table, column: str, values: list[str]) -> Int64:
    digests = [_digest(value) for value in values]
    with database.read() as connection:
        ids = _known(connection, table, digests)
    fresh = {digest: value for digest, value in zip(digests, values, strict=True) if digest not in ids}
    rows = list(fresh.items())
    for start in range(0, len(rows), FRESH):
        with database.write() as connection:
            insert_new(connection, table, ("digest", column), rows[start : start + FRESH])
    if rows:
        with database.read() as connection:
            ids.update(_known(connection, table, list(fresh)))
    return np.array([ids[digest] for digest in digests], dtype=np.int64)


def _known(connection: Connection, table: Table, digests: list[bytes]) -> dict[bytes, int]:
    rows = fetch_among(connection, table, ("digest", "id"), "digest", list(dict.fromkeys(digests)))
    return {bytes(digest): number for digest, number in rows}
