"""O-7: an error that grows along the forward pass until it matters, with no call at which it jumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.node_columns import Story
from dumpscope.domain.records import Direction, Int64, NodeKind

GROWN: Final = 4.0
"""Score, in floors, from which a forward error is reported although no call stands out. Healthy noisy pairs of four models
reached 0.06 in float32 and 1.5 in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """first, last: calls with the first visible and with the largest error; calls: compared forward calls between them"""

    first: int
    last: int
    calls: int


def find_drift(case: Case) -> list[Finding]:
    """The call at which the error of a noisy pair first passes the floor, if it grows past GROWN floors in the end."""
    drift = measure_drift(case.story)
    if case.story.quiet or drift is None or not case.story.out_score[drift.last] > GROWN:
        return []
    forward = _forward(case.story)
    with np.errstate(invalid="ignore"):
        over = forward[case.story.out_score[forward] > 1.0]
    pair = int(over[0])
    items = case.outputs_of(pair)
    shown = items[np.nan_to_num(case.opinions.score[items]) > 1.0]
    return [Finding(pair=pair, kind="accumulated", rule="O-7", items=tuple(shown.tolist()))]


def measure_drift(story: Story) -> Drift | None:
    """How the error of forward outputs develops; None where none is visible."""
    forward = _forward(story)
    seen = forward[story.out_score[forward] > 0]
    if not len(seen):
        return None
    last = int(seen[np.argmax(story.out_score[seen])])
    first = int(seen[0])
    between = int(((forward >= first) & (forward <= last)).sum())
    return Drift(first=first, last=last, calls=between)


def _forward(story: Story) -> Int64:
    """Forward calls that stand for themselves and whose output was compared, in order. What follows the backward pass is the
    optimizer, which lifts gradients that are pure rounding to any size."""
    backward = np.flatnonzero(story.direction == Direction.BACKWARD)
    last = int(backward[-1]) if len(backward) else len(story)
    kind = (story.kind == NodeKind.API) | (story.kind == NodeKind.MODULE)
    compared = np.isfinite(story.out_score)
    found: Int64 = np.flatnonzero(story.leaf & ~story.alone & kind & compared & (story.direction == Direction.FORWARD))
    return found[found < last]
