"""Which calls each mode of the switch records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, strategies as st

from capture.ptdbg.reading import calls, lines, names
from dumpscope_capture.ptdbg import acc_cmp_dump, configure, register_hook, set_dump_path, set_dump_switch
from dumpscope_capture.ptdbg.generations import Form, Spelling, engine_name

FOLDER = Path("out/ptdbg_dump_v6.0/step0/rank0")


def begin(mode: str, **switch: Any) -> Path:
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON", mode=mode, **switch)
    return FOLDER / ("dump.pkl" if mode == "all" else f"{mode}_dump.pkl")


def permute(times: int) -> None:
    for _ in range(times):
        torch.ones(1, 2).permute(1, 0)


@pytest.mark.parametrize(
    "entry", ["Tensor_permute_1", "Tensor.permute.1", "Tensor_permute_1_forward", "Tensor.permute.1.forward"]
)
def test_list_takes_a_call_by_its_whole_number_in_either_spelling(entry: str) -> None:
    path = begin("list", scope=[entry])
    permute(12)
    set_dump_switch("OFF")
    assert calls(path) == ["Tensor.permute.1.forward"]


def test_list_takes_names_that_begin_alike() -> None:
    path = begin("list", scope=["Tensor_perm", "Torch_relu_0_forward_input.0"])
    permute(2)
    torch.relu(torch.ones(1))
    torch.sigmoid(torch.ones(1))
    set_dump_switch("OFF")
    assert calls(path) == ["Tensor.permute.0.forward", "Tensor.permute.1.forward", "Torch.relu.0.forward"]


def test_range_records_from_the_first_to_the_last_each_time() -> None:
    path = begin("range", scope=["Torch.relu.0.forward", "Torch.tanh.0.forward"])
    for _ in range(2):
        torch.sigmoid(torch.ones(1))
        torch.relu(torch.ones(1))
        torch.exp(torch.ones(1))
        torch.tanh(torch.ones(1))
        torch.sigmoid(torch.ones(1))
    set_dump_switch("OFF")
    assert calls(path) == ["Torch.relu.0.forward", "Torch.exp.0.forward", "Torch.tanh.0.forward"]
    set_dump_switch("ON", mode="range", scope=["Torch.relu.2", "Torch.tanh.2"])
    torch.relu(torch.ones(1))
    torch.tanh(torch.ones(1))
    torch.relu(torch.ones(1))
    set_dump_switch("OFF")
    assert calls(path) == ["Torch.relu.2.forward", "Torch.tanh.2.forward"]


def test_a_range_of_backwards_has_those_between() -> None:
    path = begin("range", scope=["Torch.tanh.0.backward", "Torch.relu.0.backward"])
    x = torch.ones(2, requires_grad=True)
    torch.sigmoid(torch.tanh(torch.exp(torch.relu(x)))).sum().backward()
    set_dump_switch("OFF")
    assert calls(path) == ["Torch.tanh.0.backward", "Torch.exp.0.backward", "Torch.relu.0.backward"]


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        (None, ["relu.0", "exp.0", "tanh.0"]),
        (["Torch.exp.0"], ["exp.0"]),
        (["Torch.exp.0.forward", "Torch.tanh.0.forward"], ["exp.0", "tanh.0"]),
    ],
)
def test_stack_records_stacks_only(scope: list[str] | None, wanted: list[str]) -> None:
    path = begin("stack", scope=scope)
    torch.relu(torch.ones(1))
    torch.exp(torch.ones(1))
    torch.tanh(torch.ones(1))
    set_dump_switch("OFF")
    assert calls(path) == [f"Torch.{name}.forward" for name in wanted]
    assert {len(fields) for fields in lines(path)} == {2}
    assert not path.with_suffix("").exists()


@pytest.mark.parametrize(("generation", "wanted"), [("2.3", {"relu"}), ("6.0", {"relu", "leaky_relu"})])
def test_api_list_is_exact_first_and_part_of_a_name_later(generation: str, wanted: set[str]) -> None:
    configure(generation=generation)
    set_dump_path("./x.pkl" if generation == "2.3" else "./out")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON", mode="api_list", api_list=["RELU"])
    F.relu(torch.ones(1))
    F.leaky_relu(torch.ones(1))
    F.gelu(torch.ones(1))
    set_dump_switch("OFF")
    path = Path("ptdbg_dump_v2.3/rank0/x.pkl") if generation == "2.3" else FOLDER / "api_list_dump.pkl"
    assert {name.split("_0_" if generation == "2.3" else ".0.")[0].split("_" if generation == "2.3" else ".", 1)[1]
            for name in names(path)} == wanted  # fmt: skip


@pytest.mark.parametrize(
    ("sides", "wanted"),
    [
        (["forward"], {"forward.input", "forward.output"}),
        (["backward", "output"], {"backward.output"}),
        (["input"], {"forward.input", "backward.input"}),
        ("backward", {"backward.input", "backward.output"}),
        (
            ["forward", "backward", "input", "output"],
            {"forward.input", "forward.output", "backward.input", "backward.output"},
        ),
    ],
)
def test_dump_mode_keeps_directions_and_sides(sides: Any, wanted: set[str]) -> None:
    path = begin("all", dump_mode=sides)
    torch.relu(torch.ones(2, requires_grad=True)).sum().backward()
    set_dump_switch("OFF")
    assert {".".join(name.split(".")[3:5]) for name in names(path)} == wanted


def test_the_filter_drops_what_is_no_float_tensor_with_dimensions() -> None:
    path = begin("all", filter_switch="ON")
    torch.add(torch.ones(2), 1, alpha=3)
    torch.add(torch.tensor([1, 2]), torch.tensor(1.0))
    torch.where(torch.tensor([True]), torch.ones(1), torch.empty(1, 1).sum())
    set_dump_switch("OFF")
    kept = {fields[0] for fields in lines(path)}
    assert {"Torch.add.0.forward.input.0", "Torch.add.0.forward.output", "Torch.add.1.forward.output"} <= kept
    assert not kept & {"Torch.add.0.forward.input.1", "Torch.add.0.forward.input.2", "Torch.add.1.forward.input.0",
                       "Torch.add.1.forward.input.1", "Torch.where.0.forward.input.0"}  # fmt: skip
    assert {file.stem for file in path.with_suffix("").iterdir()} == kept


PREFIXES = st.sampled_from(["Functional", "Tensor", "Torch", "VF", "NPU", "Aten", "Distributed"])
OPERATORS = st.from_regex(r"[a-z_][a-z0-9_]{0,12}[a-z_]", fullmatch=True)


@given(PREFIXES, OPERATORS, st.integers(0, 10**6), st.sampled_from(["forward", "backward"]))
def test_a_name_is_the_same_call_in_either_spelling(prefix: str, operator: str, number: int, direction: str) -> None:
    engine = f"{prefix}.{operator}.{number}.{direction}"
    for generation in ("2.3", "4.0", "6.0"):
        assert engine_name(Spelling(Form(generation=generation)).node(engine)) == engine


@given(PREFIXES, OPERATORS, st.integers(0, 10**6), st.lists(st.integers(0, 30), max_size=3))
def test_items_keep_their_places_in_either_spelling(prefix: str, operator: str, number: int, places: list[int]) -> None:
    path = ".".join(map(str, places))
    item = ".".join(filter(None, [prefix, operator, str(number), "backward", "output", path]))
    assert Spelling(Form(generation="6.0")).item(item) == item
    wanted = f"{prefix}_{operator}_{number}_backward_output" + (f".{path}" if path else "")
    assert Spelling(Form(generation="4.0")).item(item) == wanted
