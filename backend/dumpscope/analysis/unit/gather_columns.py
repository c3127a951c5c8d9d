"""Computes the node columns of a unit from its facts and opinions."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from dumpscope.analysis.unit import noise
from dumpscope.analysis.unit.cancellation import code_labels, weigh_sums
from dumpscope.analysis.unit.learned_noise import use_other_kernels
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.analysis.unit.sums.following import Jumps, explained_by, follow_rounding
from dumpscope.analysis.unit.weight_items import holds_weight
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions, Leftover, Method, NodePairs, Outcome, Verdict
from dumpscope.domain.records import (
    Bool,
    Direction,
    Float64,
    Int8,
    Int32,
    Int64,
    Kind,
    NodeKind,
    Nodes,
    RankDump,
    Role,
    State,
)
from dumpscope.domain.result import ResultTree
from dumpscope.verdict.score import distance, is_exact_kind

_Column = TypeVar("_Column", Int8, Int32)


def gather_columns(
    target: RankDump,
    golden: RankDump,
    pairs: NodePairs,
    tree: ResultTree,
    context: Context,
    facts: Facts,
    opinions: ItemOpinions,
    bulk: float,
    crossed: Bool,
    *,
    carried: bool,
    inherited: float = 0.0,
) -> NodeColumns:
    """Compute the columns of one unit.

    crossed: by item pair, see `noise.find_crossed`

    bulk: the floor that rules it (verdict.score.common_floor)
    carried: an earlier step differs, so an optimizer may have made weights differ by any size
    inherited: see `learned_noise.inherited_rounding`
    """
    names, labels, kind, direction = name_nodes(target, golden, pairs)
    score = _drop_lone_hashes(context, facts, opinions.score)
    bent = noise.may_bend(labels, kind)
    flips = noise.find_flips(context, facts, score, names, bent, direction, bulk)
    sums = weigh_sums(
        context, facts, target.items, score * flips, names, labels, kind, direction, name_golden(golden, pairs)
    )
    score, measured, guarded = sums.score, sums.measured, sums.guarded
    tensor = facts.outcome != Outcome.SCALAR
    output = (context.role == Role.OUTPUT) | (context.role == Role.GRADIENT) | (context.role == Role.DEBUG)
    own_in = _worst(context, score, ~output & tensor)
    weight = holds_weight(target, context, kind) if carried else np.zeros(len(context), bool)
    own_data = _worst(context, score, ~output & tensor & ~weight)
    out_score = _worst(context, score, output)
    differs = ((facts.equal == 0) & ~context.unread).astype(np.float64)
    received, made = _worst(context, differs, ~output & tensor), _worst(context, differs, output)
    sequence = not (~output & (context.kind == Kind.TENSOR)).any()
    if sequence:
        own_in = own_data = _made_before(out_score)
        received = _made_before(made)
    argument = np.zeros(len(pairs), bool)
    argument[context.pair[find_differing_arguments(context, facts)]] = True
    alone = (pairs.target < 0) | (pairs.golden < 0)
    entry = _entries(tree, len(pairs))
    saved = _SavedValues(pairs, kind, direction, labels, target, golden, tree, entry)
    tiny = (facts.equal == 0) & (score == 0)
    excuse = (tiny & _is_large(context, facts, tiny, bulk)).astype(np.float64)
    backward = direction == Direction.BACKWARD
    inexact = saved.add_to(received, made, unknown=1.0)
    quiet = noise.is_quiet(context, facts, score, np.fmax(own_in, out_score), labels, kind, backward, bulk)
    quiet = quiet and not use_other_kernels(target, golden) and not (pairs.method == Method.FUSED).any()
    quiet = quiet and not noise.have_other_shapes(context)
    quiet = quiet and not _begins_with_jump(context, np.fmax(own_in, out_score), crossed)
    if quiet:
        crossed = np.zeros(len(context), bool)
    if crossed.any():
        held, least = holds_weight(target, context, kind), explained_by(score, weight)
        jumps = Jumps(crossed=crossed, held=held, bulk=bulk, least=least)
        guarded = follow_rounding(context, sums, names, direction, jumps)
    quiet = quiet and not _begins_with_rounding(np.fmax(own_in, out_score), _worst(context, guarded, output), inexact)
    summed = (guarded < measured) & ~output & tensor
    if summed.any() and not (quiet or sequence):
        lower = np.where(summed, guarded, score)
        own_in, own_data = _worst(context, lower, ~output & tensor), _worst(context, lower, ~output & tensor & ~weight)
    # Where the runs are bit-equal, a sum of equal terms has no rounding to show, however small it is, unless a call takes them in
    # another shape, and adds them in another order.
    other_order = np.zeros(len(pairs), bool)
    other_order[context.pair[context.reshaped]] = True
    guarded_out = np.where(quiet & ~(inexact > 0) & ~other_order, out_score, _worst(context, guarded, output))
    with np.errstate(invalid="ignore"):
        cancels = (guarded_out < out_score) & (out_score > 1)
    out_score = guarded_out
    threshold, growth = np.full(len(pairs), noise.QUIET), np.full(len(pairs), noise.JUMP)
    if not quiet:
        weights = _worst(context, score, weight)
        weights = saved.add_to(weights, weights, unknown=np.nan)
        worst = np.fmax(own_data, out_score)
        threshold = np.fmax(noise.find_thresholds(context, worst, weights, own_in, bent, backward, bulk), inherited)
        growth = noise.find_growth(context, weights)
    return NodeColumns(
        kind=kind,
        direction=direction,
        in_score=saved.add_to(own_in, out_score, unknown=np.inf),
        seen_in=saved.add_to(own_in, out_score, unknown=np.nan),
        own_data=own_data,
        data_score=saved.add_to(own_data, out_score, unknown=np.inf),
        out_score=out_score,
        own_in=own_in,
        inexact=inexact,
        excused=saved.add_to(
            _worst(context, excuse, ~output & tensor), _worst(context, excuse, output), unknown=np.nan
        ),
        cancels=cancels,
        argument=argument,
        leaf=_leaves(tree, entry, alone | (kind == NodeKind.GRADIENT)),
        alone=alone,
        extra=alone
        & (pairs.confidence == 0)
        & _dumped_kind(target, golden, kind, pairs)
        & ~np.isin(
            pairs.leftover,
            (Leftover.LEFT_OUT, Leftover.WRAPPER, Leftover.ENDED, Leftover.RECOMPUTED, Leftover.COMPILED),
        )
        & ~_moves_data(labels)
        & ~_find_filtered(target, golden, pairs),
        entry=entry,
        names=names,
        labels=labels,
        threshold=threshold,
        growth=growth,
        quiet=quiet,
        sequence=sequence,
    )


def _begins_with_rounding(worst: Float64, guarded: Float64, inexact: Float64) -> bool:
    """What differs first, by more than a quiet pair may, is what a call made of inputs that are not equal, and rounding of a sum
    that cancels: bits of calls before it differ, too faintly to be seen. By node: see NodeColumns; guarded: score of what it made
    against the terms"""
    with np.errstate(invalid="ignore"):
        first = np.flatnonzero(worst > noise.QUIET)[:1]
        return bool(((guarded[first] <= noise.QUIET) & (inexact[first] > 0)).any())


def _begins_with_jump(context: Context, worst: Float64, crossed: Bool) -> bool:
    """What differs first, by more than a quiet pair may, stands on the other side of a jump: bits of calls before it differ."""
    with np.errstate(invalid="ignore"):
        first = np.flatnonzero(worst > noise.QUIET)[:1]
    return bool(np.isin(first, context.pair[crossed]).any())


def _drop_lone_hashes(context: Context, facts: Facts, score: Float64) -> Float64:
    """Scores without those that rest on a hash alone, where the runs computed in different dtypes: no bits can agree there."""
    if not noise.have_other_dtypes(context):
        return score
    absent = (context.t_state == State.ABSENT).all(axis=1) & (facts.outcome == Outcome.COMPARED)
    return np.where(absent & (facts.unequal < 0) & ~is_exact_kind(context), np.nan, score)


def find_differing_arguments(context: Context, facts: Facts) -> Bool:
    """Non-tensor inputs that differ, or that only one side passes to a call that both sides make."""
    given = (context.role == Role.INPUT) | (context.role == Role.KWARG)
    differs = (facts.outcome == Outcome.SCALAR) & (facts.equal == 0)
    lonely = (facts.outcome == Outcome.TARGET_ONLY) | (facts.outcome == Outcome.GOLDEN_ONLY)
    has_partner = np.zeros(context.nodes, bool)
    has_partner[context.pair[context.both]] = True
    one_sided = lonely & ~context.unrecorded & (context.kind == Kind.SCALAR) & has_partner[context.pair]
    found: Bool = given & (differs | one_sided)
    return found


def node_verdicts(context: Context, opinions: ItemOpinions) -> Int8:
    """Worst verdict of a node's items; not comparable only where no item was judged."""
    weight = np.array([1, 0, 2, 3], np.int8)  # by Verdict: YES, NA, WARNING, NO
    worst = np.zeros(context.nodes, np.int8)
    np.maximum.at(worst, context.pair, weight[opinions.verdict])
    return np.array([Verdict.NA, Verdict.YES, Verdict.WARNING, Verdict.NO], np.int8)[worst]


