"""Aligns the calls of several ranks: which items are equal, and which item of each member corresponds to one of the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dumpscope.domain.facts import Method
from dumpscope.domain.options import Options
from dumpscope.domain.records import Bool, Float64, Int32, Int64, Kind, RankDump, UInt8
from dumpscope.errors import UnreadableError
from dumpscope.match import match_nodes
from dumpscope.parallel.columns import keep_nodes, merged_codes
from dumpscope.parallel.replicas import agree, tolerance
from dumpscope.texts import say

BLOCK = 1 << 13
"""Items whose statistics are processed at once."""
ENOUGH = 0.5
"""Share of the first member's nodes that the others must have too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Aligned:
    """base: the first member, without nodes that others do not have; kept: its items by their number in the complete first member
    rows: (members, items) item of every member in its own dump, -1 if it has none
    lost: nodes that not all members have, as (member, its node)
    stats, states: (members, items, 4); shapes: (members, items) codes into shape_table; hashes: (members, items) codes
    sizes: (members, items) elements; wide: (item, statistic) -> exact integers of all members
    """

    members: Sequence[RankDump]
    base: RankDump
    kept: Int64
    rows: Int64
    lost: list[tuple[int, int]]
    stats: Float64
    states: UInt8
    shapes: Int32
    shape_table: list[tuple[int, ...]]
    hashes: Int32
    values: Int32
    sizes: Int64
    wide: dict[tuple[int, int], list[int]]

    @cached_property
    def same(self) -> Bool:
        """Items whose stored content is the same in all members: tensors (also their shapes) and arguments."""
        items = self.base.items
        there = (self.rows >= 0).all(axis=0)
        allowed = np.array([tolerance(dtype) for dtype in items.dtypes] + [0.0])[items.dtype]
        equal = np.empty(len(items), bool)
        for first in range(0, len(items), BLOCK):
            block = slice(first, first + BLOCK)
            equal[block] = agree(self.stats[:, block], self.states[:, block], allowed[block])
        hashed = (self.hashes >= 0).all(axis=0)
        unlike = hashed & ~(self.hashes == self.hashes[:1]).all(axis=0)
        tensor = items.kind == Kind.TENSOR
        shape = (self.shapes == self.shapes[:1]).all(axis=0)
        value = (self.values == self.values[:1]).all(axis=0)
        found: Bool = there & np.where(tensor, equal & ~unlike & shape, value)
        return found

    @cached_property
    def named(self) -> Bool:
        """Items with a stored tensor in the first member."""
        found: Bool = self.base.items.data_name >= 0
        return found

    def prints(self, item: int) -> tuple[object, ...]:
        """The stored content of an item in every member."""
        return (self.stats[:, item].tobytes(), self.states[:, item].tobytes(), self.hashes[:, item].tobytes())

    def data_names(self, item: int) -> list[str | None]:
        names: list[str | None] = []
        for member, row in zip(self.members, self.rows[:, item].tolist(), strict=True):
            code = int(member.items.data_name[row]) if row >= 0 else -1
            names.append(member.items.data_names[code] if code >= 0 else None)
        return names


def align_members(members: Sequence[RankDump]) -> Aligned:
    """Match nodes like calls of two sides, and items by role and path. Raises UnreadableError if the members did not run
    the same calls."""
    first = members[0]
    known = {_calls(first): np.arange(len(first.nodes))}
    partners = [np.arange(len(first.nodes))]
    for member in members[1:]:
        calls = _calls(member)
        if calls not in known:  # members that ran the same calls in the same order need no second match
            known[calls] = _partners(first, member)
        partners.append(known[calls])
    there = np.stack(partners).min(axis=0) >= 0
    if there.mean() < ENOUGH:
        raise UnreadableError(
            say("parallel.ranks_should_have_run_same_calls", value=int(there.sum()), count=len(there)),
            hint=say("parallel.give_another_plan_plan"),
            where=first.ref.folder,
        )
    base = keep_nodes(first, there)
    kept = np.flatnonzero(there[first.items.node])
    rows = [kept, *(_rows(base, member, nodes[there]) for member, nodes in zip(members[1:], partners[1:], strict=True))]
    return _aligned(members, base, kept, np.stack(rows), _lost(members, partners, there))


