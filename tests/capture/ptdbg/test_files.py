"""What lies on disk: names, folders and lines of each generation."""

from __future__ import annotations

import json
import logging
import stat
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from warm_python import warm_python

from capture.ptdbg.reading import array, calls, line, lines, names
from dumpscope_capture.ptdbg import (
    CompareException,
    PrecisionDebugger,
    acc_cmp_dump,
    configure,
    core,
    module_dump,
    module_dump_end,
    overflow_check,
    register_hook,
    set_dump_path,
    set_dump_switch,
)

OLD = Path("ptdbg_dump_v2.3/rank0/npu.pkl")
MIDDLE = Path("out/ptdbg_dump_v4.0/rank0/dump.pkl")
NEW = Path("out/ptdbg_dump_v6.0/step0/rank0/dump.pkl")


def begin(generation: str, **switch: Any) -> Path:
    """Start to dump in a generation's form. Returns the .pkl file's path."""
    if generation == "2.3":
        set_dump_path("./npu.pkl")
    else:
        configure(generation=generation)
        set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON", **switch)
    return {"2.3": OLD, "4.0": MIDDLE, "6.0": NEW}[generation]


@pytest.mark.parametrize(
    ("generation", "wanted"),
    [
        ("2.3", []),
        ("4.0", ["Aten_relu_0_forward", "Aten_add.Tensor_0_forward", "Aten_add.Tensor_1_forward"]),
        ("6.0", ["Aten.relu.0.forward", "Aten.add.Tensor.0.forward", "Aten.add.Tensor.1.forward"]),
    ],
)
def test_operators_that_a_program_calls_itself_are_recorded_from_the_second_generation_on(
    generation: str, wanted: list[str]
) -> None:
    pkl = begin(generation)
    torch.ops.aten.relu(torch.ones(2))
    for _ in range(2):
        torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2))
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert [name for name in calls(pkl) if name.startswith("Aten")] == wanted


def test_operators_can_be_left_out() -> None:
    configure(leave_out=["relu"])
    pkl = begin("6.0")
    torch.ops.aten.relu(torch.ones(2))
    torch.ops.aten.neg.default(torch.ones(2))
    set_dump_switch("OFF")
    assert calls(pkl) == ["Aten.neg.default.0.forward"]


def train() -> torch.Tensor:
    x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    loss = F.relu(x).sum()
    loss.backward()
    assert x.grad is not None
    return x.grad


UNDERSCORED = [
    "Functional_relu_0_forward_input.0", "Functional_relu_0_forward_output",
    "Tensor_sum_0_forward_input.0", "Tensor_sum_0_forward_output",
    "Tensor_sum_0_backward_input.0", "Tensor_sum_0_backward_output.0",
    "Functional_relu_0_backward_input.0", "Functional_relu_0_backward_output.0",
]  # fmt: skip
DOTTED = [name.replace("_", ".") for name in UNDERSCORED]


@pytest.mark.parametrize(("generation", "wanted"), [("2.3", UNDERSCORED), ("4.0", UNDERSCORED), ("6.0", DOTTED)])
def test_names_and_files_are_those_of_the_generation(generation: str, wanted: list[str]) -> None:
    path = begin(generation, filter_switch="OFF")
    train()
    set_dump_switch("OFF")
    assert [
        name for name in names(path) if "linspace" not in name and "reshape" not in name and "requires" not in name
    ] == wanted
    files = {file.stem for file in path.with_suffix("").iterdir()}
    assert set(wanted) <= files


def test_the_numbers_are_three_and_then_four() -> None:
    path = begin("2.3")
    F.relu(torch.tensor([-3.0, 4.0]))
    set_dump_switch("OFF")
    assert line(path, "Functional_relu_0_forward_input.0") == [
        "Functional_relu_0_forward_input.0", 1, [], "torch.float32", [2], [4.0, -3.0, 0.5],
    ]  # fmt: skip
    configure(generation="6.0")
    set_dump_path("./out")
    set_dump_switch("ON")
    F.relu(torch.tensor([-3.0, 4.0]))
    set_dump_switch("OFF")
    assert line(NEW, "Functional.relu.1.forward.input.0")[1:] == [0, [], "torch.float32", [2], [4.0, -3.0, 0.5, 5.0]]


