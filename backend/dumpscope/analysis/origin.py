"""Which nodes caused the divergence of one unit: the rules O-1 to O-7 of docs/verdicts.md.

A node is an origin when something went wrong *at* it: clean inputs and a dirty output, a weight or an argument that
differs, data that no dumped operator produced, or a call that only one side made. A node that merely received bad
data is never one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.rules.arguments import find_arguments
from dumpscope.analysis.rules.computation import find_computations
from dumpscope.analysis.rules.drift import find_drift
from dumpscope.analysis.rules.previous_step import StepEnd, blame, carried_over
from dumpscope.analysis.rules.sources import (
    find_first_bit,
    find_first_visible,
    find_sources,
    find_structure,
    in_forward,
)
from dumpscope.analysis.rules.weights import find_weights
from dumpscope.domain.records import Kind, NodeKind
from dumpscope.verdict.score import nonfinite_differs

MANY: Final = 4
"""More findings of one kind than this are one finding: the runs were set up differently."""


def find_origins(
    case: Case, *, first_step: bool, after_wrong: bool, step: int = 0, before: StepEnd | None = None
) -> list[Finding]:
    """Findings of one unit, causal first. first_step: no bit of an earlier step differs, so weights and data must agree;
    after_wrong: an earlier step differs by more than noise; before: the end of the step before on this rank."""
    weights = find_weights(case.target, case.context, case.facts, case.opinions, case.story) if first_step else []
    carried = carried_over(case, before) if before is not None and not first_step and not after_wrong else []
    causes = [weight.pair for weight in weights] + [one.pair for one in carried if one.kind == "weight"]
    findings = find_computations(case, after_wrong=after_wrong, causes=causes)
    findings += find_arguments(case, alone=not findings)
    findings += _containers(case, {finding.pair for finding in findings})
    if first_step:
        findings += [Finding(pair=w.pair, kind="weight", rule="O-2", items=w.items, weight=w.name) for w in weights]
        used = {int(case.context.target[row]) for weight in weights for row in weight.items}
        # A gradient of which nothing is known that went into it shows the same as the gradients that are first seen behind it.
        modules = [
            finding.pair
            for finding in findings
            if finding.rule == "O-6"
            or (
                case.story.kind[finding.pair] == NodeKind.GRADIENT
                and not np.isfinite(case.story.in_score[finding.pair])
            )
        ]
        findings += [
            source
            for source in find_sources(case, used)
            if not (source.hidden and any(module < source.pair for module in modules))
        ]
    findings += carried
    if first_step and findings and all(finding.hidden and finding.rule == "O-4" for finding in findings):
        findings = find_first_bit(case, min(finding.pair for finding in findings)) or findings
    findings = [_traced_back(case, finding) for finding in findings]
    findings = _merge_many(_unique(findings))
    if before is not None:
        findings = [replace(one, **blame(case, before, step)) if one.kind == "weight" else one for one in findings]
    seen = first_step or not (after_wrong or case.story.quiet)
    findings = findings or find_structure(case) or (find_first_visible(case) if seen else [])
    if first_step and all(finding.kind == "structure" and not finding.items for finding in findings):
        findings += find_drift(case)
    findings = [_as_overflow(case, finding) for finding in findings]
    return sorted((in_forward(case, finding) for finding in findings), key=lambda finding: finding.pair)


def _unique(findings: list[Finding]) -> list[Finding]:
    """Two rules may reach the same node for the same kind of cause."""
    kept: dict[tuple[int, str], Finding] = {}
    for finding in findings:
        kept.setdefault((finding.pair, finding.kind if finding.kind == "weight" else ""), finding)
    return list(kept.values())


def _traced_back(case: Case, finding: Finding) -> Finding:
    """In a quiet pair statistics may hide that what a call received was already wrong (its rows in another order): where they do
    not agree to the last bit, the call that made it so is the cause."""
    story = case.story
    items = case.inputs_of(finding.pair)
    doubtful = (
        (case.facts.equal[items] == 0) & (case.facts.unequal[items] < 0) & (case.context.kind[items] == Kind.TENSOR)
    )
    if finding.rule != "O-1" or not story.quiet or not doubtful.any():
        return finding
    return next((one for one in find_first_bit(case, finding.pair) if not one.hidden), finding)


def _as_overflow(case: Case, finding: Finding) -> Finding:
    """A cause that was not dumped and is first seen as a new NaN or infinity is an overflow."""
    broken = nonfinite_differs(case.context, case.facts)
    if finding.hidden and finding.kind == "computation" and any(broken[row] for row in finding.items):
        return replace(finding, kind="overflow")
    return finding


def _containers(case: Case, known: set[int]) -> list[Finding]:
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
