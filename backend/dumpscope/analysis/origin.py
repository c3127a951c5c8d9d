"""Which nodes caused the divergence of one unit: the rules O-1 to O-6 of docs/verdicts.md.

A node is an origin when something went wrong *at* it: clean inputs and a dirty output, a weight or an argument that
differs, data that no dumped operator produced, or a call that only one side made. A node that merely received bad
data is never one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.flow import Fingerprint, fingerprint, untainted
from dumpscope.analysis.story import Story, differing_arguments
from dumpscope.analysis.weights import WeightFinding, find_weights
from dumpscope.domain.records import Direction, Int64, NodeKind
from dumpscope.verdict.score import is_exact_kind, nonfinite_differs

RANDOM: Final = frozenset(
    {
        "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_",
        "uniform_", "random_", "bernoulli", "bernoulli_", "multinomial", "exponential_", "dropout", "dropout_",
        "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout",
        "native_dropout", "poisson", "gumbel_softmax", "rrelu", "cauchy_", "geometric_", "log_normal_",
    }
)  # fmt: skip
MANY: Final = 4
"""More findings of one kind than this are one finding: the runs were set up differently."""
LOOKBACK: Final = 40
"""Leaf calls before a suspicious input in which an unmatched call can be its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An origin before it is worded. items: the item pairs that show it; group: further node pairs of the same cause."""

    pair: int
    kind: str
    rule: str
    items: tuple[int, ...] = ()
    group: tuple[int, ...] = ()
    weight: str = ""
    random: bool = False
    hidden: bool = False  # what is at fault was not dumped; this is where it is first seen


def find_origins(case: Case, *, first_step: bool) -> list[Finding]:
    """Findings of one unit, causal first. first_step: no earlier step was compared, so weights and data must agree."""
    story = case.story
    findings = _computations(case) + _arguments(case)
    weights: list[WeightFinding] = []
    if first_step:
        weights = find_weights(case.target, case.context, case.facts, case.opinions, story)
        findings += [Finding(pair=w.pair, kind="weight", rule="O-2", items=w.items, weight=w.name) for w in weights]
        findings += _sources(case, {int(case.context.target[i]) for w in weights for i in w.items})
    findings += _containers(case, findings)
    findings = _merge_many(findings)
    if not findings and not _anything_dirty(story):
        findings = _structure_only(case)
    return sorted((_in_forward(case, finding) for finding in findings), key=lambda f: f.pair)


def _anything_dirty(story: Story) -> bool:
    return bool((story.out_score > story.threshold).any() or (story.own_in > story.threshold).any())


def _computations(case: Case) -> list[Finding]:
    """O-1: a leaf whose inputs agree and whose output does not."""
    story = case.story
    with np.errstate(invalid="ignore"):
        clean = ~(story.in_score > 0.5 * story.threshold)
        jump = np.isnan(story.in_score) | (story.out_score > 4 * story.in_score)
        suspects = story.leaf & clean & jump & (story.out_score > story.threshold) & ~story.argument
    broken = nonfinite_differs(case.context, case.facts)
    findings = []
    for pair in _independent(case, np.flatnonzero(suspects)):
        items = case.dirty_items(case.outputs_of(pair))
        kind = _kind(case, pair, bool(broken[items].any()))
        findings.append(
            Finding(pair=pair, kind=kind, rule="O-1", items=tuple(items.tolist()), random=kind == "configuration")
        )
    return findings


def _independent(case: Case, suspects: Int64) -> list[int]:
    """The first suspect, and those after it that owe nothing to it.

    Statistics can hide an error in one call and show it again in the next, and a difference too small for a score can grow. So
    after the first difference a suspect must be as clean as everything was before it (bit-equal in a quiet pair), and
    nothing that it received may come from a call that was wrong.
    """
    story = case.story
    suspects = suspects[~(story.excused[suspects] > 0)]
    if not len(suspects):
        return []
    with np.errstate(invalid="ignore"):
        wrong = (story.out_score > story.threshold) | (story.own_in > story.threshold) | story.argument
        first = int(np.flatnonzero(wrong)[0])
        before = np.fmax(story.out_score, story.own_in)[:first]
        noise = float(np.nanmax(before)) if len(before) and not np.isnan(before).all() else 0.0
        clean = np.isnan(story.in_score) | (story.in_score <= 2 * noise)
        if story.quiet:
            clean &= ~(story.inexact > 0)
    early = [pair for pair in suspects.tolist() if pair <= first]
    late = [pair for pair in suspects.tolist() if pair > first and clean[pair]]
    return early + (untainted(case, first, late) if late else [])


def _kind(case: Case, pair: int, broken: bool) -> str:
    story = case.story
    if story.labels[pair].startswith("Distributed."):
        return "communication"
    if story.labels[pair].rpartition(".")[2] in RANDOM:
        return "configuration"
    if broken:
        return "overflow"
    if np.isnan(story.in_score[pair]) and story.direction[pair] == Direction.FORWARD:
        return "input"
    return "computation"


def _arguments(case: Case) -> list[Finding]:
    """O-3: a call gets another argument. A number may be computed from bad data, so it counts only beside clean tensors."""
    story, facts, context = case.story, case.facts, case.context
    findings: dict[tuple[str, str], Finding] = {}
    for pair in np.flatnonzero(story.argument & (story.out_score > story.threshold)).tolist():
        items = case.inputs_of(pair)
        items = items[differing_arguments(context, facts)[items]]
        if not story.clean(pair):
            items = np.array([i for i in items.tolist() if not _is_number(case, i)], np.int64)
        if not len(items) or (not story.leaf[pair] and story.kind[pair] == NodeKind.MODULE):
            continue
        key = (story.labels[pair] if story.kind[pair] == NodeKind.API else story.names[pair], _values(case, items))
        known = findings.get(key)
        if known is None:
            findings[key] = Finding(pair=pair, kind="configuration", rule="O-3", items=tuple(items.tolist()))
        else:
            findings[key] = Finding(
                pair=known.pair, kind="configuration", rule="O-3", items=known.items, group=(*known.group, pair)
            )
    return list(findings.values())


def _is_number(case: Case, row: int) -> bool:
    item, side = int(case.context.target[row]), case.target.items
    if item < 0:
        item, side = int(case.context.golden[row]), case.golden.items
    return side.types[side.type[item]] in ("int", "float")


def _values(case: Case, rows: Int64) -> str:
    return " ".join(f"{value_of(case, row, target=True)}/{value_of(case, row, target=False)}" for row in rows.tolist())


def value_of(case: Case, row: int, *, target: bool) -> str:
    """An argument's value as text, "absent" where the side does not pass it."""
    item, side = (case.context.target[row], case.target) if target else (case.context.golden[row], case.golden)
    if item < 0:
        return "absent"
    code = side.items.value[item]
    return side.items.values[code] if code >= 0 else "None"


