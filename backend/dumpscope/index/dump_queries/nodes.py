"""Nodes of one rank of a dump: the list and one node with its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select

from dumpscope.domain.records import NodeKind
from dumpscope.errors import NotFoundError
from dumpscope.index.dumps.catalogue import StoredRank, contains
from dumpscope.index.dumps.leaves import Leaf, leaves
from dumpscope.index.dumps.load_rank import stored_producers
from dumpscope.index.store import tables
from dumpscope.index.store.codec import storable
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Page
from dumpscope.index.store.prepared import Prepared, number_named, text_named
from dumpscope.index.store.texts import stacks_by_id
from dumpscope.index.trees.row_numbers import KEPT_NUMBERS, Numbers, numbers_of, position_of
from dumpscope.index.trees.tree_levels import entry_names
from dumpscope.index.trees.trees import direction_word, kind_word
from dumpscope.texts import say

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

    first_item: number of the first of `items` in its step and rank
    producers: of each of `items` the record that made it, None where nothing tells
    """

    name: str
    first_item: int
    items: list[Leaf]
    producers: list[Producer | None]
    item_count: int
    stack: list[str]
    siblings: list[str]
    path: list[str]


def list_nodes(
    database: Database,
    rank: StoredRank,
    *,
    q: str = "",
    after: int | None = None,
    at: int | None = None,
    around: str | None = None,
    limit: int = 100,
) -> Page[NodeRow]:
    """Nodes in file order whose name contains `q` (ASCII letters of either case): those behind number `after`, or those from
    place `at` of the list on, or those around the node of this name (or around where it would be; raises NotFoundError)."""
    entry = tables.entry.c
    first, _last = tables.key_range(rank.id)
    there: list[ColumnElement[bool]] = [entry.id.between(first, first + rank.nodes - 1)]
    with database.read() as connection:
        if q:
            there.append(contains(connection, entry.name, q))
        if at is not None or around is not None:
            found = select(entry.id).where(*there).order_by(entry.id)
            key = (database.url, "nodes", rank.dump, rank.id, q)
            numbers: Numbers = KEPT_NUMBERS.get(key, lambda: numbers_of(connection, found)) if q else range(rank.nodes)
            if around is not None:
                at = max(
                    position_of(numbers, find_entry(connection, rank, around).id & tables.NUMBER_MASK) - limit // 2, 0
                )
            shown = [tables.key(rank.id, int(number)) for number in numbers[at or 0 : (at or 0) + limit]]
            there, start, total = [entry.id.in_(shown)], at, len(numbers)
        else:
            start, total = (0 if after is None else None), rank.nodes
            if q:
                total = connection.execute(select(func.count()).select_from(tables.entry).where(*there)).scalar_one()
            if after is not None:
                there.append(entry.id > first + after)
        rows = connection.execute(select(tables.entry).where(*there).order_by(entry.id).limit(limit + 1)).all()
    kept_rows = [
        NodeRow(
            ordinal=row.id & tables.NUMBER_MASK,
            name=row.name,
            kind=kind_word(row.kind),
            direction=direction_word(row.direction),
            order=row.seq,
        )
        for row in rows[:limit]
    ]
    more = len(rows) > limit if at is None else at + len(rows) < total
    return Page(rows=kept_rows, keys=[(row.ordinal,) for row in kept_rows], more=more, total=total, start=start)


_ENTRY: Final = tables.entry.c
_OF_RANK: Final = _ENTRY.id.between(number_named("first"), number_named("last"))
_NAMED: Final = Prepared(select(tables.entry).where(_ENTRY.name == text_named("name"), _OF_RANK).limit(1))
_LABELLED: Final = _ENTRY.label == number_named("label")
_SAME_CALL: Final = _ENTRY.call.is_not_distinct_from(number_named("call"))
_STACK: Final = Prepared(
    select(_ENTRY.stack).where(_OF_RANK, _LABELLED, _SAME_CALL, _ENTRY.stack.is_not(None)).limit(1)
)
_SIBLINGS: Final = Prepared(
    select(_ENTRY.name)
    .where(_OF_RANK, _LABELLED, _ENTRY.id != number_named("own"))
    .where(_SAME_CALL | (_ENTRY.kind == int(NodeKind.GRADIENT)))
    .order_by(_ENTRY.id)
    .limit(20)
)


def find_entry(connection: Connection, rank: StoredRank, name: str) -> Any:
    """Database row of the node of this name; raises NotFoundError."""
    first, _last = tables.key_range(rank.id)
    row = _NAMED.one(connection, name=storable([name])[0], first=first, last=first + rank.nodes - 1)
    if row is None:
        raise NotFoundError(say("index.no_node_step_rank", name=f"{name!r}"), hint=say("index.get_nodes_q_searches"))
    return row


def get_node(database: Database, rank: StoredRank, name: str) -> NodeRecords:
    """Raises NotFoundError."""
    with database.read() as connection:
        row = find_entry(connection, rank, name)
        numbers = range(row.first_item, row.first_item + min(row.item_count, ITEM_LIMIT))
        records = leaves(connection, rank.id, numbers)
        return NodeRecords(
            name=name,
            first_item=row.first_item,
            items=[records[number] for number in numbers],
            producers=_producers(connection, rank.id, numbers),
            item_count=row.item_count,
            stack=node_stack(connection, rank.id, row),
            siblings=siblings(connection, rank.id, row),
            path=entry_names(connection, rank.id, row.id & tables.NUMBER_MASK),
        )


def _producers(connection: Connection, rank: int, numbers: range) -> list[Producer | None]:
    stored = stored_producers(connection, rank)
    if stored is None:
        return [None] * len(numbers)
    named, maker_numbers = ([int(column[number]) for number in numbers] for column in stored)
    makers = leaves(connection, rank, (number for number in maker_numbers if number >= 0))
    return [
        Producer(node=makers[source].node, item=makers[source].name, inferred=sure < 0) if source >= 0 else None
        for sure, source in zip(named, maker_numbers, strict=True)
    ]


def stack_of(database: Database, rank: StoredRank, name: str) -> list[str]:
    """The call stack of the node of this name, innermost first. Raises NotFoundError."""
    with database.read() as connection:
        return node_stack(connection, rank.id, find_entry(connection, rank, name))


def node_stack(connection: Connection, rank: int, row: Any) -> list[str]:
    """Frames of an entry, innermost first; of its forward call where a backward node has none of its own."""
    stack = row.stack
    if stack is None and row.label is not None:
        first, last = tables.key_range(rank)
        stack = _STACK.value(connection, first=first, last=last, label=row.label, call=row.call)
    return list(stacks_by_id(connection, [stack]).get(stack, ())) if stack is not None else []


def siblings(connection: Connection, rank: int, row: Any) -> list[str]:
    """Names of the same call in the other direction and of its module's gradients."""
    if row.label is None:
        return []
    first, last = tables.key_range(rank)
    return _SIBLINGS.column(connection, first=first, last=last, label=row.label, call=row.call, own=row.id)
