"""Results that are sums: their scores measured against the terms. Where the terms cancel, only rounding is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dumpscope.analysis.unit.left_over import find_left_over
from dumpscope.analysis.unit.sums.following import Sums, follow_rounding
from dumpscope.analysis.unit.sums.terms import (
    CANCELS,
    are_running_means,
    largest_magnitude,
    score_against_terms,
    terms_of_attention,
    terms_of_parts,
    terms_of_reduced,
)
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts
from dumpscope.domain.records import Float64, Int8, Int64, Items, Role
from dumpscope.verdict.score import NORM


def weigh_sums(
    context: Context,
    facts: Facts,
    items: Items,
    given: Float64,
    names: list[str],
    labels: list[str],
    kind: Int8,
    direction: Int8,
    golden_names: list[str],
) -> Sums:
    """Measure the sums of a unit. items: the target's; given: scores by item pair; the others by node pair.
    golden_names: "" where the golden has no node

    The last answer stays with the context, for who asks about the same scores again.
    """
    known = context.memo.get(Sums)
    if isinstance(known, Sums) and known.facts is facts and np.array_equal(known.given, given, equal_nan=True):
        return known
    flat = np.array([len(shape) <= 1 for shape in items.shapes] + [True])
    flat = flat[np.where(context.target >= 0, items.shape[context.target] if len(items) else -1, -1)]
    mean = are_running_means(items, context.target)
    score = given * find_left_over(context, facts, names, kind, direction)
    norm = largest_magnitude(context, [NORM])
    reduced = terms_of_reduced(context, norm, kind, direction, names)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where((reduced > CANCELS * norm) & (facts.equal == 0), norm / reduced, 1.0)
    measured = score_against_terms(
        context, score, kind, direction, names, code_labels(labels), flat, mean, facts.unequal >= 0
    )
    terms = terms_of_attention(context, norm, [names, golden_names])
    parts = terms_of_parts(context, facts, norm, score, kind, direction)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.fmin(left, norm / parts)
        share = np.fmin(left, np.where(terms > CANCELS * norm, norm / terms, 1.0))
        made = np.isin(context.role, (Role.OUTPUT, Role.GRADIENT)) & np.isfinite(score)
        measured = np.where(made, np.fmin(measured, score * share), measured)
    found = Sums(facts=facts, given=given, score=score, measured=measured, guarded=measured, flat=flat, left=left)
    found = context.memo[Sums] = replace(found, guarded=follow_rounding(context, found, names, direction))
    return found


def code_labels(labels: list[str]) -> Int64:
    """A number for each label, the same for the same label."""
    table: dict[str, int] = {}
    return np.array([table.setdefault(label, len(table)) for label in labels], np.int64)
