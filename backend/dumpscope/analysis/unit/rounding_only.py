"""Item pairs that hold nothing but rounding, so that their large relative difference means nothing: sums that cancel."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.unit.cancellation import score_against_terms
from dumpscope.analysis.unit.gather_columns import code_labels, name_nodes
from dumpscope.domain.facts import ItemOpinions, Outcome, Verdict
from dumpscope.domain.result import MeasuredUnit
from dumpscope.verdict.rules import CODES

_JUDGED: Final = tuple(CODES[rule] for rule in ("T-2", "M-2"))


def excuse_rounding(unit: MeasuredUnit, opinions: ItemOpinions) -> ItemOpinions:
    """The opinions with a warning for each No of a gradient that agrees when it is measured against the terms that it sums."""
    context, items = unit.context, unit.target.items
    bad = (opinions.verdict == Verdict.NO) & np.isin(opinions.rule, _JUDGED) & np.isfinite(opinions.score)
    bad &= (unit.facts.outcome == Outcome.COMPARED) & (context.target >= 0)
    if not bad.any():
        return opinions
    _, labels, kind, direction = name_nodes(unit.target, unit.golden, unit.pairs)
    flat = np.array([len(shape) <= 1 for shape in items.shapes] + [True])
    flat = flat[np.where(context.target >= 0, items.shape[context.target], -1)]
    guarded = score_against_terms(context, opinions.score, kind, direction, code_labels(labels), flat)
    with np.errstate(invalid="ignore"):
        excused = bad & (guarded <= 1)
    return replace(
        opinions,
        verdict=np.where(excused, int(Verdict.WARNING), opinions.verdict).astype(np.int8),
        rule=np.where(excused, CODES["C-1"], opinions.rule).astype(np.int8),
    )
