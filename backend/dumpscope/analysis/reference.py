"""Which side is farther from an absolute reference, and what follows for verdicts and causes.

The ratio decides, as it does where operators are verified against a CPU in higher precision (the L0 level of
msprobe's benchmark standard): an operator passes whose root mean square error is at most 2 times the rival's and whose
largest error at most 10 times, with a floor below which the rival's error counts as the floor. There errors are relative by
element, so elements near zero need rules of their own (the "small value" counts); `bulk` and `peak` weigh every element by its
absolute error instead, and need none.
Floors are those of the policy, in place of the standard's 2^-14, 2^-11 and 2^-8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.domain.distances import FARTHER, Distances, Measure, Standing
from dumpscope.domain.facts import Facts, ItemOpinions, ItemPairs, Verdict
from dumpscope.domain.records import Bool, Float64, Int8, Int64, Role
from dumpscope.verdict.rules import CODES

PEAK_SHARE: Final = 0.2
"""Weight of the ratio of the largest errors, which may be 10 where that of the bulk may be 2."""

_OUTPUTS: Final = (Role.OUTPUT, Role.GRADIENT, Role.DEBUG)


def apply_reference(opinions: ItemOpinions, distances: Distances, bulk: Float64, peak: Float64) -> ItemOpinions:
    """The opinions of a comparison of two, as the reference changes them, where both sides were measured.

    A No or Warning at which the target is no farther than the golden becomes Yes (R-1), any other keeps its verdict and says why
    (R-2); another dtype stays a Warning. The score becomes the target's distance, unless the two sides are closer to each other.
    bulk, peak: floor of each item pair, shape (n,), 0 where values must be equal
    """
    floors = np.column_stack([bulk, peak])
    with np.errstate(all="ignore"):
        target, golden = (np.where(side == 0, 0.0, side / floors) for side in (distances.target, distances.golden))
    shares = np.array([1.0, PEAK_SHARE])
    ratios, inverses = _ratio(target, golden) * shares, _ratio(golden, target) * shares
    larger = np.nan_to_num(np.fmax(ratios, inverses), nan=-1.0, posinf=np.inf)
    standing = Standing(
        measure=(larger[:, Measure.PEAK] > larger[:, Measure.BULK]).astype(np.int8),
        ratio=_worst(ratios),
        inverse=_worst(inverses),
        golden_score=_worst(golden),
    )
    known = ~np.isnan(standing.ratio)
    far = known & (standing.ratio > FARTHER)
    verdict, rule = opinions.verdict.copy(), opinions.rule.copy()
    judged = known & np.isin(verdict, (Verdict.NO, Verdict.WARNING)) & (rule != CODES["D-1"])
    verdict[judged & ~far] = Verdict.YES
    rule[judged & ~far] = CODES["R-1"]
    rule[judged & far] = CODES["R-2"]
    own = _worst(target)
    score = np.where(far, own, np.where(known, np.fmin(own, opinions.score), opinions.score))
    score = np.where(np.isnan(opinions.score), np.nan, np.where(known & (opinions.score <= 1), opinions.score, score))
    return replace(opinions, verdict=verdict, rule=rule, score=score, standing=standing)


def hide_golden_faults(facts: Facts, opinions: ItemOpinions) -> tuple[Facts, ItemOpinions]:
    """What the causes of the target are looked for in: a difference that is the golden's alone counts as none."""
    if opinions.standing is None:
        return facts, opinions
    return _hide_differences(facts, opinions, golden_at_fault(facts, opinions) & ~(opinions.score > 1))


def hide_target_faults(facts: Facts, opinions: ItemOpinions) -> tuple[Facts, ItemOpinions]:
    """The same for the causes of the golden; where nothing was measured the golden is not blamed."""
    standing = opinions.standing
    assert standing is not None
    own = np.fmin(standing.golden_score, opinions.score)
    with np.errstate(invalid="ignore"):
        score = np.where(standing.inverse > FARTHER, standing.golden_score, own)
    score = np.where(np.isnan(opinions.score), np.nan, score)
    unknown = np.isnan(standing.ratio)
    blameless = unknown | (target_at_fault(facts, opinions) & ~(score > 1))
    return _hide_differences(facts, replace(opinions, score=score), blameless)


def target_at_fault(facts: Facts, opinions: ItemOpinions) -> Bool:
    """Item pairs at which the target may be at fault: it is farther from the reference, or nothing was measured.

    Where both sides are within the floor no verdict is at stake, only the search for causes, which sees bits: there the distances
    as they are decide.
    """
    standing, distances = opinions.standing, facts.distances
    if standing is None or distances is None:
        return np.ones(len(opinions.verdict), bool)
    with np.errstate(invalid="ignore"):
        farther = _farther(standing.ratio, distances.target, distances.golden, opinions)
    found: Bool = farther | np.isnan(standing.ratio)
    return found


def golden_at_fault(facts: Facts, opinions: ItemOpinions) -> Bool:
    """Item pairs at which the golden is known to be farther from the reference."""
    standing, distances = opinions.standing, facts.distances
    if standing is None or distances is None:
        return np.zeros(len(opinions.verdict), bool)
    return _farther(standing.inverse, distances.golden, distances.target, opinions)


def _farther(ratio: Float64, one: Float64, other: Float64, opinions: ItemOpinions) -> Bool:
    standing = opinions.standing
    assert standing is not None
    with np.errstate(invalid="ignore"):
        within = (opinions.score <= 1) & (standing.golden_score <= 1)
        plain = (one * [1.0, PEAK_SHARE] > FARTHER * other).any(axis=1)
        found: Bool = (ratio > FARTHER) | (within & plain)
    return found


def find_deciding_items(pairs: ItemPairs, roles: Int8, opinions: ItemOpinions, nodes: int) -> Int64:
    """The output that decides for each node pair, -1 where none was measured: that at which the target is farthest, else that at
    which the golden is. roles: Role by item pair"""
    found = np.full(nodes, -1, np.int64)
    standing = opinions.standing
    if standing is None:
        return found
    rows = np.flatnonzero(np.isin(roles, _OUTPUTS) & ~np.isnan(standing.ratio))
    worse = standing.ratio[rows] > FARTHER
    key = np.where(worse, standing.ratio[rows], standing.inverse[rows])
    order = np.lexsort((key, worse))
    found[pairs.pair[rows[order]]] = rows[order]
    return found


def _hide_differences(facts: Facts, opinions: ItemOpinions, rows: Bool) -> tuple[Facts, ItemOpinions]:
    """Treat these rows as not different: unknown, not proven equal."""
    equal = np.where(rows & (facts.equal == 0), -1, facts.equal).astype(np.int8)
    disagree = np.where(rows, np.minimum(facts.nonfinite_disagree, 0), facts.nonfinite_disagree)
    score = np.where(rows & ~np.isnan(opinions.score), 0.0, opinions.score)
    return replace(facts, equal=equal, nonfinite_disagree=disagree), replace(opinions, score=score)


def _ratio(one: Float64, other: Float64) -> Float64:
    """nan where a side was not measured, or where nothing excuses either."""
    with np.errstate(all="ignore"):
        found: Float64 = np.where(np.isnan(one) | np.isnan(other), np.nan, one / np.maximum(other, 1.0))
    return found


def _worst(parts: Float64) -> Float64:
    """Row maximum that skips nan."""
    return np.fmax(parts[:, 0], parts[:, 1])
