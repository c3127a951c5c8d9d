"""The questions of both old FAQs that concern recording, each by its number: ptdbg's (P) and msprobe's (M)."""

from __future__ import annotations

import copy
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.functional import gelu
from warm_python import warm_python

import dumpscope_capture
from capture.ptdbg.fake_npu import install
from capture.ptdbg.reading import array, calls, line, names
from dumpscope_capture.device.environment_checks import shadows, warnings
from dumpscope_capture.ptdbg import (
    CompareException,
    OverflowEnd,
    PrecisionDebugger,
    StepsEnd,
    acc_cmp_dump,
    configure,
    core,
    overflow_check,
    register_hook,
    session as sessions,
    set_dump_path,
    set_dump_switch,
)

PKL = Path("out/ptdbg_dump_v6.0/step0/rank0/dump.pkl")
SOURCE = Path(dumpscope_capture.__file__).parents[1]


def on(path: str = "./out", **switch: Any) -> None:
    set_dump_path(path)
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON", **switch)


def off() -> None:
    set_dump_switch("OFF")


def restart() -> None:
    """As a new process begins."""
    core.forget()
    sessions._file_steps.clear()


# -- ptdbg, usage ------------------------------------------------------------------------------------------------------


def test_p_usage_1_it_runs_from_its_source_without_being_installed(tmp_path: Path) -> None:
    for package in ("dumpscope_capture", "dumpscope_format"):
        shutil.copytree(SOURCE / package, tmp_path / "copied" / package, ignore=shutil.ignore_patterns("__pycache__"))
    script = "import dumpscope_capture.ptdbg as p; print(p.__file__)"
    done = subprocess.run(
        [warm_python(), "-c", script], env={**os.environ, "PYTHONPATH": str(tmp_path / "copied")}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "copied")


def test_p_usage_2_operators_are_added_by_a_list_of_ones_own_and_not_by_editing_the_package() -> None:
    Path("ops.yaml").write_text("torch: [special.zeta]\n")
    on()
    torch.special.zeta(torch.ones(2), torch.ones(2))
    configure(wrap_ops="ops.yaml")
    torch.special.zeta(torch.ones(2), torch.ones(2))
    torch.relu(torch.ones(2))
    off()
    assert calls(PKL) == ["Torch.zeta.0.forward"]


