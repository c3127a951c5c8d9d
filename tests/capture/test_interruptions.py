"""Exceptions of any kind leave what follows in the same step with the right parents, and hold nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

ERRORS = (ValueError, StopIteration, KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit)


class Raising(nn.Module):
    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self.error = error
        self.inner = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner(x)
        raise self.error


class Catching(nn.Module):
    """Goes on after an exception of a module inside."""

    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self.bad = Raising(error)
        self.good = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return self.bad(x)
        except BaseException as error:
            if type(error) is not self.bad.error:
                raise
        return self.good(x).relu()


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_forward_that_raises_is_no_parent_of_what_follows(
    make: Any, read: Any, level: str, error: type[BaseException]
) -> None:
    model = nn.Sequential()
    model.add_module("k", Raising(error))
    model.add_module("l", nn.Linear(2, 2))
    debugger = make(level=level)
    debugger.start(model)
    for _ in range(2):
        with pytest.raises(error):
            model.k(torch.ones(1, 2))
        model.l(torch.ones(1, 2)).relu().sum().backward()
    debugger.stop()
    debugger.step()
    construct, data = read().construct, read().data
    for number in range(2):
        assert construct[f"Module.l.Linear.forward.{number}"] is None
        assert construct[f"Module.l.Linear.backward.{number}"] is None
        assert construct[f"Module.k.inner.Linear.forward.{number}"] == f"Module.k.Raising.forward.{number}"
        assert data[f"Module.k.Raising.forward.{number}"]["output"] == [None]
        if level == "mix":
            assert construct[f"Tensor.relu.{number}.forward"] is None
    assert not read().errors


@pytest.mark.parametrize("error", ERRORS)
def test_an_exception_caught_in_the_model_ends_only_the_module_that_raised(
    make: Any, read: Any, error: type[BaseException]
) -> None:
    model = nn.Sequential(Catching(error))
    debugger = make(level="mix")
    debugger.start(model)
    model(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    debugger.step()
    construct = read().construct
    assert construct["Module.0.bad.Raising.forward.0"] == "Module.0.Catching.forward.0"
    assert construct["Module.0.good.Linear.forward.0"] == "Module.0.Catching.forward.0"
    assert construct["Tensor.relu.0.forward"] == "Module.0.Catching.forward.0"
    assert construct["Tensor.sum.0.forward"] is None
    assert {name for name in construct if name.startswith("Module")} <= {*construct, *read().data}


def test_the_last_module_of_a_step_is_recorded_although_it_was_interrupted(make: Any, read: Any) -> None:
    model = nn.Sequential(Raising(KeyboardInterrupt))
    debugger = make(level="L0")
    debugger.start(model)
    with pytest.raises(KeyboardInterrupt):
        model(torch.ones(1, 2))
    debugger.stop()
    debugger.step()
    assert read().data["Module.0.Raising.forward.0"]["output"] == [None]


def test_an_optimizer_that_is_interrupted_is_no_parent_of_what_follows(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def interrupt() -> float:
        raise KeyboardInterrupt

    debugger = make(level="mix")
    debugger.start(model)
    with pytest.raises(KeyboardInterrupt):
        optimizer.step(interrupt)
    model(torch.ones(1, 2)).relu()
    debugger.stop()
    debugger.step()
    assert read().construct["Tensor.relu.0.forward"] is None


def test_an_interrupted_forward_holds_its_tensors_no_longer_than_the_step(make: Any, read: Any) -> None:
    model = nn.Sequential(Raising(KeyboardInterrupt))
    debugger = make(level="mix")
    debugger.start(model)
    x = torch.ones(1, 2)
    with contextlib.suppress(KeyboardInterrupt):
        model(x)
    alive = weakref.ref(x)
    debugger.stop()
    debugger.step()
    del x
    gc.collect()
    assert alive() is None
