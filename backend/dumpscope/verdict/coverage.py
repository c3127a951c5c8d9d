"""Which items of a unit were judged, by what, and why the others were not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dumpscope.domain.coverage import GROUPS, MISSING, REASON_WORDS, End, Reason, Unjudged
from dumpscope.domain.facts import Leftover, Outcome, Verdict
from dumpscope.domain.records import Bool, Direction, Int8, Int64, Kind, NodeKind, RankDump, Role, State
from dumpscope.domain.result import Unit
from dumpscope.domain.unread.memory import UNINITIALISED
from dumpscope.match.amounts.kept import find_kept
from dumpscope.match.amounts.last import find_last
from dumpscope.match.endings import are_around_passes
from dumpscope.match.operators.operations import moves_data
from dumpscope.texts import Phrase, english, phrase
from dumpscope.verdict.rules import CODES

_COLLECTIVE = "Distributed."
MISSING_KINDS: Final = 3
"""From this many kinds of calls missing on one side, other dump settings are assumed, not other code."""
_BY_LEFTOVER = {
    Leftover.INSIDE: Reason.INSIDE, Leftover.LEFT_OUT: Reason.NOT_RECORDED, Leftover.ENDED: Reason.ENDED,
    Leftover.WRAPPER: Reason.WRAPPER, Leftover.RECOMPUTED: Reason.RECOMPUTED,
    Leftover.COMPILED: Reason.COMPILED,
}  # fmt: skip


def find_reasons(unit: Unit) -> Int8:
    """A `Reason` per item pair."""
    context, facts, opinions = unit.context, unit.facts, unit.item_opinions
    reasons = np.full(len(unit.items), int(Reason.ONE_ITEM), np.int8)
    outcome = facts.outcome
    judged = context.both & (opinions.verdict != Verdict.NA)
    stored = ((context.t_state != State.ABSENT) & (context.g_state != State.ABSENT)).any(axis=1)
    reasons[judged] = Reason.FORM
    reasons[judged & (outcome == Outcome.SCALAR)] = Reason.ARGUMENT
    compared = judged & (outcome == Outcome.COMPARED)
    hashed = context.same_hash | (opinions.rule == CODES["H-1"]) | ~stored
    reasons[compared] = np.where(hashed[compared], Reason.HASH, Reason.STATISTICS)
    reasons[compared & (facts.unequal >= 0)] = Reason.TENSOR
    unjudged = context.both & ~judged
    reasons[unjudged] = Reason.NO_LABEL
    nothing = unjudged & (outcome == Outcome.NO_DATA)
    measured = judged & np.isin(reasons, (Reason.TENSOR, Reason.STATISTICS, Reason.HASH))
    last = int(context.pair[measured].max(initial=-1)) if measured.any() else -1
    unfollowed = _find_unfollowed(unit, measured, last)
    joined = bool(unit.target.ref.joined or unit.golden.ref.joined)
    reasons[nothing] = Reason.OBJECT
    nothing &= context.kind == Kind.TENSOR
    reasons[nothing] = Reason.JOINED if joined else Reason.NO_NUMBER
    reasons[nothing & ~np.bool_(joined) & unfollowed] = Reason.UNSTORED
    other = nothing & context.shape_differs
    sides = unit.target, unit.golden, context
    if other.any() and find_kept(*sides) is None and find_last(*sides) is None:
        reasons[other] = Reason.AMOUNTS
    alone = ~context.both
    bare = (not len(unit.target.items), not len(unit.golden.items))
    reasons[alone & ((context.target < 0) & bare[0] | (context.golden < 0) & bare[1])] = Reason.NOT_RECORDED
    reasons[alone & context.unrecorded] = Reason.FORMAT
    reasons[alone & (context.role == Role.GRADIENT)] = Reason.GRADIENT
    of_node = _reasons_of_nodes(unit, last)
    told = alone & (of_node[context.pair] >= 0) if len(of_node) else alone
    reasons[told] = of_node[context.pair[told]]
    reasons[outcome == Outcome.INSIDE] = Reason.INSIDE
    reasons[outcome == Outcome.DEFAULT] = Reason.ARGUMENT
    _mark_left_out(unit, reasons)
    reasons[list(facts.errors)] = Reason.UNREADABLE
    return reasons


def _find_unfollowed(unit: Unit, measured: Bool, last: int) -> Bool:
    """Item pairs after which nothing was measured. What a module received was there before the calls in it, behind which the
    module stands in the file. last: the last node pair of which something was measured"""
    context, tree = unit.context, unit.tree
    begin = np.full(len(unit.pairs), -1, np.int64)
    known = tree.pair >= 0
    begin[tree.pair[known]] = tree.order[known]
    late = int(begin[context.pair[measured]].max(initial=-1)) if measured.any() else -1
    received = np.isin(context.role, (Role.INPUT, Role.KWARG))
    unfollowed: Bool = (context.pair > last) & ~(received & (begin[context.pair] < late))
    return unfollowed


def _mark_left_out(unit: Unit, reasons: Int8) -> None:
    """Items that rule X-5 leaves out."""
    context, pairs = unit.context, unit.pairs
    left = unit.item_opinions.rule == CODES["X-5"]
    reasons[left] = Reason.IGNORED
    made = np.array([name in UNINITIALISED for name in context.apis] + [False])[context.api]
    if len(made):
        reasons[left & (made[context.pair] | context.unread)] = Reason.UNINITIALISED
    for row in np.flatnonzero(left & context.unread).tolist():
        mine, nodes = (unit.target, pairs.target) if context.target[row] >= 0 else (unit.golden, pairs.golden)
        if mine.nodes.names[nodes[context.pair[row]]].startswith(_COLLECTIVE):
            reasons[row] = Reason.BUFFER


def _reasons_of_nodes(unit: Unit, last: int) -> Int8:
    """A `Reason` per node pair without a partner, -1 for one with. last: the last node pair of which numbers were compared"""
    pairs = unit.pairs
    alone = (pairs.target < 0) | (pairs.golden < 0)
    found = np.where(alone, int(Reason.ONE_SIDED), -1).astype(np.int8)
    computes = _computing(unit)
    late = alone & computes & (np.arange(len(pairs)) > last)
    found[late] = Reason.UNFOLLOWED
    found[late & _find_other_kinds(unit)] = Reason.NOT_RECORDED
    for dump, nodes in ((unit.target, pairs.target), (unit.golden, pairs.golden)):
        own_rows = np.flatnonzero(alone & (nodes >= 0))
        found[own_rows[are_around_passes(dump, nodes[own_rows])]] = Reason.ONE_SIDED
    for row in np.flatnonzero(alone).tolist():
        mine, other = _side(unit, row)
        node = int(pairs.target[row] if pairs.target[row] >= 0 else pairs.golden[row])
        code = int(mine.nodes.label[node])
        if mine.nodes.kind[node] == NodeKind.GRADIENT:
            found[row] = Reason.GRADIENT
        elif other.ref.joined and not mine.ref.joined and code >= 0 and mine.nodes.labels[code].startswith(_COLLECTIVE):
            found[row] = Reason.COLLECTIVE
    for leftover, reason in _BY_LEFTOVER.items():
        found[alone & (pairs.leftover == leftover)] = reason
    for own, nodes, other, there in (
        (unit.target, pairs.target, unit.golden, pairs.golden),
        (unit.golden, pairs.golden, unit.target, pairs.target),
    ):
        begins = int(np.argmax(there >= 0)) if len(there) else 0
        chosen = bool((alone & computes & (pairs.leftover == Leftover.LEFT_OUT))[:begins].any())  # it begins later too
        if not chosen and not _tells_of_backward(other):
            backward = np.append(own.nodes.direction == Direction.BACKWARD, False)[nodes]
            found[alone & backward & (pairs.leftover == Leftover.LEFT_OUT)] = Reason.UNTOLD
    return found


def _tells_of_backward(dump: RankDump) -> bool:
    """Whether a dump of forward calls holds backward calls too, or its settings say that it was to leave them out."""
    directions = set(np.unique(dump.nodes.direction).tolist())
    if Direction.BACKWARD in directions or Direction.FORWARD not in directions:
        return True
    return dump.header.run is not None and "data_mode" in dump.header.run.settings


def _find_other_kinds(unit: Unit) -> Bool:
    """Calls of kinds of which the other dump holds none, where it lacks several kinds and has none of its own: it was told to
    record fewer (another risk level, list or scope)."""
    sides = [kinds_of_calls(dump) for dump in (unit.target, unit.golden)]
    found = np.zeros(len(unit.pairs), bool)
    for mine, theirs, dump, nodes in (
        (sides[0], sides[1], unit.target, unit.pairs.target),
        (sides[1], sides[0], unit.golden, unit.pairs.golden),
    ):
        if len(mine - theirs) >= MISSING_KINDS and not theirs - mine:
            lacking = np.array([label in mine - theirs for label in dump.nodes.labels] + [False])[dump.nodes.label]
            found |= (nodes >= 0) & lacking[nodes]
    return found


def kinds_of_calls(dump: RankDump) -> set[str]:
    """Labels of the functions that a dump holds calls of."""
    codes = np.unique(dump.nodes.label[(dump.nodes.kind == NodeKind.API) & (dump.nodes.label >= 0)])
    return {dump.nodes.labels[code] for code in codes.tolist()}


def _computing(unit: Unit) -> Bool:
    """Node pairs whose call computes, as far as its label tells; in a dump without functions every module does."""
    target, golden = unit.target, unit.golden
    found = np.zeros(len(unit.pairs), bool)
    for dump, nodes in ((target, unit.pairs.target), (golden, unit.pairs.golden)):
        if not len(dump.nodes):
            continue
        counted = dump.nodes.kind == NodeKind.API
        if not counted.any():
            counted = dump.nodes.kind == NodeKind.MODULE
        moves = np.array([moves_data(label) for label in dump.nodes.labels] + [False])[dump.nodes.label]
        counted = counted & ~moves
        found |= (nodes >= 0) & counted[nodes]
    return found


def _side(unit: Unit, row: int) -> tuple[RankDump, RankDump]:
    """The side that made a call without a partner, and the other one."""
    return (unit.target, unit.golden) if unit.pairs.target[row] >= 0 else (unit.golden, unit.target)


def missing(reasons: Int8) -> Bool:
    """Where something that matters was not judged."""
    return np.isin(reasons, MISSING)


def count_reasons(reasons: Int8) -> dict[str, int]:
    """Items by the word of their reason, without those that have none."""
    counts: Int64 = np.bincount(reasons, minlength=len(Reason))
    return {word: int(count) for word, count in zip(REASON_WORDS, counts, strict=True) if count}


def find_first(unit: Unit, reasons: Int8) -> Unjudged | None:
    """The first call from which on something that matters was not judged."""
    rows = np.flatnonzero(missing(reasons))
    if not len(rows):
        return None
    row = int(rows[0])
    pair = int(unit.items.pair[row])
    said = describe_reason(unit, row, Reason(int(reasons[row])))
    return Unjudged(
        step=unit.step,
        rank=unit.rank,
        node=pair_name(unit, pair),
        pair=pair,
        reason=REASON_WORDS[reasons[row]],
        sentence=english(said),
        said=said,
    )


def describe_reason(unit: Unit, row: int, reason: Reason) -> list[Phrase]:
    """Why an item pair of a reason in MISSING was not judged."""
    pair = int(unit.items.pair[row])
    word = "target" if unit.pairs.golden[pair] < 0 else "golden"
    other = "golden" if word == "target" else "target"
    if reason in GROUPS["one_sided"]:
        beside = int(unit.pairs.beside[pair])
        last = pair_name(unit, beside) if beside >= 0 else [phrase("leftover.beginning")]
        sides = {"side": [phrase(f"side.{word}")], "other": [phrase(f"side.{other}")]}
        return [phrase(f"coverage.{REASON_WORDS[reason]}", **sides, last=last)]
    return [phrase(f"coverage.{REASON_WORDS[reason]}")]


def find_ends(unit: Unit, reasons: Int8) -> Iterator[End]:
    """Where the record of a side ends before that of the other."""
    ended = unit.pairs.leftover == Leftover.ENDED
    for side, own in (("target", unit.pairs.target), ("golden", unit.pairs.golden)):
        rows = np.flatnonzero(ended & (own < 0))
        if len(rows):
            behind = (reasons == Reason.ENDED) & np.isin(unit.items.pair, rows)
            yield End(
                side=side,
                step=unit.step,
                rank=unit.rank,
                node=pair_name(unit, int(unit.pairs.beside[rows[0]])),
                following=pair_name(unit, int(rows[0])),
                items=int(behind.sum()),
            )


def pair_name(unit: Unit, pair: int) -> str:
    """Name of a node pair: the target's, the golden's where it has no target."""
    target = int(unit.pairs.target[pair])
    return unit.target.nodes.names[target] if target >= 0 else unit.golden.nodes.names[int(unit.pairs.golden[pair])]
