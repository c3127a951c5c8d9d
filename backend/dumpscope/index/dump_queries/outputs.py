"""What the calls of a dump put out: the first output of each row of a list, and single records by their number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.domain.records import Kind, Role
from dumpscope.errors import NotFoundError
from dumpscope.index.dump_queries.nodes import ITEM_LIMIT, find_entry
from dumpscope.index.dump_queries.prechecks import words_of_nodes
from dumpscope.index.dumps.catalogue import StoredRank
from dumpscope.index.dumps.items import some_items
from dumpscope.index.dumps.leaves import Leaf, leaves, leaves_of
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.item_blocks import take_rows
from dumpscope.index.store.prepared import Prepared, some_keys
from dumpscope.texts import say

OUTPUTS: Final = (Role.OUTPUT, Role.GRADIENT, Role.DEBUG)
"""Roles of what a node puts out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFacts:
    """Of rows of a list of calls, by number of the node: its first output tensor, and the word of its pre-check."""

    outputs: dict[int, Leaf]
    alone: dict[int, str]


def row_facts(database: Database, rank: StoredRank, nodes: Sequence[int]) -> RowFacts:
    """What the list shows beside the names of these nodes."""
    with database.read() as connection:
        return RowFacts(
            outputs=first_outputs(connection, rank.id, nodes), alone=words_of_nodes(connection, rank.id, nodes)
        )


def largest_magnitude(high: float | None, low: float | None) -> float | None:
    """Of a tensor with this maximum and minimum; NaN if one is NaN, None if nothing was stored."""
    sizes = [abs(one) for one in (high, low) if one is not None]
    return next((one for one in sizes if math.isnan(one)), max(sizes, default=None))


_ENTRY: Final = tables.entry.c
_ITEMS: Final = Prepared(
    select(_ENTRY.first_item, _ENTRY.item_count).where(_ENTRY.id.in_(some_keys()), _ENTRY.item_count > 0)
)


def first_outputs(connection: Connection, rank: int, nodes: Iterable[int]) -> dict[int, Leaf]:
    """The first output tensor of each of these nodes (numbers of entries) that has one."""
    keys = [tables.key(rank, node) for node in nodes]
    if not keys:
        return {}
    numbers = [number for start, count in _ITEMS.among(connection, keys) for number in range(start, start + count)]
    items = some_items(connection, rank, numbers)
    outputs = np.flatnonzero(np.isin(items.role, OUTPUTS) & (items.kind == Kind.TENSOR))
    whose, first = np.unique(items.node[outputs], return_index=True)
    records = leaves_of(connection, rank, take_rows(items, outputs[first]))
    return dict(zip(whose.tolist(), records.values(), strict=True))


def get_record(database: Database, rank: StoredRank, number: int) -> Leaf:
    """The record with this number; raises NotFoundError."""
    with database.read() as connection:
        found = leaves(connection, rank.id, [number]) if number < rank.items else {}
    if number not in found:
        raise NotFoundError(say("index.no_record", number=number), hint=say("index.records_of_node"))
    return found[number]


def shown_record(database: Database, rank: StoredRank, node: str) -> Leaf | None:
    """The record of a node to show unless another is asked for: the first output tensor that was dumped, else the first
    tensor that was, else the first output tensor, else the first. None where it has none. Raises NotFoundError."""
    with database.read() as connection:
        row = find_entry(connection, rank, node)
        found = leaves(connection, rank.id, range(row.first_item, row.first_item + min(row.item_count, ITEM_LIMIT)))
    tensors = [one for _number, one in sorted(found.items()) if one.shape is not None]
    outputs = {"output", "parameters_grad", "debug"}
    return max(tensors, key=lambda one: (one.data_name is not None, one.role in outputs), default=None)


def node_place(database: Database, rank: StoredRank, node: str) -> int:
    """Place of a node in file order. Raises NotFoundError."""
    with database.read() as connection:
        return int(find_entry(connection, rank, node).id) & tables.NUMBER_MASK