def test_every_kind_of_value_has_its_line() -> None:
    path = begin("6.0")
    torch.add(torch.tensor(-2.5), torch.tensor(1.0))
    torch.add(torch.tensor([1, 5]), torch.tensor(7))
    torch.logical_not(torch.tensor([True, False]))
    torch.cat([torch.ones(2), torch.ones(2)], 0)
    F.relu(torch.empty(0, 3))
    torch.add(torch.ones(1), 2, alpha=0.5)
    torch.abs(torch.tensor([3 + 4j]))
    set_dump_switch("OFF")
    assert line(path, "Torch.add.0.forward.input.0")[3:] == ["torch.float32", [], [-2.5, -2.5, -2.5, 2.5]]
    assert line(path, "Torch.add.1.forward.input.0")[3:] == ["torch.int64", [2], [5.0, 1.0, 3.0, 26**0.5]]
    assert line(path, "Torch.add.1.forward.input.1")[3:] == ["torch.int64", [], [7, 7, 7, "Nan"]]
    assert line(path, "Torch.logical_not.0.forward.output")[3:] == ["torch.bool", [2], [[], [], [], "Nan"]]
    assert line(path, "Torch.cat.0.forward.input.0.1")[4] == [2]
    assert line(path, "Torch.cat.0.forward.input.1")[1:] == [0, [], "<class 'int'>", "[]", [0, 0, 0, 0]]
    assert line(path, "Functional.relu.0.forward.input.0")[3:] == ["torch.float32", [0, 3], [[], [], [], "Nan"]]
    assert line(path, "Torch.add.2.forward.input.2")[3:] == ["<class 'float'>", "[]", [0.5, 0.5, 0.5, 0.5]]
    assert line(path, "Torch.abs.0.forward.input.0")[3:] == ["torch.complex64", [1], [5.0, 5.0, 5.0, 5.0]]


def test_numbers_that_are_not_finite_are_written_as_python_reads_them() -> None:
    path = begin("6.0")
    F.relu(torch.tensor([float("nan")]))
    F.relu(torch.tensor([float("-inf"), float("inf")]))
    set_dump_switch("OFF")
    assert "[NaN, NaN, NaN, NaN]" in path.read_text()
    assert "[Infinity, -Infinity, NaN, Infinity]" in path.read_text()


def test_bfloat16_keeps_its_name_in_the_line_and_its_numbers_in_the_file() -> None:
    path = begin("2.3")
    value = torch.tensor([1.5, -0.0078125], dtype=torch.bfloat16)
    F.relu(value)
    F.relu(value.half())
    set_dump_switch("OFF")
    assert line(path, "Functional_relu_0_forward_input.0")[3] == "torch.bfloat16"
    stored = array(path, "Functional_relu_0_forward_input.0")
    assert stored.dtype == np.float32
    assert torch.equal(torch.from_numpy(stored), value.float())
    assert array(path, "Functional_relu_1_forward_input.0").dtype == np.float16


def test_arguments_are_those_before_the_call_and_keyword_ones_follow() -> None:
    path = begin("6.0")
    x = torch.ones(3)
    x.add_(torch.ones(3), alpha=2)
    mean, var = torch.zeros(3), torch.ones(3)
    F.batch_norm(torch.full((2, 3), 4.0), mean, var, training=True)
    set_dump_switch("OFF")
    assert array(path, "Tensor.add_.0.forward.input.0").tolist() == [1, 1, 1]
    assert array(path, "Tensor.add_.0.forward.output").tolist() == [3, 3, 3]
    assert line(path, "Tensor.add_.0.forward.input.2")[5] == [2, 2, 2, 2]
    assert array(path, "Functional.batch_norm.0.forward.input.1").tolist() == [0, 0, 0]
    assert mean.tolist() != [0, 0, 0]


