"""Other packages of the program: broken ones disturb nothing, devices are not touched, and what they hold is given back."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import types
from collections.abc import Iterator
from typing import Any, Final

import pytest
import torch
import torch._dynamo  # torch imports it when it is first needed, and with it a triton that is there
import torch.distributed as dist
from torch import nn

from dumpscope_capture import seed_all, seeding
from dumpscope_capture.device.environment import describe_run
from dumpscope_capture.hooks.collectives import PENDING_LIMIT
from dumpscope_capture.replay.targets import load_npu
from dumpscope_capture.values import statistics

NAMES: Final = (
    "torch_npu", "mindspeed", "mindspeed.ops", "megatron.core", "megatron.core.pipeline_parallel.schedules", "deepspeed",
    "transformers", "triton", "triton.runtime.jit", "triton.runtime.autotuner", "flash_attn", "apex",
)  # fmt: skip


class Broken(types.ModuleType):
    """A module that loads on use, and cannot."""

    error: type[BaseException]

    def __getattr__(self, name: str) -> Any:
        raise self.error(f"the backend is missing: {name}")


@pytest.mark.parametrize("level", ["L0", "L1", "mix", "L2"])
@pytest.mark.parametrize("error", [ImportError, AttributeError, RuntimeError, OSError, SystemExit, GeneratorExit])
def test_modules_whose_attributes_raise_disturb_nothing(
    make: Any, read: Any, level: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        module = Broken(name)
        module.error = error
        monkeypatch.setitem(sys.modules, name, module)
    model = nn.Sequential(nn.Linear(2, 2))
    debugger = make(level=level)
    debugger.start(model)
    torch.relu(model(torch.ones(1, 2))).sum().backward()
    debugger.stop()
    debugger.step()
    assert read().data
    assert not read().errors
    assert not set(read().run["versions"]) & set(NAMES)


class Npu(types.ModuleType):
    """A device with the calls that torch_npu has. Reading a switch initialises it."""

    def __init__(self, *, used: bool) -> None:
        super().__init__("npu")
        self.used = used
        self.state = [torch.tensor([1])]
        self.matmul = self.conv = types.SimpleNamespace(allow_hf32=True)

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self.used

    def is_jit_compile_false(self) -> bool:
        self.used = True
        return False

    def get_device_name(self) -> str:
        return "Ascend"

    def manual_seed_all(self, seed: int) -> None:
        self.state = [torch.tensor([seed])]

    def get_rng_state_all(self) -> list[torch.Tensor]:
        return [one.clone() for one in self.state]

    def set_rng_state_all(self, state: list[torch.Tensor]) -> None:
        self.state = [one.clone() for one in state]


def _install(monkeypatch: pytest.MonkeyPatch, npu: Npu) -> None:
    module = types.ModuleType("torch_npu")
    module.npu, module.__version__ = npu, "2.13.0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch_npu", module)
    monkeypatch.setattr(torch, "npu", npu, raising=False)


@pytest.mark.parametrize("used", [False, True])
def test_describing_a_run_initialises_no_device(make: Any, used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    npu = Npu(used=used)
    _install(monkeypatch, npu)
    run = describe_run(make().config, 0, 0)
    assert npu.used is used
    assert ("jit_compile" in run["numerics"]) is used
    assert ("matmul_hf32" in run["numerics"]) is used
    assert any(name.startswith("npu") for name in run["devices"]) is used


class Stream:
    def __init__(self) -> None:
        self.waited: list[Stream] = []

    def wait_stream(self, other: Stream) -> None:
        self.waited.append(other)


def test_side_streams_of_any_accelerator_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    main, side = Stream(), Stream()
    current = [side]
    backend = types.SimpleNamespace(current_stream=lambda device: current[0])
    monkeypatch.setattr(torch, "npu", backend, raising=False)
    device: Any = types.SimpleNamespace(type="npu")
    entries: list[Any] = [types.SimpleNamespace(stream=statistics._stream(device))]
    current[0] = main
    entries.append(types.SimpleNamespace(stream=statistics._stream(device)))
    statistics._wait_streams(device, entries)
    assert main.waited == [side]
    assert statistics._stream(torch.device("cpu")) is None
    assert statistics._stream(torch.device("meta")) is None


@pytest.fixture
def enhanced() -> Iterator[None]:
    state = random.getstate()
    yield
    seeding.undo()
    random.setstate(state)


def test_each_random_call_starts_from_the_same_state_on_every_accelerator(
    enhanced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    npu = Npu(used=True)
    _install(monkeypatch, npu)
    seed_all(7, is_enhanced=True)
    npu.state = [torch.tensor([99])]  # another call has drawn
    torch.rand(1)
    assert npu.state[0].item() == 7


class Slow:
    """The work of a call that is done when told."""

    def __init__(self) -> None:
        self.done = False

    def is_completed(self) -> bool:
        return self.done


def test_calls_that_nobody_waits_for_do_not_pile_up(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[Slow] = []

    def all_reduce(tensor: torch.Tensor, op: Any = None, group: Any = None, async_op: bool = False) -> Any:
        works.append(Slow())
        return works[-1]

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    debugger = make(level="L1")
    debugger.start()
    most = 0
    for number in range(1000):
        dist.all_reduce(torch.full((4,), float(number)), async_op=True)
        if number >= 4:
            works[number - 4].done = True
        most = max(most, len(debugger._session.collectives._pending))
    debugger.stop()
    debugger.step()
    assert most <= PENDING_LIMIT + 1
    data = read().data
    assert len(data) == 1000
    assert data["Distributed.all_reduce.500.forward"]["output"][0]["Max"] == 500
    assert data["Distributed.all_reduce.999.forward"]["output"] == [None]  # never done


@pytest.mark.parametrize(
    ("device", "devices"), [("cpu", None), ("cuda:0", "cpu,cuda"), ("npu:1", None), ("cpu", "cpu,npu:0")]
)
def test_a_broken_torch_npu_fails_only_what_needs_it(
    device: str, devices: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> Any:
        raise ImportError("libhccl.so: cannot open shared object file")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib, "import_module", fail)
    asked = [device, *(devices or "").split(",")]
    if "npu" in f"{device}{devices}":
        with pytest.raises(ImportError, match="libhccl"):
            load_npu(asked)
    else:
        load_npu(asked)
        assert "torch_npu is installed and cannot be imported" in capsys.readouterr().err