def _is_large(context: Context, facts: Facts, asked: Bool, bulk: float) -> Bool:
    """By item pair: its difference is large beside what the tensor holds, however small that is. asked: where it matters"""
    if not asked.any() or not bulk:
        return asked
    floor, never = np.full(len(context), bulk), np.full(len(context), np.inf)
    with np.errstate(invalid="ignore"):
        return ~(distance(context, facts, floor, never, 0.0) <= 1)


def name_nodes(target: RankDump, golden: RankDump, pairs: NodePairs) -> tuple[list[str], list[str], Int8, Int8]:
    """By node pair: name, label, kind and direction."""
    own = pairs.target.tolist()
    columns = target.nodes.names, _labels(target.nodes)
    names, labels = ([column[node] if node >= 0 else "" for node in own] for column in columns)
    lone = np.flatnonzero(pairs.target < 0).tolist()
    if lone:
        known = _labels(golden.nodes)
        for pair in lone:
            node = int(pairs.golden[pair])
            names[pair], labels[pair] = golden.nodes.names[node], known[node]
    return names, labels, *classify_nodes(target, golden, pairs)


def name_golden(golden: RankDump, pairs: NodePairs) -> list[str]:
    """By node pair the golden's name, "" where it has no node."""
    return [golden.nodes.names[node] if node >= 0 else "" for node in pairs.golden.tolist()]


