"""Weights that hold on one side what calls of the other side compute: a merged adapter, a norm folded into a layer.

Such a weight and what it makes differ, and calls of one side alone make up for it: the module around them takes and makes the
same on both sides. That is another form of the same program, and nothing in it is a cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.gather_columns import classify_nodes
from dumpscope.analysis.unit.weight_items import holds_weight
from dumpscope.domain.context import Context
from dumpscope.domain.facts import ItemOpinions, Outcome, Verdict
from dumpscope.domain.records import Bool, Direction, Float64, Int32, Int64, Kind, NodeKind, RankDump, Role, State
from dumpscope.domain.result import MeasuredUnit
from dumpscope.verdict.rules import CODES
from dumpscope.verdict.score import MAX, MEAN, MIN, NORM

_DIFFERS: Final = tuple(CODES[rule] for rule in ("T-2", "M-2", "H-1", "V-4"))
"""Rules of an item that differs by the size of its numbers; the last one is what this module makes of it."""
_TAKEN: Final = (Role.INPUT, Role.KWARG)
_NEAR: Final = 8
"""Calls of one side among which the one that evens out a weight is looked for."""
_TOLERANCE: Final = 1e-4
"""How far results of both sides are apart at most, relative to their size, to be the same."""


def excuse_folded(unit: MeasuredUnit, opinions: ItemOpinions) -> ItemOpinions:
    """The opinions with a warning for each No inside such a module."""
    bad = (opinions.verdict == Verdict.NO) & np.isin(opinions.rule, _DIFFERS)
    bad &= unit.facts.outcome == Outcome.COMPARED
    if not bad.any():
        return opinions
    inside = find_folded(unit, opinions)
    if not inside.any():
        return opinions
    kind = classify_nodes(unit.target, unit.golden, unit.pairs)[0]
    # a convolution without a bias has one where a norm is folded into it
    bad |= (opinions.rule == CODES["S-2"]) & holds_weight(unit.target, unit.context, kind)
    excused = bad & inside[unit.context.pair]
    if not excused.any():
        return opinions
    return replace(
        opinions,
        verdict=np.where(excused, int(Verdict.WARNING), opinions.verdict).astype(np.int8),
        rule=np.where(excused, CODES["V-4"], opinions.rule).astype(np.int8),
        score=np.where(excused, np.nan, opinions.score),
    )


def find_folded(unit: MeasuredUnit | Case, opinions: ItemOpinions) -> Bool:
    """By node pair: it lies inside a module in which a weight stands for calls of the other side."""
    context, pairs = unit.context, unit.pairs
    found = np.zeros(context.nodes, bool)
    both = (pairs.target >= 0) & (pairs.golden >= 0)
    kind, direction = classify_nodes(unit.target, unit.golden, pairs)
    forward = direction == Direction.FORWARD
    alone = ~both & forward & (kind == NodeKind.API)
    if not alone.any():
        return found
    differs = np.isin(opinions.rule, _DIFFERS) & (opinions.verdict != Verdict.YES) & (context.kind == Kind.TENSOR)
    weight = holds_weight(unit.target, context, kind)
    weights = differs & (both & forward)[context.pair] & weight
    if not weights.any():
        return found
    made = _worst(unit, opinions, context.role == Role.OUTPUT)
    taken = _worst(unit, opinions, np.isin(context.role, _TAKEN) & ~weight)
    agrees = both & forward & (kind == NodeKind.MODULE) & (made <= 1) & (taken <= 1)
    sides = [(unit.target, pairs.target), (unit.golden, pairs.golden)]
    around = [_Around(dump, nodes) for dump, nodes in sides]
    sizes = _sizes_by_pair(unit)
    own: dict[int, set[int]] = {}
    for pair in np.flatnonzero(alone).tolist():
        chain = around[0] if pairs.target[pair] >= 0 else around[1]
        for module in chain(pair):
            own.setdefault(module, set()).update(sizes.get(pair, ()))
    folded: set[int] = set()
    for pair in np.unique(context.pair[weights & ((made > 1) | (taken > 1))[context.pair]]).tolist():
        inside = set(around[1](pair))
        even = next((one for one in around[0](pair) if agrees[one] and one in inside), None)
        if even is not None and not own.get(even, set()).isdisjoint(sizes.get(pair, ())):
            folded.add(even)
        elif even is None and kind[pair] == NodeKind.API and taken[pair] <= 1:
            found[_find_even(unit, pair, np.flatnonzero(alone), around)] = True
    if folded:
        for pair in range(context.nodes):
            chain = around[0] if pairs.target[pair] >= 0 else around[1]
            found[pair] |= not folded.isdisjoint(chain(pair))
    return found


def _find_even(unit: MeasuredUnit | Case, pair: int, alone: Int64, around: list[_Around]) -> list[int]:
    """A call with another weight, the calls behind it that one side alone makes up to the first that has the other side's result,
    and the modules that hold one of both and not the other; [] where there is no such call."""
    context, pairs = unit.context, unit.pairs
    made = np.flatnonzero((context.pair == pair) & (context.role == Role.OUTPUT) & (context.kind == Kind.TENSOR))
    if len(made) != 1:
        return []
    for golden in (True, False):
        dump, nodes = (unit.golden, pairs.golden) if golden else (unit.target, pairs.target)
        order = dump.tree.order[np.where(nodes >= 0, nodes, 0)]
        behind = alone[(nodes[alone] >= 0) & (order[alone] > order[pair])]
        behind = behind[np.argsort(order[behind], kind="stable")][:_NEAR]
        for place, call in enumerate(behind.tolist()):
            rows = np.flatnonzero(
                (context.pair == call) & (context.role == Role.OUTPUT) & (context.kind == Kind.TENSOR)
            )
            if any(_agree(context, int(made[0]), row, golden=golden) for row in rows.tolist()):
                sides = set(around[golden](pair)), set(around[golden](call))
                return [pair, *behind[: place + 1].tolist(), *(sides[0] ^ sides[1])]
    return []


def _agree(context: Context, made: int, row: int, *, golden: bool) -> bool:
    """Whether what a call made on one side has the statistics of an item that the other side alone has. golden: which has it"""
    stats = (context.t_stats[made], context.g_stats[row]) if golden else (context.g_stats[made], context.t_stats[row])
    states = (context.t_state[made], context.g_state[row]) if golden else (context.g_state[made], context.t_state[row])
    if context.elements[made] != context.elements[row] or not all((one == State.FINITE).all() for one in states):
        return False
    norm = float(max(abs(stats[0][NORM]), abs(stats[1][NORM])))
    peak = float(np.abs(np.concatenate([one[[MAX, MIN]] for one in stats])).max())
    apart = np.abs(stats[0] - stats[1])
    mean = norm / np.sqrt(max(int(context.elements[made]), 1))
    limits = {MAX: 10 * peak, MIN: 10 * peak, MEAN: mean, NORM: norm}
    return all(bool(apart[column] <= _TOLERANCE * limit) for column, limit in limits.items())


def _worst(unit: MeasuredUnit | Case, opinions: ItemOpinions, wanted: Bool) -> Float64:
    """By node pair: the largest score of these tensors, infinite where one of them differs in another way; nan where none
    was compared."""
    context = unit.context
    rows = wanted & (context.kind == Kind.TENSOR)
    known = rows & context.both & ~np.isnan(opinions.score)
    worst = np.full(context.nodes, np.nan)
    np.fmax.at(worst, context.pair[known], opinions.score[known])
    other = rows & (opinions.verdict == Verdict.NO) & ~np.isin(opinions.rule, _DIFFERS)
    changed = rows & (opinions.rule == CODES["V-4"])
    worst[context.pair[other | changed]] = np.inf
    return worst


def _sizes_by_pair(unit: MeasuredUnit | Case) -> dict[int, set[int]]:
    """The sizes of the tensors that each call takes and makes, weights apart."""
    context = unit.context
    rows = (context.kind == Kind.TENSOR) & np.isin(context.role, (*_TAKEN, Role.OUTPUT)) & (context.elements > 1)
    found: dict[int, set[int]] = {}
    for row in np.flatnonzero(rows).tolist():
        found.setdefault(int(context.pair[row]), set()).add(int(context.elements[row]))
    return found


class _Around:
    """The pairs of the modules around a call of one side, the innermost first."""

    def __init__(self, dump: RankDump, nodes: Int32) -> None:
        self._parents = dump.tree.parent.tolist()
        self._nodes = nodes.tolist()
        self._pairs = {node: pair for pair, node in enumerate(self._nodes) if node >= 0}

    def __call__(self, pair: int) -> Iterator[int]:
        entry = self._nodes[pair]
        while entry >= 0:
            entry = self._parents[entry]
            if entry in self._pairs:
                yield self._pairs[entry]
