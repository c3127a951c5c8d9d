"""Names of ptdbg dumps, with `_` or `.`, come apart and back, and name the same calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from dumpscope_format.naming import (
    API_PREFIXES,
    NodeName,
    build,
    canonical,
    item_name,
    parse,
    split_ptdbg,
    split_ptdbg_item,
    split_ptdbg_stack,
    twin,
)

operation = st.sampled_from(
    [
        "linear",
        "add_",
        "__add__",
        "__getitem__",
        "_softmax",
        "convolution.default",
        "all_reduce",
        "x_0_forward",
        "0",
        "forward",
    ]
) | st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8)
index = st.integers(0, 999_999_999)
direction = st.sampled_from(["forward", "backward"])
indices = st.lists(st.integers(0, 99), max_size=4).map(lambda numbers: ".".join(map(str, numbers)))
mark = st.sampled_from(["_", "."])


def node(kind: str, operation: str, number: int, way: str, mark: str) -> str:
    return f"{kind}{mark}{operation}{mark}{number}{mark}{way}"


@given(st.sampled_from(API_PREFIXES), operation, index, direction, mark)
def test_a_call_has_the_same_parts_with_either_separator(kind: str, op: str, number: int, way: str, mark: str) -> None:
    name = node(kind, op, number, way, mark)
    parts = parse(name)
    assert (parts.kind, parts.label, parts.index, parts.direction) == ("api", f"{kind}.{op}", number, way)
    assert build(parts) == name
    assert canonical(name) == f"{kind}.{op}.{number}.{way}"
    assert split_ptdbg(name)[:4] == ("api", way, f"{kind}.{op}", number)
    other = twin(name)
    assert other is not None
    assert twin(other) == name != other


@given(st.sampled_from(API_PREFIXES), operation, index, direction, mark, st.sampled_from(["input", "output"]), indices)
def test_an_item_name_comes_apart_at_the_right_place(
    kind: str, op: str, number: int, way: str, mark: str, category: str, path: str
) -> None:
    name = node(kind, op, number, way, mark)
    item = item_name(name, category, path)
    assert item == f"{name}{mark}{category}{'.' if path else ''}{path}"
    assert split_ptdbg_item(item) == (name, category, path)
    assert split_ptdbg_stack(f"{name}{mark}stack_info") == name


@given(st.sampled_from(API_PREFIXES), operation, index, direction, mark, st.integers(2, 999))
def test_a_repeated_name_keeps_its_number(kind: str, op: str, number: int, way: str, mark: str, times: int) -> None:
    name = f"{node(kind, op, number, way, mark)}#{times}"
    parts = parse(name)
    assert parts.occurrence == times
    assert build(parts) == name
    assert parse(build(replace(parts, occurrence=1))).occurrence == 1
    assert canonical(name).endswith(f"#{times}")


@given(st.text(max_size=40))
def test_any_text_is_taken_without_failing(text: str) -> None:
    assert build(parse(text)) == text
    split_ptdbg(text)
    split_ptdbg_item(text)
    assert isinstance(canonical(text), str)


@pytest.mark.parametrize(
    ("name", "label", "number", "same"),
    [
        ("Module_Linear_0_forward", "Linear", 0, "Module.Linear.forward.0"),
        ("layers.0.attn.Attn.2.forward", "layers.0.attn.Attn", 2, "Module.layers.0.attn.Attn.forward.2"),
        ("loss_fn_3_backward", "loss_fn", 3, "Module.loss_fn.backward.3"),
        ("loss.3.forward", "loss", 3, "Module.loss.forward.3"),
        ("fc.Linear.abnormal.backward", "fc.Linear", -1, "Module.fc.Linear.backward.-1"),
    ],
)
def test_what_is_of_no_category_of_calls_is_a_module(name: str, label: str, number: int, same: str) -> None:
    assert split_ptdbg(name)[0] == "module"
    assert split_ptdbg(name)[2:4] == (label, number)
    assert canonical(name) == same


def test_an_argument_met_before_the_call_is_one_of_the_forward_call() -> None:
    assert split_ptdbg_item("Distributed_send_0_pre_forward_input.0") == ("Distributed_send_0_forward", "input", "0")
    assert split_ptdbg_item("Distributed.send.0.pre_forward.input.0") == ("Distributed.send.0.forward", "input", "0")


def test_a_name_of_no_form_is_left_alone() -> None:
    assert split_ptdbg("optimizer") == ("other", "none", "optimizer", -1, "")
    assert canonical("optimizer") == "optimizer"
    assert parse("loss_fn_3_backward") == NodeName(kind="other", direction="none", label="loss_fn_3_backward")
