"""Errors of the calls of one API, of all APIs, and of one call in every step and rank, as columns for figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from sqlalchemy import or_, select

from dumpscope.domain.records import Float64, Int64
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.store import tables
from dumpscope.index.store.codec import scores
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.recent import Recent
from dumpscope.index.store.texts import texts_by_id
from dumpscope.index.trees.trees import find_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCalls:
    """Calls of one API in one direction, in execution order. order: node pair numbers; score: errors in floors, nan where
    nothing was compared; current: position of the call that was asked for"""

    api: str
    direction: int
    order: Int64
    score: Float64
    names: list[str]
    current: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsByApi:
    """All calls of a unit, in execution order. apis: name and direction of each API; api: number of each call's API, -1 where it
    has none; score: as of `ApiCalls`; current: number of the call that was asked for, if any"""

    apis: list[tuple[str, int]]
    api: Int64
    score: Float64
    names: list[str]
    current: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRuns:
    """One call in the units of a comparison that made it. score: as of `ApiCalls`"""

    name: str
    units: list[StoredUnit]
    score: Float64


_RECENT: Final[Recent[tuple[str, str, int], CallsByApi | None]] = Recent(3)


def calls_of_api(database: Database, unit: StoredUnit, node: str) -> ApiCalls | None:
    """The calls of the API of a node; None where that is no API. Raises NotFoundError."""
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        row = find_pair(connection, unit, node)
        if row.label is None:
            return None
        keys, severities, names = fetch_columns(
            connection,
            f"SELECT id, severity, name FROM node_pair WHERE label = {int(row.label)} AND direction = {int(row.direction)}"
            f" AND id BETWEEN {first} AND {last} ORDER BY id",
        )
        label = texts_by_id(connection, [row.label])[row.label]
    order = np.array(keys, dtype=np.int64) - first
    return ApiCalls(
        api=label,
        direction=row.direction,
        order=order,
        score=scores(np.array(severities, dtype=np.float64)),
        names=names,
        current=int(np.searchsorted(order, row.id - first)),
    )


def calls_by_api(database: Database, unit: StoredUnit, node: str | None) -> CallsByApi | None:
    """All calls; None where there are none. node: the one asked for. Raises NotFoundError where there is no such node.

    Read once per judgement of a comparison that is done: a large model has an API per module."""
    key = None if unit.stamp is None else (database.url, unit.stamp, unit.id)
    current = None
    if node is not None:
        with database.read() as connection:
            current = int(find_pair(connection, unit, node).id) - tables.key(unit.id)
    found = _RECENT.get(key, lambda: _load(database, unit))
    return None if found is None else replace(found, current=current)


def _load(database: Database, unit: StoredUnit) -> CallsByApi | None:
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        columns = fetch_columns(
            connection,
            "SELECT COALESCE(label, -1), direction, severity, name FROM node_pair"
            f" WHERE id BETWEEN {first} AND {last} ORDER BY id",
        )
        if not columns:
            return None
        label, direction = (np.array(column, dtype=np.int64) for column in columns[:2])
        kinds, number = np.unique(np.where(label < 0, -1, label * 8 + direction), return_inverse=True)
        texts = texts_by_id(connection, {int(kind) // 8 for kind in kinds if kind >= 0})
    nameless = int(np.count_nonzero(kinds < 0))  # 0 or 1: they come first
    return CallsByApi(
        apis=[(texts[int(kind) // 8], int(kind) % 8) for kind in kinds[nameless:]],
        api=number - nameless,
        score=scores(np.array(columns[2], dtype=np.float64)),
        names=columns[3],
        current=None,
    )


def runs_of_call(database: Database, unit: StoredUnit, units: Sequence[StoredUnit], node: str) -> CallRuns:
    """The call `node` of a unit in all `units` of its comparison, by its name. Raises NotFoundError."""
    pair = tables.node_pair.c
    by_id = {one.id: one for one in units}
    first, last = tables.key_range(min(by_id))[0], tables.key_range(max(by_id))[1]
    largest: dict[int, float] = {}
    with database.read() as connection:
        name: str = find_pair(connection, unit, node).name
        statement = select(pair.id, pair.severity).where(
            or_(pair.name == name, pair.golden_name == name), pair.id.between(first, last)
        )
        for row in connection.execute(statement):
            owner = row.id >> tables.KEY_BITS
            if owner in by_id:
                largest[owner] = max(row.severity, largest.get(owner, -1.0))
    return CallRuns(
        name=name,
        units=[by_id[one] for one in largest],
        score=scores(np.array(list(largest.values()), dtype=np.float64)),
    )
