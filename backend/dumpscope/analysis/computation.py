"""O-1: a call whose inputs agree and whose output does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.flow import untainted
from dumpscope.analysis.noise import JUMP
from dumpscope.domain.records import Bool, Direction, Float64, Int64, NodeKind, Role
from dumpscope.verdict.score import nonfinite_differs

STEEP: Final = 10.0
"""An output that differs so much more than inputs that do not count as different owes nothing to them."""
RANDOM: Final = frozenset(
    {
        "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_",
        "uniform_", "random_", "bernoulli", "bernoulli_", "multinomial", "exponential_", "dropout", "dropout_",
        "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout",
        "native_dropout", "poisson", "gumbel_softmax", "rrelu", "cauchy_", "geometric_", "log_normal_",
    }
)  # fmt: skip


def find_computations(case: Case, *, after_wrong: bool, causes: Sequence[int] = ()) -> list[Finding]:
    """Leaf calls at which something went wrong.

    after_wrong: in an earlier step something did, so all weights differ and only bit-equal inputs are clean
    causes: calls with another weight, whether it shows there or not
    """
    story = case.story
    broken = nonfinite_differs(case.context, case.facts)
    new_nonfinite = _at(case, broken, outputs=True) & ~_at(case, broken, outputs=False)
    with np.errstate(invalid="ignore"):
        wrong = story.wrong
        first = min([int(np.flatnonzero(wrong)[0]) if wrong.any() else len(story), *causes])
        noise = min(_noise(np.fmax(story.out_score, story.own_in), first), story.threshold / JUMP)
        clean = ~(story.in_score > np.maximum(0.5 * story.threshold, noise))
        clean |= (story.in_score <= story.threshold) & (story.out_score > STEEP * story.in_score)
        clean |= new_nonfinite & ~np.isinf(story.in_score)
        jump = np.isnan(story.in_score) | (story.out_score > JUMP * np.maximum(story.in_score, noise)) | new_nonfinite
        suspects = story.leaf & clean & jump & (story.out_score > story.threshold) & ~story.argument
    suspects &= ~(story.excused > 0)
    backward = np.flatnonzero(story.direction == Direction.BACKWARD)
    if not story.quiet and len(backward):  # an optimizer lifts gradients that are pure rounding to any size
        suspects[int(backward[-1]) + 1 :] &= (new_nonfinite | ~(story.inexact > 0))[int(backward[-1]) + 1 :]
    if after_wrong:
        suspects &= ~(story.inexact > 0)
    findings = []
    for pair in _independent(case, np.flatnonzero(suspects), first, noise, causes):
        items = case.dirty_items(case.outputs_of(pair))
        kind = _kind(case, pair, bool(broken[items].any()))
        findings.append(
            Finding(pair=pair, kind=kind, rule="O-1", items=tuple(items.tolist()), random=kind == "configuration")
        )
    return findings


def _at(case: Case, rows: Bool, *, outputs: bool) -> Bool:
    """Nodes that have one of `rows` among their outputs (or inputs)."""
    side = np.isin(case.context.role, (Role.OUTPUT, Role.GRADIENT)) == outputs
    out = np.zeros(len(case.story), bool)
    out[case.context.pair[rows & side]] = True
    return out


def _noise(worst: Float64, first: int) -> float:
    """Largest score before the first difference: what this pair of runs shows where nothing is wrong."""
    before = worst[:first]
    return float(np.nanmax(before)) if len(before) and not np.isnan(before).all() else 0.0


def _independent(case: Case, suspects: Int64, first: int, noise: float, causes: Sequence[int]) -> list[int]:
    """The first suspect, and those after it that owe nothing to it.

    Statistics can hide an error in one call and show it again in the next, and a difference too small for a score can grow. So
    after the first difference a suspect must be as clean as everything was before it (bit-equal in a quiet pair), and
    nothing that it received may come from a call that was wrong.
    """
    story = case.story
    with np.errstate(invalid="ignore"):
        clean = np.isnan(story.in_score) & (story.kind != NodeKind.GRADIENT) | (story.in_score <= 2 * noise)
        if story.quiet:
            clean &= ~(story.inexact > 0)
    early = [pair for pair in suspects.tolist() if pair <= first]
    late = [pair for pair in suspects.tolist() if pair > first and clean[pair]]
    return early + (untainted(case, first, late, causes) if late else [])


def _kind(case: Case, pair: int, broken: bool) -> str:
    story = case.story
    if story.labels[pair].startswith("Distributed."):
        return "communication"
    if story.labels[pair].rpartition(".")[2] in RANDOM and story.direction[pair] != Direction.BACKWARD:
        return "configuration"
    if broken:
        return "overflow"
    if np.isnan(story.in_score[pair]) and story.direction[pair] == Direction.FORWARD:
        return "input"
    return "computation"