def test_md5_is_the_crc_of_the_bytes_in_the_file() -> None:
    debugger = PrecisionDebugger("./out", hook_name="dump")
    debugger.configure_hook(mode="all", summary_mode="md5")
    debugger.start()
    F.relu(torch.tensor([1.0, 2.0]))
    F.relu(torch.tensor([1.0, 2.0], dtype=torch.bfloat16))
    torch.add(torch.ones(1), 1)
    debugger.stop()
    wanted = f"{zlib.crc32(np.array([1, 2], np.float32).tobytes()):08x}"
    assert line(NEW, "Functional.relu.0.forward.input.0")[2:] == [wanted, "torch.float32", [2], []]
    assert line(NEW, "Functional.relu.1.forward.input.0")[2:4] == [wanted, "torch.bfloat16"]
    assert line(NEW, "Torch.add.0.forward.input.1")[2:] == [[], "<class 'int'>", "[]", [1, 1, 1, 1]]
    assert not NEW.with_suffix("").exists()


@pytest.mark.parametrize(
    ("generation", "mode", "first"),
    [("2.3", "api_stack", False), ("2.3", "list", True), ("4.0", "list", False), ("6.0", "api_stack", False)],
)
def test_stack_lines_stand_where_the_generation_has_them(generation: str, mode: str, first: bool) -> None:
    path = begin(generation, mode=mode, scope=["Functional_relu_0_forward"] if mode == "list" else None)
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    prefix = "" if generation == "2.3" and mode == "list" else f"{mode}_"
    found = lines(path.with_name(prefix + path.name))
    assert [len(fields) for fields in found] == ([2, 6, 6] if first else [6, 6, 2])
    name, frames = found[0 if first else -1]
    assert name in ("Functional_relu_0_forward_stack_info", "Functional.relu.0.forward.stack_info")
    file, number, function, source = frames[0]
    assert (file, function, source) == (__file__, _own_name(), "F.relu(torch.ones(2))")
    assert isinstance(number, str)
    assert number.isdecimal()


def _own_name() -> str:
    return sys._getframe(1).f_code.co_name


def test_the_stack_of_a_backward_is_that_of_the_call_in_forward() -> None:
    path = begin("6.0", mode="list", scope=["Functional.relu.0.backward"])
    train()
    set_dump_switch("OFF")
    found = lines(path.with_name("list_dump.pkl"))
    assert calls(path.with_name("list_dump.pkl")) == ["Functional.relu.0.backward"]
    assert found[-1][1][0][2] == "train"


@pytest.mark.parametrize("generation", ["2.3", "4.0", "6.0"])
def test_dump_step_and_rank_of_the_first_generation(generation: str) -> None:
    configure(generation=generation)
    set_dump_path("./d/x.pkl" if generation == "2.3" else "./d", dump_tag="tag")
    register_hook(None, acc_cmp_dump, rank=3, dump_step=7)
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    folder = {
        "2.3": "d/tag_v2.3/rank3/x.pkl",
        "4.0": "d/tag_v4.0/rank3/dump.pkl",
        "6.0": "d/tag_v6.0/step0/rank3/dump.pkl",
    }
    assert {fields[1] for fields in lines(folder[generation])} == {7 if generation == "2.3" else 0}


def test_others_cannot_read_what_is_written() -> None:
    path = begin("6.0")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.with_suffix("").iterdir()} == {0o640}


@pytest.mark.parametrize(("generation", "kept"), [("2.3", [0, 2, 4]), ("4.0", [4]), ("6.0", [4])])
def test_switching_on_again_adds_in_the_first_generation_and_begins_anew_later(
    generation: str, kept: list[int]
) -> None:
    path = begin(generation)
    for _ in range(3):
        F.relu(torch.ones(2))
        set_dump_switch("OFF")
        F.relu(torch.ones(2))
        register_hook(None, acc_cmp_dump)
        set_dump_switch("ON")
    set_dump_switch("OFF")
    wanted = [f"Functional_relu_{n}_forward_{end}" for n in kept for end in ("input.0", "output")]
    assert names(path) == [name.replace("_", ".") for name in wanted] if generation == "6.0" else wanted
    assert {file.stem for file in path.with_suffix("").iterdir()} == set(names(path))


