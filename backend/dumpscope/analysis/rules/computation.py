"""O-1: a call whose inputs agree and whose output does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.node_columns import Story
from dumpscope.analysis.noise import JUMP
from dumpscope.analysis.taint import untainted
from dumpscope.domain.facts import Outcome
from dumpscope.domain.limits import at_limit, limits
from dumpscope.domain.records import Bool, Direction, Float64, Int64, Kind, NodeKind, Role
from dumpscope.verdict.score import is_exact_kind, nonfinite_differs

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


ORDERING: Final = frozenset(
    {
        "argmax", "argmin", "argsort", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "msort",
        "nanmedian", "sort", "topk",
    }
)  # fmt: skip
"""Calls whose indices depend on which of several equal elements comes first."""


def find_computations(case: Case, *, after_wrong: bool, causes: Sequence[int] = ()) -> list[Finding]:
    """Leaf calls at which something went wrong.

    after_wrong: in an earlier step something did, so all weights differ and only bit-equal inputs are clean
    causes: calls with another weight, whether it shows there or not
    """
    story = case.story
    broken = nonfinite_differs(case.context, case.facts)
    new_nonfinite = _at(case, broken, outputs=True) & ~_at(case, broken, outputs=False)
    with np.errstate(invalid="ignore"):
        # A weight that differs is a cause of its own, or left so by the step before.
        wrong = story.argument | (story.out_score > story.threshold) | (story.own_data > story.threshold)
        first = min([int(np.flatnonzero(wrong)[0]) if wrong.any() else len(story), *causes])
        noise = np.minimum(_noise(np.fmax(story.out_score, story.own_in), first), story.threshold / JUMP)
        clean = ~(story.in_score > np.maximum(0.5 * story.threshold, noise))
        clean |= (story.in_score <= story.threshold) & (story.out_score > STEEP * story.in_score)
        clean |= new_nonfinite & ~np.isinf(story.in_score)
        jump = np.isnan(story.in_score) | (story.out_score > JUMP * np.maximum(story.in_score, noise)) | new_nonfinite
        suspects = story.leaf & clean & jump & (story.out_score > story.threshold) & ~story.argument
    suspects &= ~(story.excused > 0)
    suspects &= ~_runs_again(story)
    backward = np.flatnonzero(story.direction == Direction.BACKWARD)
    if not story.quiet and len(backward):  # an optimizer lifts gradients that are pure rounding to any size
        suspects[int(backward[-1]) + 1 :] &= (new_nonfinite | ~(story.inexact > 0))[int(backward[-1]) + 1 :]
    if after_wrong:
        suspects &= ~(story.inexact > 0)
    findings = []
    for pair in _independent(case, np.flatnonzero(suspects), first, noise, causes):
        items = case.dirty_items(case.outputs_of(pair))
        ties = _only_order(case, pair, items)
        if ties and not _reaches_values(case, pair):
            continue
        clipped = not broken[items].any() and bool(saturated(case, items).any())
        kind = "configuration" if ties else _kind(case, pair, bool(broken[items].any()) or clipped)
        random = kind == "configuration" and not ties
        clipped = clipped and kind == "overflow"
        shown = tuple(items.tolist())
        findings.append(
            Finding(pair=pair, kind=kind, rule="O-1", items=shown, random=random, saturated=clipped, ties=ties)
        )
    return findings


def _runs_again(story: Story) -> Bool:
    """Backward calls inside which a checkpoint ran forward calls again, one of which went wrong: these are recorded behind it,
    and it computed with what they made. What follows the last backward call is an optimizer."""
    found = np.zeros(len(story), bool)
    leaf = np.flatnonzero(story.leaf & (story.kind != NodeKind.GRADIENT) & ~story.alone)
    bad = within = False
    for pair in leaf[::-1].tolist():
        if story.direction[pair] == Direction.BACKWARD:
            found[pair], bad, within = bad, False, True
        else:
            bad = bad or (within and story.dirty(pair))
    return found


def saturated(case: Case, rows: Int64) -> Bool:
    """Which of these item pairs stand at the limit of their dtype on one side only."""
    context = case.context
    table = limits(context.dtypes)
    target = at_limit(context.t_stats[rows], context.t_state[rows], table[context.t_dtype[rows]])
    golden = at_limit(context.g_stats[rows], context.g_state[rows], table[context.g_dtype[rows]])
    compared = case.facts.outcome[rows] == Outcome.COMPARED
    found: Bool = ((target[0] ^ golden[0]) | (target[1] ^ golden[1])) & compared
    return found


def _only_order(case: Case, pair: int, items: Int64) -> bool:
    """A call that sorts or picks puts out other indices and, where it puts out values too, equal ones: equal elements stand in
    another order, which no kernel is to blame for."""
    label, direction = case.story.labels[pair].rpartition(".")[2], case.story.direction[pair]
    integers = bool(is_exact_kind(case.context)[items].all())
    return label in ORDERING and direction == Direction.FORWARD and integers


def only_order(case: Case) -> Bool:
    """Nodes at which nothing differs but integers, from the first on that put equal values in another order."""
    story = case.story
    with np.errstate(invalid="ignore"):
        dirty = (case.opinions.score > case.bar) & (case.context.kind == Kind.TENSOR)
    values = np.zeros(len(story), bool)
    values[case.context.pair[dirty & ~is_exact_kind(case.context)]] = True
    for pair in np.flatnonzero(story.wrong & story.leaf).tolist():
        items = case.dirty_items(case.outputs_of(pair))
        if len(items) and _only_order(case, pair, items):
            return ~values & (np.arange(len(story)) >= pair)
    return np.zeros(len(story), bool)


def _reaches_values(case: Case, pair: int) -> bool:
    """Something that is no integer differs later on."""
    rows = (case.context.pair > pair) & (case.context.kind == Kind.TENSOR) & ~is_exact_kind(case.context)
    with np.errstate(invalid="ignore"):
        return bool((case.opinions.score[rows] > case.bar[rows]).any())


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


def _independent(case: Case, suspects: Int64, first: int, noise: Float64, causes: Sequence[int]) -> list[int]:
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
