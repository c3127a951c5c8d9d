"""O-4: data that differs before any dumped call made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.evidence import (
    advise_by_kind,
    count_group,
    describe_birth,
    describe_items,
)
from dumpscope.analysis.rules.modules import name_module
from dumpscope.analysis.rules.ordering import find_order_only
from dumpscope.analysis.rules.rule import HIDDEN, Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import find_makers
from dumpscope.analysis.unit.taint import Fingerprint, fingerprints
from dumpscope.domain.records import Direction, Kind, NodeKind, Role, State
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.score import MAX, MIN, is_exact_kind, nonfinite_differs

MASKED: Final = -1e4
"""What an additive mask adds to hide an element is no larger than this."""
LOOKBACK: Final = 40
"""Leaf calls before a suspicious input in which an unmatched call can be its source."""


class Sources(Rule):
    """Masks, indices and what the first call receives are input; other data was computed by what was not dumped.

    Calls of one side only right before it (O-5), or the module that hides what computed it (O-6), are named in its place.
    """

    id: ClassVar = "O-4"
    kinds: ClassVar = ("input", "computation", "overflow")
    shown_by: ClassVar = "received"

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        history = case.history
        if history.differs and (history.went_wrong or history.before is None):
            return []
        weights = {int(case.context.target[row]) for weight in case.weights for row in weight.items}
        if not history.differs:
            return self._find_in_first_step(case, found, weights)
        # Later steps differ in the last bits: only integers, masks and indices from outside must still agree.
        exact = is_exact_kind(case.context)
        return [
            one
            for one in _find(case, weights)
            if one.kind == "input" and one.items and all(exact[item] for item in one.items)
        ]

    def _find_in_first_step(self, case: Case, found: Sequence[Finding], weights: set[int]) -> list[Finding]:
        columns = case.columns
        # A gradient of which nothing is known that went into it shows the same as the gradients that are first seen behind it.
        modules = [
            one.pair
            for one in found
            if one.rule == "O-6"
            or (columns.kind[one.pair] == NodeKind.GRADIENT and not np.isfinite(columns.in_score[one.pair]))
        ]
        sources = [
            one for one in _find(case, weights) if not (one.hidden and any(module < one.pair for module in modules))
        ]
        if not found and sources and all(one.hidden and one.rule == self.id for one in sources):
            return find_first_bit(case, min(one.pair for one in sources)) or sources
        return sources

    def find_last(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        comparable = not case.history.differs or not (case.history.went_wrong or case.columns.quiet)
        return _find_first_visible(case) if comparable and not found else []

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        shown = describe_items(case, finding.items, finding.pair)
        if not finding.hidden:
            return [phrase("origin.input"), *shown, *count_group(finding)]
        forward = find_unseen_loss(case, finding)
        begin = (
            _name_last_call(case, finding.pair) if forward is None else _describe_unseen_loss(case, finding, forward)
        )
        return [begin, *describe_birth(case, finding), *shown]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        if finding.hidden and find_unseen_loss(case, finding) is not None:
            return [phrase("advice.unseen_loss")]
        return advise_by_kind(case, finding)

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        if not finding.hidden:
            return limit * 0.9
        sure = case.columns.quiet and find_unseen_loss(case, finding) is not None
        return (0.75 if sure else 0.5) * limit * 0.9


def _find(case: Case, weights: set[int]) -> list[Finding]:
    """Data that differs before any dumped call made it; a call of one side only (O-5) where one comes right before it."""
    columns = case.columns
    leaf = columns.leaf & ~columns.alone
    with np.errstate(invalid="ignore"):
        # A parameter gradient fires before the backward of its module is recorded, so it is never the first place.
        firsts = np.flatnonzero(leaf & (columns.kind != NodeKind.GRADIENT) & (columns.out_score > columns.threshold))
        candidates = np.flatnonzero(leaf & (columns.own_in > columns.threshold))
    last = int(firsts[0]) if len(firsts) else len(columns) - 1
    backward = np.flatnonzero(columns.direction == Direction.BACKWARD)
    if not columns.quiet and len(backward):  # an optimizer lifts gradients that are pure rounding to any size
        last = min(last, int(backward[-1]))
    findings: list[Finding] = []
    maker = find_makers(case)
    # What a wrong parameter gradient holds has a source: the optimizer that takes it is none. So has a sum that cancels.
    with np.errstate(invalid="ignore"):
        sources = (columns.kind == NodeKind.GRADIENT) & (columns.out_score > columns.threshold)
    sources |= columns.cancels
    put_out = case.is_different & ~case.received & sources[case.context.pair]
    seen: set[Fingerprint] = set(fingerprints(case, np.flatnonzero(put_out)))
    for pair in candidates[candidates <= last].tolist():
        rows = case.different(case.inputs_of(pair))
        items = [i for i in rows.tolist() if case.context.target[i] not in weights]
        known = dict(zip(items, fingerprints(case, np.array(items, np.int64)), strict=True))
        fresh = [i for i in items if known[i] not in seen]
        seen.update(known.values())
        if not fresh:
            continue
        made_by = [int(maker[i]) for i in fresh if maker[i] >= 0 and columns.extra[maker[i]]]
        alone = made_by[:1] or _find_unmatched_before(case, pair)
        if alone:
            group = tuple(alone[1:])
            return [*findings, Finding(pair=alone[0], kind="structure", rule="O-5", items=tuple(fresh), group=group)]
        if columns.direction[pair] == Direction.BACKWARD:
            return [*findings, Finding(pair=pair, kind="computation", rule="O-4", items=tuple(fresh), variant=HIDDEN)]
        module = find_hiding_module(case, pair, fresh)
        if module is not None:
            items = case.different(case.outputs_of(module)).tolist()
            return [*findings, name_module(case, module, items)]
        hidden = _was_computed(case, pair, fresh)
        kind, variant = ("computation", HIDDEN) if hidden else ("input", "")
        findings.append(Finding(pair=pair, kind=kind, rule="O-4", items=tuple(fresh), variant=variant))
        if hidden:  # what was not dumped may carry it anywhere
            return findings
    return findings


def find_unseen_loss(case: Case, finding: Finding) -> int | None:
    """The forward call whose output a gradient arrives at that is the first to differ, in dumps of modules alone in which all
    forward calls before it agree: what made it, a loss or a function outside of modules, is in neither dump. None elsewhere."""
    columns, pair = case.columns, finding.pair
    if (columns.kind == NodeKind.API).any() or columns.direction[pair] != Direction.BACKWARD:
        return None
    arriving = [row for row in finding.items if case.received[row]]
    if not arriving or (find_makers(case)[arriving] >= 0).any():
        return None
    forward = np.flatnonzero((columns.direction[:pair] == Direction.FORWARD) & (columns.kind[:pair] == NodeKind.MODULE))
    seen = np.fmax(columns.own_in, columns.out_score)[forward]
    with np.errstate(invalid="ignore"):
        if np.isnan(seen).all() or (seen > columns.threshold[forward]).any() or columns.argument[forward].any():
            return None
    own = forward[[columns.labels[one] == columns.labels[pair] for one in forward.tolist()]]
    return int(own[-1]) if len(own) else None


def _describe_unseen_loss(case: Case, finding: Finding, forward: int) -> Phrase:
    columns, pair = case.columns, finding.pair
    module = columns.kind[:pair] == NodeKind.MODULE
    count = {
        word: int((module & (columns.direction[:pair] == direction) & ~columns.alone[:pair]).sum())
        for word, direction in (("calls", Direction.FORWARD), ("agreeing", Direction.BACKWARD))
    }
    word = "unseen_loss_later" if count["agreeing"] else "unseen_loss"
    return phrase(f"origin.{word}", forward=columns.names[forward], **count)


def is_mask(case: Case, row: int) -> bool:
    """The item is an additive mask on both sides: nothing above 0, and -inf or a number that large."""
    context = case.context
    for stats, state in ((context.t_stats[row], context.t_state[row]), (context.g_stats[row], context.g_state[row])):
        low = state[MIN] == State.NEG_INF or (state[MIN] == State.FINITE and stats[MIN] <= MASKED)
        top = state[MAX] == State.NEG_INF or (state[MAX] == State.FINITE and stats[MAX] <= 0)
        if not (low and top):
            return False
    return True


def _was_computed(case: Case, pair: int, items: list[int]) -> bool:
    """Floating-point data that first appears after some call made other data was computed by a call that was not dumped. Masks,
    indices and what the first call receives are given."""
    exact = is_exact_kind(case.context)
    if all(exact[item] or is_mask(case, item) for item in items):
        return False
    made = (case.context.role == Role.OUTPUT) & (case.context.pair < pair) & ~exact & (case.context.kind == Kind.TENSOR)
    return bool(made.any())


def _find_first_visible(case: Case) -> list[Finding]:
    """The first node at which something differs, for a cause that was not dumped (of an API's backward msprobe records only the
    last autograd node)."""
    columns = case.columns
    with np.errstate(invalid="ignore"):
        seen = (columns.own_in > columns.threshold) | (columns.out_score > columns.threshold)
    if not columns.quiet:  # noise grows along a net: only a new NaN or infinity surely has a place where it began
        broken = np.zeros(len(columns), bool)
        broken[case.context.pair[nonfinite_differs(case.context, case.facts)]] = True
        seen &= broken
    seen &= ~find_order_only(case)
    if not (seen & (np.fmax(columns.own_in, columns.out_score) > 4 * columns.threshold)).any():
        return []
    ordered = np.flatnonzero(seen & ~columns.alone & (columns.kind != NodeKind.GRADIENT))
    pair = int(ordered[0]) if len(ordered) else int(np.flatnonzero(seen)[0])
    items = case.different(case.items_of(pair)).tolist()
    return [Finding(pair=pair, kind="computation", rule="O-4", items=tuple(items), variant=HIDDEN)]


def find_hiding_module(case: Case, pair: int, items: list[int]) -> int | None:
    """Innermost module around `pair` whose inputs agree and whose output does not, if code in it may have gone unseen.

    Floating-point data that differs inside such a module was computed there, by a call that the dump leaves out (its level
    or risk level). Masks and indices are given, not computed.
    """
    columns, tree = case.columns, case.tree
    exact = is_exact_kind(case.context)
    if all(exact[item] or is_mask(case, item) for item in items):
        return None
    parent = int(tree.parent[columns.entry[pair]])
    while parent >= 0:
        module = int(tree.pair[parent])
        if (
            module >= 0
            and columns.received_clean(module)
            and columns.made_different(module)
            and _leaves_out(case, parent, pair)
        ):
            return module
        parent = int(tree.parent[parent])
    return None


def _leaves_out(case: Case, entry: int, pair: int) -> bool:
    """The module made calls before `pair` that were not dumped: no API was (level L0), or its construct names more."""
    if not (case.columns.kind == NodeKind.API).any() or case.columns.alone[case.columns.kind == NodeKind.API].all():
        return True
    names = set(case.target.nodes.names)
    tree = case.target.tree
    own = next((e for e in range(len(tree)) if tree.names[e] == case.tree.names[entry]), -1)
    below = np.flatnonzero(tree.parent == own)
    limit = next((int(tree.order[e]) for e in range(len(tree)) if tree.names[e] == case.columns.names[pair]), -1)
    return any(tree.names[e] not in names and tree.order[e] < limit for e in below.tolist())


def _find_unmatched_before(case: Case, pair: int) -> list[int]:
    """The run of calls of one side only right before `pair`, in order. A matched call between them and `pair` ends the search."""
    columns = case.columns
    same_pass = columns.direction[:pair] == columns.direction[pair]
    before = np.flatnonzero(columns.leaf[:pair] & same_pass)[-LOOKBACK:][::-1].tolist()
    run: list[int] = []
    for candidate in before:
        if columns.extra[candidate]:
            run.append(candidate)
        elif run or not columns.alone[candidate]:
            break
    return run[::-1]


def find_first_bit(case: Case, before: int) -> list[Finding]:
    """In a quiet pair, the first call before `before` with any differing bit: statistics can hide a difference where it is made
    and show it only later."""
    context, columns = case.context, case.columns
    if not columns.quiet:
        return []
    rows = (case.facts.equal == 0) & (context.kind == Kind.TENSOR) & (context.pair < before) & ~context.unread
    rows &= columns.leaf[context.pair] & (columns.kind[context.pair] != NodeKind.GRADIENT)
    if not rows.any():
        return []
    pair = int(context.pair[rows].min())
    items = tuple(np.flatnonzero(rows & (context.pair == pair)).tolist())
    given = bool(case.received[list(items)].any())
    rule, variant = ("O-4", HIDDEN) if given else ("O-1", "")
    return [Finding(pair=pair, kind="computation", rule=rule, items=items, variant=variant)]


def _name_last_call(case: Case, pair: int) -> Phrase:
    """Names the last call before `pair`: something that it did and that was not recorded may be the cause."""
    leaf = np.flatnonzero(case.columns.leaf[:pair])
    if not len(leaf):
        return phrase("origin.hidden")
    return phrase("origin.hidden_after", before=case.columns.names[int(leaf[-1])])