def classify_nodes(target: RankDump, golden: RankDump, pairs: NodePairs) -> tuple[Int8, Int8]:
    """By node pair: kind and direction."""
    kind = _of_either(pairs, target.nodes.kind, golden.nodes.kind)
    return kind, _of_either(pairs, target.nodes.direction, golden.nodes.direction)


def _labels(nodes: Nodes) -> list[str]:
    """By node its label, its name where it has none."""
    labels = nodes.labels
    return [labels[code] if code >= 0 else name for code, name in zip(nodes.label.tolist(), nodes.names, strict=True)]


def _of_either(pairs: NodePairs, target: _Column, golden: _Column) -> _Column:
    """By node pair the target's number, the golden's where the target has no node."""
    return np.where(pairs.target >= 0, _take(target, pairs.target), _take(golden, pairs.golden))


def leaf_pairs(target: RankDump, golden: RankDump, pairs: NodePairs, tree: ResultTree) -> Bool:
    """`NodeColumns.leaf` alone, without the columns that need numbers."""
    kind, _ = classify_nodes(target, golden, pairs)
    alone = (pairs.target < 0) | (pairs.golden < 0)
    return _leaves(tree, _entries(tree, len(pairs)), alone | (kind == NodeKind.GRADIENT))


def _entries(tree: ResultTree, pairs: int) -> Int64:
    """Entry in the tree of every node pair."""
    entry = np.full(pairs, -1, np.int64)
    has = tree.pair >= 0
    entry[tree.pair[has]] = np.flatnonzero(has)
    return entry