def _aligned(
    members: Sequence[RankDump], base: RankDump, kept: Int64, rows: Int64, lost: list[tuple[int, int]]
) -> Aligned:
    def coded(name: str, table: str) -> tuple[list[Any], Int32]:
        columns = [getattr(member.items, name)[own] for member, own in zip(members, rows, strict=True)]
        merged, codes = merged_codes([getattr(member.items, table) for member in members], columns)
        codes = codes.reshape(rows.shape)
        codes[absent] = -1
        return merged, codes

    absent = rows < 0
    stats = np.empty((*rows.shape, 4))
    states = np.empty((*rows.shape, 4), np.uint8)
    for place, (member, own) in enumerate(zip(members, rows, strict=True)):
        np.take(
            member.items.stats, own, axis=0, out=stats[place], mode="wrap"
        )  # -1 reads the last row, which is unused
        np.take(member.items.stat_state, own, axis=0, out=states[place], mode="wrap")
    states[absent] = 0
    shape_table, shapes = coded("shape", "shapes")
    sizes = np.array([math.prod(shape) for shape in shape_table] + [0], np.int64)[shapes]
    return Aligned(
        members=members,
        base=base,
        kept=kept,
        rows=rows,
        lost=lost,
        stats=stats,
        states=states,
        shapes=shapes,
        shape_table=shape_table,
        hashes=coded("hash", "hashes")[1],
        values=coded("value", "values")[1],
        sizes=sizes,
        wide=_wide(members, rows),
    )


def _calls(member: RankDump) -> tuple[tuple[str, int, int], ...]:
    """Label, kind and direction of every node, in order; of the other nodes their whole name."""
    nodes = member.nodes
    labels = [*nodes.labels, ""]
    columns = zip(nodes.names, nodes.label.tolist(), nodes.kind.tolist(), nodes.direction.tolist(), strict=True)
    return tuple((labels[label] if label >= 0 else name, kind, way) for name, label, kind, way in columns)


def _partners(first: RankDump, member: RankDump) -> Int64:
    """The member's node for each node of the first member, -1 if it has none."""
    if first.nodes.names == member.nodes.names:
        return np.arange(len(first.nodes))
    pairs = match_nodes(first, member, Options())[1]
    found = np.full(len(first.nodes), -1, np.int64)
    both = (pairs.target >= 0) & (pairs.golden >= 0) & (pairs.method != Method.FUSED)
    found[pairs.target[both]] = pairs.golden[both]
    return found


def _lost(members: Sequence[RankDump], partners: Sequence[Int64], there: Bool) -> list[tuple[int, int]]:
    """Nodes that not all members have, as (member, its node), member by member."""
    found = []
    for place, (member, nodes) in enumerate(zip(members, partners, strict=True)):
        common = np.zeros(len(member.nodes), bool)
        common[nodes[there]] = True
        found += [(place, node) for node in np.flatnonzero(~common).tolist()]
    return found


def _rows(base: RankDump, member: RankDump, nodes: Int64) -> Int64:
    """The member's item for each of the base's; nodes: its node for each of the base's."""
    items, others = base.items, member.items
    if (
        base.nodes.names == member.nodes.names
        and len(items) == len(others)
        and bool((items.node == others.node).all() and (items.role == others.role).all())
        and items.paths == others.paths
        and bool((items.path == others.path).all())
    ):
        return np.arange(len(items))
    places = {
        (node, role, others.paths[path] if path >= 0 else ""): item
        for item, (node, role, path) in enumerate(
            zip(others.node.tolist(), others.role.tolist(), others.path.tolist(), strict=True)
        )
    }
    keys = zip(nodes[items.node].tolist(), items.role.tolist(), items.path.tolist(), strict=True)
    return np.array(
        [places.get((node, role, items.paths[path] if path >= 0 else ""), -1) for node, role, path in keys], np.int64
    )


def _wide(members: Sequence[RankDump], rows: Int64) -> dict[tuple[int, int], list[int]]:
    if not any(member.items.wide for member in members):
        return {}
    found: dict[tuple[int, int], list[int]] = {}
    for item in range(rows.shape[1]):
        for column in range(2):
            keys = [(int(row), column) for row in rows[:, item].tolist()]
            if any(key in member.items.wide for key, member in zip(keys, members, strict=True)):
                found[item, column] = [
                    member.items.wide.get(key, int(np.nan_to_num(member.items.stats[key])))
                    for key, member in zip(keys, members, strict=True)
                ]
    return found
