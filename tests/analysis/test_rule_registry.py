"""The causal rules have ids of their own, name the kinds that the contract spells, and are worded by whichever rule they name."""

from __future__ import annotations

from dumpscope.analysis.rules.registry import OURS, RULES, all_rules, rule_of
from dumpscope.domain.facts import KINDS


def test_our_rules_name_all_kinds_and_no_other() -> None:
    assert len(OURS) == len(RULES)
    assert {kind for rule in RULES for kind in rule.kinds} == set(KINDS)


def test_a_finding_is_worded_by_the_rule_it_names() -> None:
    assert [rule_of(rule.id) for rule in RULES] == list(RULES)
    assert list(all_rules())[: len(RULES)] == [rule.id for rule in RULES]
