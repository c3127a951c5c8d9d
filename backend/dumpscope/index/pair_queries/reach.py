"""Which calls inherit the difference of a call, directly or through others; the last units asked for stay in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.domain.facts import Origin, Spread
from dumpscope.domain.records import Bool, Int32, Int64, NodeKind
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.node_pairs import NodePairRow, node_pair_rows
from dumpscope.index.store import tables
from dumpscope.index.store.codec import codes, unpack_spread
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.prepared import Prepared, number_named, some_keys
from dumpscope.index.store.recent import Recent

KEPT: Final = 6
"""Units kept; one of 100 000 calls takes some 3 MB."""

FOLLOWED: Final = 8
"""Calls whose heirs are kept, since evidence, strip and tree ask for those of one call; of 100 000 heirs 1 MB."""

LOOKED_AT: Final = 50
"""Node pairs among which the first call is looked for."""


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
    """The node pairs that inherit a difference, and modules around them that differ. pairs: their numbers in order
    calls: by node pair, it inherits it itself"""

    pairs: Int64
    calls: Bool
    kept: _Kept

    @property
    def count(self) -> int:
        return len(self.pairs)

    def holding(self, entries: Sequence[int]) -> list[int]:
        """Those of these places in the tree that are or hold a call which inherits it."""
        around = _lift(self.kept, self.calls)
        return [one for one in entries if one < len(around) and around[one]]

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
_FOLLOWED: Final[Recent[tuple[str, str, tuple[int, ...]], Reached]] = Recent(FOLLOWED)


def reach_of(database: Database, unit: StoredUnit, pairs: Sequence[int]) -> Reached | None:
    """What inherits the difference of these node pairs, which are one cause. None where the result was stored before that was
    kept."""
    key = None if unit.stamp is None else (database.url, f"{unit.stamp}:{unit.id}")
    kept = _RECENT.get(key, lambda: _load(database, unit))
    if kept is None:
        return None
    return _FOLLOWED.get(key and (*key, tuple(pairs)), lambda: _reach(kept, pairs, unit.pairs))


def _reach(kept: _Kept, pairs: Sequence[int], count: int) -> Reached:
    """count: node pairs of the unit"""
    own = np.zeros(count, bool)
    own[list(pairs)] = True
    found = follow(kept.spread, own)
    around = _lift(kept, found | own)
    modules = np.zeros(count, bool)
    modules[kept.pair[around & (kept.pair >= 0)]] = True
    reached = np.flatnonzero((found | (modules & kept.spread.differs)) & ~own)
    return Reached(pairs=reached, calls=found, kept=kept)


def cause_of(origins: Sequence[Origin], unit: StoredUnit, pair: int) -> list[int]:
    """The other node pairs of the cause that this one is the origin of. origins: of the comparison"""
    here = (unit.step, unit.rank, pair)
    return next((one.group for one in origins if (one.step, one.rank, one.pair) == here), [])


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
    around[kept.entry[marked]] = True
    places = np.flatnonzero(around)
    while len(places):
        above = np.zeros(len(around), bool)
        parents = kept.parent[places]
        above[parents[parents >= 0]] = True
        places = np.flatnonzero(above & ~around)
        around[places] = True
    return around


_SPREAD: Final = Prepared(select(tables.flow.c.spread).where(tables.flow.c.id == number_named("unit")))


def _load(database: Database, unit: StoredUnit) -> _Kept | None:
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        packed = _SPREAD.value(connection, unit=tables.key(unit.id))
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


_PAIR: Final = tables.node_pair.c
_KINDS: Final = Prepared(select(_PAIR.id, _PAIR.kind).where(_PAIR.id.in_(some_keys())))


def first_reached(connection: Connection, unit: StoredUnit, reached: Reached) -> NodePairRow | None:
    """The first call that inherits the difference, rather than a module around calls."""
    keys = [tables.key(unit.id, pair) for pair in reached.pairs[:LOOKED_AT].tolist()]
    kinds = {row.id & tables.NUMBER_MASK: row.kind for row in _KINDS.among(connection, keys)}
    ordered = sorted(kinds)
    first = next((pair for pair in ordered if kinds[pair] == NodeKind.API), ordered[0] if ordered else None)
    return None if first is None else node_pair_rows(connection, unit, [first])[first]
