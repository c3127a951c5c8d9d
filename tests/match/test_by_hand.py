"""Matches made by hand are the last word, whatever the passes found, and travel as yaml."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.errors import UsageError
from dumpscope.match import match
from dumpscope.match.by_hand import Edit, parse_edits, write_edits
from match.small import Step, flow, step

FIRST, LAST = step("Functional.linear", "x a", "h"), step("Functional.linear", "y b", "z")
ONE, OTHER = step("Functional.relu", "h", "y"), step("Functional.elu", "h", "y")
RUN = [step("Functional.silu", "h", "s"), step("Tensor.__mul__", "s u", "y")]


def join(target: str, golden: str) -> Edit:
    return Edit(join=True, target=target, golden=golden)


def partners(target: RankDump, golden: RankDump, *edits: Edit) -> dict[str, str]:
    """Target name -> name of the golden, and the word, of everything that has a partner."""
    matched = match(target, golden, Options(matches=write_edits(edits)))
    pairs = matched.pairs
    assert sorted(pairs.target[pairs.target >= 0].tolist()) == list(range(len(target.nodes)))
    assert sorted(pairs.golden[pairs.golden >= 0].tolist()) == list(range(len(golden.nodes)))
    return {
        target.nodes.names[t]: golden.nodes.names[g]
        for t, g in zip(pairs.target.tolist(), pairs.golden.tolist(), strict=True)
        if t >= 0 and g >= 0
    }


def sides(folder: Path, target: list[Step], golden: list[Step]) -> tuple[RankDump, RankDump]:
    return flow(folder / "t", target, backward=True), flow(folder / "g", golden, backward=True)


def test_two_calls_joined_by_hand_bring_their_backward(tmp_path: Path) -> None:
    both = sides(tmp_path, [FIRST, ONE, LAST], [FIRST, OTHER, LAST])
    found = partners(*both, join("Functional.relu.0.forward", "Functional.elu.0.forward"))
    assert found["Functional.relu.0.forward"] == "Functional.elu.0.forward"
    assert found["Functional.relu.0.backward"] == "Functional.elu.0.backward"


def test_a_call_parted_by_hand_has_no_partner_and_neither_has_its_backward(tmp_path: Path) -> None:
    both = sides(tmp_path, [FIRST, LAST], [FIRST, LAST])
    found = partners(*both, Edit(join=False, target=None, golden="Functional.linear.0.forward"))
    assert set(found) == {"Functional.linear.1.forward", "Functional.linear.1.backward"}


def test_joining_takes_both_from_their_partners_and_the_last_word_counts(tmp_path: Path) -> None:
    both = sides(tmp_path, [FIRST, LAST], [FIRST, LAST])
    crossed = join("Functional.linear.0.forward", "Functional.linear.1.forward")
    assert partners(*both, crossed) == {
        "Functional.linear.0.forward": "Functional.linear.1.forward",
        "Functional.linear.0.backward": "Functional.linear.1.backward",
    }
    straight = join("Functional.linear.0.forward", "Functional.linear.0.forward")
    assert partners(*both, crossed, straight)["Functional.linear.0.forward"] == "Functional.linear.0.forward"


@pytest.mark.parametrize(
    "edit",
    [
        join("NPU.npu_swiglu.0.forward", "Functional.silu.0.forward"),
        Edit(join=False, target="NPU.npu_swiglu.0.forward", golden=None),
        Edit(join=False, target=None, golden="Functional.silu.0.forward"),
    ],
    ids=["joined with an inner call", "parted", "an inner call parted"],
)
def test_a_fused_call_touched_by_hand_is_undone_whole(tmp_path: Path, edit: Edit) -> None:
    both = sides(tmp_path, [FIRST, step("NPU.npu_swiglu", "h", "y"), LAST], [FIRST, *RUN, LAST])
    assert partners(*both)["NPU.npu_swiglu.0.forward"] == "Tensor.__mul__.0.forward"
    assert partners(*both, edit).get("NPU.npu_swiglu.0.forward") == (edit.golden if edit.join else None)


def test_a_name_that_is_not_there_is_a_problem_and_the_rest_counts(tmp_path: Path) -> None:
    target, golden = sides(tmp_path, [FIRST, ONE, LAST], [FIRST, OTHER, LAST])
    text = write_edits([join("nowhere", "Functional.elu.0.forward"), Edit(join=False, target=FIRST_NAME, golden=None)])
    matched = match(target, golden, Options(matches=text))
    assert ["nowhere" in problem.message for problem in matched.problems] == [True]
    assert int((matched.pairs.golden < 0).sum()) == 4


FIRST_NAME = "Functional.linear.0.forward"
names = st.text(min_size=1, max_size=40)
edits = st.one_of(
    st.builds(join, names, names),
    st.builds(lambda name: Edit(join=False, target=name, golden=None), names),
    st.builds(lambda name: Edit(join=False, target=None, golden=name), names),
)


@example([join("\x85", "a\u2028b: {\x00")])
@given(st.lists(edits, max_size=5))
def test_any_edits_come_back_from_their_yaml(listed: list[Edit]) -> None:
    assert parse_edits(write_edits(listed)) == tuple(listed)


@pytest.mark.parametrize(
    "text",
    ["- a", "a: 1", "matches: {}", "matches: [3]", "matches: [{match: {target: a}}]", "matches: [{unmatch: {target: [a]}}]",
     "matches: [{unmatch: {target: a, golden: b}}]"],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="matches"):
        parse_edits(text)
