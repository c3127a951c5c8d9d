"""O-9: a call behind another cause whose result is worse than what it received can make it: a cause of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.evidence import advise_by_kind, describe_items
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.domain.context import Context
from dumpscope.domain.records import Direction, Int64, Kind, NodeKind, State
from dumpscope.match.operators.operations import operation
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.score import MAX, MIN, NORM, is_exact_kind, overflow_differs

SMOOTH: Final = frozenset(
    {
        "ELU", "GELU", "Mish", "SiLU", "Sigmoid", "Tanh", "cos", "elu", "erf", "fast_gelu", "gelu", "logsigmoid", "mish", "neg",
        "npu_fast_gelu", "npu_gelu", "sigmoid", "silu", "sin", "softplus", "tanh",
    }
)  # fmt: skip
"""Operations by element whose result changes at most about as much as what they are given, and whose slope has no jump."""
KINKED: Final = frozenset({"LeakyReLU", "ReLU", "ReLU6", "abs", "clamp", "hardtanh", "leaky_relu", "relu", "relu6"})
"""The same with a slope that jumps: their forward alone can be judged."""
FINITE: Final = SMOOTH | KINKED | {"softmax", "Softmax"}
"""Operations that make no NaN and no infinity of finite numbers."""
LINEAR: Final = frozenset({"addmm", "bmm", "conv1d", "conv2d", "conv3d", "linear", "matmul", "mm"})
"""Sums of products. These may cancel, so only a result that is a hundred times worse than what went in tells something."""

BY_ELEMENT: Final = 10.0
"""How many times its input's error that of a result is, at least, of operations by element. Only tensors show it: the statistics
of what a norm made are nearly the same whatever it holds."""
BY_SUMS: Final = 100.0
"""The same of sums of products."""
CLEAR: Final = 30.0
"""Thresholds by which the result differs at least."""
BORN: Final = "born"
"""Variant: NaN or infinity of finite numbers."""


class SecondCauses(Rule):
    """What is behind another cause and does not follow from it. Finding.detail: how many times worse its result is"""

    id: ClassVar = "O-9"
    kinds: ClassVar = ("computation", "overflow")

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return []

    def find_last(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        known = [one for one in found if one.rule != "O-7" and not one.idle]
        if not known or case.history.went_wrong:
            return []
        return _find(case, min(one.pair for one in known), {one.pair for one in found})

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        if finding.variant == BORN:
            return [phrase("origin.second_born"), *describe_items(case, finding.items, finding.pair)]
        times = f"{finding.detail:.2g}" if isinstance(finding.detail, float) and finding.detail < 1000 else "1000"
        return [phrase("origin.second", times=times), *describe_items(case, finding.items, finding.pair)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return advise_by_kind(case, finding)

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        """Its inputs differ, so nobody has seen it go wrong on equal ones."""
        if finding.variant == BORN:
            return limit
        return limit * (0.5 if operation(case.columns.labels[finding.pair]) in LINEAR else 0.7)


def _find(case: Case, first: int, known: set[int]) -> list[Finding]:
    """Such calls after the first cause."""
    columns, broken = case.columns, overflow_differs(case.context, case.facts)
    backward = columns.direction == Direction.BACKWARD
    with np.errstate(invalid="ignore"):
        worse = columns.leaf & ~columns.alone & (columns.kind == NodeKind.API) & ~columns.argument
        worse &= columns.out_score > CLEAR * columns.threshold
    found: list[Finding] = []
    for pair in np.flatnonzero(worse).tolist():
        word = operation(columns.labels[pair])
        if pair <= first or pair in known or word not in FINITE | LINEAR:
            continue
        received, made = case.inputs_of(pair), case.outputs_of(pair)
        received = received[case.context.kind[received] == Kind.TENSOR]
        items = case.different(made)
        if not len(items) or not len(received):
            continue
        if broken[made].any():
            if word in FINITE and not backward[pair] and _are_finite(case.context, received):
                shown = tuple(items[broken[items]].tolist())
                found.append(Finding(pair=pair, kind="overflow", rule="O-9", items=shown, variant=BORN))
            continue
        times = _count_times(case, pair, word, backward=bool(backward[pair]))
        if times:
            found.append(Finding(pair=pair, kind="computation", rule="O-9", items=tuple(items.tolist()), detail=times))
    return found


def _are_finite(context: Context, rows: Int64) -> bool:
    """Both sides received finite numbers only."""
    return all(bool((state[rows][:, [MAX, MIN]] == State.FINITE).all()) for state in (context.t_state, context.g_state))


def _count_times(case: Case, pair: int, word: str, *, backward: bool) -> float:
    """How many times its input's error the result's is, both as lengths; 0 where that is no more than the call can make of it, or
    cannot be known."""
    columns, facts = case.columns, case.facts
    if word not in SMOOTH | LINEAR and (backward or word not in KINKED):
        return 0.0
    rows = np.concatenate([case.inputs_of(pair), case.outputs_of(pair)])
    rows = rows[(case.context.kind[rows] == Kind.TENSOR) & ~is_exact_kind(case.context)[rows]]
    scores = case.opinions.score[rows]
    if not len(rows) or not np.isfinite(scores).all() or case.context.unread[rows].any():
        return 0.0
    in_score, out_score = float(columns.in_score[pair]), float(columns.out_score[pair])
    if not 0 < in_score < np.inf or not np.isfinite(out_score):
        return 0.0
    if not (facts.unequal[rows] >= 0).all() or (word in LINEAR and backward):
        return 0.0
    limit, size = BY_SUMS, 1.0
    if word not in LINEAR:
        limit = BY_ELEMENT
        size = 1.0 if backward else _norm(case, case.outputs_of(pair)) / max(_norm(case, case.inputs_of(pair)), 1e-30)
    times = out_score / in_score * size
    return times if times > limit else 0.0


def _norm(case: Case, rows: Int64) -> float:
    """The longest of the tensors on both sides; 1 where none is known."""
    context = case.context
    numbers = [
        float(stats[row, NORM])
        for stats, state in ((context.t_stats, context.t_state), (context.g_stats, context.g_state))
        for row in rows.tolist()
        if context.kind[row] == Kind.TENSOR and state[row, NORM] == State.FINITE
    ]
    return max(numbers, default=1.0)
