"""Names survive the way apart and back, whatever modules and prefixes are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from dumpscope_format.naming import (
    API_PREFIXES,
    NodeName,
    api_name,
    build,
    debug_name,
    item_name,
    module_name,
    parse,
    split_item,
    twin,
)

segment = st.sampled_from(
    [
        "forward",
        "backward",
        "output",
        "input",
        "kwargs",
        "parameters_grad",
        "debug",
        "0",
        "12",
        "backward_lstm",
        "Module",
    ]
) | st.text(st.characters(codec="utf-8", exclude_characters=".", exclude_categories=["Cc"]), min_size=1, max_size=8)
path = st.lists(segment, min_size=1, max_size=5).map(".".join)
index = st.integers(0, 999_999_999)
direction = st.sampled_from(["forward", "backward"])


@pytest.mark.parametrize(
    ("name", "kind", "way", "label", "number"),
    [
        ("Functional.softmax.1.forward", "api", "forward", "Functional.softmax", 1),
        ("my.company.ops.fused.7.backward", "api", "backward", "my.company.ops.fused", 7),
        ("Functional.forward.0.forward", "api", "forward", "Functional.forward", 0),
        ("Module.0.layers.1.attn.Attn.forward.3", "module", "forward", "0.layers.1.attn.Attn", 3),
        ("Module.forward.forward.0.Linear.forward.0", "module", "forward", "forward.forward.0.Linear", 0),
        ("Module.output.BertOutput.backward.2", "module", "backward", "output.BertOutput", 2),
        ("Module.backward_lstm.LSTM.forward.0", "module", "forward", "backward_lstm.LSTM", 0),
        ("Module.parameters_grad.Linear.forward.1", "module", "forward", "parameters_grad.Linear", 1),
        ("Cell.net.dense.Dense.forward.0", "module", "forward", "net.dense.Dense", 0),
        ("Module.fc.Linear.parameters_grad", "gradient", "backward", "fc.Linear", -1),
        ("Module.fc.Linear.parameters_grad.4", "gradient", "backward", "fc.Linear", 4),
        ("h.0.debug", "debug", "none", "h", 0),
        ("dotted.na-me_grad.2.debug", "debug", "none", "dotted.na-me_grad", 2),
    ],
)
def test_a_name_of_known_form_is_taken_apart(name: str, kind: str, way: str, label: str, number: int) -> None:
    parts = parse(name)
    assert (parts.kind, parts.direction, parts.label, parts.index) == (kind, way, label, number)
    assert build(parts) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "forward", "0.forward", ".0.forward", "Functional.0.forward", "x.forward.0", "Functional.softmax.01.forward",
     "Functional.softmax.9999999999.forward", "Module.forward.0", "Module.a.B.0.forward", "Functional.softmax.-1.forward",
     "Functional.softmax.٣.forward", "optimizer", "Module.fc.Linear.parameters_grad.x"],
)  # fmt: skip
def test_a_name_of_no_known_form_is_kept_whole(name: str) -> None:
    assert parse(name) == NodeName(kind="other", direction="none", label=name)


@given(st.text(max_size=40) | path)
def test_any_text_comes_back_as_it_was(name: str) -> None:
    assert build(parse(name)) == name


custom_prefix = path.filter(lambda text: text.split(".")[0] not in ("Module", "Cell"))


@given(st.sampled_from(API_PREFIXES) | custom_prefix, segment, index, direction)
def test_an_api_name_round_trips(prefix: str, name: str, number: int, way: str) -> None:
    parts = parse(api_name(prefix, name, number, way))  # type: ignore[arg-type]
    assert (parts.kind, parts.label, parts.index, parts.direction) == ("api", f"{prefix}.{name}", number, way)


@given(path, segment, index, direction, st.none() | st.integers(0, 9))
def test_a_module_name_round_trips(where: str, cls: str, number: int, way: str, model: int | None) -> None:
    name = module_name(where, cls, way, number, model=model)  # type: ignore[arg-type]
    parts = parse(name)
    label = f"{where}.{cls}" if model is None else f"{model}.{where}.{cls}"
    assert (parts.kind, parts.label, parts.index, parts.direction) == ("module", label, number, way)
    other = twin(name)
    assert other is not None
    assert other != name
    assert twin(other) == name


@given(path, segment, index)
def test_a_gradient_name_round_trips(where: str, cls: str, number: int) -> None:
    parts = parse(f"Module.{where}.{cls}.parameters_grad.{number}")
    assert (parts.kind, parts.label, parts.index) == ("gradient", f"{where}.{cls}", number)


@given(path, index, st.booleans())
def test_a_debug_name_round_trips(name: str, number: int, gradient: bool) -> None:
    parts = parse(debug_name(name, number, gradient=gradient))
    assert (parts.kind, parts.index) == ("debug", number)
    assert parts.label == (f"{name}_grad" if gradient else name)


def test_a_dotted_api_name_collapses_to_its_last_segment() -> None:
    assert api_name("Torch", "linalg.norm", 3, "forward") == "Torch.norm.3.forward"


def test_the_overload_of_an_operator_stays_in_its_name() -> None:
    assert api_name("Aten", "add.Tensor", 3, "forward") == "Aten.add.Tensor.3.forward"


def test_an_item_of_a_module_called_output_is_split_at_the_right_place() -> None:
    name = item_name("Module.bert.output.BertOutput.forward.0", "output", "0.key")
    assert split_item(name) == ("Module.bert.output.BertOutput.forward.0", "output", "0.key")
    assert split_item("Functional.gelu.0.forward.kwargs.input") == ("Functional.gelu.0.forward", "kwargs", "input")
    assert split_item("Module.fc.Linear.parameters_grad.0.weight") is None


def test_every_name_of_the_real_dumps_has_a_known_form(dumps: Path) -> None:
    names = {
        name
        for file in dumps.glob("*/step*/*/d*.json")
        for name in json.loads(file.read_text(errors="replace"))["data"]
    }
    assert len(names) > 300
    assert {parse(name).kind for name in names} == {"api", "module", "gradient", "debug"}
    assert all(build(parse(name)) == name for name in names)
