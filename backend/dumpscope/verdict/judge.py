"""Facts in, opinions out: "Accuracy Reached or Not" per item under a policy."""

from __future__ import annotations

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions, Outcome, Verdict
from dumpscope.domain.records import Bool, Float64, Int8, Kind, State
from dumpscope.domain.unread.memory import OVERWRITING, UNINITIALISED
from dumpscope.verdict import msprobe, score
from dumpscope.verdict.policy import Policy
from dumpscope.verdict.rules import CODES


def judge(
    context: Context,
    facts: Facts,
    names: list[str],
    policy: Policy,
    mode: str,
    own: Bool | None = None,
    *,
    bits: bool = True,
) -> ItemOpinions:
    """Opinions of every item pair.

    names: node name per node pair (for the policy's patterns); mode: "tensor", "statistics", "md5" or "structure"
    own: item pairs that carry no rounding but that of their own dtype (`score.find_own_rounding`)
    bits: equal bits are due, so a hash that differs outranks statistics that agree
    """
    factor = score.factors(names, policy)
    uninitialised = np.array([name in UNINITIALISED - OVERWRITING for name in context.apis] + [False])
    factor = np.where(uninitialised[context.api], np.nan, factor) if len(factor) else factor
    item_scores = score.scores(context, facts, policy, factor, own)
    verdict, rule = _judge_by_default(context, facts, item_scores, policy, mode, bits)
    if policy.base == "ptdbg":
        verdict, rule = _judge_by_ptdbg(context, facts, verdict, rule, mode)
    elif policy.base == "msprobe":
        verdict, rule = _judge_by_msprobe(context, facts, verdict, rule, mode)
    unread = np.zeros(len(context), bool)
    unread[list(facts.errors)] = True
    unread &= verdict == Verdict.YES  # what else was stored agrees, but the tensor itself was not seen
    verdict = np.where(unread, Verdict.NA, verdict)
    rule = np.where(unread, CODES["X-3"], rule)
    unjudged = context.unread | (np.isnan(factor[context.pair]) if len(factor) else False)
    verdict = np.where(unjudged, Verdict.NA, verdict)
    rule = np.where(unjudged, CODES["X-5"], rule)
    return ItemOpinions(verdict=verdict.astype(np.int8), rule=rule.astype(np.int8), score=item_scores)


def _judge_by_default(
    context: Context, facts: Facts, scores: Float64, policy: Policy, mode: str, bits: bool
) -> tuple[Int8, Int8]:
    outcome = facts.outcome
    n = len(context)
    verdict = np.full(n, int(Verdict.NA), np.int8)
    rule = np.full(n, CODES["X-4"], np.int8)

    def mark(where: Bool, what: Verdict, why: str) -> None:
        verdict[where] = what
        rule[where] = CODES[why]

    compared = outcome == Outcome.COMPARED
    known = compared & ~np.isnan(scores)
    tensor = score.is_judged_by_tensor(facts)
    differs = known & (scores > 1)
    mark(known & ~differs & tensor, Verdict.YES, "T-1")
    mark(known & ~differs & ~tensor, Verdict.YES, "M-1")
    mark(differs & tensor, Verdict.NO, "T-2")
    mark(differs & ~tensor, Verdict.NO, "M-2")
    mark(known & ~differs & ~tensor & (facts.equal != 0) & lack_a_statistic(context), Verdict.WARNING, "M-3")
    verdict[differs & (scores <= policy.warn)] = Verdict.WARNING
    mark(compared & score.is_exact_kind(context) & (facts.equal == 0), Verdict.NO, "I-1")
    hashed = compared & (facts.equal == 0) & ~tensor
    mark(hashed & np.isinf(scores) & (context.t_state == State.ABSENT).all(axis=1), Verdict.NO, "H-1")
    if mode == "md5" and (bits or policy.base != "default"):  # the tools whose labels these are know no other answer
        mark(hashed & (facts.dtype_differs == 0), Verdict.NO, "H-1")
    elif mode == "md5":
        mark(hashed & (facts.dtype_differs == 0) & (rule == CODES["M-1"]), Verdict.YES, "H-2")
    mark(compared & (facts.equal == 1), Verdict.YES, "E-1")
    within = compared & (facts.dtype_differs == 1) & (verdict == Verdict.YES)
    mark(within, Verdict.WARNING, "D-1")
    mark(score.nonfinite_differs(context, facts), Verdict.NO, "N-1")
    mark(outcome == Outcome.SCALAR, Verdict.YES, "E-1")
    mark((outcome == Outcome.SCALAR) & (facts.equal == 0), Verdict.NO, "V-1")
    mark(outcome == Outcome.SHAPE, Verdict.NO, "S-1")
    mark(outcome == Outcome.KIND, Verdict.NO, "S-2")
    mark(outcome == Outcome.EMPTY, Verdict.YES, "E-1")
    mark(outcome == Outcome.TARGET_ONLY, Verdict.NA, "X-1")
    mark(outcome == Outcome.GOLDEN_ONLY, Verdict.NA, "X-2")
    mark(outcome == Outcome.DEFAULT, Verdict.YES, "V-2")
    mark(outcome == Outcome.FORM, Verdict.WARNING, "F-1")
    mark(outcome == Outcome.INSIDE, Verdict.NA, "X-6")
    mark(outcome == Outcome.UNREADABLE, Verdict.NA, "X-3")
    return verdict, rule


