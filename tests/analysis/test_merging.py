"""Which finding stays where several rules name one node."""

from __future__ import annotations

from typing import cast

from dumpscope.analysis.rules.merging import MANY, gather_many, keep_one_a_node
from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.unit.case import Case

CASE = cast("Case", None)  # these steps look at findings alone


def found(pair: int, rule: str, kind: str = "computation") -> Finding:
    return Finding(pair=pair, kind=kind, rule=rule)


def test_the_first_of_ours_stays_and_a_weight_stays_beside_it() -> None:
    weight, first, second, other = found(3, "O-2", "weight"), found(3, "O-1"), found(3, "O-6"), found(5, "O-6")
    assert keep_one_a_node(CASE, [weight, first, second, other]) == [weight, first, other]


def test_an_installed_rule_takes_the_place_of_ours() -> None:
    ours, installed = found(3, "O-1"), found(3, "EX-1", "known_defect")
    assert keep_one_a_node(CASE, [ours, installed]) == [installed]


def test_many_weights_are_one_finding() -> None:
    weights = [found(pair, "O-2", "weight") for pair in range(MANY + 1)]
    (one,) = gather_many(CASE, weights)
    assert (one.pair, one.group) == (0, tuple(range(1, MANY + 1)))
    assert gather_many(CASE, weights[:MANY]) == weights[:MANY]