@pytest.mark.parametrize("generation", ["2.3", "4.0", "6.0"])
def test_calls_are_counted_from_the_hook_on_also_while_the_switch_is_off(generation: str) -> None:
    configure(generation=generation)
    F.relu(torch.ones(2))
    set_dump_path("./npu.pkl" if generation == "2.3" else "./out")
    register_hook(None, acc_cmp_dump)
    for _ in range(2):
        F.relu(torch.ones(2))
    assert not list(Path().iterdir()), "counting writes nothing"
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    F.relu(torch.ones(2))
    path = {"2.3": OLD, "4.0": MIDDLE, "6.0": NEW}[generation]
    assert calls(path) == ["Functional.relu.2.forward" if generation == "6.0" else "Functional_relu_2_forward"]


def test_switching_on_without_a_call_leaves_what_there_is() -> None:
    path = begin("6.0")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    set_dump_switch("ON")
    set_dump_switch("OFF")
    assert calls(path) == ["Functional.relu.0.forward"]


def test_the_mode_may_change_on_the_way() -> None:
    path = begin("6.0")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    set_dump_switch("ON", mode="api_stack")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert calls(path) == ["Functional.relu.2.forward"], "ON again with its mode"
    assert calls(path.with_name("api_stack_dump.pkl")) == ["Functional.relu.1.forward"]


