"""A fused call is compared with the run of calls that does the same: at the boundary, and nothing inside is a difference."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from pipeline.comparing import NOWHERE

from dumpscope.domain.facts import LEFTOVER_WORDS, METHOD_WORDS, VERDICT_WORDS, Class, Outcome
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, item_name
from dumpscope.domain.result import Unit
from dumpscope.errors import UsageError
from dumpscope.match import Matched, match
from dumpscope.match.operators.boundary import Value, pair_values
from dumpscope.match.operators.fusion_rules import load_rules, run_ends
from dumpscope.pipeline.compare.conclusion import conclude
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.pipeline.compare.unit_store import UnitStore
from match.small import Step, flow, step

BEFORE = step("Functional.linear", "x a", "h")
AFTER = step("Functional.linear", "y b", "z")
FUSED = step("NPU.npu_rms_norm", "h w", "y")
RUN = [
    step("Tensor.pow", "h", "h2"),
    step("Tensor.mean", "h2", "m:4x1"),
    step("Tensor.__add__", "m:4x1", "e:4x1"),
    step("Torch.rsqrt", "e:4x1", "r:4x1"),
    step("Tensor.__mul__", "h r:4x1", "n"),
    step("Tensor.__mul__", "n w", "y"),
]


def sides(folder: Path, target: list[Step], golden: list[Step], **how: object) -> tuple[RankDump, RankDump]:
    return flow(folder / "t", target, **how), flow(folder / "g", golden, **how)  # type: ignore[arg-type]


def rows(matched: Matched, target: RankDump, golden: RankDump) -> list[tuple[str, str, str, str | None]]:
    pairs = matched.pairs
    return [
        (
            target.nodes.names[t] if t >= 0 else "",
            golden.nodes.names[g] if g >= 0 else "",
            METHOD_WORDS[method],
            LEFTOVER_WORDS[leftover],
        )
        for t, g, method, leftover in zip(pairs.target, pairs.golden, pairs.method, pairs.leftover, strict=True)
    ]


def boundary(matched: Matched, target: RankDump, golden: RankDump) -> set[tuple[str, str]]:
    items, method = matched.items, matched.pairs.method
    return {
        (item_name(target, t), item_name(golden, g))
        for pair, t, g in zip(items.pair.tolist(), items.target.tolist(), items.golden.tolist(), strict=True)
        if METHOD_WORDS[method[pair]] == "fused" and t >= 0 and g >= 0
    }


def compared(target: RankDump, golden: RankDump) -> Unit:
    unit = compare_rank(target, golden, step=0, rank=0, options=Options())
    shelf = UnitStore([unit])
    conclude(shelf, policy="default", target=NOWHERE, golden=NOWHERE)
    return shelf[0]


def test_a_fused_norm_is_compared_with_the_ends_of_its_decomposed_run(tmp_path: Path) -> None:
    target, golden = sides(tmp_path, [BEFORE, FUSED, AFTER], [BEFORE, *RUN, AFTER])
    matched = match(target, golden, Options())
    found = rows(matched, target, golden)
    assert [one for one in found if one[2] == "fused" and one[0]] == [
        ("NPU.npu_rms_norm.0.forward", "Tensor.__mul__.1.forward", "fused", None)
    ]
    assert [one[3] for one in found if one[2] == "fused" and not one[0]] == ["inside"] * 5
    assert boundary(matched, target, golden) == {
        ("NPU.npu_rms_norm.0.forward.input.0", "Tensor.pow.0.forward.input.0"),
        ("NPU.npu_rms_norm.0.forward.input.1", "Tensor.__mul__.1.forward.input.1"),
        ("NPU.npu_rms_norm.0.forward.output.0", "Tensor.__mul__.1.forward.output.0"),
    }


@pytest.mark.parametrize("turned", [False, True], ids=["fused target", "fused golden"])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward too"])
def test_what_lies_inside_a_fused_call_is_never_no_nor_structural(tmp_path: Path, turned: bool, backward: bool) -> None:
    one, other = [BEFORE, FUSED, AFTER], [BEFORE, *RUN, AFTER]
    target, golden = sides(tmp_path, *((other, one) if turned else (one, other)), backward=backward)
    unit = compared(target, golden)
    assert {VERDICT_WORDS[code] for code in unit.item_opinions.verdict} == {"yes", "n/a"}
    outcomes = {Outcome(code) for code in unit.facts.outcome}
    assert Outcome.INSIDE in outcomes
    assert not outcomes & {Outcome.TARGET_ONLY, Outcome.GOLDEN_ONLY}
    assert Class.STRUCTURAL not in {Class(code) for code in unit.node_opinions.cls}


def test_a_fault_in_the_fused_call_is_its_own(tmp_path: Path) -> None:
    wrong = [BEFORE, step("NPU.npu_rms_norm", "h w", "bad"), step("Functional.linear", "bad b", "worse")]
    unit = compared(*sides(tmp_path, wrong, [BEFORE, *RUN, AFTER]))
    (origin,) = np.flatnonzero(unit.node_opinions.cls == Class.ORIGIN)
    assert unit.target.nodes.names[unit.pairs.target[origin]] == "NPU.npu_rms_norm.0.forward"


def test_the_backward_of_a_fused_call_is_compared_where_a_gradient_has_one_owner(tmp_path: Path) -> None:
    target, golden = sides(tmp_path, [BEFORE, FUSED, AFTER], [BEFORE, *RUN, AFTER], backward=True)
    found = boundary(match(target, golden, Options()), target, golden)
    assert {pair for pair in found if "backward" in pair[0]} == {
        ("NPU.npu_rms_norm.0.backward.input.0", "Tensor.__mul__.1.backward.input.0"),
        ("NPU.npu_rms_norm.0.backward.output.1", "Tensor.__mul__.1.backward.output.1"),
    }, "the gradient of h is a sum over two calls of the run"


ATTENTION = (
    [step("Functional.scaled_dot_product_attention", "q k v", "y")],
    [
        step("Tensor.transpose", "k", "k"),
        step("Torch.matmul", "q k", "s"),
        step("Tensor.__truediv__", "s", "s1"),
        step("Functional.softmax", "s1", "p"),
        step("Functional.dropout", "p", "p1"),
        step("Torch.matmul", "p1 v", "y"),
    ],
)
GELU = (
    [step("Functional.gelu", "h", "y")],
    [
        step("Tensor.__mul__", "h", "h1"),
        step("Tensor.__truediv__", "h", "h2"),
        step("Torch.erf", "h2", "h3"),
        step("Tensor.__radd__", "h3", "h4"),
        step("Tensor.__mul__", "h1 h4", "y"),
    ],
)
SWIGLU = (
    [step("NPU.npu_swiglu", "h:4x8", "y")],
    [
        step("Tensor.chunk", "h:4x8", "h1"),
        step("Functional.silu", "h1", "h2"),
        step("Tensor.__mul__", "h2 h3", "y"),
    ],
)
LINEAR = [step("Functional.linear", "h w b", "y")], [step("Torch.matmul", "h w", "n"), step("Tensor.add", "n b", "y")]
ADDMM = [step("Torch.addmm", "b h w", "y")], [step("Torch.mm", "h w", "n"), step("Tensor.__add__", "n b", "y")]
LOSS = (
    [step("Functional.cross_entropy", "h t", "y:")],
    [step("Functional.log_softmax", "h", "n"), step("Functional.nll_loss", "n t", "y:")],
)


@pytest.mark.parametrize(
    "pair",
    [ATTENTION, GELU, SWIGLU, LINEAR, ADDMM, LOSS],
    ids=["attention", "gelu", "swiglu", "linear", "addmm", "loss"],
)
def test_the_built_in_rules_know_the_usual_fusions(tmp_path: Path, pair: tuple[list[Step], list[Step]]) -> None:
    fused, run = pair
    first, last = step("Torch.exp", "x", "h"), step("Torch.exp", "y", "z")
    target, golden = sides(tmp_path, [first, *fused, last], [first, *run, last])
    found = rows(match(target, golden, Options()), target, golden)
    assert {one[2] for one in found} == {"exact", "fused"}
    assert len([one for one in found if one[0]]) == 3


def test_a_module_that_only_holds_the_run_is_inside_as_well(tmp_path: Path) -> None:
    held = [step(one.api, " ".join(one.takes), one.makes, "norm.RMSNorm") for one in RUN]
    target, golden = sides(tmp_path, [BEFORE, FUSED, AFTER], [BEFORE, *held, AFTER])
    found = {one[1]: one for one in rows(match(target, golden, Options()), target, golden)}
    assert found["Module.norm.RMSNorm.forward.0"][2:] == ("fused", "inside")


def test_modules_of_one_name_and_two_classes_are_one_module(tmp_path: Path) -> None:
    def held(steps: list[Step], module: str) -> list[Step]:
        return [step(one.api, " ".join(one.takes), one.makes, module) for one in steps]

    target, golden = sides(
        tmp_path, [BEFORE, *held([FUSED], "norm.FusedNorm"), AFTER], [BEFORE, *held(RUN, "norm.RMSNorm"), AFTER]
    )
    found = rows(match(target, golden, Options()), target, golden)
    assert ("Module.norm.FusedNorm.forward.0", "Module.norm.RMSNorm.forward.0", "renamed", None) in found
    assert {one[2] for one in found} == {"exact", "fused", "renamed"}


UNKNOWN = step("NPU.npu_new_thing", "h", "y")
UNKNOWN_RUN = [step("Torch.sin", "h", "s"), step("Torch.cos", "s", "y")]


@pytest.mark.parametrize("summary", ["statistics", "md5"])
def test_a_boundary_that_agrees_proposes_a_fusion_no_rule_knows(tmp_path: Path, summary: str) -> None:
    target, golden = sides(tmp_path, [BEFORE, UNKNOWN, AFTER], [BEFORE, *UNKNOWN_RUN, AFTER], summary=summary)
    matched = match(target, golden, Options())
    (fused,) = np.flatnonzero((matched.pairs.method == METHOD_WORDS.index("fused")) & (matched.pairs.target >= 0))
    assert matched.pairs.confidence[fused] == 0.6


def test_nothing_is_proposed_without_numbers_that_agree(tmp_path: Path) -> None:
    one, other = [BEFORE, UNKNOWN, AFTER], [BEFORE, *UNKNOWN_RUN, AFTER]
    target, golden = sides(tmp_path, one, other, summary="structure")
    found = rows(match(target, golden, Options()), target, golden)
    left = sorted(str(one[3]) for one in found if one[2] == "none")
    assert left == ["decomposed", "decomposed", "fused"]


def test_a_run_that_makes_another_number_of_elements_is_not_the_fused_call(tmp_path: Path) -> None:
    other = [step("Functional.silu", "h", "s"), step("Tensor.__mul__", "s u", "y:2x2")]
    target, golden = sides(tmp_path, [BEFORE, step("NPU.npu_swiglu", "h", "y"), AFTER], [BEFORE, *other, AFTER])
    assert "fused" not in {one[2] for one in rows(match(target, golden, Options()), target, golden)}


def test_a_users_rule_goes_before_the_built_in_ones(tmp_path: Path) -> None:
    text = "ours: {fused: [npu_new_thing], runs: [[sin, cos]]}"
    target, golden = sides(tmp_path, [BEFORE, UNKNOWN, AFTER], [BEFORE, *UNKNOWN_RUN, AFTER], summary="structure")
    matched = match(target, golden, Options(fusion=text))
    (fused,) = np.flatnonzero((matched.pairs.method == METHOD_WORDS.index("fused")) & (matched.pairs.target >= 0))
    assert matched.pairs.confidence[fused] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "not valid yaml"),
        ("a: {fused: [x]}", "'a'"),
        ("a: {fused: [x], runs: []}", "runs"),
        ("a: {fused: [x], runs: [[]]}", "a run"),
        ("a: {fused: x, runs: [[y]]}", "fused"),
        ("a: {fused: [x], runs: [['(y)']]}", "required call"),
        ("a: {fused: [x], runs: [[3]]}", "a run"),
        ("- a", "yaml mapping"),
    ],
)
def test_a_bad_fusion_file_is_told_by_rule(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_rules(text)


def test_a_run_ends_wherever_its_optional_calls_allow() -> None:
    (rule, *_) = load_rules("a: {fused: [x], runs: [[mul, (add|sub), mul, (add)]]}")
    words = ["mul", "mul", "add", "mul", "add"]
    assert run_ends(rule.runs[0], words, 0) == {2, 3}
    assert run_ends(rule.runs[0], words, 1) == {4, 5}
    assert run_ends(rule.runs[0], words, 2) == set()


apis = st.sampled_from(
    ["Functional.silu", "Tensor.__mul__", "NPU.npu_swiglu", "Tensor.add", "Torch.matmul", "Functional.linear"]
)
tensors = st.sampled_from(["h", "u", "w", "y", "y:2x8"])
flows = st.lists(st.builds(Step, apis, st.lists(tensors, min_size=1, max_size=2).map(tuple), tensors), max_size=8)


@settings(max_examples=80, deadline=None)
@given(flows, flows, st.booleans())
@example([FUSED], RUN, True)
def test_every_item_stands_in_the_result_once_and_roles_can_be_exchanged(
    one: list[Step], other: list[Step], backward: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target, golden = sides(Path(folder), one, other, backward=backward)
    straight, turned = match(target, golden, Options()), match(golden, target, Options())
    for items, dump in ((straight.items.target, target), (straight.items.golden, golden)):
        assert sorted(items[items >= 0].tolist()) == list(range(len(dump.items)))
    assert (np.diff(straight.items.pair) >= 0).all()
    found, back = straight.items, turned.items
    assert set(zip(found.target, found.golden, strict=True)) == set(zip(back.golden, back.target, strict=True))
    assert {(t, g, m, x) for t, g, m, x, _ in table(straight)} == {(t, g, m, x) for g, t, m, x, _ in table(turned)}
    alone = (straight.pairs.target < 0) | (straight.pairs.golden < 0)
    assert ((straight.pairs.leftover > 0) == alone).all()


def table(matched: Matched) -> list[tuple[int, int, int, float, int]]:
    pairs = matched.pairs
    return list(
        zip(
            *(x.tolist() for x in (pairs.target, pairs.golden, pairs.method, pairs.confidence, pairs.leftover)),
            strict=True,
        )
    )


def weight(item: int, *numbers: float) -> Value:
    return Value(item, 0, True, (16,), 16, numbers, (16, numbers))


@pytest.mark.parametrize("noise", [0.0, 1e-5])
def test_weights_that_are_close_to_each_other_meet_the_nearest(noise: float) -> None:
    """After a step of Adam the biases of a model, or the weights of its norms, are within 2 % of each other."""
    numbers = [(1.001, 0.9992), (1.001, 0.99974), (1.0009, 0.9992), (1.001, 1.0003)]
    region = [weight(item, *one) for item, one in enumerate(numbers)]
    run = [weight(10 + item, *(x * (1 + noise) for x in numbers[item])) for item in (3, 1, 0, 2)]
    pairs, agree = pair_values(region, run)
    assert pairs == [(item, 10 + item) for item in range(4)]
    assert agree
