"""Packages beside torch whose calls are wrapped: Triton and Megatron. Neither is installed here, so small stand-ins with the
names and the calling order of the real ones take their place; the code that is tested is the one that meets the real ones."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn


def _module(name: str, monkeypatch: pytest.MonkeyPatch, **members: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return module


class JITFunction:
    """As Triton's: launched with positional and meta arguments, writes into its arguments and returns a handle."""

    def __init__(self, fn: Callable[..., None]) -> None:
        self.fn = fn
        self.__name__ = fn.__name__

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> object:
        if not warmup:
            self.fn(*args, **kwargs)
        return object()


class Autotuner:
    """As Triton's: tries its configurations by launching the function it holds."""

    def __init__(self, fn: JITFunction) -> None:
        self.fn = fn

    def run(self, *args: Any, **kwargs: Any) -> object:
        self.fn.run(*args, warmup=True, **kwargs)
        return self.fn.run(*args, warmup=False, **kwargs)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    _module("triton", monkeypatch)
    _module("triton.runtime.jit", monkeypatch, JITFunction=JITFunction)
    _module("triton.runtime.autotuner", monkeypatch, Autotuner=Autotuner)
    before = JITFunction.run, Autotuner.run
    yield
    assert (JITFunction.run, Autotuner.run) == before  # put back after the capture


def add_kernel(x: torch.Tensor, out: torch.Tensor, scale: float, BLOCK: int = 1) -> None:  # noqa: N803
    torch.add(x, scale, out=out)


def test_a_kernel_of_triton_is_a_node_with_its_arguments_before_and_after(make: Any, read: Any, triton: None) -> None:
    kernel = JITFunction(add_kernel)
    tuned = Autotuner(kernel)
    debugger = make(level="L1")
    debugger.start()
    x, out = torch.ones(4), torch.zeros(4)
    kernel.run(x, out, 2.0, grid=lambda meta: (1,), warmup=True, BLOCK=4)
    kernel.run(x, out, 2.0, grid=lambda meta: (1,), warmup=False, BLOCK=4)
    tuned.run(out, out, 1.0, grid=(1,))
    debugger.stop()
    debugger.step()
    data = read().data
    assert list(data) == ["Triton.add_kernel.0.forward", "Triton.add_kernel.1.forward"]
    first, second = data.values()
    assert [first["input_args"][1]["Max"], first["output"][1]["Max"]] == [0.0, 3.0]
    assert first["input_kwargs"]["BLOCK"] == {"type": "int", "value": 4}
    assert second["output"][1]["Max"] == 4.0
    assert second["producers"]["input.0"] == "Triton.add_kernel.0.forward.output.1"
    assert not read().errors


def test_a_kernel_that_fails_is_no_node(make: Any, read: Any, triton: None) -> None:
    def broken(x: torch.Tensor) -> None:
        raise RuntimeError("no such device")

    with make(level="L1"):
        with pytest.raises(RuntimeError, match="no such device"):
            JITFunction(broken).run(torch.ones(1), grid=(1,), warmup=False)
        torch.relu(torch.ones(1))
    assert list(read().data) == ["Torch.relu.0.forward"]


def _schedules(monkeypatch: pytest.MonkeyPatch, model: nn.Module) -> types.ModuleType:
    """A pipeline with two forward steps in flight, as 1F1B has them: its functions find each other as globals."""
    source = """
def forward_step(x):
    return model(x).sum()

def backward_step(loss):
    loss.backward()

def run(batches):
    waiting = [forward_step(batches[0]), forward_step(batches[1])]
    backward_step(waiting[0])
    waiting.append(forward_step(batches[2]))
    backward_step(waiting[1])
    backward_step(waiting[2])
"""
    for name in ("megatron", "megatron.core", "megatron.core.pipeline_parallel"):
        _module(name, monkeypatch)
    schedules = _module("megatron.core.pipeline_parallel.schedules", monkeypatch, model=model)
    exec(source, vars(schedules))
    return schedules


def test_micro_steps_of_megatron_stand_beside_the_parents(
    make: Any, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    schedules = _schedules(monkeypatch, model)
    before = schedules.forward_step
    debugger = make(level="mix")
    for _ in range(2):
        debugger.start(model)
        schedules.run([torch.ones(2, 3) * number for number in range(3)])
        debugger.stop()
        assert schedules.forward_step is before
        debugger.step()
    for step in range(2):
        construct = read(step).construct
        for number in range(3):
            for direction in ("forward", "backward"):
                name = f"Module.0.Linear.{direction}.{number}"
                assert construct[name] == [None, number]
                assert construct[f"Functional.linear.{number}.{direction}"] == [name, number]
        assert construct["megatron_micro_step_number"] == 2
        assert not read(step).errors


def test_our_reader_knows_the_micro_steps(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dumpscope.readers import discover, read_rank  # noqa: PLC0415

    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    schedules = _schedules(monkeypatch, model)
    debugger = make(level="mix")
    debugger.start(model)
    schedules.run([torch.ones(2, 3)] * 3)
    debugger.stop()
    debugger.step()
    dump = read_rank(discover(read().folder.parent.parent).ranks[0])
    micro = dict(zip(dump.nodes.names, dump.nodes.micro.tolist(), strict=True))
    assert micro["Module.0.Linear.forward.2"] == 2
    assert micro["Torch.tanh.1.backward"] == 1
    assert not dump.problems
