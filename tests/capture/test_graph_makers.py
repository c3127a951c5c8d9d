"""Tools that make a graph of the program make the same graph under capture, which steps aside and says so."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope_capture.calls import graph_makers
from dumpscope_capture.hooks import functions, modules
from dumpscope_capture.record import recording

LEVELS: Final = ("L0", "L1", "mix", "L2")


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(self.fc(x)) + x.sum()


def _jit(model: nn.Module, x: torch.Tensor) -> str:
    return re.sub(r"___torch_mangle_\d+\.| # /.*", "", str(torch.jit.trace(model, x).graph))


def _export(model: nn.Module, x: torch.Tensor) -> str:
    return str(torch.export.export(model, (x,)).graph)


def _symbolic(model: nn.Module, x: torch.Tensor) -> str:
    return str(torch.fx.symbolic_trace(model).graph)


def _make_fx(model: nn.Module, x: torch.Tensor) -> str:
    return str(make_fx(model)(x).graph)


def _make_fx_fake(model: nn.Module, x: torch.Tensor) -> str:
    return str(make_fx(model, tracing_mode="fake", _allow_non_fake_inputs=True)(x).graph)


MAKERS: Final[dict[Callable[..., str], str]] = {
    _jit: "torch.jit.trace", _export: "torch.export", _symbolic: "torch.fx.symbolic_trace",
    _make_fx: "make_fx", _make_fx_fake: "make_fx",
}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_graph_is_the_same_under_capture(make: Any, read: Any, level: str, maker: Callable[..., str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.ones(1, 2)
        bare = maker(Small(), x)
        model = Small()
        debugger = make(level=level)
        debugger.start(model)
        assert maker(model, x) == bare
        model(x)
        debugger.stop()
        debugger.step()
        assert maker(model, x) == bare
    assert not read().errors
    assert "lost_records" not in read().run["counts"]
    named = read().run.get("notes", {}).get("traced", [])
    assert set(named) & {MAKERS[maker], "torch.fx.symbolic_trace"} or (level in ("L0", "L2") and not named)
    first = {
        "L0": "Module.fc.Linear.forward.0",
        "mix": "Module.fc.Linear.forward.0",
        "L1": "Functional.linear.0.forward",
    }
    assert level == "L2" or first[level] in read().data


class CountingFunctions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class CountingOperators(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("section", [("statistics", "statistics"), ("tensor", "md5"), ("overflow_check", "")])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("kind", [CountingFunctions, CountingOperators])
def test_modes_of_the_program_see_none_of_our_calls(
    make: Any, read: Any, section: tuple[str, str], level: str, outside: bool, kind: type[Any]
) -> None:
    task, summary = section
    if level == "L2" and task == "overflow_check":
        return

    def train(debugger: Any) -> list[str]:
        model, x = Small(), torch.randn(3, 2, requires_grad=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        counting = kind()

        def step() -> None:
            model(x).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        if debugger is None:
            with counting:
                step()
        elif outside:
            with counting:
                debugger.start(model)
                step()
                debugger.stop()
        else:
            debugger.start(model)
            with counting:
                step()
            debugger.stop()
        if debugger is not None:
            debugger.step()
        seen: list[str] = counting.seen
        return seen

    bare = train(None)
    options: dict[str, Any] = {"overflow_nums": -1} if task == "overflow_check" else {"summary_mode": summary}
    assert train(make(options, level=level, task=task, save_calls=["*gelu*"])) == bare
    assert not read().errors


@pytest.mark.parametrize("tracing", [True, False])
def test_the_state_of_fx_is_read_where_each_torch_keeps_it(monkeypatch: pytest.MonkeyPatch, tracing: bool) -> None:
    for state in ({"_get_is_fx_tracing": lambda: tracing}, {"_is_fx_tracing_flag": tracing}):
        monkeypatch.setattr(graph_makers, "_SYMBOLIC", state)
        assert graph_makers.graph_maker() == ("torch.fx.symbolic_trace" if tracing else None)


@pytest.mark.parametrize("level", LEVELS)
def test_a_torch_whose_state_cannot_be_asked_does_not_end_the_program(
    make: Any, read: Any, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    def moved() -> str | None:
        raise AttributeError("this torch keeps it elsewhere")

    monkeypatch.setattr(recording, "graph_maker", moved)
    debugger, model = make(level=level), Small()
    debugger.start(model)
    model(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    debugger.stop()
    debugger.step()
    assert read().data
    assert list(read().errors) == ["hook_error the state of torch: AttributeError"]


@pytest.mark.parametrize(
    "place",
    [(functions, "_as_written"), (modules.ModuleScopes, "_adopt_thread"), (modules.ModuleScopes, "_leave_thread")],
)
def test_an_error_in_a_hook_does_not_end_the_program(
    make: Any, read: Any, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    def fail(*args: Any) -> None:
        raise AttributeError("another torch")

    model, x = Small(), torch.ones(1, 2)
    bare = model(x)
    monkeypatch.setattr(*place, fail)
    debugger = make()
    debugger.start(model)
    assert torch.equal(model(x), bare)
    debugger.stop()
    debugger.step()
    assert read().errors
