"""The device's own dump of one call, with a stand-in for torch_npu, and every reason it is refused for."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from capture.ptdbg.fake_npu import install
from capture.ptdbg.reading import calls
from dumpscope_capture.ptdbg import (
    CompareException,
    PrecisionDebugger,
    acc_cmp_dump,
    register_hook,
    set_backward_input,
    set_dump_path,
    set_dump_switch,
)

WINDOW = ["synchronize", "init_dump", "set_dump all", "synchronize", "finalize_dump"]
PKL = Path("out/ptdbg_dump_v6.0/step0/rank0/acl_dump.pkl")


@pytest.fixture
def npu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TASK_QUEUE_ENABLE", "0")
    return install(monkeypatch)


@pytest.fixture
def plan() -> str:
    Path("acl").mkdir()
    path = Path("dump.json")
    path.write_text(
        json.dumps({"dump": {"dump_list": [], "dump_path": "acl", "dump_mode": "all", "dump_op_switch": "off"}})
    )
    return str(path)


def begin(plan: str, scope: str) -> None:
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump, dump_mode="acl", dump_config=plan)
    set_dump_switch("ON", mode="acl", scope=[scope])


@pytest.mark.parametrize("scope", ["Torch_relu_1_forward", "Torch.relu.1.forward", "Torch_relu_1"])
def test_the_one_call_named_runs_inside_the_devices_dump(npu: Any, plan: str, scope: str) -> None:
    begin(plan, scope)
    for _ in range(3):
        torch.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert npu.calls == WINDOW
    assert calls(PKL) == ["Torch.relu.1.forward"]


def test_a_backward_is_dumped_with_the_gradient_given_and_the_programs_own_gradients_stay(npu: Any, plan: str) -> None:
    np.save("gradient.npy", np.full((2,), 3, np.float32))
    begin(plan, "Torch_mul_0_backward")
    set_backward_input(["gradient.npy"])
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    result = torch.mul(x, 2)
    assert npu.calls == WINDOW
    result.sum().backward()
    set_dump_switch("OFF")
    assert npu.calls == WINDOW
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]


def test_a_backward_without_a_gradient_given_waits_for_the_programs_own(npu: Any, plan: str) -> None:
    begin(plan, "Torch_mul_0_backward")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    result = torch.mul(x, 2)
    assert npu.calls == []
    result.sum().backward()
    set_dump_switch("OFF")
    assert npu.calls == WINDOW


def test_the_debugger_takes_the_same_recipe(npu: Any, plan: str) -> None:
    debugger = PrecisionDebugger("./out", hook_name="dump")
    debugger.configure_hook(mode="acl", scope=["Torch.relu.0.forward"], acl_config=plan)
    debugger.start()
    torch.relu(torch.ones(2))
    debugger.stop()
    assert npu.calls == WINDOW


def test_a_queue_of_tasks_is_warned_of(
    npu: Any, plan: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("TASK_QUEUE_ENABLE")
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        begin(plan, "Torch_relu_0")
    assert "TASK_QUEUE_ENABLE=0" in caplog.text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "readable JSON"),
        ("[]", '"dump"'),
        ('{"dump": {}}', "a folder"),
        ('{"dump": {"dump_path": ""}}', "a folder"),
        ('{"dump": {"dump_path": "a_file/below"}}', "that can be made"),
        ('{"dump": {"dump_path": ".", "dump_mode": "some"}}', "output, input, all"),
        ('{"dump": {"dump_path": ".", "dump_op_switch": "yes"}}', "off, on"),
    ],
)
def test_a_plan_that_cannot_be_used_is_refused_with_its_key(npu: Any, content: str, text: str) -> None:
    Path("dump.json").write_text(content)
    Path("a_file").touch()
    with pytest.raises(CompareException, match="dump_config") as found:
        begin("dump.json", "Torch_relu_0")
    assert found.value.code == 11
    assert text in str(found.value)


def test_the_folder_of_a_plan_is_made(npu: Any) -> None:
    Path("dump.json").write_text('{"dump": {"dump_path": "./dump/output"}}')
    begin("dump.json", "Torch_relu_0")
    assert Path("dump/output").is_dir()


@pytest.mark.parametrize("config", ["nowhere.json", "plan.txt"])
def test_a_plan_that_is_no_json_file_is_refused(npu: Any, config: str) -> None:
    Path("plan.txt").write_text("{}")
    with pytest.raises(CompareException, match=r"existing \.json file"):
        begin(config, "Torch_relu_0")


def test_a_scope_that_is_no_call_is_refused(npu: Any, plan: str) -> None:
    with pytest.raises(CompareException, match="whole name of one call"):
        begin(plan, "relu")


def test_a_wish_that_is_refused_leaves_what_was_before(npu: Any, plan: str) -> None:
    set_dump_path("./out")
    set_dump_switch("ON")
    register_hook(None, acc_cmp_dump, dump_mode="acl", dump_config=plan)
    with pytest.raises(CompareException):
        set_dump_switch("ON", mode="acl", scope=["relu"])
    torch.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert calls(PKL.with_name("dump.pkl")) == ["Torch.relu.0.forward"]


def test_the_check_of_overflows_refuses_its_acl_mode_as_well(plan: str) -> None:
    debugger = PrecisionDebugger("./out", hook_name="overflow_check")
    with pytest.raises(CompareException, match="torch_npu is not installed"):
        debugger.configure_hook(mode="acl", acl_config=plan)


def test_the_switch_needs_the_hook_to_be_for_it(npu: Any) -> None:
    set_dump_path("./out")
    register_hook(None, acc_cmp_dump)
    with pytest.raises(CompareException, match="dump_mode='acl'"):
        set_dump_switch("ON", mode="acl", scope=["Torch_relu_0"])


def refused(plan: str) -> str:
    with pytest.raises(CompareException) as found:
        register_hook(None, acc_cmp_dump, dump_mode="acl", dump_config=plan)
    assert found.value.code == 15
    assert "dump_mode='api'" in str(found.value)
    return str(found.value)


def test_without_torch_npu_it_is_refused_before_anything_runs(plan: str) -> None:
    assert "torch_npu is not installed" in refused(plan)
    set_dump_path("./out")
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    assert not Path("out").exists()


def test_a_torch_npu_that_is_not_imported_is_refused(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert "not imported" in refused(plan)


def test_a_device_that_is_not_there_is_refused(npu: Any, plan: str) -> None:
    npu.npu.available = False
    assert "set_env.sh" in refused(plan)


def test_a_torch_npu_that_cannot_dump_is_refused(npu: Any, plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("capture.ptdbg.fake_npu.Npu.init_dump")
    assert "no torch_npu.npu.init_dump" in refused(plan)
    assert sys.modules["torch_npu"] is npu
