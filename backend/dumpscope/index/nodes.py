"""Nodes of one rank of a dump: the list and one node with its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from dumpscope.domain.records import NodeKind
from dumpscope.errors import NotFoundError
from dumpscope.index import tables
from dumpscope.index.codec import storable
from dumpscope.index.database import Database
from dumpscope.index.dumps import StoredRank, contains
from dumpscope.index.leaves import Leaf, leaves
from dumpscope.index.page import Page
from dumpscope.index.ranks import stored_producers
from dumpscope.index.texts import stacks_by_id
from dumpscope.index.trees import ancestors, direction_word, kind_word

ITEM_LIMIT = 300
"""Records sent with one node; a node of an optimizer may have thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """ordinal: place in the file; order: place in time"""

    ordinal: int
    name: str
    kind: str
    direction: str
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """The record that an argument is. inferred: told by equal values, not by the dump"""

    node: str
    item: str
    inferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecords:
    """A node with its records (at most ITEM_LIMIT of `item_count`), call stack innermost first, relatives and ancestors.

    producers: of each of `items` the record that made it, None where nothing tells
    """

    name: str
    items: list[Leaf]
    producers: list[Producer | None]
    item_count: int
    stack: list[str]
    siblings: list[str]
    path: list[str]


def list_nodes(
    database: Database, rank: StoredRank, *, q: str = "", after: int | None = None, limit: int = 100
) -> Page[NodeRow]:
    """Nodes in file order behind number `after` whose name contains `q` (ASCII letters of either case)."""
    entry = tables.entry.c
    first, _last = tables.key_range(rank.id)
    there: list[ColumnElement[bool]] = [entry.id.between(first, first + rank.nodes - 1)]
    with database.read() as connection:
        if q:
            there.append(contains(connection, entry.name, q))
        statement = select(tables.entry).where(*there).order_by(entry.id).limit(limit + 1)
        if after is not None:
            statement = statement.where(entry.id > first + after)
        rows = connection.execute(statement).all()
        total = rank.nodes
        if q:
            total = connection.execute(select(func.count()).select_from(tables.entry).where(*there)).scalar_one()
    kept = [
        NodeRow(
            ordinal=row.id & tables.NUMBER_MASK,
            name=row.name,
            kind=kind_word(row.kind),
            direction=direction_word(row.direction),
            order=row.seq,
        )
        for row in rows[:limit]
    ]
    return Page(rows=kept, keys=[(row.ordinal,) for row in kept], more=len(rows) > limit, total=total)


def get_node(database: Database, rank: StoredRank, name: str) -> NodeRecords:
    """Raises NotFoundError."""
    entry = tables.entry.c
    first, _last = tables.key_range(rank.id)
    name = storable([name])[0]
    with database.read() as connection:
        row = connection.execute(
            select(tables.entry).where(entry.name == name, entry.id.between(first, first + rank.nodes - 1)).limit(1)
        ).one_or_none()
        if row is None:
            raise NotFoundError(f"no node {name!r} in this step and rank", hint="GET .../nodes?q= searches")
        numbers = range(row.first_item, row.first_item + min(row.item_count, ITEM_LIMIT))
        records = leaves(connection, rank.id, numbers)
        way = ancestors(connection, tables.entry, row.id)[:-1]
        keys = [tables.key(rank.id, place) for place in way]
        names = {
            found.id: found.name for found in connection.execute(select(entry.id, entry.name).where(entry.id.in_(keys)))
        }
        return NodeRecords(
            name=name,
            items=[records[number] for number in numbers],
            producers=_producers(connection, rank.id, numbers),
            item_count=row.item_count,
            stack=node_stack(connection, rank.id, row),
            siblings=siblings(connection, rank.id, row),
            path=[names[key] for key in keys],
        )


def _producers(connection: Connection, rank: int, numbers: range) -> list[Producer | None]:
    stored = stored_producers(connection, rank)
    if stored is None:
        return [None] * len(numbers)
    named, told = ([int(column[number]) for number in numbers] for column in stored)
    makers = leaves(connection, rank, (number for number in told if number >= 0))
    return [
        Producer(node=makers[source].node, item=makers[source].name, inferred=sure < 0) if source >= 0 else None
        for sure, source in zip(named, told, strict=True)
    ]


def node_stack(connection: Connection, rank: int, row: Any) -> list[str]:
    """Frames of an entry, innermost first; of its forward call where a backward node has none of its own."""
    stack = row.stack
    if stack is None and row.label is not None:
        entry = tables.entry.c
        first, last = tables.key_range(rank)
        same = (
            select(entry.stack)
            .where(
                entry.id.between(first, last),
                entry.label == row.label,
                entry.call == row.call,
                entry.stack.is_not(None),
            )
            .limit(1)
        )
        stack = connection.execute(same).scalar()
    return list(stacks_by_id(connection, [stack]).get(stack, ())) if stack is not None else []


def siblings(connection: Connection, rank: int, row: Any) -> list[str]:
    """Names of the same call in the other direction and of its module's gradients."""
    if row.label is None:
        return []
    entry = tables.entry.c
    first, last = tables.key_range(rank)
    same = (
        select(entry.name)
        .where(entry.id.between(first, last), entry.label == row.label, entry.id != row.id)
        .where((entry.call == row.call) | (entry.kind == NodeKind.GRADIENT))
        .order_by(entry.id)
        .limit(20)
    )
    return list(connection.execute(same).scalars())
