"""A call without a partner is told with the cause that the documented rules give, and from which neighbour."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dumpscope.domain.facts import LEFTOVER_WORDS, unmatched_sentence
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.match import match
from dumpscope.readers import discover, read_rank
from dumpscope.texts import english
from match.small import Step, flow, step

FIRST = step("Functional.linear", "x a", "h")
LAST = step("Functional.linear", "h b", "z")


def causes(target: RankDump, golden: RankDump) -> dict[str, tuple[str | None, str | None]]:
    """Name -> (cause, name of the call it is told from) of everything without a partner."""
    pairs = match(target, golden, Options()).pairs
    names = [
        target.nodes.names[t] if t >= 0 else golden.nodes.names[g]
        for t, g in zip(pairs.target, pairs.golden, strict=True)
    ]
    return {
        name: (LEFTOVER_WORDS[leftover], names[beside] if beside >= 0 else None)
        for name, t, g, leftover, beside in zip(
            names, pairs.target, pairs.golden, pairs.leftover, pairs.beside, strict=True
        )
        if t < 0 or g < 0
    }


def told(folder: Path, target: list[Step], golden: list[Step], **how: bool) -> dict[str, tuple[str | None, str | None]]:
    return causes(flow(folder / "t", target, **how), flow(folder / "g", golden, **how))


def test_a_call_where_nothing_stands_on_the_other_side_is_inserted(tmp_path: Path) -> None:
    found = told(tmp_path, [FIRST, step("Functional.relu", "h", "h1"), LAST], [FIRST, LAST])
    assert found == {"Functional.relu.0.forward": ("inserted", "Functional.linear.0.forward")}


def test_a_call_before_everything_else_stands_beside_nothing(tmp_path: Path) -> None:
    found = told(tmp_path, [FIRST, LAST], [step("Functional.relu", "x", "x1"), FIRST, LAST])
    assert found == {"Functional.relu.0.forward": ("inserted", None)}


def test_another_call_in_the_same_place_replaces(tmp_path: Path) -> None:
    one, other = step("Functional.relu", "h", "y"), step("Functional.elu", "h", "y")
    assert told(tmp_path, [FIRST, one, LAST], [FIRST, other, LAST]) == {
        "Functional.relu.0.forward": ("replaced", "Functional.elu.0.forward"),
        "Functional.elu.0.forward": ("replaced", "Functional.relu.0.forward"),
    }


def test_one_call_beside_several_is_fused_and_they_are_decomposed(tmp_path: Path) -> None:
    one = step("Functional.thing", "p", "q")
    run = [step("Torch.sin", "h", "s"), step("Torch.cos", "s", "y")]
    assert told(tmp_path, [FIRST, one, LAST], [FIRST, *run, LAST]) == {
        "Functional.thing.0.forward": ("fused", "Torch.sin.0.forward"),
        "Torch.sin.0.forward": ("decomposed", "Functional.thing.0.forward"),
        "Torch.cos.0.forward": ("decomposed", "Functional.thing.0.forward"),
    }


def test_a_call_is_told_from_the_first_that_was_dumped_of_those_beside_it(tmp_path: Path) -> None:
    one = step("Functional.thing", "p", "q")
    run = [step("Torch.sin", "h", "s"), step("Torch.cos", "s", "y")]
    target = flow(tmp_path / "t", [FIRST, one, LAST])
    flow(tmp_path / "g", [FIRST, *run, LAST])
    file = next((tmp_path / "g").rglob("dump.json"))
    held = json.loads(file.read_text())
    del held["data"]["Torch.sin.0.forward"]  # construct.json still names it
    file.write_text(json.dumps(held))
    golden = read_rank(discover(tmp_path / "g").ranks[0])
    assert causes(target, golden)["Functional.thing.0.forward"] == ("fused", "Torch.cos.0.forward")


def test_a_backward_call_has_the_cause_of_its_forward(tmp_path: Path) -> None:
    one, other = step("Functional.relu", "h", "y"), step("Functional.elu", "h", "y")
    found = told(tmp_path, [FIRST, one, LAST], [FIRST, other, LAST], backward=True)
    assert {cause for cause, _ in found.values()} == {"replaced"}
    assert "Functional.relu.0.backward" in found


def test_a_call_named_after_a_backend_that_the_other_side_never_makes_is_only_there(tmp_path: Path) -> None:
    found = told(tmp_path, [FIRST, step("NPU.npu_format_cast", "h", "h"), LAST], [FIRST, LAST])
    assert found["NPU.npu_format_cast.0.forward"][0] == "one_backend"


def test_a_call_that_moves_data_and_is_in_one_dump_only_was_left_out_of_the_other(tmp_path: Path) -> None:
    found = told(tmp_path, [FIRST, step("Tensor.view", "h", "h"), LAST], [FIRST, LAST])
    assert found["Tensor.view.0.forward"][0] == "left_out"
    view = step("Tensor.view", "x", "x")
    found = told(tmp_path / "more", [view, FIRST, step("Tensor.view", "h", "h"), LAST], [view, FIRST, LAST])
    assert found["Tensor.view.1.forward"][0] == "inserted", "the other dump does hold such calls"


def test_a_side_without_backward_left_it_out(tmp_path: Path) -> None:
    found = causes(flow(tmp_path / "t", [FIRST, LAST], backward=True), flow(tmp_path / "g", [FIRST, LAST]))
    assert set(found.values()) == {("left_out", "Functional.linear.1.forward")}


def test_modules_alone_leave_the_calls_out(dumps: Path) -> None:
    modules, calls = (read_rank(discover(dumps / name).ranks[0]) for name in ("cfg_L0_stat", "cfg_L1_stat"))
    assert {cause for cause, _ in causes(modules, calls).values()} == {"left_out"}


def test_the_inserted_calls_of_a_real_pair_are_told_so(dumps: Path) -> None:
    target, golden = (read_rank(discover(dumps / name).ranks[0]) for name in ("target_extra_op", "golden"))
    assert {cause for cause, _ in causes(target, golden).values()} == {"inserted"}


@pytest.mark.parametrize("word", [word for word in LEFTOVER_WORDS if word])
def test_every_cause_has_a_sentence_that_names_its_neighbour(word: str) -> None:
    assert "Functional.relu.0" in english(unmatched_sentence(word, "Functional.relu.0"))
    assert "the beginning" in english(unmatched_sentence(word, None))
