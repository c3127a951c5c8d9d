"""Scores: the error of an item pair in units of the floor of its dtype (1.0 is the floor)."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import TENSOR_METRICS, Facts, Outcome
from dumpscope.domain.records import Bool, Float64, Int64, Kind, Role, State
from dumpscope.verdict.policy import FLOORS, TINY, Policy, compile_pattern

MAX, MIN, MEAN, NORM = range(4)
EUCLIDEAN: Final = TENSOR_METRICS.index("euclidean")
MAX_ABS: Final = TENSOR_METRICS.index("max_abs")
REL_L2: Final = TENSOR_METRICS.index("rel_l2")


def floors(context: Context, policy: Policy, factors: Float64, own: Bool | None = None) -> tuple[Float64, Float64]:
    """(bulk, peak) floor of each item pair: the coarser of the two dtypes, 0 where the dtype must be equal.

    Where a tenth of the float tensors of the forward and backward pass are of a coarse dtype, its rounding reaches the finer
    ones too (a loss in float32 after a bfloat16 net), so no floor is finer than that one. own: but for these item pairs
    """
    both = _floors_of_dtypes(context, policy)
    coarse = np.where(both > 0, np.maximum(both, _coarsest_common(context, policy)), both)
    both = coarse if own is None else np.where(own[:, None], both, coarse)
    both = both * factors[context.pair][:, None] if len(factors) else both
    return both[:, 0], both[:, 1]


def _floors_of_dtypes(context: Context, policy: Policy) -> Float64:
    """(bulk, peak) of each item pair, by its own dtypes."""
    table = _dtype_floors(context, policy)
    both: Float64 = np.maximum(table[context.t_dtype], table[context.g_dtype])
    return both


def _dtype_floors(context: Context, policy: Policy) -> Float64:
    """(bulk, peak) of each dtype of the context; 0 for those without, and in the last row, for -1."""
    table = np.zeros((len(context.dtypes) + 1, 2))
    for code, name in enumerate(context.dtypes):
        floor = policy.floors.get(name) or FLOORS.get(name)
        if floor:
            table[code] = floor.bulk, floor.peak
    return table


def find_own_rounding(context: Context, facts: Facts, calls: Bool, policy: Policy) -> Bool:
    """Item pairs that carry no rounding but that of their own dtype, in runs of which coarser dtypes rule: what a call made of
    equal tensors, none of which, on the way in or out, is of a coarse dtype. The code of a module may compute in any.

    calls: by node pair, a forward call of a function
    """
    both = _floors_of_dtypes(context, policy)
    common = _coarsest_common(context, policy)[0]
    tensor = (context.kind == Kind.TENSOR) & ~context.unread
    floating = tensor & (both[:, 0] > 0)
    fine: Bool = floating & (both[:, 0] < common)
    if not fine.any():
        return fine
    received = np.isin(context.role, (Role.INPUT, Role.KWARG, Role.PARAMETER))
    calls = calls.copy()
    calls[context.pair[(floating & ~fine) | (tensor & received & (facts.equal != 1))]] = False
    given = np.zeros(len(calls), bool)
    given[context.pair[fine & received]] = True
    found: Bool = fine & ~received & (calls & given)[context.pair]
    return found


def _coarsest_common(context: Context, policy: Policy) -> Float64:
    """The coarsest (bulk, peak) floor that a tenth of the float tensors of the forward and backward pass have."""
    table, before = _dtype_floors(context, policy), context.pair < context.end
    codes = context.t_dtype[before] % len(table) * len(table) + context.g_dtype[before] % len(table)
    counts = np.bincount(codes, minlength=len(table) ** 2)
    met = np.flatnonzero(counts)
    both = np.maximum(table[met // len(table)], table[met % len(table)])
    floating = both[:, 0] > 0
    if not floating.any():
        return np.zeros(2)
    kinds, kind = np.unique(both[floating], axis=0, return_inverse=True)
    counts = np.bincount(kind.reshape(-1), counts[met][floating])
    often = kinds[counts >= 0.1 * counts.sum()]
    coarsest: Float64 = often.max(axis=0) if len(often) else kinds[np.argmax(counts)]
    return coarsest


def common_floor(context: Context, policy: Policy) -> float:
    """The bulk floor that rules this unit: that of the coarsest dtype in common use."""
    bulk, _ = floors(context, policy, np.zeros(0))
    return float(bulk.max(initial=0.0))


def factors(names: list[str], policy: Policy) -> Float64:
    """Widening factor per node; nan means "never judged"."""
    out = np.ones(len(names))
    if policy.scale or policy.ignore:
        widened = [(compile_pattern(pattern, "scale"), factor) for pattern, factor in policy.scale]
        ignored = [compile_pattern(pattern, "ignore") for pattern in policy.ignore]
        for i, name in enumerate(names):
            if any(holds(name) for holds in ignored):
                out[i] = np.nan
                continue
            out[i] = next((factor for holds, factor in widened if holds(name)), 1.0)
    return out


def is_exact_kind(context: Context, rows: Int64 | None = None) -> Bool:
    """True where both dtypes are integers or booleans, which must be equal. rows: only of these item pairs"""
    exact = np.array([not _is_float(name) for name in context.dtypes] + [False])  # -1, no dtype, is the last
    t, g = (context.t_dtype, context.g_dtype) if rows is None else (context.t_dtype[rows], context.g_dtype[rows])
    both: Bool = exact[t] & exact[g]
    return both


def _is_float(dtype: str) -> bool:
    return any(word in dtype for word in ("float", "complex", "double", "half"))


def nonfinite_differs(context: Context, facts: Facts) -> Bool:
    """Non-finite values at different places. From statistics this is seen in Max and Min only: a low-precision Norm may
    overflow on healthy data."""
    from_tensor = facts.nonfinite_disagree > 0
    t, g = context.t_state[:, :2], context.g_state[:, :2]
    known = (t != State.ABSENT) & (g != State.ABSENT)
    apart = (known & (t != g)).any(axis=1)
    read = facts.nonfinite_disagree >= 0
    differs: Bool = np.where(read, from_tensor, apart) & (facts.outcome == Outcome.COMPARED)
    return differs


def overflow_differs(context: Context, facts: Facts) -> Bool:
    """As `nonfinite_differs`, but for masks: where both sides hold -inf and nothing else that is not finite, other places of it
    are another mask, and nothing overflowed."""
    t, g = context.t_state[:, :2], context.g_state[:, :2]
    masks = (t[:, MIN] == State.NEG_INF) & (g[:, MIN] == State.NEG_INF)
    for top in (t[:, MAX], g[:, MAX]):
        masks &= (top == State.FINITE) | (top == State.NEG_INF)
    found: Bool = nonfinite_differs(context, facts) & ~masks
    return found


def statistic_score(context: Context, bulk: Float64, peak: Float64, least: float = TINY) -> Float64:
    """Worst of: norm difference by the norm, mean difference by norm/sqrt(N), Max and Min difference by the largest
    magnitude; each against its floor. nan where no statistic can be compared. Symmetric in the two sides. least: differences up
    to this count for nothing"""
    t, g = context.t_stats, context.g_stats
    finite = (context.t_state == State.FINITE) & (context.g_state == State.FINITE)
    with np.errstate(all="ignore"):
        diff = np.abs(t - g)
        count = np.maximum(context.elements, 1).astype(np.float64)
        size = np.maximum(np.abs(t), np.abs(g))
        peak_size = np.fmax(
            np.where(finite[:, MAX], size[:, MAX], np.nan), np.where(finite[:, MIN], size[:, MIN], np.nan)
        )
        rms = np.where(finite[:, NORM], size[:, NORM] / np.sqrt(count), peak_size)
        tiny = least * np.sqrt(count)
        norm = np.where(diff[:, NORM] <= tiny, 0.0, diff[:, NORM] / size[:, NORM])
        mean = np.where(diff[:, MEAN] <= least, 0.0, diff[:, MEAN] / np.fmax(rms, size[:, MEAN] * 1e-6))
        extreme = np.where(diff[:, :2] <= least, 0.0, diff[:, :2] / peak_size[:, None])
        parts = np.column_stack([extreme / peak[:, None], mean / bulk, norm / bulk])
        parts = np.where(finite, np.where(diff == 0, 0.0, parts), np.nan)
        return _worst(parts)


def tensor_score(context: Context, facts: Facts, bulk: Float64, peak: Float64, least: float = TINY) -> Float64:
    """Worst of: relative L2 distance against the bulk floor, largest element error by the largest magnitude against
    the peak floor. nan where no tensor was read. least: as for `statistic_score`"""
    judged = is_judged_by_tensor(facts)
    if not judged.any():
        return np.full(len(judged), np.nan)
    value = np.where(facts.tensor_state == State.FINITE, facts.tensor, np.nan)
    value = np.where(facts.tensor_state == State.POS_INF, np.inf, value)
    count = np.maximum(facts.elements, 1).astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.where(context.t_state[:, :2] == State.FINITE, np.abs(context.t_stats[:, :2]), np.nan)
        other = np.where(context.g_state[:, :2] == State.FINITE, np.abs(context.g_stats[:, :2]), np.nan)
        peak_size = _worst(np.column_stack([size, other]))
        gap = value[:, EUCLIDEAN]
        distance = np.where(gap <= least * np.sqrt(count), 0.0, gap / _larger_norm(context, value)) / bulk
        element = np.where(value[:, MAX_ABS] <= least, 0.0, value[:, MAX_ABS] / peak_size) / peak
        parts = np.column_stack([distance, element])
        parts = np.where(np.isnan(parts) & (facts.unequal == 0)[:, None], 0.0, parts)
        return np.where(judged, np.where(facts.unequal == 0, 0.0, _worst(parts)), np.nan)


def _larger_norm(context: Context, value: Float64) -> Float64:
    """Norm of the larger side. The golden's follows from the metrics; the target's is the stored one, or at least what the
    distance leaves of it."""
    gap = value[:, EUCLIDEAN]
    with np.errstate(all="ignore"):
        golden = np.where(np.isinf(value[:, REL_L2]), 0.0, gap / value[:, REL_L2])
        stored = np.where(context.t_state[:, NORM] == State.FINITE, np.abs(context.t_stats[:, NORM]), np.nan)
        larger: Float64 = np.fmax(golden, np.fmin(np.fmax(stored, np.abs(gap - golden)), golden + gap))
    return larger


def _worst(parts: Float64) -> Float64:
    """Row maximum that skips nan; nan only where the whole row is nan."""
    filled = np.where(np.isnan(parts), -np.inf, parts).max(axis=1)
    return np.where(np.isneginf(filled), np.nan, filled)


def scores(context: Context, facts: Facts, policy: Policy, factor: Float64, own: Bool | None = None) -> Float64:
    """Score per item pair: 0 equal, inf where no floor allows the difference, nan where nothing was compared or judged. own: as
    for `floors`"""
    bulk, peak = floors(context, policy, factor, own)
    score = distance(context, facts, bulk, peak)
    unjudged = context.unread | (np.isnan(factor[context.pair]) if len(factor) else False)
    return np.where(unjudged, np.nan, score)


def distance(context: Context, facts: Facts, bulk: Float64, peak: Float64, least: float = TINY) -> Float64:
    """As `scores`, in units of any bulk and peak; inf for one of them leaves it out. least: as for `statistic_score`"""
    exact = is_exact_kind(context)
    with np.errstate(all="ignore"):
        score = tensor_score(context, facts, bulk, peak, least)
        score = np.where(np.isnan(score) & (facts.unequal < 0), statistic_score(context, bulk, peak, least), score)
    compared = facts.outcome == Outcome.COMPARED
    score = np.where(compared, score, np.nan)
    score = np.where(compared & exact & (facts.equal == 0), np.inf, score)
    hashed_only = compared & np.isnan(score) & (facts.equal == 0)
    score = np.where(hashed_only, np.inf, score)
    score = np.where(facts.equal == 1, 0.0, score)
    score = np.where(nonfinite_differs(context, facts), np.inf, score)
    score = np.where((facts.outcome == Outcome.SHAPE) | (facts.outcome == Outcome.KIND), np.inf, score)
    score = np.where(facts.outcome == Outcome.SCALAR, np.where(facts.equal == 1, 0.0, np.inf), score)
    same = (facts.outcome == Outcome.EMPTY) | ((facts.outcome == Outcome.FORM) & (context.kind == Kind.TENSOR))
    return np.where(same, 0.0, score)


def is_judged_by_tensor(facts: Facts) -> Bool:
    """Where tensors were read, here or by who wrote the result table, so that statistics do not decide."""
    read: Bool = (facts.unequal >= 0) | (facts.metric_state("max_abs") != State.ABSENT)
    return read
