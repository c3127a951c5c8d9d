"""Weights that the step before made different: which they are, and which part of that step did it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case, StepEnd
from dumpscope.analysis.unit.noise import JUMP, least_threshold
from dumpscope.analysis.unit.weight_items import DifferingWeight, is_running, name_parameter
from dumpscope.domain.records import Direction, NodeKind, Role
from dumpscope.verdict.rules import CODES

BACKWARD: Final = "backward"
OPTIMIZER: Final = "optimizer"
OUTSIDE: Final = "outside"
RUNNING: Final = "running"
"""What made weights different between two steps: the backward pass, if its gradients differ; the optimizer, if they agree;
something outside the record, if no gradients or not all steps were recorded; running statistics are written by their own norm."""
MANY: Final = 3
"""Weights of a noisy pair that must all be off, and a matrix among them: an optimizer lifts single gradients that are pure
rounding, and single elements of a bias's, to any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Who made a weight different. part: BACKWARD, OPTIMIZER, OUTSIDE or RUNNING; step: the one before, which did it

    gradient: its first node whose gradient differs, where it is the backward pass
    """

    part: str
    step: int
    gradient: str = ""


def summarize_step(case: Case) -> StepEnd:
    """What the next step needs to know of this one."""
    columns = case.columns
    worst = np.fmax(columns.out_score, columns.own_in)
    gradient = columns.kind == NodeKind.GRADIENT
    if not gradient.any():  # at API level gradients are what backward calls put out
        gradient = columns.leaf & (columns.direction == Direction.BACKWARD)
    rows = np.flatnonzero((case.facts.equal == 0) & ~case.received)
    unequal = np.zeros(len(columns), bool)
    unequal[case.context.pair[rows]] = True
    late = (columns.direction == Direction.BACKWARD) | gradient
    differing = np.flatnonzero(unequal & late)
    if (unequal & ~late).any():
        differing = differing[:0]
    lifted = (case.context.role == Role.GRADIENT) & (case.opinions.rule == CODES["C-1"]) & (case.context.target >= 0)
    return StepEnd(
        step=case.history.step,
        lifted=frozenset(
            name_parameter(case.target, case.context, columns, row) for row in np.flatnonzero(lifted).tolist()
        ),
        noise=float(worst[np.isfinite(worst)].max(initial=0.0)),
        gradients=bool((gradient & ~np.isnan(columns.out_score)).any()),
        gradient=columns.names[int(differing[0])] if len(differing) else "",
        bulk=case.bulk,
    )


def blame_for_weights(case: Case, before: StepEnd) -> Blame:
    """Who made weights of this step different, where nothing went wrong before."""
    if before.step + 1 != case.history.step or not before.gradients or _mostly_agree(case):
        return Blame(part=OUTSIDE, step=before.step)
    if before.gradient:
        return Blame(part=BACKWARD, step=before.step, gradient=before.gradient)
    return Blame(part=OPTIMIZER, step=before.step)


def blame_for(case: Case, weight: DifferingWeight, blame: Blame | None) -> Blame | None:
    """Who made this one different, where `blame` holds for most."""
    if blame is None or not is_running(case.target, case.context, weight.items[0]):
        return blame
    return Blame(part=RUNNING, step=blame.step)


def _mostly_agree(case: Case) -> bool:
    """Most weights agree, so that it was no optimizer step that made the others differ."""
    rows = np.flatnonzero((case.context.role == Role.PARAMETER) & (case.facts.equal >= 0))
    return len(rows) >= 2 * MANY and float((case.facts.equal[rows] == 0).mean()) < 0.5


def find_badly_updated(case: Case, before: StepEnd) -> list[tuple[DifferingWeight, tuple[int, ...]]]:
    """The first weight, and the node pairs of the others, where most of those that differ are off by more than the noise of the
    step before, and the forward shows it. An optimizer makes steps of any size of gradients that are pure rounding."""
    columns = case.columns
    least = least_threshold(case.context)  # not the unit's own: what weights explain counts as noise there
    coarser = max(before.bulk / case.bulk, 1.0) if case.bulk else 1.0  # float32 behind a step in 16 bits
    limit = JUMP * max(before.noise, least) * coarser
    forward = columns.leaf & (columns.direction == Direction.FORWARD)
    with np.errstate(invalid="ignore"):
        shows = bool((forward & (columns.out_score > least)).any())
        weights = [one for one in case.weights if one.name not in before.lifted]
        off = [one for one in weights if np.nanmax(case.opinions.score[list(one.items)]) > limit]
    shapes, shape = case.target.items.shapes, case.target.items.shape
    matrix = any(len(shapes[shape[case.context.target[one.items[0]]]]) > 1 for one in off)
    if not shows or not matrix or len(off) < MANY or len(off) <= len(weights) / 2:
        return []
    first, *others = off
    return [(first, tuple(sorted({one.pair for one in others} - {first.pair})))]
