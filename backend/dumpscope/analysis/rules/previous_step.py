"""What one step leaves to the next: whether weights that differ were made so by the step before, and by which part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.noise import JUMP, least
from dumpscope.analysis.rules.sources import find_sources
from dumpscope.analysis.rules.weights import WeightFinding, find_weights
from dumpscope.domain.facts import Origin
from dumpscope.domain.records import Direction, NodeKind, Role
from dumpscope.texts import english, phrase
from dumpscope.verdict.score import is_exact_kind

BACKWARD: Final = "backward"
OPTIMIZER: Final = "optimizer"
OUTSIDE: Final = "outside"
"""Who changed weights between two steps: the backward pass, whose gradients differ already; the optimizer, since they agree; what
was not recorded, since nothing tells of gradients or of the step between."""


MANY: Final = 3
"""Weights of a noisy pair that must all be off: an optimizer lifts single gradients that are pure rounding to any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """What is kept of a unit when its step is over.

    noise: largest finite score of the unit; gradients: recorded and compared
    gradient: the first node whose gradient differs, in any bit, after a forward that does not; "" where there is none
    """

    step: int
    noise: float
    gradients: bool
    gradient: str


def end_of(case: Case, step: int) -> StepEnd:
    story = case.story
    worst = np.fmax(story.out_score, story.own_in)
    gradient = story.kind == NodeKind.GRADIENT
    if not gradient.any():  # at API level gradients are what backward calls put out
        gradient = story.leaf & (story.direction == Direction.BACKWARD)
    rows = np.flatnonzero((case.facts.equal == 0) & ~case.received)
    unequal = np.zeros(len(story), bool)
    unequal[case.context.pair[rows]] = True
    late = (story.direction == Direction.BACKWARD) | gradient
    differing = np.flatnonzero(unequal & late)
    if (unequal & ~late).any():
        differing = differing[:0]
    return StepEnd(
        step=step,
        noise=float(worst[np.isfinite(worst)].max(initial=0.0)),
        gradients=bool((gradient & ~np.isnan(story.out_score)).any()),
        gradient=story.names[int(differing[0])] if len(differing) else "",
    )


def blame(case: Case, before: StepEnd, step: int) -> dict[str, Any]:
    """Who changed weights that differ in `step`, where nothing went wrong before: those fields of a finding."""
    if before.step + 1 != step or not before.gradients or _few(case):
        return {"blame": OUTSIDE, "before": before.step}
    if before.gradient:
        return {"blame": BACKWARD, "before": before.step, "gradient": before.gradient}
    return {"blame": OPTIMIZER, "before": before.step}


def _few(case: Case) -> bool:
    """Most weights agree, so that it was no optimizer step that made the others differ."""
    rows = np.flatnonzero((case.context.role == Role.PARAMETER) & (case.facts.equal >= 0))
    return len(rows) >= 2 * MANY and float((case.facts.equal[rows] == 0).mean()) < 0.5


def carried_over(case: Case, before: StepEnd) -> list[Finding]:
    """Findings of a later step, all of whose earlier ones agree but not to the last bit: weights that the noise of the step
    before does not explain, and integers, masks or indices from outside that differ."""
    weights = find_weights(case.target, case.context, case.facts, case.opinions, case.story)
    used = {int(case.context.target[row]) for weight in weights for row in weight.items}
    exact = is_exact_kind(case.context)
    given = [
        source
        for source in find_sources(case, used)
        if source.kind == "input" and source.items and all(exact[item] for item in source.items)
    ]
    return [*_made_by_optimizer(case, weights, before), *given]


def _made_by_optimizer(case: Case, weights: Sequence[WeightFinding], before: StepEnd) -> list[Finding]:
    """One finding for all weights, where most of those that differ are off by more than noise, and the forward shows it."""
    story = case.story
    bar = least(case.context)  # not the story's: what weights explain counts as noise there
    limit = JUMP * max(before.noise, bar)
    forward = story.leaf & (story.direction == Direction.FORWARD)
    with np.errstate(invalid="ignore"):
        shows = bool((forward & (story.out_score > bar)).any())
        off = [one for one in weights if np.nanmax(case.opinions.score[list(one.items)]) > limit]
    if not shows or len(off) < MANY or len(off) <= len(weights) / 2:
        return []
    first, *others = off
    group = tuple(sorted({one.pair for one in others} - {first.pair}))
    return [Finding(pair=first.pair, kind="weight", rule="O-2", items=first.items, weight=first.name, group=group)]


def in_steps(origins: Sequence[Origin], steps: Iterable[int]) -> Iterator[Origin]:
    """The origins, the first of them with a word on the steps before it."""
    for place, origin in enumerate(origins):
        earlier = sum(step < origin.step for step in steps)
        if place or not earlier:
            yield origin
            continue
        said = [*origin.evidence_said, phrase("origin.first_step", step=origin.step, count=earlier)]
        yield replace(origin, evidence=english(said), evidence_said=said)
