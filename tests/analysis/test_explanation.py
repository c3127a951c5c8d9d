"""What an explanation says of a call, from its items alone."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dumpscope.analysis.explanation import Largest, Part, explain
from dumpscope.texts import english


def part(place: str, *, rule: str = "E-1", score: float | None = 0.0, **how: Any) -> Part:
    known = {"received": place.startswith("input"), "weight": False, "both": True, "tensor": True, "same_form": True}
    return Part(place=place, rule=rule, score=score, **{**known, **how})


EQUAL = part("input.0")
FAR = part("input.1", rule="T-2", score=209.0)
LOST = part("input.2", rule="N-1", score=math.inf)
OUTPUT = part("output.0", rule="T-2", score=3.0)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([EQUAL, OUTPUT], "The input is equal."),
        ([EQUAL, part("input.1"), OUTPUT], "Both inputs are equal."),
        ([part("input.0", alike=True)], "The statistics of the input are equal."),
        ([FAR, OUTPUT], "Its input differs by 209 times the floor."),
        ([EQUAL, FAR], "1 of 2 inputs differs, input.1, by 209 times the floor."),
        ([EQUAL, FAR, LOST], "2 of 3 inputs differ, input.2 most, by more than any tolerance."),
        ([OUTPUT], ""),
        ([part("input.0", rule="T-2", score=0.0)], ""),
    ],
)
def test_it_says_how_far_apart_what_a_call_reads_is(parts: list[Part], said: str) -> None:
    assert english(explain(parts, differs=True).before) == said


def test_a_call_that_agrees_needs_no_more_than_its_reason() -> None:
    found = explain([EQUAL, part("output.0")], differs=False, inherited=3, first="x")
    assert (found.before, found.after) == ([], [])
    assert (found.compared, found.equal, found.apart) == (1, 1, 0)


def test_what_the_middle_sentence_tells_is_not_said_before_it() -> None:
    assert explain([FAR], differs=True, told_input=True).before == []
    assert english(explain([EQUAL, FAR], differs=True, told_input=True).before) == "1 of 2 inputs differs."


def test_it_names_the_place_the_heirs_and_what_is_ruled_out() -> None:
    weight = part("parameters.weight", received=True, weight=True)
    number = part("input.3", tensor=False, same_form=None)
    largest = Largest(index=(3, 4), target="1.5", golden="1")
    found = explain([EQUAL, number, weight, OUTPUT], differs=True, largest=largest, inherited=2, first="b")
    assert english(found.after) == (
        "Largest at [3, 4]: 1.5 against 1. 2 later calls inherit it, b first. Ruled out, being the same: other arguments,"
        " weights, dtypes and shapes."
    )
    assert english(explain([], differs=True, inherited=1, first="b").after) == "1 later call inherits it: b."
    assert "No later call" in english(explain([], differs=True, inherited=0).after)


def test_nothing_is_ruled_out_of_which_a_part_differs_or_is_missing() -> None:
    other = part("input.1", rule="V-1", score=math.inf, tensor=False, same_form=None)
    lone = part("input.2", rule="X-1", score=None, both=False)
    found = explain([EQUAL, other, lone, part("output.0", same_form=False)], differs=True)
    assert found.same == []
    assert english(found.after) == "1 item is not judged. Only the target has this item."


def test_of_a_call_without_a_partner_its_items_say_nothing() -> None:
    lone = part("input.0", rule="X-1", score=None, both=False)
    found = explain([lone], differs=True, alone=True, inherited=0)
    assert (found.before, found.after, found.left_out) == ([], [], {"X-1": 1})