def _worst(context: Context, score: Float64, where: Bool) -> Float64:
    """By node pair: the largest score of its item pairs in `where`, nan where there is none."""
    out = np.full(context.nodes, np.nan)
    rows = where & ~np.isnan(score)
    np.fmax.at(out, context.pair[rows], score[rows])
    return out


def _made_before(made: Float64) -> Float64:
    """By node pair the worst of all that earlier ones made, nan for the first: what a call received where nothing of it is
    recorded."""
    return np.concatenate([[np.nan], np.fmax.accumulate(made)[:-1]]) if len(made) else made


def _leaves(tree: ResultTree, entry: Int64, passed_over: Bool) -> Bool:
    """By node pair: the tree holds nothing below it but what is passed over (calls without a partner, parameter gradients)."""
    inner = np.zeros(len(tree) + 1, bool)
    children = np.flatnonzero((tree.pair >= 0) & (tree.parent >= 0))
    inner[tree.parent[children[~passed_over[tree.pair[children]]]]] = True
    virtual = np.flatnonzero((tree.pair < 0) & (tree.parent >= 0))  # these pass on what stands below them
    for entry_number in virtual[np.argsort(-tree.order[virtual].astype(np.int64))].tolist():
        if inner[entry_number]:
            inner[tree.parent[entry_number]] = True
    return ~inner[entry]


def _dumped_kind(target: RankDump, golden: RankDump, kind: Int8, pairs: NodePairs) -> Bool:
    """False for modules where the other side's level records none (L1), and for calls where it records none (L0)."""
    kinds = [np.unique(dump.nodes.kind) for dump in (golden, target)]
    both: Bool = np.where(pairs.target >= 0, np.isin(kind, kinds[0]), np.isin(kind, kinds[1]))
    return both


def _moves_data(labels: list[str]) -> Bool:
    """By node pair: the call only moves or makes data. A risk level leaves those out of a dump, so missing ones mean nothing."""
    return np.array([label.rpartition(".")[2] in noise.MOVES for label in labels], bool)


