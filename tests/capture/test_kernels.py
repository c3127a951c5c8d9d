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


@pytest.mark.parametrize("inplace", [False, True])
def test_the_backward_of_the_named_call_is_dumped_alone_and_changes_nothing(
    make: Any, read: Any, device: StandIn, inplace: bool
) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

    class Kernels(TorchDispatchMode):
        """What the device would run; notes it beside the calls that begin and end a dump."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.__name__.split(".")[0]
            if name in (
                "gelu",
                "gelu_backward",
                "threshold_backward",
                "relu_",
                "relu",
                "native_dropout",
                "mul",
                "bernoulli_",
            ):
                device.calls.append(name)
            return func(*args, **(kwargs or {}))

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(0)
        x = torch.linspace(-1, 1, 6, requires_grad=True)
        hidden = F.gelu(x) * 2
        hidden = F.relu(hidden, inplace=inplace)
        F.dropout(hidden, 0.5).sum().backward()
        assert x.grad is not None
        return x.grad, torch.get_rng_state()

    bare = run()
    name = "Functional.relu.0"
    debugger = make(level="L2", task="tensor", section={"list": [f"{name}.backward"]})
    debugger.start()
    with Kernels():
        captured = run()
    debugger.stop()
    debugger.step()
    assert all(torch.equal(one, other) for one, other in zip(bare, captured, strict=True))
    begin, end = device.calls.index("init_dump"), device.calls.index("finalize_dump")
    assert device.calls.count("init_dump") == 1
    assert device.calls[begin:end] == ["init_dump", "all", "threshold_backward", "synchronize"]
    assert not read().errors


def test_a_call_without_gradient_has_no_backward_to_dump(make: Any, device: StandIn) -> None:
    debugger = make(level="L2", task="tensor", section={"list": ["Functional.relu.0.backward"]})
    debugger.start()
    F.relu(torch.ones(2))
    debugger.stop()
    assert not device.calls


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
