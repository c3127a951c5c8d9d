"""What surrounds one node pair: call stacks of both sides, ancestors, relatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dump_queries.nodes import node_stack, siblings
from dumpscope.index.store import tables
from dumpscope.index.store.prepared import Prepared, number_named
from dumpscope.index.trees.tree_levels import ancestor_names
from dumpscope.texts import say

_NODE: Final = tables.node_pair.c
_SIDES: Final = Prepared(select(_NODE.target, _NODE.golden, _NODE.entry).where(_NODE.id == number_named("pair")))
_ENTRY: Final = Prepared(select(tables.entry).where(tables.entry.c.id == number_named("entry")))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """Stacks innermost first; path: names of the nearest ancestors, the outermost first; siblings: same call's other direction,
    gradients"""

    target_stack: list[str]
    golden_stack: list[str]
    path: list[str]
    siblings: list[str]


def node_context(connection: Connection, unit: StoredUnit, pair: int) -> NodeContext:
    """Raises NotFoundError."""
    row = _pair_row(connection, unit, pair)
    stacks: list[list[str]] = []
    relatives: list[str] = []
    for rank, number in ((unit.target, row.target), (unit.golden, row.golden)):
        found = _entry(connection, rank, number)
        stacks.append([] if found is None else node_stack(connection, rank, found))
        if found is not None and not relatives:
            relatives = siblings(connection, rank, found)
    return NodeContext(
        target_stack=stacks[0],
        golden_stack=stacks[1],
        path=ancestor_names(connection, unit, row.entry),
        siblings=relatives,
    )


def stacks_of_pair(connection: Connection, unit: StoredUnit, pair: int) -> tuple[list[str] | None, list[str] | None]:
    """The call stacks of both sides, None for a side without this call. Raises NotFoundError."""
    row = _pair_row(connection, unit, pair)
    found = (
        (rank, _entry(connection, rank, number))
        for rank, number in ((unit.target, row.target), (unit.golden, row.golden))
    )
    target, golden = (None if entry is None else node_stack(connection, rank, entry) for rank, entry in found)
    return target, golden


def _pair_row(connection: Connection, unit: StoredUnit, pair: int) -> Any:
    row = _SIDES.one(connection, pair=tables.key(unit.id, pair))
    if row is None:
        raise NotFoundError(say("index.no_node_pair_step_rank", pair=pair))
    return row


def _entry(connection: Connection, rank: int, number: int | None) -> Any:
    if number is None:
        return None
    return _ENTRY.one(connection, entry=tables.key(rank, number))
