"""Joins the findings of all rules, in named steps of a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.rules.dtypes import trace_to_dtype
from dumpscope.analysis.rules.exchanged import find_exchanged
from dumpscope.analysis.rules.modules import is_inside
from dumpscope.analysis.rules.registry import OURS
from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.rules.sources import find_first_bit
from dumpscope.analysis.unit.case import Case
from dumpscope.domain.records import Direction, Kind
from dumpscope.match.operators.operations import operation
from dumpscope.verdict.score import overflow_differs

MANY: Final = 4
"""More findings of one kind than this are one finding: the runs were set up differently."""

BY_ELEMENT: Final = frozenset(
    {
        "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "Mish", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softplus",
        "Tanh", "abs", "add", "clamp", "cos", "div", "elu", "erf", "exp", "fast_gelu", "gelu", "hardsigmoid", "hardswish",
        "hardtanh", "leaky_relu", "log", "log1p", "mish", "mul", "neg", "npu_fast_gelu", "npu_gelu", "pow", "reciprocal",
        "relu", "relu6", "rsqrt", "sigmoid", "silu", "sin", "softplus", "sqrt", "square", "sub", "tanh",
    }
)  # fmt: skip
"""Operations that compute each element of their result from one element of each tensor they are given."""

Step = Callable[[Case, Sequence[Finding]], list[Finding]]


def trace_back(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Statistics can hide that an input was already wrong (its rows in another order). If the inputs of a call differ in any bit,
    the call with the first differing bit takes its place in a quiet pair; where no dumped call put that out, or the pair is
    noisy, what `find_exchanged` tells."""
    return [_traced_back(case, finding) for finding in findings]


def _traced_back(case: Case, finding: Finding) -> Finding:
    items = case.inputs_of(finding.pair)
    doubtful = (
        (case.facts.equal[items] == 0) & (case.facts.unequal[items] < 0) & (case.context.kind[items] == Kind.TENSOR)
    )
    if finding.rule != "O-1" or not doubtful.any() or _works_by_element(case, finding.pair):
        return finding
    first = next((one for one in find_first_bit(case, finding.pair) if not one.hidden), None)
    return first or find_exchanged(case, finding) or finding


def _works_by_element(case: Case, pair: int) -> bool:
    """A call of one tensor, each element by itself: elements in another order leave in another order, and with them goes no
    statistic of the result. What differs there is its own doing."""
    tensors = case.context.kind[case.inputs_of(pair)] == Kind.TENSOR
    return operation(case.columns.labels[pair]) in BY_ELEMENT and int(tensors.sum()) == 1


def keep_one_a_node(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Two rules may name the same node: the first of ours stays, and one of another package takes its place. A weight is a cause
    beside what else a node is."""
    kept: dict[tuple[int, str], int] = {}  # number of the finding, by node and whether it is a weight
    for number in sorted(range(len(findings)), key=lambda number: findings[number].rule in OURS):
        finding = findings[number]
        kept.setdefault((finding.pair, finding.kind if finding.kind == "weight" else ""), number)
    return [findings[number] for number in sorted(kept.values())]


def gather_many(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Many differing weights are one cause (another checkpoint), and so are many differing inputs."""
    out = [one for one in findings if one.kind not in ("weight", "input")]
    for kind in ("weight", "input"):
        some = sorted((one for one in findings if one.kind == kind), key=lambda one: one.pair)
        if len(some) > MANY:
            some = [replace(some[0], group=tuple(one.pair for one in some[1:]))]
        out += some
    return out


def name_overflow(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """A cause that was not dumped and is first seen as a new NaN or infinity is an overflow."""
    broken = overflow_differs(case.context, case.facts)
    return [
        replace(one, kind="overflow")
        if one.hidden and one.kind == "computation" and any(broken[row] for row in one.items)
        else one
        for one in findings
    ]


def name_forward(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """An extra call is named by its forward, also where only its backward changes a value."""
    return [_in_forward(case, finding) for finding in findings]


def _in_forward(case: Case, finding: Finding) -> Finding:
    columns = case.columns
    if finding.kind != "structure" or columns.direction[finding.pair] != Direction.BACKWARD:
        return finding
    there = (case.pairs.target >= 0).tolist()
    calls = {(there[pair], columns.names[pair].removesuffix(".backward")) for pair in (finding.pair, *finding.group)}
    forward = [
        pair
        for pair in np.flatnonzero(columns.alone & (columns.direction == Direction.FORWARD)).tolist()
        if (there[pair], columns.names[pair].removesuffix(".forward")) in calls
    ]
    if not forward:
        return finding
    return replace(finding, pair=forward[0], group=tuple(forward[1:]))


def keep_inner(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Without the modules that are said to hide a cause and hold what another finding names."""
    named = [one.pair for one in findings]
    return [
        one
        for one in findings
        if one.rule != "O-6" or not any(pair != one.pair and is_inside(case, pair, one.pair) for pair in named)
    ]


AFTER_FIND: Final[tuple[Step, ...]] = (trace_back, trace_to_dtype, keep_one_a_node, keep_inner, gather_many)
"""Between `Rule.find` and `Rule.find_last`. Tracing moves a finding to another node, so nodes are compared after it; only what is
left is counted."""
AFTER_LAST: Final[tuple[Step, ...]] = (trace_to_dtype, name_overflow, name_forward)
"""On all findings. What follows from another dtype is none of the others; these only rename, so their order is free."""


def apply(steps: Iterable[Step], case: Case, findings: Sequence[Finding]) -> list[Finding]:
    found = list(findings)
    for step in steps:
        found = step(case, found)
    return found
