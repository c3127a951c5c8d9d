"""Which call made the tensor that another call receives, as the dump names it, else by identity of what it stored.

A dump of our own capture names the producer of an argument. Where none is named, a tensor is known again by its statistics and
size, or by its hash where there are none; a view keeps both. What is the same number throughout (zeros, ones, a mask) says
nothing about its maker."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.analysis.unit.case import RECEIVED, Case
from dumpscope.analysis.unit.gather_columns import leaf_pairs
from dumpscope.domain.context import Context, gather
from dumpscope.domain.facts import ItemPairs, NodePairs, Spread, Verdict
from dumpscope.domain.records import Bool, Direction, Int32, Int64, Items, Kind, NodeKind, RankDump, State
from dumpscope.domain.result import MeasuredUnit, ResultTree

Words = NDArray[np.uint64]

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one finding explains. nodes: pairs that differ and received, directly or through others, what its node made, the
    modules around them among them; path: from its node to the first No that it reaches, both included; [] if it reaches none
    pairs: those reached but for the modules around them, its own among them"""

    nodes: int
    path: list[int]
    pairs: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Data flow inside one unit. maker: per item pair the node pair that made the received tensor, -1 where unknown"""

    case: Case = field(repr=False)
    maker: Int64

    def find_reach(self, pairs: Iterable[int]) -> Reach:
        """What follows from these node pairs, the first of which is the finding's own."""
        own = dict.fromkeys(pairs, -1)
        came_from = dict(own)
        depth = dict.fromkeys(own, 0)
        edges = self._edges  # in the order of the readers, so a maker is final before its readers come
        first = bisect_left(edges, (min(own, default=0),)) if self._forward_only else 0
        for reader, maker in islice(edges, first, None):
            step = depth.get(maker, -2) + 1
            if step > 0 and reader not in own and step < depth.get(reader, step + 1):
                came_from[reader], depth[reader] = maker, step
        explained = {*came_from, *self._find_around(came_from)}
        goal = min((pair for pair in came_from if self._failed[pair]), default=-1)
        path: list[int] = []
        while goal >= 0:
            path.append(goal)
            goal = came_from[goal]
        return Reach(nodes=len(explained) - len(own), path=path[::-1], pairs=frozenset(came_from))

    def find_spread(self) -> Spread:
        """How differences went on in the unit, for reaches that are asked for later."""
        edges = np.array(self._edges, np.int32).reshape(-1, 2)
        return Spread(reader=edges[:, 0], maker=edges[:, 1], differs=self._differs)

    def _find_around(self, pairs: Iterable[int]) -> set[int]:
        """The node pairs around these in the module tree that differ too."""
        tree, entry = self.case.tree, self.case.columns.entry
        found: set[int] = set()
        for pair in pairs:
            at = int(entry[pair])
            at = int(tree.parent[at]) if at >= 0 else -1
            while at >= 0:
                around = int(tree.pair[at])
                if around in found:
                    break
                if around >= 0 and self._differs[around]:
                    found.add(around)
                at = int(tree.parent[at])
        return found

    def _link_untraced(self) -> list[tuple[int, int]]:
        """Calls that received something different and whose maker is unknown, each with the leaf call before it that differs:
        what stands between them was not dumped (a view of another size, an operator left out), and took what was there. A
        parameter gradient comes out of the backward call before it."""
        case, columns = self.case, self.case.columns
        context = case.context
        with np.errstate(invalid="ignore"):
            bad = case.received & (case.opinions.score > case.threshold) & (context.kind == Kind.TENSOR)
        traced = np.zeros(len(columns), bool)
        known = np.flatnonzero(bad & (self.maker >= 0))
        traced[context.pair[known[self._differs[self.maker[known]]]]] = True
        lost = np.zeros(len(columns), bool)
        lost[context.pair[bad]] = True
        if columns.sequence:
            lost = self._differs & columns.leaf
        gradient = columns.kind == NodeKind.GRADIENT
        order = np.flatnonzero(self._differs & columns.leaf & ~gradient)
        readers = np.flatnonzero((lost & ~traced) | (gradient & self._differs))
        place = np.searchsorted(order, readers) - 1
        return [
            (reader, int(order[at])) for reader, at in zip(readers.tolist(), place.tolist(), strict=True) if at >= 0
        ]

    @cached_property
    def _differs(self) -> Bool:
        columns = self.case.columns
        with np.errstate(invalid="ignore"):
            found: Bool = (np.fmax(columns.out_score, columns.own_in) > columns.threshold) | columns.argument
        return found | self._failed

    @cached_property
    def _failed(self) -> Bool:
        bad = np.zeros(len(self.case.columns), bool)
        bad[self.case.context.pair[self.case.opinions.verdict == Verdict.NO]] = True
        return bad

    @cached_property
    def _forward_only(self) -> bool:
        """Whether every reader stands behind its maker, so that nothing follows from a call before it."""
        return all(maker < reader for reader, maker in self._edges)

    @cached_property
    def _edges(self) -> list[tuple[int, int]]:
        """(reader, maker) of every node pair that differs, ordered by reader: those whose results it received, and for a
        backward call its forward, whose saved values it uses."""
        columns, context = self.case.columns, self.case.context
        span = len(columns)
        rows = np.flatnonzero((self.maker >= 0) & self._differs[context.pair])
        lost = self._link_untraced()
        forward = {
            columns.names[pair].removesuffix(".forward"): pair
            for pair in np.flatnonzero(self._differs & (columns.direction == Direction.FORWARD)).tolist()
        }
        saved = [
            (pair, maker)
            for pair in np.flatnonzero(self._differs & (columns.direction == Direction.BACKWARD)).tolist()
            if (maker := forward.get(columns.names[pair].removesuffix(".backward"))) is not None
        ]
        more = np.array([reader * span + maker for reader, maker in (*lost, *saved)], np.int64)
        edges = np.unique(np.concatenate([context.pair[rows].astype(np.int64) * span + self.maker[rows], more]))
        return list(zip((edges // span).tolist(), (edges % span).tolist(), strict=True))


def find_makers(case: Case, *, golden: bool = False) -> Int64:
    """Per item pair the node pair of the leaf call before it that put out the same tensor; -1 for what no dumped call made, for
    outputs, and for constants without a named producer. golden: by what the golden stored"""
    if golden in case.makers:
        return case.makers[golden]
    context, side, rows = case.context, case.target, case.context.target
    if golden:
        side, rows = case.golden, case.context.golden
        context = replace(context, target=context.golden, t_stats=context.g_stats, t_state=context.g_state)
    leaf = case.columns.leaf
    made = _find_sources(context, side.items, rows, leaf, case.received, context.pair)
    maker = np.where(case.received, _pair_of(made, context), -1)
    case.makers[golden] = np.where((maker >= 0) & leaf[maker], maker, -1)
    return case.makers[golden]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Per item pair the node pair of the leaf call that put out the same tensor, -1 where nothing tells.

    received: of what a call received, before it began (a module stands behind the calls inside it, but begins before them); a
        module where the dump names it and no call inside it did
    handed: of what a module put out, before it ended
    """

    received: Int64
    handed: Int64


def trace(unit: MeasuredUnit) -> Trace:
    """Data flow of a unit, without its numbers being judged."""
    context = unit.context
    leaf = leaf_pairs(unit.target, unit.golden, unit.pairs, unit.tree)
    received = np.isin(context.role, RECEIVED)
    until = np.where(received, _first_inside(unit.tree, len(unit.pairs))[context.pair], context.pair)
    maker = _pair_of(_find_sources(context, unit.target.items, unit.items.target, leaf, received, until), context)
    return Trace(received=np.where(received, maker, -1), handed=np.where(received, -1, maker))


def trace_rank(dump: RankDump) -> Int32:
    """Per item of one dump the output of an earlier node that its call received: as the dump names it, else found as in `trace`;
    -1 where nothing tells, and for what no call received. A module that the dump names stays named."""
    nodes, items = np.arange(len(dump.nodes), dtype=np.int32), np.arange(len(dump.items), dtype=np.int32)
    size = len(nodes)
    pairs = NodePairs(
        target=nodes,
        golden=nodes,
        method=np.zeros(size, np.int8),
        confidence=np.ones(size),
        leftover=np.zeros(size, np.int8),
        beside=np.full(size, -1, np.int32),
    )
    entries = np.arange(len(dump.tree), dtype=np.int32)
    tree = ResultTree(
        names=dump.tree.names,
        parent=dump.tree.parent,
        order=dump.tree.order,
        pair=np.where(entries < size, entries, -1).astype(np.int32),
        inferred=dump.tree.inferred,
    )
    context = gather(dump, dump, pairs, ItemPairs(pair=dump.items.node, target=items, golden=items))
    leaf = leaf_pairs(dump, dump, pairs, tree)
    received = np.isin(context.role, RECEIVED)
    until = np.where(received, _first_inside(tree, size)[context.pair], context.pair)
    made = np.where(received, _find_sources(context, dump.items, items, leaf, received, until), -1).astype(np.int32)
    return np.where(dump.items.producer >= 0, dump.items.producer, made)


def _first_inside(tree: ResultTree, pairs: int) -> Int32:
    """Per node pair the first node pair at or below its place in the tree."""
    first = np.where(tree.pair < 0, pairs, tree.pair).tolist()
    parents = tree.parent.tolist()
    for entry in np.argsort(-tree.order.astype(np.int64), kind="stable").tolist():
        parent = parents[entry]
        if parent >= 0 and first[entry] < first[parent]:
            first[parent] = first[entry]
    found = np.arange(pairs, dtype=np.int32)
    own = np.flatnonzero(tree.pair >= 0)
    found[tree.pair[own]] = np.array(first, np.int32)[own]
    return found


def _find_sources(context: Context, items: Items, numbers: Int32, leaf: Bool, received: Bool, until: Int32) -> Int64:
    """Per item pair the item pair of the output, of a node pair before `until`, that is the same tensor, else -1: what the dump
    names, and what a leaf call put out where a module only handed it on; where it names nothing, the last leaf call's that
    stored the same. Of outputs only a module's have one. numbers: of the item of each item pair"""
    same = _find_alike(context, items.hash, leaf, received | ~leaf[context.pair], until)
    named = _find_named_producers(items, numbers)
    rows = np.flatnonzero(named >= 0)
    rows = rows[context.pair[named[rows]] < until[rows]]
    source = named[rows]
    inside = np.where(leaf[context.pair[source]], -1, same[source])
    same[rows] = np.where(inside >= 0, inside, source)
    return same


def _find_named_producers(items: Items, numbers: Int32) -> Int64:
    """Per item pair the item pair of the record that the dump names as its producer, -1 where it names none."""
    rows = np.full(len(items) + 1, -1, np.int64)  # the last one is for -1
    rows[numbers] = np.arange(len(numbers))
    rows[-1] = -1
    found: Int64 = rows[np.append(items.producer, -1)[numbers]]
    return found


def _pair_of(rows: Int64, context: Context) -> Int64:
    """Node pair of each item pair, -1 kept."""
    if not len(context):
        return rows
    return np.where(rows >= 0, context.pair[rows], -1)


def _find_alike(context: Context, hashes: Int32, leaf: Bool, wanted: Bool, until: Int32) -> Int64:
    """Per item pair in `wanted` the first output of the last leaf call before node pair `until` that stored the same, else -1."""
    tensors = (context.kind == Kind.TENSOR) & (context.target >= 0) & ~_is_constant(context, hashes)
    made = np.flatnonzero(tensors & ~np.isin(context.role, RECEIVED) & leaf[context.pair])
    taken = np.flatnonzero(tensors & wanted)
    found = np.full(len(context), -1, np.int64)
    if not len(made) or not len(taken):
        return found
    identity = _hash_contents(context, hashes, np.concatenate([made, taken]))
    _, code = np.unique(identity, return_inverse=True)
    span = context.nodes + 1
    outputs = code[: len(made)] * span + context.pair[made]
    order = np.argsort(outputs, kind="stable")
    outputs = outputs[order]
    at = np.searchsorted(outputs, code[len(made) :] * span + until[taken]) - 1
    known = (at >= 0) & (outputs[at] // span == code[len(made) :])
    first = np.searchsorted(outputs, outputs[at[known]])
    found[taken[known]] = made[order[first]]
    return found


def _is_constant(context: Context, hashes: Int32) -> Bool:
    """Tensors that cannot be recognised: one number throughout, or neither statistics nor a hash."""
    top, bottom = context.t_stats[:, 0], context.t_stats[:, 1]
    finite = (context.t_state[:, 0] == State.FINITE) & (context.t_state[:, 1] == State.FINITE)
    absent = (context.t_state == State.ABSENT).all(axis=1)
    hashed = np.zeros(len(context), bool)
    if len(hashes):
        hashed = (context.target >= 0) & (hashes[context.target] >= 0)
    found: Bool = np.where(absent, ~hashed, finite & (top == bottom))
    return found


def _hash_contents(context: Context, hashes: Int32, rows: Int64) -> Words:
    """64-bit hash of statistics and size, or of the stored hash."""
    columns: list[NDArray[Any]] = [context.elements[rows]]
    for column in range(4):
        state = context.t_state[rows, column]
        columns += [np.where(state == State.FINITE, context.t_stats[rows, column] + 0.0, 0.0).view(np.uint64), state]
    absent = (context.t_state[rows] == State.ABSENT).all(axis=1)
    columns.append(np.where(absent, hashes[context.target[rows]], -1))
    mixed = np.zeros(len(rows), np.uint64)
    for values in columns:
        mixed = (
            (mixed ^ values.astype(np.int64, copy=False).view(np.uint64))
            if values.dtype != np.uint64
            else mixed ^ values
        )
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(29)
    return mixed
