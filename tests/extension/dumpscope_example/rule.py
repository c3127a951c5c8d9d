"""A causal rule: a call that goes wrong and that a list of known defects names."""

from __future__ import annotations

from collections.abc import Sequence

from dumpscope.analysis.rules.evidence import describe_items
from dumpscope.analysis.rules.rule import Finding, Rule, own_sentence
from dumpscope.analysis.unit.case import Case
from dumpscope.texts import Phrase

DEFECTS = {"Functional.softmax": "K-17"}
"""Number of the known defect, by API."""


class KnownDefect(Rule):
    id = "EX-1"
    kinds = ("known_defect",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return [
            Finding(pair=one.pair, kind="known_defect", rule=self.id, items=one.items, name=DEFECTS[api])
            for one in found
            if one.rule == "O-1" and (api := case.columns.labels[one.pair]) in DEFECTS
        ]

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        number = finding.name
        why = own_sentence(f"Known defect {number} of this kernel.", f"该 kernel 的已知缺陷 {number}。")
        return [why, *describe_items(case, finding.items)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return [own_sentence("Install the driver that mends it.", "请安装修复该缺陷的驱动。")]
