"""O-2: a weight differs before any call used it, or is made so by the step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dumpscope.analysis.rules.evidence import count_group, describe_items
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.previous_step import BACKWARD, Blame, blame_for, blame_for_weights, find_badly_updated
from dumpscope.analysis.unit.weight_items import DifferingWeight
from dumpscope.texts import Phrase, phrase


class Weights(Rule):
    """Parameters are loaded, not computed, so they must agree as long as no bit of an earlier step differs. Later, what noise of
    the step before does not explain counts.

    Finding.name: of the weight; detail: Blame, or None for weights that were loaded so
    """

    id: ClassVar = "O-2"
    kinds: ClassVar = ("weight",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        history = case.history
        if not history.differs:
            weights: list[tuple[DifferingWeight, tuple[int, ...]]] = [(weight, ()) for weight in case.weights]
        elif history.before is not None and not history.went_wrong:
            weights = find_badly_updated(case, history.before)
        else:
            return []
        blame = blame_for_weights(case, history.before) if weights and history.before is not None else None
        return [
            Finding(
                pair=weight.pair,
                kind="weight",
                rule=self.id,
                items=weight.items,
                name=weight.name,
                group=group,
                detail=blame_for(case, weight, blame),
            )
            for weight, group in weights
        ]

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        return [
            phrase("origin.weight", weight=finding.name),
            *_describe_blame(finding.detail),
            *describe_items(case, finding.items, finding.pair),
            *count_group(finding),
        ]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        blame = finding.detail
        return [phrase(f"advice.weight_{blame.part}" if isinstance(blame, Blame) else "advice.weight")]


def _describe_blame(blame: object) -> list[Phrase]:
    """Which part of the step before made a weight different; nothing for weights that were loaded so."""
    if not isinstance(blame, Blame):
        return []
    named = {"gradient": blame.gradient} if blame.part == BACKWARD else {}
    return [phrase(f"origin.weight_{blame.part}", before=blame.step, **named)]