class _SavedValues:
    """A backward computes with values that its forward saved: their error is part of what came in.

    A parameter gradient comes out of the backward calls inside its module, so their errors count as well.
    """

    def __init__(
        self,
        pairs: NodePairs,
        kind: Int8,
        direction: Int8,
        labels: list[str],
        target: RankDump,
        golden: RankDump,
        tree: ResultTree,
        entry: Int64,
    ) -> None:
        index = _of_either(pairs, target.nodes.index, golden.nodes.index)
        self.label = code_labels(labels)
        calls = self.label * (int(index.max(initial=0)) + 2) + index
        self.call = np.unique(calls, return_inverse=True)[1].astype(np.int64)
        self.forward = direction == Direction.FORWARD
        self.backward = direction == Direction.BACKWARD
        self.api = kind == NodeKind.API
        self.module = kind == NodeKind.MODULE
        self.gradient = kind == NodeKind.GRADIENT
        self.home = self._find_homes(tree, entry)
        self.run_again = self._find_apis_run_again()

    def _find_apis_run_again(self) -> Int64:
        """Forward calls behind the first backward one, and the backward calls of the same APIs."""
        begin = int(np.argmax(self.backward)) if self.backward.any() else len(self.backward)
        again = self.api & self.forward
        again[:begin] = False
        calls = again | (self.api & self.backward)
        found: Int64 = np.flatnonzero(calls & np.isin(self.label, self.label[again]))
        return found

    def _find_homes(self, tree: ResultTree, entry: Int64) -> Int64:
        """Label of the module around each API call, of the forward call for a backward one; -1 where there is none."""
        n = len(entry)
        parent = np.where(entry >= 0, tree.parent[entry], -1) if len(tree) else np.full(n, -1)
        pair = np.where(parent >= 0, tree.pair[parent], -1) if len(tree) else np.full(n, -1)
        home = np.where((pair >= 0) & self.api & self.forward, self.label[pair], -1) if n else np.zeros(0, np.int64)
        found = _look_up(self.call, home.astype(np.float64), self.api & self.forward)
        homes: Int64 = np.where(self.api & ~np.isnan(found), np.nan_to_num(found, nan=-1), -1).astype(np.int64)
        return homes

    def add_to(self, own_in: Float64, out_score: Float64, *, unknown: float) -> Float64:
        """own_in with what a backward node takes from elsewhere; nan where nothing is known.

        unknown: stands for the gradient that arrives at a module whose backward was not dumped
        """
        combined = np.fmax(own_in, out_score)
        saved = np.where(
            self.api,
            _look_up(self.call, combined, self.forward),
            _look_up(self.label, combined, self.forward & self.module),
        )
        saved = np.fmax(saved, self._find_run_again(combined))
        arriving = _look_up(self.label, own_in, self.backward & self.module)
        arriving = np.where(np.isnan(arriving), unknown, arriving)
        inside = self.backward & self.api & (self.home >= 0)
        keys = np.where(inside, self.home, self.label)
        within = np.where(self.gradient, _look_up(keys, combined, inside), np.nan)
        saved = np.where(self.gradient, np.fmax(np.fmax(saved, arriving), within), saved)
        in_score: Float64 = np.where(self.backward, np.fmax(own_in, saved), own_in)
        return in_score

    def _find_run_again(self, combined: Float64) -> Float64:
        """For a backward call the largest value of the calls of its API that ran between backward calls before it: a checkpoint
        runs forward calls again under new numbers, and it is those whose values are used."""
        found = np.full(len(combined), np.nan)
        pairs = self.run_again
        largest: dict[int, float] = {}
        columns = pairs.tolist(), self.backward[pairs].tolist(), self.label[pairs].tolist(), combined[pairs].tolist()
        for pair, backward, label, value in zip(*columns, strict=True):
            if backward:
                found[pair] = largest.get(label, np.nan)
            elif not np.isnan(value):
                largest[label] = max(largest.get(label, 0.0), value)
        return found


def _take(column: _Column, index: Int32) -> _Column:
    """column[index]; -1 throughout where the side has no node at all."""
    taken: _Column = column[index] if len(column) else np.full(len(index), -1, column.dtype)
    return taken


def _look_up(code: Int64, value: Float64, where: Bool) -> Float64:
    """For every row the largest value of the rows in `where` that have its code, nan where there is none. Codes begin at 0."""
    best = np.full(int(code.max(initial=-1)) + 1, np.nan)
    np.fmax.at(best, code[where], value[where])
    found: Float64 = best[code]
    return found


def _find_filtered(target: RankDump, golden: RankDump, pairs: NodePairs) -> Bool:
    """Calls that hold only what the other side's dump leaves out of every call (ptdbg's filter_switch): numbers, tensors of whole
    numbers, and those without dimensions or elements."""
    found = np.zeros(len(pairs), bool)
    for own, other, nodes in ((target, golden, pairs.target), (golden, target, pairs.golden)):
        if other.ref.traits.filtered and len(other.items) and _is_major(other).all():
            holds = np.zeros(len(own.nodes), bool)
            holds[own.items.node[_is_major(own)]] = True
            lone = np.flatnonzero((nodes >= 0) & ((pairs.target < 0) | (pairs.golden < 0)))
            found[lone] |= ~holds[nodes[lone]]
    return found


def _is_major(dump: RankDump) -> Bool:
    """Items that filter_switch leaves in."""
    items = dump.items
    floating = np.array(
        [name.startswith(("torch.float", "torch.bfloat", "torch.complex")) for name in items.dtypes] + [False]
    )
    filled = np.array([len(shape) > 0 and 0 not in shape for shape in items.shapes] + [False])
    found: Bool = (items.kind == Kind.TENSOR) & floating[items.dtype] & filled[items.shape]
    return found
