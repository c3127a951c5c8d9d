"""The kernel dump of level L2 on Ascend, with a stand-in for the device."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from dumpscope_capture import ConfigError


class StandIn(types.ModuleType):
    """Notes the calls that torch_npu would get."""

    def __init__(self) -> None:
        super().__init__("torch_npu.npu")
        self.calls: list[str] = []

    def is_available(self) -> bool:
        return True

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def init_dump(self) -> None:
        self.calls.append("init_dump")

    def set_dump(self, path: str) -> None:
        with open(path, encoding="utf-8") as stream:
            self.calls.append(json.load(stream)["dump"]["dump_mode"])

    def finalize_dump(self) -> None:
        self.calls.append("finalize_dump")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    npu = StandIn()
    module = types.ModuleType("torch_npu")
    module.npu = npu  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch_npu", module)
    return npu


def test_the_device_dumps_the_one_named_call_once_a_step(make: Any, device: StandIn) -> None:
    debugger = make(level="L2", task="tensor", section={"list": ["Functional.relu.1.forward"]})
    for _ in range(2):
        debugger.start()
        for _ in range(3):
            F.relu(torch.ones(2))
        debugger.stop()
        debugger.step()
    assert device.calls == ["synchronize", "init_dump", "all", "synchronize", "finalize_dump"] * 2


def test_the_dump_is_ended_where_the_call_raises(make: Any, device: StandIn) -> None:
    debugger = make(level="L2", task="tensor", section={"list": ["Torch.matmul.0.forward"]})
    debugger.start()
    with pytest.raises(RuntimeError, match="shapes"):
        torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
    debugger.stop()
    assert device.calls[-1] == "finalize_dump"


def test_exactly_one_call_has_to_be_named(make: Any, device: StandIn) -> None:
    with pytest.raises(ConfigError, match="exactly one"):
        make(level="L2", task="tensor")