def _sources(case: Case, weights: set[int]) -> list[Finding]:
    """O-4: data that differs before any dumped operator made it; O-5 where a call of one side only stands before it."""
    story = case.story
    leaf = story.leaf & ~story.alone
    with np.errstate(invalid="ignore"):
        # A parameter gradient fires before the backward of its module is recorded, so it is never the first place.
        firsts = np.flatnonzero(leaf & (story.kind != NodeKind.GRADIENT) & (story.out_score > story.threshold))
        candidates = np.flatnonzero(leaf & (story.own_in > story.threshold))
    last = int(firsts[0]) if len(firsts) else len(story) - 1
    findings: list[Finding] = []
    seen: set[Fingerprint] = set()
    for pair in candidates[candidates <= last].tolist():
        items = [i for i in case.dirty_items(case.inputs_of(pair)).tolist() if case.context.target[i] not in weights]
        fresh = [i for i in items if fingerprint(case, i) not in seen]
        seen.update(fingerprint(case, i) for i in items)
        if not fresh:
            continue
        alone = _unmatched_before(case, pair)
        if alone:
            group = tuple(alone[1:])
            return [*findings, Finding(pair=alone[0], kind="structure", rule="O-5", items=tuple(fresh), group=group)]
        if story.direction[pair] == Direction.BACKWARD:
            return [*findings, Finding(pair=pair, kind="computation", rule="O-4", items=tuple(fresh), hidden=True)]
        module = _hiding_module(case, pair, fresh)
        if module is not None:
            items = case.dirty_items(case.outputs_of(module)).tolist()
            return [*findings, Finding(pair=module, kind="computation", rule="O-6", items=tuple(items), hidden=True)]
        findings.append(Finding(pair=pair, kind="input", rule="O-4", items=tuple(fresh)))
    return findings


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
    """The run of calls of one side only that stands closest before `pair`, in order; empty where there is none near."""
    story = case.story
    same_pass = story.direction[:pair] == story.direction[pair]
    before = np.flatnonzero(story.leaf[:pair] & same_pass)[-LOOKBACK:][::-1].tolist()
    run: list[int] = []
    for candidate in before:
        if story.extra[candidate]:
            run.append(candidate)
        elif run:
            break
    return run[::-1]


def _containers(case: Case, findings: list[Finding]) -> list[Finding]:
    """O-6: a module with clean inputs and a dirty output in which no dumped call went wrong: its own code, not dumped."""
    story, tree = case.story, case.tree
    own = np.zeros(len(tree), bool)
    has = tree.pair >= 0
    with np.errstate(invalid="ignore"):
        touched = (story.out_score > story.threshold) | (story.own_in > story.threshold) | story.alone
    own[has] = touched[tree.pair[has]]
    below = np.zeros(len(tree), bool)
    for entry in np.argsort(-tree.order.astype(np.int64)).tolist():
        parent = int(tree.parent[entry])
        if parent >= 0:
            below[parent] |= own[entry] | below[entry]
    with np.errstate(invalid="ignore", over="ignore"):
        suspects = (
            ~story.leaf
            & ~(story.in_score > 0.5 * story.threshold)
            & (story.out_score > story.threshold)
            & (story.out_score > 4 * np.nan_to_num(story.in_score))
            & ~story.alone
        )
    known = {f.pair for f in findings}
    return [
        Finding(
            pair=p,
            kind="computation",
            rule="O-6",
            items=tuple(case.dirty_items(case.outputs_of(p)).tolist()),
            hidden=True,
        )
        for p in np.flatnonzero(suspects).tolist()
        if not below[story.entry[p]] and p not in known
    ]


def _in_forward(case: Case, finding: Finding) -> Finding:
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


def _merge_many(findings: list[Finding]) -> list[Finding]:
    """Many differing weights are one cause (another checkpoint), and so are many differing inputs."""
    out = [f for f in findings if f.kind not in ("weight", "input")]
    for kind in ("weight", "input"):
        some = sorted((f for f in findings if f.kind == kind), key=lambda f: f.pair)
        if len(some) > MANY:
            first = some[0]
            some = [
                Finding(
                    pair=first.pair, kind=kind, rule=first.rule, items=first.items, weight=first.weight,
                    group=tuple(f.pair for f in some[1:]),
                )
            ]  # fmt: skip
        out += some
    return out


def _structure_only(case: Case) -> list[Finding]:
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
