"""O-4 and O-5: data that differs before any dumped call made it, and calls that one side only made."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.dataflow import find_makers
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.rules.computation import only_order
from dumpscope.analysis.taint import Fingerprint, fingerprint
from dumpscope.domain.records import Direction, Kind, NodeKind, Role
from dumpscope.verdict.score import is_exact_kind, nonfinite_differs

LOOKBACK: Final = 40
"""Leaf calls before a suspicious input in which an unmatched call can be its source."""


def find_sources(case: Case, weights: set[int]) -> list[Finding]:
    """O-4: data that differs before any dumped operator made it; O-5 where a call of one side only stands before it."""
    story = case.story
    leaf = story.leaf & ~story.alone
    with np.errstate(invalid="ignore"):
        # A parameter gradient fires before the backward of its module is recorded, so it is never the first place.
        firsts = np.flatnonzero(leaf & (story.kind != NodeKind.GRADIENT) & (story.out_score > story.threshold))
        candidates = np.flatnonzero(leaf & (story.own_in > story.threshold))
    last = int(firsts[0]) if len(firsts) else len(story) - 1
    backward = np.flatnonzero(story.direction == Direction.BACKWARD)
    if not story.quiet and len(backward):  # an optimizer lifts gradients that are pure rounding to any size
        last = min(last, int(backward[-1]))
    findings: list[Finding] = []
    maker = find_makers(case)
    # What a wrong parameter gradient holds has a source: the optimizer that takes it is none.
    gradients = np.flatnonzero((story.kind == NodeKind.GRADIENT) & (story.out_score > story.threshold))
    seen: set[Fingerprint] = {
        fingerprint(case, row)
        for pair in gradients.tolist()
        for row in case.dirty_items(case.outputs_of(pair)).tolist()
    }
    for pair in candidates[candidates <= last].tolist():
        items = [i for i in case.dirty_items(case.inputs_of(pair)).tolist() if case.context.target[i] not in weights]
        fresh = [i for i in items if fingerprint(case, i) not in seen]
        seen.update(fingerprint(case, i) for i in items)
        if not fresh:
            continue
        made_by = [int(maker[i]) for i in fresh if maker[i] >= 0 and story.extra[maker[i]]]
        alone = made_by[:1] or _unmatched_before(case, pair)
        if alone:
            group = tuple(alone[1:])
            return [*findings, Finding(pair=alone[0], kind="structure", rule="O-5", items=tuple(fresh), group=group)]
        if story.direction[pair] == Direction.BACKWARD:
            return [*findings, Finding(pair=pair, kind="computation", rule="O-4", items=tuple(fresh), hidden=True)]
        module = _hiding_module(case, pair, fresh)
        if module is not None:
            items = case.dirty_items(case.outputs_of(module)).tolist()
            return [*findings, Finding(pair=module, kind="computation", rule="O-6", items=tuple(items), hidden=True)]
        hidden = _computed(case, pair, fresh)
        findings.append(
            Finding(pair=pair, kind="computation" if hidden else "input", rule="O-4", items=tuple(fresh), hidden=hidden)
        )
        if hidden:  # what was not dumped may carry it anywhere
            return findings
    return findings


def _computed(case: Case, pair: int, items: list[int]) -> bool:
    """Floating-point data that turns up after the first call of a pass was computed by something that was not dumped. Masks and
    indices are given, and so is what the first call receives."""
    exact = is_exact_kind(case.context)
    if all(exact[item] for item in items):
        return False
    made = (case.context.role == Role.OUTPUT) & (case.context.pair < pair) & ~exact & (case.context.kind == Kind.TENSOR)
    return bool(made.any())


def find_first_visible(case: Case) -> list[Finding]:
    """Last resort: something differs and no rule names a cause, since it lies in what was not dumped (of an API's backward
    msprobe records its last autograd node only). Say where it is first seen."""
    story = case.story
    with np.errstate(invalid="ignore"):
        seen = (story.own_in > story.threshold) | (story.out_score > story.threshold)
    if not story.quiet:  # noise grows along a net: only a new NaN or infinity surely has a place where it began
        broken = np.zeros(len(story), bool)
        broken[case.context.pair[nonfinite_differs(case.context, case.facts)]] = True
        seen &= broken
    seen &= ~only_order(case)
    if not (seen & (np.fmax(story.own_in, story.out_score) > 4 * story.threshold)).any():
        return []
    ordered = np.flatnonzero(seen & ~story.alone & (story.kind != NodeKind.GRADIENT))
    pair = int(ordered[0]) if len(ordered) else int(np.flatnonzero(seen)[0])
    items = case.dirty_items(case.items_of(pair)).tolist()
    return [Finding(pair=pair, kind="computation", rule="O-4", items=tuple(items), hidden=True)]


def find_first_bit(case: Case, before: int) -> list[Finding]:
    """In a quiet pair, the first call before `before` of which any bit differs: the cause of a difference that statistics hide
    at first and that comes to light where nothing dumped made it."""
    context, story = case.context, case.story
    if not story.quiet:
        return []
    rows = (case.facts.equal == 0) & (context.kind == Kind.TENSOR) & (context.pair < before) & ~context.unread
    rows &= story.leaf[context.pair] & (story.kind[context.pair] != NodeKind.GRADIENT)
    if not rows.any():
        return []
    pair = int(context.pair[rows].min())
    items = tuple(np.flatnonzero(rows & (context.pair == pair)).tolist())
    given = bool(case.received[list(items)].any())
    return [Finding(pair=pair, kind="computation", rule="O-4" if given else "O-1", items=items, hidden=given)]


def _hiding_module(case: Case, pair: int, items: list[int]) -> int | None:
    """Innermost module around `pair` whose inputs agree and whose output does not, if code in it may have gone unseen.

    Floating-point data that differs inside such a module was computed there, by a call that the dump leaves out (its level
    or risk level). Masks and indices are given, not computed.
    """
    story, tree = case.story, case.tree
    exact = is_exact_kind(case.context)
    if all(exact[item] for item in items):
        return None
    parent = int(tree.parent[story.entry[pair]])
    while parent >= 0:
        module = int(tree.pair[parent])
        if module >= 0 and story.clean(module) and story.dirty(module) and _leaves_out(case, parent, pair):
            return module
        parent = int(tree.parent[parent])
    return None


def _leaves_out(case: Case, entry: int, pair: int) -> bool:
    """The module made calls before `pair` that were not dumped: no API was (level L0), or its construct names more."""
    if not (case.story.kind == NodeKind.API).any() or case.story.alone[case.story.kind == NodeKind.API].all():
        return True
    names = set(case.target.nodes.names)
    tree = case.target.tree
    own = next((e for e in range(len(tree)) if tree.names[e] == case.tree.names[entry]), -1)
    below = np.flatnonzero(tree.parent == own)
    limit = next((int(tree.order[e]) for e in range(len(tree)) if tree.names[e] == case.story.names[pair]), -1)
    return any(tree.names[e] not in names and tree.order[e] < limit for e in below.tolist())


def _unmatched_before(case: Case, pair: int) -> list[int]:
    """The run of calls of one side only right before `pair`, in order. A matched call in between that received and made
    the same on both sides clears them."""
    story = case.story
    same_pass = story.direction[:pair] == story.direction[pair]
    before = np.flatnonzero(story.leaf[:pair] & same_pass)[-LOOKBACK:][::-1].tolist()
    run: list[int] = []
    for candidate in before:
        if story.extra[candidate]:
            run.append(candidate)
        elif run or not story.alone[candidate]:
            break
    return run[::-1]


def in_forward(case: Case, finding: Finding) -> Finding:
    """An extra call is named by its forward, also where only its backward changes a value."""
    story = case.story
    if finding.kind != "structure" or story.direction[finding.pair] != Direction.BACKWARD:
        return finding
    calls = {story.names[pair].removesuffix(".backward") for pair in (finding.pair, *finding.group)}
    forward = [
        pair
        for pair in np.flatnonzero(story.alone & (story.direction == Direction.FORWARD)).tolist()
        if story.names[pair].removesuffix(".forward") in calls
    ]
    if not forward:
        return finding
    return Finding(pair=forward[0], kind="structure", rule=finding.rule, items=finding.items, group=tuple(forward[1:]))


def find_structure(case: Case) -> list[Finding]:
    """All values agree and one side made more calls: say where, in runs of neighbouring calls."""
    story = case.story
    forward = story.direction != Direction.BACKWARD
    extra = story.extra & story.leaf
    extra &= forward if (extra & forward).any() else ~forward
    if not extra.any() or story.alone.mean() > 0.5:
        return []
    runs: list[list[int]] = []
    previous = -2
    order = np.flatnonzero(story.leaf)
    for place, pair in enumerate(order.tolist()):
        if not extra[pair]:
            continue
        if place - previous > 2 or not runs:
            runs.append([])
        runs[-1].append(pair)
        previous = place
    return [Finding(pair=run[0], kind="structure", rule="O-5", group=tuple(run[1:])) for run in runs[:20]]
