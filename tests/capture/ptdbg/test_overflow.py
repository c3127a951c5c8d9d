"""The overflow check: what counts, what is written, how it ends. The NPU's registers are those of a stand-in."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from warm_python import warm_python

from capture.ptdbg.fake_npu import install
from capture.ptdbg.reading import array, lines
from dumpscope_capture.device import overflow_registers
from dumpscope_capture.ptdbg import (
    OverflowEnd,
    PrecisionDebugger,
    configure,
    core,
    overflow_check,
    register_hook,
    set_dump_path,
    set_dump_switch,
    set_overflow_check_switch,
)

FOLDER = Path("out/ptdbg_dump_v6.0/step0/rank0")


def look(**options: Any) -> None:
    set_dump_path("./out")
    register_hook(None, overflow_check, **options)


def found(folder: Path = FOLDER) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.pkl")) if folder.exists() else []


def overflow() -> torch.Tensor:
    return torch.mul(torch.full((2,), 1e38), torch.full((2,), 1e10))


def test_a_result_that_is_infinite_is_found_and_what_follows_from_it_is_not() -> None:
    look(overflow_nums=-1)
    value = overflow()
    torch.sub(torch.add(value, 1), value)
    set_dump_switch("OFF")
    assert found() == ["Torch_mul_0_forward_1"]
    path = FOLDER / "Torch_mul_0_forward_1.pkl"
    assert [fields[0].rpartition("forward.")[2] for fields in lines(path)] == [
        "input.0",
        "input.1",
        "output",
        "stack_info",
    ]
    assert {fields[1] for fields in lines(path)[:3]} == {101}
    assert array(path, "Torch.mul.0.forward.output").tolist() == [float("inf")] * 2


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(torch.float16, 65504.0), (torch.bfloat16, None), (torch.float32, None), (torch.float16, -65504.0)],
)
def test_a_result_that_ends_in_the_last_number_is_found(dtype: torch.dtype, value: float | None) -> None:
    last = torch.tensor([torch.finfo(dtype).max if value is None else value], dtype=dtype)
    look(overflow_nums=-1)
    torch.div(last / 2, 0.5)
    set_dump_switch("OFF")
    assert "Torch_div_0_forward_1" in found()


def test_limits_and_infinities_that_were_given_are_no_overflow() -> None:
    look(overflow_nums=-1)
    lowest = torch.finfo(torch.float32).min
    scores = torch.zeros(2, 2).masked_fill(torch.tensor([[False, True]]), lowest)
    hidden = torch.zeros(2, 2).masked_fill(torch.tensor([[False, True]]), float("-inf"))
    torch.full((2,), lowest)
    F.softmax(scores + hidden, dim=-1)
    torch.clamp(torch.tensor([1.0]), max=float("inf"))
    set_dump_switch("OFF")
    assert found() == []


def test_nan_out_of_a_row_that_is_masked_whole_is_found() -> None:
    look(overflow_nums=-1)
    F.softmax(torch.full((2, 2), float("-inf")), dim=-1)
    set_dump_switch("OFF")
    assert found() == ["Functional_softmax_0_forward_1"]


def test_an_overflow_in_backward_is_found() -> None:
    x = torch.full((2,), 1e-30, requires_grad=True)
    look(overflow_nums=-1)
    torch.log(x).sum().backward(torch.tensor(1e38))
    set_dump_switch("OFF")
    assert found() == ["Torch_log_0_backward_1"]
    names = [fields[0] for fields in lines(FOLDER / "Torch_log_0_backward_1.pkl")]
    assert names[:2] == ["Torch.log.0.backward.input.0", "Torch.log.0.backward.output.0"]


def test_an_overflow_that_is_written_in_place_is_found_with_the_values_before() -> None:
    look(overflow_nums=-1)
    x = torch.full((2,), 1e38)
    x.mul_(100)
    set_dump_switch("OFF")
    assert array(FOLDER / "Tensor_mul__0_forward_1.pkl", "Tensor.mul_.0.forward.input.0").tolist() == pytest.approx(
        [1e38] * 2
    )


def test_complex_numbers_overflow_too() -> None:
    look(overflow_nums=-1)
    torch.mul(torch.tensor([1e38 + 1j]), 1e10)
    set_dump_switch("OFF")
    assert found() == ["Torch_mul_0_forward_1"]


def test_as_many_as_asked_for_end_the_program_with_their_files_written() -> None:
    look(overflow_nums=2)
    overflow()
    with pytest.raises(OverflowEnd) as end:
        overflow()
    assert end.value.code == 3
    assert "2 found" in str(end.value)
    assert str(end.value).endswith("Torch_mul_1_forward_2.pkl")
    assert found() == ["Torch_mul_0_forward_1", "Torch_mul_1_forward_2"]
    overflow()
    assert len(found()) == 2


@pytest.mark.parametrize("generation", ["2.3", "4.0", "6.0"])
def test_each_is_told_with_its_call_its_number_and_its_file(generation: str, caplog: pytest.LogCaptureFixture) -> None:
    configure(generation=generation)
    look(overflow_nums=-1)
    with caplog.at_level(logging.WARNING):
        overflow()
        overflow()
    told = [record.getMessage() for record in caplog.records if "overflow" in record.getMessage()]
    assert [text for text in told if "in:" in text] == [f"overflow in: Torch.mul.{number}.forward" for number in (0, 1)]
    places = [re.fullmatch(r"overflow (\d) of this process: stack and values are in (.*)", text) for text in told[1::2]]
    assert [place and place[1] for place in places] == ["1", "2"]
    assert all(place and Path(place[2]).is_file() for place in places)


def test_the_last_one_found_in_backward_ends_the_program() -> None:
    x = torch.full((2,), 1e-30, requires_grad=True)
    look(overflow_nums=1)
    with pytest.raises(OverflowEnd):
        torch.log(x).sum().backward(torch.tensor(1e38))
    assert found() == ["Torch_log_0_backward_1"]


def test_the_switch_turns_the_check_off_and_on() -> None:
    look(overflow_nums=-1)
    set_overflow_check_switch("OFF")
    overflow()
    set_overflow_check_switch("ON", filter_switch="ON")
    overflow()
    set_overflow_check_switch("OFF")
    assert found() == ["Torch_mul_1_forward_1"]


def test_another_filter_on_the_way_counts_overflows_on() -> None:
    look(overflow_nums=2)
    overflow()
    set_overflow_check_switch("ON", filter_switch="ON")
    with pytest.raises(OverflowEnd):
        overflow()
    assert found() == ["Torch_mul_0_forward_1", "Torch_mul_1_forward_2"]
    set_overflow_check_switch("ON", filter_switch="OFF")
    overflow()
    assert len(found()) == 2, "as many as asked for were found"


def test_a_check_that_is_off_stays_off_when_the_hook_is_registered_after_it() -> None:
    set_overflow_check_switch("OFF")
    look(overflow_nums=-1)
    overflow()
    assert found() == []
    set_overflow_check_switch("ON")
    overflow()
    set_overflow_check_switch("OFF")
    assert found() == ["Torch_mul_1_forward_1"]


def test_without_a_path_the_chosen_generation_names_the_files_of_overflows() -> None:
    configure(generation="2.3")
    register_hook(None, overflow_check, overflow_nums=-1)
    overflow()
    set_overflow_check_switch("OFF")
    (path,) = Path("ptdbg_dump_v2.3/rank0").glob("*.pkl")
    assert re.fullmatch(r"Overflow_info_\d{8}_\d{6}_1", path.stem)


def test_the_first_generations_file_has_the_stack_first_and_five_fields() -> None:
    set_dump_path("./npu.pkl")
    register_hook(None, overflow_check, overflow_nums=-1)
    torch.mul(torch.full((2,), 1e38), 100)
    set_overflow_check_switch("OFF")
    (path,) = Path("ptdbg_dump_v2.3/rank0").glob("*.pkl")
    assert re.fullmatch(r"Overflow_info_\d{8}_\d{6}_1", path.stem)
    assert [len(fields) for fields in lines(path)] == [2, 5, 5]
    assert lines(path)[1] == ["Torch_mul_0_forward_input.0", 101, [], "torch.float32", [2]]
    assert path.with_suffix("").is_dir()


def test_the_second_generation_keeps_names_with_underscores() -> None:
    configure(generation="4.0")
    look(overflow_nums=-1)
    overflow()
    path = Path("out/ptdbg_dump_v4.0/rank0/Torch_mul_0_forward_1.pkl")
    assert lines(path)[0][:2] == ["Torch_mul_0_forward_input.0", 101]


def test_the_debugger_checks_the_steps_it_is_asked_for() -> None:
    debugger = PrecisionDebugger("./out", hook_name="overflow_check", step=[1])
    debugger.configure_hook(overflow_nums=-1)
    for _ in range(2):
        debugger.start()
        overflow()
        debugger.stop()
        debugger.step()
    assert found() == []
    assert found(Path("out/ptdbg_dump_v6.0/step1/rank0")) == ["Torch_mul_0_forward_1"]


def test_overflows_are_counted_over_steps_that_have_one_folder() -> None:
    configure(generation="4.0")
    debugger = PrecisionDebugger("./out", hook_name="overflow_check")
    debugger.configure_hook(overflow_nums=-1)
    for _ in range(2):
        debugger.start()
        overflow()
        debugger.stop()
        debugger.step()
    assert found(Path("out/ptdbg_dump_v4.0/rank0")) == ["Torch_mul_0_forward_1", "Torch_mul_0_forward_2"]


def test_a_second_run_does_not_mix_with_the_first() -> None:
    for _ in range(2):
        core._captures.clear()
        from dumpscope_capture.ptdbg import session  # noqa: PLC0415

        session._file_steps.clear()
        look(overflow_nums=-1)
        overflow()
        core.forget()
    assert found() == ["Torch_mul_0_forward_1"]
    assert len(lines(FOLDER / "Torch_mul_0_forward_1.pkl")) == 4
    assert len(list(Path("out").glob("earlier-*/ptdbg_dump_v6.0/step0/rank0/*.pkl"))) == 1


def test_the_msprobe_layout_ends_the_program_as_well() -> None:
    configure(layout="msprobe")
    look(overflow_nums=1)
    with pytest.raises(OverflowEnd):
        overflow()
    core.forget()
    (folder,) = Path("out/step0").iterdir()
    assert list(json.loads((folder / "dump.json").read_text())["data"]) == ["Torch.mul.0.forward"]


def test_cases_for_the_single_operator_check_are_written_at_the_end() -> None:
    debugger = PrecisionDebugger("./out", hook_name="overflow_check")
    debugger.configure_hook(need_replicate=True, overflow_nums=2)
    debugger.start()
    torch.add(torch.full((2,), 3e38), torch.full((2,), 3e38), alpha=2)
    x = torch.full((2,), 1e-30, requires_grad=True)
    assert not Path(f"forward_info_{os.getpid()}.json").exists()
    with pytest.raises(OverflowEnd):
        torch.log(x).sum().backward(torch.tensor(1e38))
    forward = json.loads(Path(f"forward_info_{os.getpid()}.json").read_text())
    backward = json.loads(Path(f"backward_info_{os.getpid()}.json").read_text())
    stacks = json.loads(Path(f"stack_info_{os.getpid()}.json").read_text())
    told = forward["Torch.add.0"]
    assert told["kwargs"] == {"alpha": {"type": "int", "value": 2}}
    assert Path(told["args"][0]["datapath"]).name == "Torch.add.0.0.npy"
    assert Path(told["args"][0]["datapath"]).exists()
    assert backward["Torch.log.0.backward"][0]["Max"] == pytest.approx(1e38)
    assert stacks["Torch.add.0.forward"][0][0] == __file__


def test_the_program_ends_without_a_traceback_and_with_a_status_of_its_own() -> None:
    script = """
