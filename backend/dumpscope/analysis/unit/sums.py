"""The scores of a unit with those of sums measured against what they sum: of gradients of which little is left, of terms that
cancel, and of what is made of such sums. Judging asks for them, and so does the search for causes: of the same scores, as a rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dumpscope.analysis.unit.cancellation import are_running_means, follow_rounding, score_against_terms
from dumpscope.analysis.unit.left_over import find_left_over
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts
from dumpscope.domain.records import Float64, Int8, Int64, Items


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Scores by item pair. given: those asked about; score: of gradients against the whole of which they are left

    measured: of sums against their terms; guarded: also of what is made of such sums
    """

    facts: Facts
    given: Float64
    score: Float64
    measured: Float64
    guarded: Float64


def weigh_sums(
    context: Context,
    facts: Facts,
    items: Items,
    given: Float64,
    names: list[str],
    labels: list[str],
    kind: Int8,
    direction: Int8,
) -> Sums:
    """Measure the sums of a unit. items: the target's; given: scores by item pair; the others by node pair

    The last answer stays with the context, for who asks about the same scores again.
    """
    known = context.memo.get(Sums)
    if isinstance(known, Sums) and known.facts is facts and np.array_equal(known.given, given, equal_nan=True):
        return known
    flat = np.array([len(shape) <= 1 for shape in items.shapes] + [True])
    flat = flat[np.where(context.target >= 0, items.shape[context.target] if len(items) else -1, -1)]
    mean = are_running_means(items, context.target)
    score = given * find_left_over(context, facts, names, kind, direction)
    measured = score_against_terms(context, score, kind, direction, names, code_labels(labels), flat, mean)
    guarded = follow_rounding(context, score, measured, names, direction, flat)
    found = Sums(facts=facts, given=given, score=score, measured=measured, guarded=guarded)
    context.memo[Sums] = found
    return found


def code_labels(labels: list[str]) -> Int64:
    """A number for each label, the same for the same label."""
    table: dict[str, int] = {}
    return np.array([table.setdefault(label, len(table)) for label in labels], np.int64)
