"""Operands in another order: `x + f(x)` is `f(x) + x`. The two of a call are paired crosswise where only so they agree."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.records import Bool, Direction, Int32, Int64, Kind, NodeKind, RankDump, Role, State
from dumpscope.match.operators.operations import operation

COMMUTE: Final = frozenset(
    {"add", "mul", "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "and", "or", "xor", "eq", "ne"}
)
"""Operations whose two operands may change places."""
_NEAR: Final = 0.02
"""Relative difference of the statistics of what may be one tensor."""


Rows = tuple[Int64, Int64, Int64]
"""Item pairs as columns: node pair, item of the target and of the golden, -1 where a side has none."""


def swap_operands(target: RankDump, golden: RankDump, t_nodes: Int32, g_nodes: Int32, rows: Rows) -> Rows:
    """The item pairs, exchanged where a call has its operands in the other order, and where its backward hands out their
    gradients."""
    if not len(target.items) or not len(golden.items):
        return rows
    swapped = _swapped(target, golden, t_nodes, g_nodes, *rows)
    if not len(swapped):
        return rows
    nodes = target.nodes
    calls = {(int(nodes.label[n]), int(nodes.index[n])) for n in t_nodes[swapped].tolist()}
    going_back = (t_nodes >= 0) & (g_nodes >= 0) & (nodes.direction[t_nodes] == Direction.BACKWARD)
    behind = [
        row
        for row in np.flatnonzero(going_back & (nodes.kind[t_nodes] == NodeKind.API)).tolist()
        if (int(nodes.label[t_nodes[row]]), int(nodes.index[t_nodes[row]])) in calls
    ]
    rows = _exchanged(target, golden, rows, swapped, Role.INPUT)
    return _exchanged(target, golden, rows, np.array(behind, np.int64), Role.OUTPUT)


def _exchanged(target: RankDump, golden: RankDump, rows: Rows, calls: Int64, role: Role) -> Rows:
    """The item pairs with places 0 and 1 of these node pairs crosswise, whether both sides hold them or not."""
    if not len(calls):
        return rows
    pair, t, g = rows
    places = _places(target, t, role), _places(golden, g, role)
    own = np.isin(pair, calls) & ((places[0] >= 0) | (places[1] >= 0))
    held: dict[int, tuple[list[int], list[int]]] = {}
    for row in np.flatnonzero(own).tolist():
        mine, theirs = held.setdefault(int(pair[row]), ([-1, -1], [-1, -1]))
        if places[0][row] >= 0:
            mine[places[0][row]] = int(t[row])
        if places[1][row] >= 0:
            theirs[places[1][row]] = int(g[row])
    crossed = [
        (call, one, other)
        for call, (mine, theirs) in held.items()
        for one, other in zip(mine, theirs[::-1], strict=True)
        if one >= 0 or other >= 0
    ]
    columns = np.array(crossed, np.int64).reshape(-1, 3).T
    kept = [np.concatenate([column[~own], more]) for column, more in zip(rows, columns, strict=True)]
    return kept[0], kept[1], kept[2]


def _places(dump: RankDump, items: Int64, role: Role) -> Int64:
    """0 or 1 for an item of this role in that place, -1 for any other and for none."""
    numbers = np.array([int(path) if path in ("0", "1") else -1 for path in dump.items.paths] + [-1], np.int64)
    found: Int64 = np.where((items >= 0) & (dump.items.role[items] == role), numbers[dump.items.path[items]], -1)
    return found


def _swapped(
    target: RankDump, golden: RankDump, t_nodes: Int32, g_nodes: Int32, pair: Int64, t: Int64, g: Int64
) -> Int64:
    """Node pairs of which each operand agrees with the other one of the golden, and at least one not with its own."""
    commutes = [
        np.array([operation(label) in COMMUTE for label in dump.nodes.labels] + [False]) for dump in (target, golden)
    ]
    calls = (t_nodes >= 0) & (g_nodes >= 0)
    for dump, nodes, known in ((target, t_nodes, commutes[0]), (golden, g_nodes, commutes[1])):
        calls &= known[dump.nodes.label[nodes]] & (dump.nodes.direction[nodes] == Direction.FORWARD)
    if not calls.any():
        return np.zeros(0, np.int64)
    first, second = (_rows(target, golden, pair, t, g, Role.INPUT, path) for path in ("0", "1"))
    rows = np.array([row for row in np.flatnonzero(calls).tolist() if row in first and row in second], np.int64)
    if not len(rows):
        return rows
    one = np.array([first[row] for row in rows.tolist()])
    two = np.array([second[row] for row in rows.tolist()])
    straight = _agree(target, golden, t[one], g[one]) & _agree(target, golden, t[two], g[two])
    crossed = _agree(target, golden, t[one], g[two]) & _agree(target, golden, t[two], g[one])
    found: Int64 = rows[crossed & ~straight]
    return found


def _rows(target: RankDump, golden: RankDump, pair: Int64, t: Int64, g: Int64, role: Role, path: str) -> dict[int, int]:
    """Node pair -> row of the item pair that both sides have in this place, if it is a tensor on both."""
    both = (t >= 0) & (g >= 0)
    for dump, items in ((target, t), (golden, g)):
        here = np.array([one == path for one in dump.items.paths] + [False])
        both &= (
            (dump.items.role[items] == role) & here[dump.items.path[items]] & (dump.items.kind[items] == Kind.TENSOR)
        )
    found = np.flatnonzero(both)
    return dict(zip(pair[found].tolist(), found.tolist(), strict=True))


def _agree(target: RankDump, golden: RankDump, t: Int64, g: Int64) -> Bool:
    """Whether two tensors may be one: the same shape, and statistics within 2 %, or the same hash."""
    one, other = target.items, golden.items
    shapes = {shape: code for code, shape in enumerate(one.shapes)}
    table = np.array([shapes.get(shape, -2) for shape in other.shapes] + [-1], np.int64)
    hashes = {text: code for code, text in enumerate(one.hashes)}
    marks = np.array([hashes.get(text, -2) for text in other.hashes] + [-1], np.int64)
    states = one.stat_state[t], other.stat_state[g]
    known = (states[0] == State.FINITE) & (states[1] == State.FINITE)
    a, b = one.stats[t], other.stats[g]
    with np.errstate(invalid="ignore"):
        near = (np.abs(a - b) <= _NEAR * np.maximum(np.abs(a), np.abs(b))) | ~known
    stored = (states[0] != State.ABSENT).any(axis=1)
    same = np.where(stored, (near & (states[0] == states[1])).all(axis=1), one.hash[t] == marks[other.hash[g]])
    found: Bool = same & (one.shape[t] == table[other.shape[g]])
    return found
