"""Item pairs that hold nothing but rounding, so that their large relative difference means nothing: sums that cancel."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.unit.cancellation import weigh_sums
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.gather_columns import name_golden, name_nodes
from dumpscope.analysis.unit.left_over import identify
from dumpscope.analysis.unit.sums.following import Jumps, explained_by, follow_rounding
from dumpscope.analysis.unit.weight_items import holds_weight
from dumpscope.domain.context import Context
from dumpscope.domain.facts import ItemOpinions, Outcome, Verdict
from dumpscope.domain.records import Bool, Float64, Role
from dumpscope.domain.result import MeasuredUnit
from dumpscope.verdict.rules import CODES

_JUDGED: Final = tuple(CODES[rule] for rule in ("T-2", "M-2"))


def excuse_rounding(unit: MeasuredUnit, opinions: ItemOpinions) -> ItemOpinions:
    """The opinions with a warning for each No of a gradient that agrees when it is measured against the terms that it sums."""
    context = unit.context
    bad = (opinions.verdict == Verdict.NO) & np.isin(opinions.rule, _JUDGED) & np.isfinite(opinions.score)
    bad &= (unit.facts.outcome == Outcome.COMPARED) & (context.target >= 0)
    if not bad.any():
        return opinions
    guarded = scores_of_sums(unit, opinions)
    with np.errstate(invalid="ignore"):
        excused = bad & (guarded <= 1)
    if excused.any():
        excused = _carry(context, bad, excused, unit.facts.equal == 0)
    return replace(
        opinions,
        verdict=np.where(excused, int(Verdict.WARNING), opinions.verdict).astype(np.int8),
        rule=np.where(excused, CODES["C-1"], opinions.rule).astype(np.int8),
    )


def scores_of_sums(unit: MeasuredUnit, opinions: ItemOpinions, case: Case | None = None) -> Float64:
    """The scores by item pair, those of sums measured against their terms, and with a case those of what is behind jumps."""
    context = unit.context
    names, labels, kind, direction = name_nodes(unit.target, unit.golden, unit.pairs)
    others = name_golden(unit.golden, unit.pairs)
    sums = weigh_sums(context, unit.facts, unit.target.items, opinions.score, names, labels, kind, direction, others)
    if case is None or not case.crossed.any():
        return sums.guarded
    held = holds_weight(unit.target, context, kind)
    least = explained_by(sums.score, held) if case.history.differs else 1.0
    jumps = Jumps(crossed=case.crossed, held=held, bulk=case.bulk, least=least)
    return follow_rounding(context, sums, names, direction, jumps)


def _carry(context: Context, bad: Bool, excused: Bool, differs: Bool) -> Bool:
    """The excused item pairs with those that hold the same numbers again, and with what an optimizer takes beside them and makes
    of them: it may divide by their size, so what it makes is as far apart as they are."""
    carried: list[int] = []
    numbers = identify(context)
    codes, wrong, apart = numbers.tolist(), bad.tolist(), differs.tolist()
    keys = set(numbers[excused].tolist())
    received = ((context.role == Role.INPUT) | (context.role == Role.KWARG)).tolist()
    optimizer = differs & (context.pair >= context.end)
    first = np.searchsorted(context.pair, np.arange(context.nodes + 1)).tolist()
    for pair in np.unique(context.pair[(bad & ~excused) | optimizer]).tolist():
        if keys.isdisjoint(codes[first[pair] : first[pair + 1]]):
            continue
        rows = range(first[pair], first[pair + 1])
        taken = [row for row in rows if codes[row] in keys]
        if pair >= context.end and any(received[row] for row in taken):
            taken = [row for row in rows if apart[row]]
        carried += [row for row in taken if wrong[row]]
        keys.update([codes[row] for row in taken])
    found: Bool = excused.copy()
    found[carried] = True
    return found