def test_a_graph_that_is_run_back_twice_is_in_the_file_once() -> None:
    path = begin("6.0")
    x = torch.ones(2, requires_grad=True)
    loss = F.relu(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    set_dump_switch("OFF")
    assert len(names(path)) == len(set(names(path)))


def test_a_call_that_raises_leaves_no_line_and_the_next_one_is_recorded() -> None:
    path = begin("6.0")
    with pytest.raises(RuntimeError):
        torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
    torch.matmul(torch.ones(2, 3), torch.ones(3, 2))
    set_dump_switch("OFF")
    assert calls(path) == ["Torch.matmul.0.forward"]
    assert array(path, "Torch.matmul.0.forward.input.1").shape == (3, 2)


def test_no_npy_files_with_summary_only() -> None:
    path = begin("6.0", summary_only=True)
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert names(path)
    assert not path.with_suffix("").exists()


@pytest.mark.parametrize(
    ("generation", "names_of"), [("4.0", "inner_0_forward_input.0"), ("6.0", "inner.0.forward.input.0")]
)
def test_module_dump_records_one_module_under_the_name_given(generation: str, names_of: str) -> None:
    path = begin(generation)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    module_dump(net[0], "inner")
    net(torch.ones(1, 2)).sum().backward()
    module_dump_end()
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert line(path, names_of)[1] == 1
    heads = calls(path)
    assert heads[0] == names_of.removesuffix(names_of[-8:])
    assert [head for head in heads if "inner" not in head and "backward" not in head] == [
        "Functional_relu_0_forward" if generation == "4.0" else "Functional.relu.0.forward"
    ]


@pytest.mark.parametrize(
    ("generation", "wanted"),
    [
        ("4.0", ["Module_Linear_0_forward", "Module_ReLU_0_forward", "Module_Linear_1_forward"]),
        ("6.0", ["0.Linear.0.forward", "1.ReLU.0.forward", "2.Linear.0.forward"]),
    ],
)
def test_a_model_given_is_recorded_by_its_modules(generation: str, wanted: list[str]) -> None:
    configure(generation=generation)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    debugger = PrecisionDebugger("./out", hook_name="dump", model=net)
    debugger.configure_hook(mode="all")
    debugger.start()
    net(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    path = NEW if generation == "6.0" else MIDDLE
    assert [name for name in calls(path) if "forward" in name] == wanted
    assert {name.replace("forward", "backward") for name in wanted} == {
        name for name in calls(path) if "backward" in name
    }


def test_a_step_takes_the_place_of_the_last_where_steps_have_no_folders() -> None:
    configure(generation="4.0")
    debugger = PrecisionDebugger("./out", hook_name="dump")
    debugger.configure_hook(mode="all")
    values = [torch.full((2,), float(number)) for number in range(3)]
    for value in values:
        debugger.start()
        F.relu(value)
        debugger.stop()
        debugger.step()
    assert names(MIDDLE) == UNDERSCORED[:2]
    assert line(MIDDLE, UNDERSCORED[1])[5][0] == 2.0
    assert array(MIDDLE, UNDERSCORED[1]).tolist() == [2.0, 2.0]


def test_a_hook_registered_for_a_model_records_its_modules_until_it_is_registered_for_calls() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    configure(generation="4.0")
    set_dump_path("./out")
    register_hook(net, acc_cmp_dump, dump_mode="model")
    set_dump_switch("ON")
    net(torch.ones(1, 2)).sum().backward()
    set_dump_switch("OFF")
    wanted = ["Module_Linear_0", "Module_ReLU_0"]
    assert [name for name in calls(MIDDLE) if "forward" in name] == [f"{name}_forward" for name in wanted]
    register_hook(net, acc_cmp_dump)
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert calls(MIDDLE)[-1] == "Functional_relu_0_forward"


def test_a_hook_for_a_model_needs_one_and_does_not_look_for_overflows() -> None:
    net = torch.nn.Linear(2, 2)
    for model, hook in ((None, acc_cmp_dump), (net, overflow_check)):
        with pytest.raises(CompareException) as error:
            register_hook(model, hook, dump_mode="model")
        assert error.value.code == 11


@pytest.mark.parametrize("generation", ["4.0", "6.0"])
@pytest.mark.parametrize("mode", ["api_stack", "stack"])
def test_gradients_of_parameters_leave_no_stack_line_behind(generation: str, mode: str) -> None:
    configure(generation=generation)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    debugger = PrecisionDebugger("./out", hook_name="dump", model=net)
    debugger.configure_hook(mode=mode)
    debugger.start()
    net(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    path = (NEW if generation == "6.0" else MIDDLE).with_name(f"{mode}_dump.pkl")
    assert not [name for name in names(path) if "parameters_grad" in name]
    stacks = [fields for fields in lines(path) if len(fields) == 2]
    assert len(stacks) == len({name for name, _ in stacks}) == 6
    assert all(frames for _, frames in stacks)


def test_the_msprobe_layout_is_written_on_request() -> None:
    configure(layout="msprobe")
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON", mode="list", scope=["Functional_relu_1_forward"])
    for _ in range(3):
        F.relu(torch.ones(2))
    set_dump_switch("OFF")
    core.forget()
    (folder,) = Path("out/step0").iterdir()
    assert list(json.loads((folder / "dump.json").read_text())["data"]) == ["Functional.relu.1.forward"]
    assert len(list((folder / "dump_tensor_data").iterdir())) == 2


@pytest.mark.parametrize(("name", "value"), [("GENERATION", "4.0"), ("LAYOUT", "msprobe")])
def test_the_environment_chooses_the_form(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"DUMPSCOPE_PTDBG_{name}", value)
    core.forget()
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert MIDDLE.exists() if name == "GENERATION" else (Path("out") / "step0").is_dir()


def test_a_killed_program_leaves_all_calls_but_the_last() -> None:
    script = """
import os, signal, torch
from dumpscope_capture.ptdbg import *
set_dump_path("./out")
register_hook(None, acc_cmp_dump)
set_dump_switch("ON")
for _ in range(5):
    torch.relu(torch.ones(2))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([warm_python(), "-c", script], capture_output=True, check=False)
    assert done.returncode == -9
    assert calls(NEW) == [f"Torch.relu.{n}.forward" for n in range(5)]
    assert len(list(NEW.with_suffix("").iterdir())) == 10


def test_a_disk_that_takes_nothing_costs_records_and_no_training(caplog: pytest.LogCaptureFixture) -> None:
    path = begin("6.0")
    F.relu(torch.ones(2))
    path.with_suffix("").rename("elsewhere")
    path.with_suffix("").write_text("in the way")
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        assert F.relu(torch.ones(2)).tolist() == [1, 1]
    set_dump_switch("OFF")
    assert calls(path) == ["Functional.relu.0.forward"]


def test_modules_that_are_left_out_count_where_all_of_a_class_are_counted_together() -> None:
    configure(generation="4.0")
    net = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(3)))
    debugger = PrecisionDebugger("./out", hook_name="dump", model=net)
    debugger.configure_hook(mode="list", scope=["Module_Linear_2"], input_output_mode=["output"])
    debugger.start()
    net(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    assert calls(MIDDLE.with_name("list_dump.pkl")) == ["Module_Linear_2_forward", "Module_Linear_2_backward"]