def lack_a_statistic(context: Context) -> Bool:
    """One side holds None for a statistic that it stores for other tensors of the dtype, and the other side holds a number."""
    sides = (context.t_dtype, context.t_state != State.ABSENT), (context.g_dtype, context.g_state != State.ABSENT)
    usual = []
    for dtype, held in sides:
        codes = range(-1, len(context.dtypes))
        stored = np.array([held[dtype == code].any(axis=0) for code in codes])
        usual.append(stored[dtype + 1])
    lone: Bool = ((sides[0][1] != sides[1][1]) & usual[0] & usual[1]).any(axis=1)
    lone &= context.both & (context.kind == Kind.TENSOR)
    return lone


def _judge_by_ptdbg(context: Context, facts: Facts, verdict: Int8, rule: Int8, mode: str) -> tuple[Int8, Int8]:
    """The guide's label: strict thresholds, no dtype- or scale-aware tolerance. Source: the user guide of ptdbg_ascend."""
    verdict, rule = verdict.copy(), rule.copy()
    compared = facts.outcome == Outcome.COMPARED
    if mode == "md5":
        return verdict, rule
    if mode == "tensor":
        cosine = facts.metric("cosine")
        cosine_known = facts.metric_state("cosine") == State.FINITE
        largest = facts.metric("max_abs")
        state = facts.metric_state("max_abs")
        largest = np.where(state == State.POS_INF, np.inf, largest)
        known = compared & cosine_known & (state != State.ABSENT)
        with np.errstate(invalid="ignore"):
            bad = known & (((cosine < 0.99) & (largest > 0.001)) | (cosine < 0.9) | (largest > 1))
        apart = compared & (facts.nonfinite_disagree > 0)
        _set(verdict, rule, compared, Verdict.NA, "X-4")
        _set(verdict, rule, compared & ~known & (facts.unequal >= 0), Verdict.NA, "P-4")
        _set(verdict, rule, known & ~bad, Verdict.YES, "P-2")
        _set(verdict, rule, bad, Verdict.NO, "P-1")
        _set(verdict, rule, apart, Verdict.NO, "N-1")
        return verdict, rule
    t, g = context.t_stats, context.g_stats
    with np.errstate(all="ignore"):
        share = np.abs(t - g) / (np.maximum(np.abs(t), np.abs(g)) + 1e-10)
    finite = (context.t_state == State.FINITE) & (context.g_state == State.FINITE)
    large = (np.where(finite, share, 0.0) > 0.5).any(axis=1)
    known = compared & (finite.any(axis=1))
    _set(verdict, rule, known, Verdict.YES, "P-2")
    _set(verdict, rule, known & large, Verdict.WARNING, "P-3")
    return verdict, rule


def _judge_by_msprobe(context: Context, facts: Facts, verdict: Int8, rule: Int8, mode: str) -> tuple[Int8, Int8]:
    """msprobe's Result column as verdicts: pass = Yes, error = No; rows without a partner stay not comparable."""
    levels = msprobe.find_levels(context, facts, mode)
    verdict, rule = verdict.copy(), rule.copy()
    judged = context.both & (context.kind != Kind.OPAQUE)
    _set(verdict, rule, judged & (levels == msprobe.PASS), Verdict.YES, "Q-3")
    _set(verdict, rule, judged & (levels == msprobe.WARNING), Verdict.WARNING, "Q-2")
    _set(verdict, rule, judged & (levels == msprobe.ERROR), Verdict.NO, "Q-1")
    return verdict, rule


def _set(verdict: Int8, rule: Int8, where: Bool, what: Verdict, why: str) -> None:
    verdict[where] = what
    rule[where] = CODES[why]