# -- ptdbg, common questions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", ["2.3", "4.0", "6.0"])
def test_p_common_1_a_second_dump_to_one_place_keeps_the_first(
    generation: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = {"2.3": Path("ptdbg_dump_v2.3/rank0/a.pkl"), "4.0": Path("out/ptdbg_dump_v4.0/rank0/dump.pkl"), "6.0": PKL}[
        generation
    ]
    for value in (1.0, 2.0):
        restart()
        configure(generation=generation)
        given = torch.full((2,), value)
        with caplog.at_level(logging.WARNING, logger="dumpscope"):
            on("./a.pkl" if generation == "2.3" else "./out")
            F.relu(given)
        off()
    (first,) = Path().rglob(f"earlier-*/{path.relative_to('out') if generation != '2.3' else path}")
    name = names(path)[0]
    assert [array(file, name)[0] for file in (first, path)] == [1, 2]
    assert len(names(path)) == 2
    assert "of an earlier run" in caplog.text


def test_p_common_1_dumps_of_other_modes_stay_where_they_are() -> None:
    on()
    F.relu(torch.ones(2))
    off()
    restart()
    on(mode="api_stack")
    F.relu(torch.ones(2))
    off()
    assert calls(PKL) == calls(PKL.with_name("api_stack_dump.pkl"))


def test_p_common_2_no_model_has_to_be_chosen_and_calls_of_all_are_recorded() -> None:
    models = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    set_dump_path("./out")
    register_hook(models[0], acc_cmp_dump)
    set_dump_switch("ON")
    for model in models:
        model(torch.ones(1, 2))
    off()
    assert calls(PKL) == ["Functional.linear.0.forward", "Functional.linear.1.forward"]


def test_p_common_3_data_of_operators_is_one_option_that_says_where_it_cannot_be_had() -> None:
    Path("dump.json").write_text('{"dump": {"dump_path": "."}}')
    with pytest.raises(CompareException, match="torch_npu is not installed"):
        register_hook(None, acc_cmp_dump, dump_mode="acl", dump_config="dump.json")


# -- ptdbg, errors -----------------------------------------------------------------------------------------------------


def test_p_error_1_a_second_copy_on_the_path_is_named_with_the_one_in_use(tmp_path: Path) -> None:
    other = tmp_path / "old" / "dumpscope_capture"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    (found,) = shadows([str(SOURCE), str(tmp_path / "old")])
    assert str(other) in found
    assert str(SOURCE / "dumpscope_capture") in found
    assert "PYTHONPATH" in found
    shutil.copytree(SOURCE / "dumpscope_capture", tmp_path / "same" / "dumpscope_capture")
    assert list(shadows([str(SOURCE), str(tmp_path / "same")])) == []


def test_p_error_2_the_rank_is_the_launchers_and_two_processes_never_share_a_file() -> None:
    script = """
import os, sys, torch
from dumpscope_capture.ptdbg import *
set_dump_path("./out")
register_hook(None, acc_cmp_dump)
set_dump_switch("ON")
for _ in range(20):
    torch.relu(torch.ones(2))
print(os.getpid(), flush=True)
sys.stdin.readline()
"""

    def start(**environment: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [warm_python(), "-c", script], env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    told = [start(RANK=str(rank), WORLD_SIZE="4") for rank in (2, 3)]
    untold = [start(), start()]
    for process, _ in (*told, *untold):
        process.communicate("\n", timeout=100)
    folder = PKL.parents[1]
    assert sorted(path.name for path in folder.iterdir()) == sorted(["rank0", "rank2", "rank3", f"proc{untold[1][1]}"])
    for path in folder.iterdir():
        assert calls(path / "dump.pkl") == [f"Torch.relu.{n}.forward" for n in range(20)]


def test_p_error_2_a_folder_named_for_want_of_a_rank_is_renamed_when_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on()
    F.relu(torch.ones(2))
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "8")
    F.relu(torch.ones(2))
    off()
    assert [path.name for path in PKL.parents[1].iterdir()] == ["rank5"]
    assert len(calls(PKL.parents[1] / "rank5" / "dump.pkl")) == 2


def test_p_error_3_a_torch_npu_for_another_torch_is_named_before_it_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    npu = install(monkeypatch)
    npu.__version__ = "1.11.0.post4"
    with caplog.at_level(logging.INFO, logger="dumpscope"):
        register_hook(None, acc_cmp_dump)
    assert "torch_npu 1.11.0.post4 is not made for torch" in caplog.text
    assert "install torch_npu 2." in caplog.text
    assert f"torch {torch.__version__}" in caplog.text


def test_p_error_4_a_device_is_set_before_its_registers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = install(monkeypatch)
    npu.npu.device = None
    monkeypatch.setenv("LOCAL_RANK", "3")
    set_dump_path("./out")
    register_hook(None, overflow_check)
    assert npu.calls == []  # the program may still choose its device
    F.relu(torch.ones(2))
    assert npu.calls[:2] == ["set_device 3", "enable"]


def test_p_error_4_a_device_that_cannot_be_set_is_named_with_the_call_to_make(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    npu = install(monkeypatch)
    npu.npu.device, npu.npu.broken = None, True
    set_dump_path("./out")
    register_hook(None, overflow_check)
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        assert F.relu(torch.ones(2)).tolist() == [1, 1]
    assert "torch_npu.npu.set_device(local_rank)" in caplog.text
    assert "107002" in caplog.text


def test_p_error_6_names_that_torch_lacks_are_left_out_and_listed(caplog: pytest.LogCaptureFixture) -> None:
    Path("ops.yaml").write_text("torch: [relu, gone_from_torch]\ntensor: [add, also_gone]\n")
    configure(wrap_ops="ops.yaml")
    with caplog.at_level(logging.INFO, logger="dumpscope"):
        on()
    torch.relu(torch.ones(2))
    off()
    assert calls(PKL) == ["Torch.relu.0.forward"]
    assert "Torch.gone_from_torch" in caplog.text
    assert "Tensor.also_gone" in caplog.text


def test_p_error_8_every_call_is_in_the_pkl_without_the_switch_being_turned_off() -> None:
    on()
    for number in range(3):
        F.relu(torch.ones(2))
        assert calls(PKL)[number] == f"Functional.relu.{number}.forward"
        assert {path.stem for path in PKL.with_suffix("").iterdir()} == set(names(PKL))


def test_p_error_10_modes_for_an_npu_are_refused_before_training_starts() -> None:
    Path("dump.json").write_text('{"dump": {"dump_path": "."}}')
    with pytest.raises(CompareException) as found:
        PrecisionDebugger("./out", hook_name="dump").configure_hook(
            mode="acl", scope=["Functional.conv2d.0.backward"], acl_config="dump.json"
        )
    assert found.value.code == 15
    assert "torch_npu is not installed" in str(found.value)


@pytest.mark.parametrize("name", ["with space", "数据", "a+b=c@d,e", "[1]"])
def test_p_error_11_any_path_that_the_disk_takes_will_do(name: str) -> None:
    on(f"./{name}/deeper")
    F.relu(torch.ones(2))
    off()
    assert calls(Path(name) / "deeper" / PKL.relative_to("out"))


def test_p_error_11_a_character_that_is_refused_is_named() -> None:
    with pytest.raises(CompareException, match=r"'a/b'.*without '/'"):
        set_dump_path("./out", dump_tag="a/b")


def test_p_error_12_a_path_set_last_and_a_hook_registered_twice_do_no_harm() -> None:
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON")
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    F.relu(torch.ones(2))
    off()
    assert calls(PKL) == ["Functional.relu.0.forward"]
    assert sorted(str(path) for path in Path().rglob("rank*")) == [str(PKL.parent)]


def test_p_error_13_the_gradient_of_a_weight_behind_a_matmul_is_recorded() -> None:
    layer = torch.nn.Linear(3, 2, bias=False)
    on()
    layer(torch.ones(4, 5, 3)).sum().backward()
    torch.matmul(torch.ones(4, 5, 3), torch.ones(3, 2, requires_grad=True)).sum().backward()
    off()
    assert layer.weight.grad is not None
    assert array(PKL, "Functional.linear.0.backward.output.1").tolist() == layer.weight.grad.tolist()
    assert array(PKL, "Torch.matmul.0.backward.output.1").shape == (3, 2)


@pytest.mark.parametrize(
    ("dtype", "stored"), [(torch.float16, "float16"), (torch.bfloat16, "float32"), (torch.float64, "float64")]
)
def test_p_error_14_the_pkl_says_the_type_and_the_npy_holds_the_same_numbers(dtype: torch.dtype, stored: str) -> None:
    value = torch.tensor([0.1, -3.0], dtype=dtype)
    on()
    torch.abs(value)
    off()
    assert line(PKL, "Torch.abs.0.forward.input.0")[3] == str(dtype)
    data = array(PKL, "Torch.abs.0.forward.input.0")
    assert data.dtype == np.dtype(stored)
    assert torch.equal(torch.from_numpy(data).to(dtype), value)


@pytest.mark.parametrize(("end", "status"), [(StepsEnd, 0), (OverflowEnd, 3)])
def test_p_error_15_the_end_of_a_capture_is_an_exception_of_its_own_and_no_error(
    end: type[SystemExit], status: int
) -> None:
    error = end("step 2 is recorded")  # type: ignore[call-arg]
    assert error.code == status
    assert str(error) == "step 2 is recorded"
    assert not isinstance(error, Exception)


def test_p_error_16_it_is_registered_before_there_is_a_model() -> None:
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON")
    torch.nn.ReLU()(torch.ones(2))
    off()
    assert calls(PKL) == ["Functional.relu.0.forward"]


def test_p_error_17_indexing_takes_what_it_always_took() -> None:
    x = torch.arange(12).reshape(3, 4)
    ways: list[Any] = [
        0,
        slice(1, None),
        (Ellipsis, None, 0),
        [0, 2],
        x[:, 0] > 2,
        (torch.tensor([0, 1]), 2),
        np.int64(1),
    ]
    bare = [x[way] for way in ways]
    on()
    assert all(torch.equal(x[way], wanted) for way, wanted in zip(ways, bare, strict=True))
    off()
    assert len([name for name in calls(PKL) if "__getitem__" in name]) == len(ways)


def test_p_error_17_a_fault_of_the_capture_costs_a_record_and_no_result(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on()

    def fail(*arguments: Any, **named: Any) -> Any:
        raise ValueError("a fault")

    assert core.current_capture().session is not None
    monkeypatch.setattr(core.current_capture().session.recording.recorder, "record_unobserved", fail)  # type: ignore[union-attr]
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        assert torch.arange(3)[1].item() == 1
    assert "a fault" in caplog.text


def test_p_error_18_functions_stay_what_they_are() -> None:
    before = F.gelu
    on()
    assert F.gelu is before is gelu
    assert copy.deepcopy(torch.nn.GELU())(torch.ones(1)).item() > 0
    off()
    assert calls(PKL) == ["Functional.gelu.0.forward"]


def test_p_error_19_operators_can_be_left_out_and_the_error_says_so(caplog: pytest.LogCaptureFixture) -> None:
    configure(leave_out=["t", "transpose"])
    x = torch.ones(2, 3)
    on()
    turned = x.t()
    torch.abs(x.transpose(0, 1))
    off()
    assert turned.stride() == (1, 3)
    assert calls(PKL) == ["Torch.abs.0.forward"]
    set_dump_switch("ON")

    class Compiler(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise RuntimeError("E40021: Failed to compile Op [AsStrided]")

    with (
        caplog.at_level(logging.WARNING, logger="dumpscope"),
        Compiler(),
        pytest.raises(RuntimeError, match="AsStrided"),
    ):
        torch.abs(x)
    assert "leave_out=['t', 'transpose']" in caplog.text


# -- msprobe, data capture ---------------------------------------------------------------------------------------------


def test_m_capture_1_a_value_without_statistics_says_why() -> None:
    configure(layout="msprobe")
    on()
    torch.abs(torch.empty(0))
    torch.abs(torch.ones(1, device="meta"))
    F.linear(torch.ones(1, 2), torch.ones(2, 2), None)
    off()
    (folder,) = Path("out/step0").iterdir()
    data = json.loads((folder / "dump.json").read_text())["data"]
    assert data["Torch.abs.0.forward"]["input_args"][0]["absent"] == "empty"
    assert data["Torch.abs.1.forward"]["input_args"][0]["absent"] == "no data (meta)"
    assert data["Functional.linear.0.forward"]["input_args"][2] is None


def test_m_capture_1_a_none_argument_leaves_its_place_free_in_a_pkl() -> None:
    on()
    F.layer_norm(torch.ones(1, 2), (2,), None, torch.zeros(2))
    off()
    places = [name.partition("input.")[2] for name in names(PKL) if "input" in name]
    assert places == ["0", "1.0", "3"]


def test_m_capture_2_named_tuples_keep_their_names() -> None:
    class Found(NamedTuple):
        score: torch.Tensor
        place: torch.Tensor

    class Finder(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Found:
            return Found(*torch.max(x, dim=0))

    net = torch.nn.Sequential(Finder())
    configure(layout="msprobe")
    debugger = PrecisionDebugger("./out", hook_name="dump", model=net)
    debugger.start()
    net(torch.ones(2, 2))
    debugger.stop()
    (folder,) = Path("out/step0").iterdir()
    record = json.loads((folder / "dump.json").read_text())["data"]["Module.0.Finder.forward.0"]["output"]
    assert list(record) == ["score", "place"]


def test_m_capture_3_functions_imported_by_name_are_recorded() -> None:
    on()
    gelu(torch.ones(2))
    off()
    assert calls(PKL) == ["Functional.gelu.0.forward"]


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_m_capture_4_modules_with_the_deprecated_backward_hook_are_recorded_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    net[0].register_backward_hook(lambda *unused: None)
    debugger = PrecisionDebugger("./out", hook_name="dump", model=net)
    debugger.configure_hook(mode="all")
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        debugger.start()
        net(torch.ones(1, 2)).sum().backward()
        debugger.stop()
    assert calls(PKL) == ["0.Linear.0.forward", "0.Linear.0.backward"]
    assert "deprecated register_backward_hook" in caplog.text


def test_m_capture_5_made_early_it_touches_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = install(monkeypatch)
    npu.npu.device = None
    PrecisionDebugger("./out", hook_name="dump").configure_hook(mode="all")
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    assert npu.calls == []
    assert npu.npu.device is None


def test_m_capture_6_the_watch_on_gradients_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NPU_ASD_ENABLE", "1")
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        register_hook(None, acc_cmp_dump)
    assert "NPU_ASD_ENABLE is set" in caplog.text
    monkeypatch.setenv("NPU_ASD_ENABLE", "0")
    assert not [text for text in warnings() if "NPU_ASD_ENABLE" in text]


def test_m_precheck_1_the_setting_of_jit_compile_is_told_with_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = install(monkeypatch)
    npu.npu.is_jit_compile_false = lambda: True
    configure(layout="msprobe")
    on()
    F.relu(torch.ones(2))
    off()
    core.forget()
    (folder,) = Path("out/step0").iterdir()
    assert json.loads((folder / "run.json").read_text())["numerics"]["jit_compile"] is False


def test_m_precheck_3_bfloat16_is_recorded_with_its_gradients() -> None:
    on()
    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    F.relu(x).sum().backward()
    off()
    assert line(PKL, "Functional.relu.0.backward.output.0")[3] == "torch.bfloat16"
    assert array(PKL, "Functional.relu.0.backward.output.0").tolist() == [1, 1]


def test_the_old_package_beside_this_one_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ptdbg_ascend", sys)
    assert any("each call would be recorded by both" in text for text in warnings())


def test_m_precheck_6_operators_are_recorded_under_the_names_that_the_page_gives() -> None:
    page = (Path(__file__).parents[3] / "docs" / "faq.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `([^`]+)` \| `(Tensor\.__\w+__)` ", page)
    assert len(named) > 15
    values = {"a": torch.ones(2, 2, dtype=torch.int32), "b": torch.ones(2, 2, dtype=torch.int32), "c": torch.ones(1)}
    on(summary_only=True)
    for written, _ in named:
        eval(written, values)
    off()
    found = [name.removesuffix(".0.forward") for name in calls(PKL)]
    assert found == [name for _, name in named]
