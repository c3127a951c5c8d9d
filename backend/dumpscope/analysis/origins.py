"""The causes of one unit's divergence: the rules of docs/verdicts.md find them, and each is worded as an origin.

A node is an origin when something went wrong *at* it: clean inputs and a different output, a weight or an argument that
differs, data that no dumped operator produced, or a call that only one side made. A node that merely received bad
data is never one.
"""

from __future__ import annotations

from typing import Final

from dumpscope.analysis.passes import find_pass
from dumpscope.analysis.rules.merging import AFTER_FIND, AFTER_LAST, apply
from dumpscope.analysis.rules.registry import all_rules, rule_of
from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.unit.calls import module_of, stack_of
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import Reach
from dumpscope.domain.facts import GROUP, Origin
from dumpscope.texts import Phrase, english, phrase

PATH: Final = 40
"""Nodes of a path that are named: the first and the last of a longer one."""


def find_origins(case: Case) -> list[Finding]:
    """The causes in this unit, in the order of their nodes."""
    found: list[Finding] = []
    for rule in all_rules().values():
        found += rule.find(case, tuple(found))
    found = apply(AFTER_FIND, case, found)
    for rule in all_rules().values():
        found += rule.find_last(case, tuple(found))
    found = apply(AFTER_LAST, case, found)
    return sorted(found, key=lambda finding: finding.pair)


def describe_finding(case: Case, finding: Finding, reach: Reach, *, rank: int, mode: str) -> Origin:
    """A finding as the answer shows it. mode: "tensor", "statistics", "md5" or "structure" """
    rule, columns = rule_of(finding.rule), case.columns
    evidence, advice = rule.evidence(case, finding), rule.advice(case, finding)
    evidence = [*evidence, *_describe_pass(case, finding)]
    confidence = rule.confidence(case, finding, _most_confidence(case, finding, mode))
    return Origin(
        step=case.history.step,
        rank=rank,
        node=columns.names[finding.pair],
        kind=finding.kind,
        confidence=round(confidence, 2),
        evidence=english(evidence),
        advice=english(advice),
        stack=stack_of(case.target, int(case.pairs.target[finding.pair]))
        or stack_of(case.golden, int(case.pairs.golden[finding.pair])),
        explains=reach.nodes,
        path=[columns.names[pair] for pair in _shorten(reach.path)],
        module=module_of(case.target, int(case.pairs.target[finding.pair]))
        or module_of(case.golden, int(case.pairs.golden[finding.pair])),
        pair=finding.pair,
        evidence_said=evidence,
        advice_said=advice,
        group=list(finding.group[:GROUP]),
    )


def _describe_pass(case: Case, finding: Finding) -> list[Phrase]:
    """In which pass of a model the worst of it lies, where passes were put together."""
    context = case.context
    for row in finding.items:
        index = case.facts.details[row].worst_index if row in case.facts.details else None
        sides = {"target": (case.target, context.target), "golden": (case.golden, context.golden)}
        found = {side: find_pass(dump, int(items[row]), index) for side, (dump, items) in sides.items()}
        told = [
            phrase("origin.in_pass", side=[phrase(f"side.{side}")], number=one.number, count=one.count, node=one.node)
            for side, one in found.items()
            if one is not None
        ]
        if told:
            return told
    return []


def _shorten(path: list[int]) -> list[int]:
    return path if len(path) <= PATH else path[: PATH // 2] + path[-PATH // 2 :]


def _most_confidence(case: Case, finding: Finding, mode: str) -> float:
    """What the stored data and the match of the node allow.

    Where most calls have no partner that they should have, what is first among the few that met need not be first at all."""
    confidence = 0.95 if mode == "tensor" else 0.85
    if case.columns.extra.mean() > 0.5:
        confidence *= 0.5
    if not case.columns.alone[finding.pair]:
        confidence *= float(case.pairs.confidence[finding.pair])
    return confidence
