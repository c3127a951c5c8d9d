"""The way from the top of a tree down to a node, level by level, each with the rows beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, func, select

from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dumps.catalogue import StoredRank
from dumpscope.index.store import tables
from dumpscope.index.store.database import CHUNK, Database
from dumpscope.index.store.page import Page
from dumpscope.index.store.prepared import Prepared, some_keys
from dumpscope.index.trees.trees import (
    Part,
    TreeRow,
    ancestors,
    children,
    comparison_way,
    dump_way,
    entry_row,
    module_path,
    naming_path,
    place_name,
    place_names,
    place_row,
    select_places,
    shared_among,
)

LEVELS: Final = 200
"""Levels read for one answer; their rows may fill it earlier."""

BESIDE: Final = 40
"""Rows of one level: the one on the way, and its neighbours."""

NEAREST: Final = 50
"""Ancestors named with a node: of a deeper one, those next to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Children of `parent` (None: the top) around `entry`, which is on the way"""

    parent: int | None
    entry: int
    page: Page[TreeRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Levels `first`, `first + 1`, … of a way of `depth` levels."""

    levels: list[Level]
    first: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """A level as the database has it."""

    parent: int | None
    entry: int
    part: Part
    total: int


def comparison_levels(database: Database, unit: StoredUnit, name: str, *, first: int = 0) -> Levels:
    """Levels from number `first` on the way to the node `name` (of either side); raises NotFoundError."""
    with database.read() as connection:
        way = comparison_way(connection, unit, name)
        found = _read(connection, tables.place, select_places(unit), unit.id, way, first)
        path = naming_path(place_name(connection, unit.id, found[0].parent)) if found else ""
        shared = shared_among(connection, unit.id, [row for level in found for row in level.part.rows])
    levels = _levels(found, path, lambda row, parent, path: place_row(row, parent, path, shared))
    return Levels(levels=levels, first=first, depth=len(way))


def dump_levels(database: Database, rank: StoredRank, name: str, *, first: int = 0) -> Levels:
    """The same in the tree of a dump."""
    with database.read() as connection:
        way = dump_way(connection, rank, name)
        found = _read(connection, tables.entry, select(tables.entry), rank.id, way, first)
        path = module_path(connection, rank.id, found[0].parent) if found else ""
    return Levels(levels=_levels(found, path, entry_row), first=first, depth=len(way))


_ENTRY: Final = tables.entry.c
_ENTRY_NAMES: Final = Prepared(select(_ENTRY.id, _ENTRY.name).where(_ENTRY.id.in_(some_keys())))


def ancestor_names(connection: Connection, unit: StoredUnit, entry: int) -> list[str]:
    """Names of the NEAREST places above `entry` in a comparison's tree, from the top."""
    way = ancestors(connection, tables.place, tables.key(unit.id, entry))[:-1][-NEAREST:]
    keys = [tables.key(unit.id, place) for place in way]
    found = place_names(connection, unit, keys)
    return [found[key] for key in keys]


def entry_names(connection: Connection, rank: int, entry: int) -> list[str]:
    """Names of the NEAREST entries above `entry` in a dump's tree, from the top."""
    way = ancestors(connection, tables.entry, tables.key(rank, entry))[:-1][-NEAREST:]
    keys = [tables.key(rank, place) for place in way]
    found = {row.id: row.name for row in _ENTRY_NAMES.among(connection, keys)}
    return [found[key] for key in keys]


def _read(
    connection: Connection, table: Table, statement: Select[Any], owner: int, way: Sequence[int], first: int
) -> list[_Rows]:
    """The wanted levels; those that hold few rows are read together."""
    wanted = [(way[depth - 1] if depth else None, way[depth]) for depth in range(first, min(first + LEVELS, len(way)))]
    keys = [-owner if parent is None else tables.key(owner, parent) for parent, _entry in wanted]
    totals = _totals(connection, table, keys)
    small: dict[int, list[Any]] = {key: [] for key in keys if totals[key] <= BESIDE}
    for some in _chunks(list(small)):
        beside = statement.where(table.c.parent.in_(some)).order_by(table.c.parent, table.c.seq)
        for row in connection.execute(beside):
            small[row.parent].append(row)
    return [
        _Rows(
            parent=parent,
            entry=entry,
            part=Part(rows=small[key], before=False, more=False, start=0)
            if key in small
            else children(connection, table, statement, key, owner, around=entry, limit=BESIDE),
            total=totals[key],
        )
        for (parent, entry), key in zip(wanted, keys, strict=True)
    ]


def _totals(connection: Connection, table: Table, keys: list[int]) -> dict[int, int]:
    """Number of children by key of the parent."""
    found: dict[int, int] = {}
    for some in _chunks(keys):
        counted = select(table.c.parent, func.count().label("children")).where(table.c.parent.in_(some))
        found |= {row.parent: row.children for row in connection.execute(counted.group_by(table.c.parent))}
    return found


def _chunks(keys: list[int]) -> Iterator[list[int]]:
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))


def _levels(found: list[_Rows], path: str, make: Callable[[Any, int | None, str], TreeRow]) -> list[Level]:
    """path: of the module above the first level; the others stand below a row of the level before"""
    levels: list[Level] = []
    for level in found:
        rows = [make(row, level.parent, path) for row in level.part.rows]
        levels.append(Level(parent=level.parent, entry=level.entry, page=level.part.page(rows, level.total)))
        path = naming_path(next(row.name for row in rows if row.entry == level.entry))
    return levels
