"""Which calls inherit the difference of a call, directly or through others; the last units asked for stay in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.domain.facts import Spread
from dumpscope.domain.records import Bool, Int32, Int64
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.node_pairs import NodePairRow, node_pair_rows
from dumpscope.index.store import tables
from dumpscope.index.store.codec import codes, unpack_spread
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.recent import Recent

KEPT: Final = 6
"""Units kept; one of 100 000 calls takes some 3 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """parent: by place in the tree, -1 at the top; pair: the node pair there, -1 where it is virtual; entry: place of each node
    pair"""

    spread: Spread
    parent: Int32
    pair: Int32
    entry: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The node pairs that inherit a difference. pairs: numbers in order; around: by place in the tree, one of them is at or
    below it; first: the first of them that is a call"""

    count: int
    pairs: Int64
    around: Bool
    first: int | None

    def runs(self, buckets: int, total: int) -> list[tuple[int, int]]:
        """First and last of the runs of buckets that hold one, of `buckets` equal ones over all node pairs."""
        wanted = min(buckets, total)
        if not wanted or not len(self.pairs):
            return []
        held = np.unique((self.pairs * wanted) // total)
        breaks = np.flatnonzero(np.diff(held) > 1)
        return list(
            zip(held[np.append(0, breaks + 1)].tolist(), held[np.append(breaks, len(held) - 1)].tolist(), strict=True)
        )


_RECENT: Final[Recent[tuple[str, str], _Kept | None]] = Recent(KEPT)


def reach_of(database: Database, unit: StoredUnit, pairs: Sequence[int]) -> Reached | None:
    """What inherits the difference of these node pairs, which are one cause. None where the result was stored before that was
    kept."""
    key = None if unit.stamp is None else (database.url, f"{unit.stamp}:{unit.id}")
    kept = _RECENT.get(key, lambda: _load(database, unit))
    if kept is None:
        return None
    own = np.zeros(unit.pairs, bool)
    own[list(pairs)] = True
    found = follow(kept.spread, own)
    around = _lift(kept, found | own)
    modules = np.zeros(unit.pairs, bool)
    modules[kept.pair[around & (kept.pair >= 0)]] = True
    calls = np.flatnonzero(found)
    reached = np.flatnonzero((found | (modules & kept.spread.differs)) & ~own)
    return Reached(
        count=len(reached),
        pairs=reached,
        around=_lift(kept, found),
        first=int(calls[0]) if len(calls) else None,
    )


def follow(spread: Spread, own: Bool) -> Bool:
    """By node pair whether it received, directly or through others, what one of `own` made; those themselves are left out."""
    start = int(np.argmax(own)) if own.any() else len(own)
    begin = int(np.searchsorted(spread.reader, start, side="right"))
    marked = own.tolist()
    for reader, maker in zip(spread.reader[begin:].tolist(), spread.maker[begin:].tolist(), strict=True):
        if marked[maker]:
            marked[reader] = True
    return np.array(marked, bool) & ~own


def _lift(kept: _Kept, marked: Bool) -> Bool:
    """By place in the tree, whether one of the marked node pairs is at or below it."""
    around = np.zeros(len(kept.parent), bool)
    places = np.unique(kept.entry[marked])
    while len(places):
        places = places[~around[places]]
        around[places] = True
        places = np.unique(kept.parent[places])
        places = places[places >= 0]
    return around


def _load(database: Database, unit: StoredUnit) -> _Kept | None:
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        packed = connection.execute(
            select(tables.flow.c.spread).where(tables.flow.c.id == tables.key(unit.id))
        ).scalar()
        if packed is None:
            return None
        places = fetch_columns(
            connection, f"SELECT parent, pair FROM place WHERE id BETWEEN {first} AND {last} ORDER BY id"
        )
    parent, pair = places or [[], []]
    above = np.array(parent, np.int64)
    pairs = codes(pair)
    entry = np.full(unit.pairs, -1, np.int64)
    real = np.flatnonzero(pairs >= 0)
    entry[pairs[real]] = real
    return _Kept(
        spread=unpack_spread(bytes(packed)),
        parent=np.where(above < 0, -1, above & tables.NUMBER_MASK).astype(np.int32),
        pair=pairs,
        entry=entry,
    )


def first_reached(connection: Connection, unit: StoredUnit, reached: Reached) -> NodePairRow | None:
    """The first call that inherits the difference."""
    if reached.first is None:
        return None
    return node_pair_rows(connection, unit, [reached.first]).get(reached.first)
