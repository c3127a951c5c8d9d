"""Data flow inside one unit: which call made the tensor that another call receives, told by identity of what was stored."""

from __future__ import annotations

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.domain.facts import Outcome
from dumpscope.domain.records import Direction, Kind, State

Fingerprint = tuple[float, ...]


def fingerprint(case: Case, row: int) -> Fingerprint:
    """Identity of the target's tensor: statistics and size, or the hash where there are none. A view keeps it."""
    context, items = case.context, case.target.items
    state = context.t_state[row]
    if not (state != State.ABSENT).any():
        code = int(items.hash[context.target[row]]) if context.target[row] >= 0 else -1
        return (float(code), -1.0) if code >= 0 else (float(row), -2.0)
    numbers = np.where(state == State.FINITE, context.t_stats[row], -state.astype(float)).tolist()
    return (*numbers, float(context.elements[row]))


def untainted(case: Case, first: int, suspects: list[int]) -> list[int]:
    """Those suspects that received nothing made by a wrong call, directly or through others.

    Walks the calls from the first difference on. A call passes its taint to whatever it makes; a received tensor that was
    read and found bit-equal is clean, whoever made it. Equal statistics prove nothing.
    """
    story, context, facts = case.story, case.context, case.facts
    made: dict[Fingerprint, bool] = {}
    by_call: dict[tuple[str, str], bool] = {}
    wanted = set(suspects)
    last = max(suspects)
    clean: list[int] = []
    for pair in range(first, last + 1):
        inputs = [row for row in case.inputs_of(pair).tolist() if context.kind[row] == Kind.TENSOR]
        received = any(made.get(fingerprint(case, row), False) for row in inputs if facts.unequal[row] != 0)
        name = story.names[pair]
        if story.direction[pair] == Direction.BACKWARD:
            received = received or by_call.get((story.labels[pair], name.removesuffix(".backward")), False)
        if pair in wanted and not received:
            clean.append(pair)
        wrong = (
            story.argument[pair] or story.out_score[pair] > story.threshold or story.in_score[pair] > story.threshold
        )
        tainted = received or bool(wrong)
        if story.direction[pair] == Direction.FORWARD:
            by_call[story.labels[pair], name.removesuffix(".forward")] = tainted
        for row in case.outputs_of(pair).tolist():
            if context.kind[row] == Kind.TENSOR and facts.outcome[row] != Outcome.GOLDEN_ONLY:
                made[fingerprint(case, row)] = tainted
    return clean