import torch
from dumpscope_capture.ptdbg import *
set_dump_path("./out")
register_hook(None, overflow_check)
try:
    torch.mul(torch.full((2,), 1e38), 100)
except Exception:
    print("caught")
"""
    done = subprocess.run([warm_python(), "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "1 found, as many as asked for" in done.stderr
    assert "Traceback" not in done.stderr
    assert "caught" not in done.stdout


# -- the NPU's registers -----------------------------------------------------------------------------------------------


def test_the_register_says_which_call_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = install(monkeypatch)
    npu._C.flag = True  # by what ran before anything was looked at
    look(overflow_nums=-1)
    torch.relu(torch.ones(2))

    class Device(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.__name__.startswith("exp"):
                npu._C.flag = True
            return func(*args, **(kwargs or {}))

    with Device():
        torch.exp(torch.ones(2))
        torch.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert found() == ["Torch_exp_0_forward_1"]
    assert npu.calls[0] == "enable"
    assert npu._C.flag is False
    assert npu.calls.count("clear") == 2


def test_the_status_calls_are_used_where_the_environment_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = install(monkeypatch)
    monkeypatch.setenv("OVERFLOW_DEBUG_MODE_ENABLE", "1")
    monkeypatch.setattr(overflow_registers, "_status_buffer", lambda: torch.zeros(8))
    look(overflow_nums=-1)
    npu._C.flag = True
    torch.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert {"get_status 1", "clear_status 1"} <= set(npu.calls)
    assert "check" not in npu.calls


def test_a_device_that_computes_infinities_has_its_values_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = install(monkeypatch)
    npu._C.infinities = True
    look(overflow_nums=-1)
    overflow()
    set_dump_switch("OFF")
    assert found() == ["Torch_mul_0_forward_1"]
    assert "check" not in npu.calls


def test_a_torch_npu_without_the_switch_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch)
    monkeypatch.delattr("capture.ptdbg.fake_npu.Registers._enable_overflow_npu")
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        look()
        torch.relu(torch.ones(2))
    assert "may not work on this platform" in caplog.text


def test_a_call_that_overflows_is_run_again_inside_the_devices_dump(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    npu = install(monkeypatch)
    npu._C.infinities = True
    Path("dump.json").write_text('{"dump": {"dump_path": "."}}')
    look(overflow_nums=-1, dump_mode="acl", dump_config="dump.json")
    x = torch.full((2,), 1e38)
    x.mul_(100)
    y = torch.full((2,), 1e-30, requires_grad=True)
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        torch.log(y).sum().backward(torch.tensor(1e38))
    set_dump_switch("OFF")
    assert x.tolist() == [float("inf")] * 2
    assert [call for call in npu.calls if "dump" in call] == ["init_dump", "set_dump output", "finalize_dump"]
    assert "scope=['Torch.log.0.backward']" in caplog.text


def test_the_debugger_takes_the_acl_mode_of_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = install(monkeypatch)
    npu._C.infinities = True
    Path("dump.json").write_text('{"dump": {"dump_path": "."}}')
    debugger = PrecisionDebugger("./out", hook_name="overflow_check")
    debugger.configure_hook(mode="acl", acl_config="dump.json", overflow_nums=-1)
    debugger.start()
    overflow()
    debugger.stop()
    assert "init_dump" in npu.calls
