"""Links between the calls of a unit, as `analysis.neighbourhood` reads them; those of the last units stay in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy import Connection, or_, select

from dumpscope.analysis.neighbourhood import Calls, Links, find_links, find_way
from dumpscope.domain.records import Int32
from dumpscope.errors import ConflictError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.pair_columns import pair_columns
from dumpscope.index.store import tables
from dumpscope.index.store.codec import storable, unpack_makers
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.recent import Recent
from dumpscope.texts import say

KEPT: Final = 3
"""Units kept; one of 100 000 calls takes some 30 MB."""
MOST: Final = 10_000
"""Calls that a search along the data flow finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLinks:
    """handed: per item pair the node pair inside the module that made what the module put out, -1 for all else; pair: its own
    node pair"""

    calls: Calls
    links: Links
    pair: Int32
    handed: Int32

    def inside(self, node: int) -> set[int]:
        """Calls that made what this module put out; none of a call that is no module."""
        first, beyond = np.searchsorted(self.pair, (node, node + 1))
        return {int(maker) for maker in self.handed[first:beyond] if maker >= 0}


_UNITS: Final[Recent[tuple[str, str], UnitLinks]] = Recent(KEPT)
_WAYS: Final[Recent[tuple[str, str, int], list[int]]] = Recent(10 * KEPT)


def unit_links(database: Database, unit: StoredUnit) -> UnitLinks:
    """Read once per judgement of a comparison that is done. Raises ConflictError where the result was stored before data flow
    was kept."""
    key = None if unit.stamp is None else (database.url, f"{unit.stamp}:{unit.id}")
    return _UNITS.get(key, lambda: _load(database, unit))


def way_from(database: Database, unit: StoredUnit, start: int) -> list[int]:
    """The calls from `start` to the end of its difference (`analysis.neighbourhood.find_way`)."""
    key = None if unit.stamp is None else (database.url, f"{unit.stamp}:{unit.id}", start)

    def find() -> list[int]:
        known = unit_links(database, unit)
        return find_way(known.calls, known.links, start, backward=unit.backward)

    return _WAYS.get(key, find)


def linked_calls(connection: Connection, unit: StoredUnit, names: Sequence[str], *, onward: bool) -> list[int]:
    """Node pairs that received what the calls of these names made (onward), or that made what these calls received; the first
    MOST of them. A name of no call, and a result without data flow, have none."""
    node = tables.node_pair.c
    first, last = tables.key_range(unit.id)
    named = or_(node.name.in_(storable(names)), node.golden_name.in_(storable(names)))
    keys = connection.execute(select(node.id).where(node.id.between(first, last), named)).scalars().all()
    packed = _packed(connection, unit)
    if packed is None or not keys:
        return []
    own = np.array(keys, np.int64) & tables.NUMBER_MASK
    pair, received, handed = unpack_makers(packed)
    mine = np.isin(pair, own)
    found = pair[np.isin(received, np.union1d(own, handed[mine & (handed >= 0)]))] if onward else received[mine]
    return [int(one) for one in np.unique(found) if one >= 0 and one not in own][:MOST]


def _packed(connection: Connection, unit: StoredUnit) -> bytes | None:
    packed = connection.execute(select(tables.flow.c.makers).where(tables.flow.c.id == tables.key(unit.id))).scalar()
    return None if packed is None else bytes(packed)


def _load(database: Database, unit: StoredUnit) -> UnitLinks:
    columns = pair_columns(database, unit)
    first, last = tables.key_range(unit.id)
    keys = f"id BETWEEN {first} AND {last}"
    with database.read() as connection:
        packed = _packed(connection, unit)
        if packed is None:
            raise ConflictError(
                say("index.result_stored_by_older_version_without"),
                hint=say("index.judge_again_set_policy_once_more"),
            )
        nodes = fetch_columns(
            connection,
            "SELECT direction, kind, entry, target IS NOT NULL AND golden IS NOT NULL"
            f" FROM node_pair WHERE {keys} ORDER BY id",
        ) or [[] for _ in range(4)]
        items = fetch_columns(connection, f"SELECT verdict, severity FROM item_pair WHERE {keys} ORDER BY id") or [
            [] for _ in range(2)
        ]
        above = _places_above(connection, unit)
    pair, received, handed = unpack_makers(packed)
    count = min(len(pair), len(items[0]))
    entry = np.array(nodes[2], np.int32)
    calls = Calls(
        names=columns.names,
        verdict=columns.verdict,
        cls=columns.cls,
        direction=np.array(nodes[0], np.int8),
        kind=np.array(nodes[1], np.int8),
        leaf=~np.isin(entry, _holding(entry, above)),
        paired=np.array(nodes[3], bool),
        entry=entry,
        above=above,
    )
    links = find_links(
        calls,
        pair[:count],
        received[:count],
        np.array(items[0][:count], np.int8),
        np.array(items[1][:count], np.float64),
    )
    return UnitLinks(calls=calls, links=links, pair=pair, handed=handed)


def _places_above(connection: Connection, unit: StoredUnit) -> Int32:
    """Per place of the unit's tree the place above it, -1 at the top."""
    first, last = tables.key_range(unit.id)
    found = fetch_columns(connection, f"SELECT id, parent FROM place WHERE id BETWEEN {first} AND {last} ORDER BY id")
    if not found:
        return np.full(1, -1, np.int32)
    numbers, parents = (np.array(column, np.int64) for column in found)
    above = np.full(int(numbers[-1] & tables.NUMBER_MASK) + 1, -1, np.int32)
    above[numbers & tables.NUMBER_MASK] = np.where(parents < 0, -1, parents & tables.NUMBER_MASK)
    return above


def _holding(entries: Iterable[int], above: Int32) -> Int32:
    """Places that stand, at any height, above one of these."""
    holds = np.zeros(len(above), bool)
    level = np.unique(above[np.asarray(entries, np.int32)])
    while (level := level[level >= 0]).size and not holds[level].all():
        level = level[~holds[level]]
        holds[level] = True
        level = np.unique(above[level])
    return np.flatnonzero(holds).astype(np.int32)
