"""O-9: a call behind another cause whose result is worse than what it received can make it: a cause of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.evidence import advise_by_kind, describe_items
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.domain.context import Context
from dumpscope.domain.records import Direction, Float64, Int64, Kind, NodeKind, State
from dumpscope.match.operators.operations import operation
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.score import MAX, MEAN, MIN, NORM, overflow_differs

SMOOTH: Final = frozenset(
    {
        "ELU", "GELU", "Mish", "SiLU", "Sigmoid", "Tanh", "cos", "elu", "erf", "fast_gelu", "gelu", "logsigmoid", "mish", "neg",
        "npu_fast_gelu", "npu_gelu", "sigmoid", "silu", "sin", "softplus", "tanh",
    }
)  # fmt: skip
"""Operations by element whose result changes at most about as much as what they are given, and whose slope has no jump."""
KINKED: Final = frozenset(
    {
        "LeakyReLU", "MaxPool1d", "MaxPool2d", "MaxPool3d", "ReLU", "ReLU6", "abs", "clamp", "hardtanh", "leaky_relu",
        "max_pool1d", "max_pool2d", "max_pool3d", "relu", "relu6",
    }
)  # fmt: skip
"""The same with a slope that jumps, and pooling: their backward pass is judged only where their forward pass took equal data."""
FINITE: Final = SMOOTH | KINKED | {"softmax", "Softmax"}
"""Operations that make no NaN and no infinity of finite numbers."""
LINEAR: Final = frozenset({"addmm", "bmm", "conv1d", "conv2d", "conv3d", "linear", "matmul", "mm"})
"""Sums of products. These may cancel, so only a result that is a hundred times worse than what went in tells something."""

BY_ELEMENT: Final = 10.0
"""How many times its input's error that of a result is, at least, of operations by element."""
BY_SUMS: Final = 100.0
"""The same of sums of products."""
BY_STATISTICS: Final = 5.0
"""How many times more the norm of a result differs, at least, than the statistics of its input do and chance explains. What a
norm made has nearly the same statistics whatever it holds; but then a result by element has nearly the same ones too, up to what
the choice of so many elements does."""
UNSEEN: Final = 50.0
"""How many times the worst score of all calls since the first cause that of a sum of products is, at least, if only statistics
were stored. An error that such sums passed on unseen cannot be that large."""
PASSED: Final = 2
"""So many such sums must have passed it on: the first that reads elements in another order is the first to show it."""
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
        word = "origin.second_statistics" if (case.facts.unequal[list(finding.items)] < 0).any() else "origin.second"
        return [phrase(word, times=times), *describe_items(case, finding.items, finding.pair)]

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
    worse[: first + 1] = False
    judged = {label: word for label in set(columns.labels) if (word := operation(label)) in FINITE | LINEAR}
    worse &= np.array([label in judged for label in columns.labels], bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        follows = columns.out_score <= BY_SUMS * columns.in_score  # a sum of products as its input makes it
    breaks = np.zeros(len(columns), bool)
    breaks[case.context.pair[broken]] = True
    before = _worst_before(columns, first)
    sums = (
        np.array([operation(label) in LINEAR for label in columns.labels], bool) & columns.leaf & (columns.own_in > 0)
    )
    sums[: first + 1] = False
    before[np.cumsum(sums) - sums < PASSED] = np.inf  # only sums of products ask for it
    counted = SMOOTH | KINKED | LINEAR
    by_statistics = counted if (case.facts.unequal >= 0).any() else KINKED  # backward; see `_count_in_statistics`
    found: list[Finding] = []
    for pair in np.flatnonzero(worse).tolist():
        word = judged[columns.labels[pair]]
        if pair in known or (word in LINEAR and (follows[pair] or backward[pair]) and not breaks[pair]):
            continue
        if not breaks[pair] and word not in (by_statistics if backward[pair] else counted):
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
        times = _count_times(case, pair, word, before[pair], backward=bool(backward[pair]))
        if times:
            found.append(Finding(pair=pair, kind="computation", rule="O-9", items=tuple(items.tolist()), detail=times))
    return found


def _worst_before(columns: NodeColumns, first: int) -> Float64:
    """By node pair the worst score that a call took or made since the first cause, before it."""
    scores = np.nan_to_num(np.fmax(columns.own_in, columns.out_score), nan=0.0, posinf=np.inf)
    scores[:first] = 0.0
    worst: Float64 = np.concatenate([[0.0], np.maximum.accumulate(scores)[:-1]])
    return worst


def _are_finite(context: Context, rows: Int64) -> bool:
    """Both sides received finite numbers only."""
    return all(bool((state[rows][:, [MAX, MIN]] == State.FINITE).all()) for state in (context.t_state, context.g_state))


def _count_times(case: Case, pair: int, word: str, before: float, *, backward: bool) -> float:
    """How many times its input's error the result's is, both as lengths, or by how many times it differs more than the statistics
    of its input explain; 0 where that is no more than the call can make of it, or cannot be known.

    before: worst score since the first cause
    """
    columns = case.columns
    if word not in SMOOTH | LINEAR | KINKED or (backward and word in LINEAR):
        return 0.0
    if backward and word in KINKED and not _took_equal_data(case, pair):
        return 0.0
    rows = np.concatenate([case.inputs_of(pair), case.outputs_of(pair)])
    rows = rows[(case.context.kind[rows] == Kind.TENSOR) & ~case.exact[rows]]
    scores = case.opinions.score[rows]
    if not len(rows) or not np.isfinite(scores).all() or case.context.unread[rows].any():
        return 0.0
    in_score, out_score = float(columns.in_score[pair]), float(columns.out_score[pair])
    if not 0 < in_score < np.inf or not np.isfinite(out_score):
        return 0.0
    seen = case.facts.unequal[rows] >= 0
    if not seen.any():
        return _count_in_statistics(case, pair, word, before, backward=backward)
    if not seen.all():
        return 0.0
    limit, size = BY_SUMS, 1.0
    if word not in LINEAR:
        limit = BY_ELEMENT
        whole = backward and word not in KINKED
        size = 1.0 if whole else _norm(case, case.outputs_of(pair)) / max(_norm(case, case.inputs_of(pair)), 1e-30)
    times = out_score / in_score * size
    return times if times > limit else 0.0


def _count_in_statistics(case: Case, pair: int, word: str, before: float, *, backward: bool) -> float:
    """`_count_times` where no tensor was read."""
    columns = case.columns
    if not columns.quiet:
        return 0.0
    if word in LINEAR:
        times = float(columns.out_score[pair] / columns.in_score[pair])
        return times if times > BY_SUMS and columns.out_score[pair] > UNSEEN * before else 0.0
    if backward and word not in KINKED:  # what the forward pass saved differs by nobody knows how much
        return 0.0
    given, made = (_floats(case, rows) for rows in (case.inputs_of(pair), case.outputs_of(pair)))
    taken, fewest = _change(case, given), int(case.context.elements[np.concatenate([given, made])].min())
    limit = taken + 1 / np.sqrt(max(fewest, 1))
    times = _change(case, made, norm_only=True) / limit
    return float(times) if times > BY_STATISTICS else 0.0


def _took_equal_data(case: Case, pair: int) -> bool:
    """All that the forward call of a backward one took and made is equal."""
    names = case.columns.names
    forward = names[pair].removesuffix("backward") + "forward"
    try:
        rows = _floats(case, case.items_of(names.index(forward)))
    except ValueError:
        return False
    return bool(len(rows) and (case.facts.equal[rows] == 1).all())


def _floats(case: Case, rows: Int64) -> Int64:
    found: Int64 = rows[(case.context.kind[rows] == Kind.TENSOR) & ~case.exact[rows]]
    return found


def _change(case: Case, rows: Int64, *, norm_only: bool = False) -> float:
    """Largest difference of the norms relative to the norm, and unless norm_only of the means to an element's size, and of Max
    and Min to the largest magnitude; inf where one is not stored, 0 if norm_only."""
    context = case.context
    t, g = context.t_stats[rows], context.g_stats[rows]
    finite = (context.t_state[rows] == State.FINITE).all() and (context.g_state[rows] == State.FINITE).all()
    if not len(rows) or not finite:
        return 0.0 if norm_only else float("inf")
    apart, size = np.abs(t - g), np.maximum(np.maximum(np.abs(t), np.abs(g)), 1e-30)
    parts = [apart[:, NORM] / size[:, NORM]]
    if not norm_only:
        parts.append(apart[:, MEAN] / (size[:, NORM] / np.sqrt(np.maximum(context.elements[rows], 1))))
        parts.append(apart[:, [MAX, MIN]].max(axis=1) / size[:, [MAX, MIN]].max(axis=1))
    return float(np.max(parts))


def _norm(case: Case, rows: Int64) -> float:
    """The longest of the tensors on both sides; 1 where none is known."""
    context = case.context
    numbers = [
        abs(float(stats[row, NORM]))  # msprobe stores a single number as its own norm
        for stats, state in ((context.t_stats, context.t_state), (context.g_stats, context.g_state))
        for row in rows.tolist()
        if context.kind[row] == Kind.TENSOR and state[row, NORM] == State.FINITE
    ]
    return max(numbers, default=1.0)
