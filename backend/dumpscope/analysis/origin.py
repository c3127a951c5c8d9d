"""Which nodes caused the divergence of one unit: the rules O-1 to O-6 of docs/verdicts.md.

A node is an origin when something went wrong *at* it: clean inputs and a dirty output, a weight or an argument that
differs, data that no dumped operator produced, or a call that only one side made. A node that merely received bad
data is never one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dumpscope.analysis.story import Bool, Story
from dumpscope.analysis.weights import WeightFinding, find_weights
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions, NodePairs, Outcome
from dumpscope.domain.records import Direction, Int64, Kind, NodeKind, RankDump, Role
from dumpscope.domain.result import ResultTree
from dumpscope.verdict.score import nonfinite_differs

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything the rules look at."""

    target: RankDump
    golden: RankDump
    pairs: NodePairs
    tree: ResultTree
    context: Context
    facts: Facts
    opinions: ItemOpinions
    story: Story
    first_item: Int64 = field(repr=False)

    def items_of(self, pair: int) -> Int64:
        return np.arange(self.first_item[pair], self.first_item[pair + 1])

    def inputs_of(self, pair: int) -> Int64:
        items = self.items_of(pair)
        return items[np.isin(self.context.role[items], (Role.INPUT, Role.KWARG, Role.PARAMETER))]

    def outputs_of(self, pair: int) -> Int64:
        items = self.items_of(pair)
        return items[~np.isin(self.context.role[items], (Role.INPUT, Role.KWARG, Role.PARAMETER))]

    def dirty_items(self, items: Int64) -> Int64:
        tensor = self.context.kind[items] == Kind.TENSOR
        return items[tensor & (self.opinions.score[items] > self.story.threshold)]


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
    return sorted(findings, key=lambda f: (_backward(case, f), f.pair))


def _backward(case: Case, finding: Finding) -> bool:
    return bool(case.story.direction[finding.pair] == Direction.BACKWARD)


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
    for pair in np.flatnonzero(suspects).tolist():
        items = case.dirty_items(case.outputs_of(pair))
        api = story.labels[pair].rpartition(".")[2]
        if story.labels[pair].startswith("Distributed."):
            kind = "communication"
        elif api in RANDOM:
            kind = "configuration"
        elif broken[items].any():
            kind = "overflow"
        elif np.isnan(story.in_score[pair]) and story.direction[pair] == Direction.FORWARD:
            kind = "input"
        else:
            kind = "computation"
        findings.append(
            Finding(pair=pair, kind=kind, rule="O-1", items=tuple(items.tolist()), random=kind == "configuration")
        )
    return findings


def _arguments(case: Case) -> list[Finding]:
    """O-3: a call gets another argument. A number may be computed from bad data, so it counts only beside clean tensors."""
    story, facts, context = case.story, case.facts, case.context
    findings: dict[tuple[str, str], Finding] = {}
    for pair in np.flatnonzero(story.argument & (story.out_score > story.threshold)).tolist():
        items = case.inputs_of(pair)
        items = items[(facts.outcome[items] == Outcome.SCALAR) & (facts.equal[items] == 0)]
        if not story.clean(pair):
            items = np.array([i for i in items.tolist() if not _is_number(case, i)], np.int64)
        if not len(items) or not story.leaf[pair] and story.kind[pair] == NodeKind.MODULE:
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
    side = case.target.items
    return side.types[side.type[case.context.target[row]]] in ("int", "float")


def _values(case: Case, rows: Int64) -> str:
    t, g = case.target.items, case.golden.items
    out = []
    for row in rows.tolist():
        left, right = t.value[case.context.target[row]], g.value[case.context.golden[row]]
        out.append(f"{t.values[left] if left >= 0 else None}/{g.values[right] if right >= 0 else None}")
    return " ".join(out)


def _sources(case: Case, weights: set[int]) -> list[Finding]:
    """O-4: data that differs before any dumped operator made it; O-5 where a call of one side only stands before it."""
    story = case.story
    dirty = story.out_score > story.threshold
    leaf = story.leaf & ~story.alone
    backward = story.direction == Direction.BACKWARD
    findings: list[Finding] = []
    for side in (~backward, backward):
        firsts = np.flatnonzero(dirty & leaf & side)
        last = int(firsts[0]) if len(firsts) else len(story) - 1
        if side is backward and (dirty & ~backward).any():
            break
        seen: set[tuple[float, ...]] = set()
        with np.errstate(invalid="ignore"):
            candidates = np.flatnonzero(leaf & side & (story.own_in > story.threshold))
        for pair in candidates[candidates <= last].tolist():
            items = [
                i for i in case.dirty_items(case.inputs_of(pair)).tolist() if case.context.target[i] not in weights
            ]
            fresh = [i for i in items if _fingerprint(case, i) not in seen]
            seen.update(_fingerprint(case, i) for i in items)
            if not fresh:
                continue
            alone = _unmatched_before(case, pair, side)
            if alone:
                findings.append(
                    Finding(pair=alone[0], kind="structure", rule="O-5", items=tuple(fresh), group=tuple(alone[1:]))
                )
                return findings
            hidden = bool(story.direction[pair] == Direction.BACKWARD)
            kind = "computation" if hidden else "input"
            findings.append(Finding(pair=pair, kind=kind, rule="O-4", items=tuple(fresh), hidden=hidden))
            if hidden:
                return findings
    return findings


def _fingerprint(case: Case, row: int) -> tuple[float, ...]:
    stats, state = case.context.t_stats[row], case.context.t_state[row]
    return (*np.where(state == 1, stats, -state.astype(float)).tolist(), float(case.context.elements[row]))


def _unmatched_before(case: Case, pair: int, side: Bool) -> list[int]:
    """The run of calls of one side only that stands closest before `pair`, in order; empty where there is none near."""
    story = case.story
    before = np.flatnonzero(story.leaf[:pair] & side[:pair])[-LOOKBACK:][::-1].tolist()
    run: list[int] = []
    for candidate in before:
        if story.alone[candidate]:
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
    with np.errstate(invalid="ignore"):
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
    alone = story.alone & story.leaf & (forward if (story.alone & forward).any() else ~forward)
    if not alone.any() or story.alone.mean() > 0.5:
        return []
    runs: list[list[int]] = []
    previous = -2
    order = np.flatnonzero(story.leaf)
    for place, pair in enumerate(order.tolist()):
        if not alone[pair]:
            continue
        if place - previous > 2 or not runs:
            runs.append([])
        runs[-1].append(pair)
        previous = place
    return [Finding(pair=run[0], kind="structure", rule="O-5", group=tuple(run[1:])) for run in runs[:20]]
