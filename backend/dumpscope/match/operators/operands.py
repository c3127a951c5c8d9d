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


def swap_operands(
    target: RankDump, golden: RankDump, t_nodes: Int32, g_nodes: Int32, pair: Int64, t: Int64, g: Int64
) -> Int64:
    """Golden items of the item pairs (pair, t, g), exchanged where a call has its operands in the other order, and where its
    backward hands out their gradients."""
    swapped = _swapped(target, golden, t_nodes, g_nodes, pair, t, g)
    if not len(swapped):
        return g
    nodes = target.nodes
    calls = {(int(nodes.label[n]), int(nodes.index[n])) for n in t_nodes[swapped].tolist()}
    going_back = (t_nodes >= 0) & (g_nodes >= 0) & (nodes.direction[t_nodes] == Direction.BACKWARD)
    behind = [
        row
        for row in np.flatnonzero(going_back & (nodes.kind[t_nodes] == NodeKind.API)).tolist()
        if (int(nodes.label[t_nodes[row]]), int(nodes.index[t_nodes[row]])) in calls
    ]
    out = g.copy()
    for rows, role in ((swapped, Role.INPUT), (np.array(behind, np.int64), Role.OUTPUT)):
        first, second = (_rows(target, golden, pair, t, g, role, path) for path in ("0", "1"))
        for row in rows.tolist():
            if row in first and row in second:
                out[first[row]], out[second[row]] = g[second[row]], g[first[row]]
    return out


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
