"""O-5: calls that one side only made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dumpscope.analysis.rules.evidence import describe_items
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.folded import find_folded
from dumpscope.analysis.unit.no_effect import makes_other_form, only_prepares
from dumpscope.domain.records import Direction
from dumpscope.texts import Phrase, phrase


class Structure(Rule):
    """One side made more calls. Those right before data that differs are found with it, by O-4; others are named where nothing
    else is found."""

    id: ClassVar = "O-5"
    kinds: ClassVar = ("structure",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return []

    def find_last(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return [] if found else _find(case)

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        pairs = (finding.pair, *finding.group)
        target = [pair for pair in pairs if case.pairs.target[pair] >= 0]
        golden = [pair for pair in pairs if case.pairs.target[pair] < 0]
        calls = [_name_calls(case, "target", target)] if target else []
        calls += [_name_calls(case, "golden", golden)] if golden else []
        if finding.items:
            return [*calls, phrase("origin.follows"), *describe_items(case, finding.items, finding.pair)]
        columns = case.columns
        if np.isnan(case.opinions.score).all():
            return calls
        with np.errstate(invalid="ignore"):
            different = bool((np.fmax(columns.out_score, columns.own_in) > columns.threshold).any())
        return [*calls, phrase("origin.some_differ" if different else "origin.all_agree")]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return [phrase("advice.structure")]

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        return 0.4 if finding.idle else limit


def _find(case: Case) -> list[Finding]:
    """The calls that one side made more, in runs of neighbours."""
    columns = case.columns
    forward = columns.direction != Direction.BACKWARD
    extra = columns.extra & columns.leaf & ~makes_other_form(case) & ~only_prepares(case)
    extra &= ~find_folded(case, case.opinions)
    extra &= forward if (extra & forward).any() else ~forward
    if not extra.any() or columns.alone.mean() > 0.5:
        return []
    runs: list[list[int]] = []
    previous = -2
    order = np.flatnonzero(columns.leaf)
    for place, pair in enumerate(order.tolist()):
        if not extra[pair]:
            continue
        if place - previous > 2 or not runs:
            runs.append([])
        runs[-1].append(pair)
        previous = place
    return [Finding(pair=run[0], kind="structure", rule="O-5", group=tuple(run[1:])) for run in runs[:20]]


def _name_calls(case: Case, side: str, pairs: list[int]) -> Phrase:
    """The calls that only this side made, the first five by name."""
    names = [case.columns.names[pair] for pair in pairs]
    listed = phrase("origin.names", names=", ".join(names[:5]))
    if len(names) > 5:
        listed = phrase("origin.names_more", names=", ".join(names[:5]), count=len(names) - 5)
    only = [phrase(f"side.{side}")]
    if len(names) == 1:
        return phrase("origin.structure_one", side=only, names=[listed])
    return phrase("origin.structure", count=len(names), side=only, names=[listed])
