"""Compiled code runs eagerly while it is recorded, and the log and run.json say so, with the names of what was compiled."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


def _double(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x) * 2


def _recorded(make: Any, read: Any, level: str, model: nn.Module, call: Any, steps: int = 1) -> Any:
    debugger = make(level=level, compiled="eager")
    for _ in range(steps):
        debugger.start(model)
        call()
        debugger.stop()
        debugger.step()
    return read()


@pytest.mark.parametrize("level", ["L0", "L1", "mix", "L2"])
def test_a_compiled_module_is_named_in_log_and_run(
    make: Any, read: Any, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.GELU()))
    model[1].compile(backend="eager")
    x = torch.ones(1, 2)
    model(x)
    with caplog.at_level(logging.WARNING, "dumpscope"):
        run = _recorded(make, read, level, model, lambda: model(x), steps=3).run
    assert run["compiled"] == "eager"
    assert run["notes"]["compiled"] == ["Module.1.Sequential" if level in ("L0", "mix") else "Sequential"]
    assert caplog.text.count("torch.compile is OFF while data is recorded") == 1


@pytest.mark.parametrize("early", [True, False])
def test_a_compiled_function_is_named(make: Any, read: Any, early: bool) -> None:
    compiled = torch.compile(_double, backend="eager")
    x = torch.ones(2)
    if early:
        compiled(x)
    dump = _recorded(make, read, "L1", nn.Sequential(), lambda: compiled(x))
    assert "Functional.gelu.0.forward" in dump.data
    assert dump.run["notes"]["compiled"] == [f"{__name__}._double"]


def test_code_that_is_not_compiled_gets_no_note(make: Any, read: Any) -> None:
    compiled = torch.compile(_double, backend="eager")
    compiled(torch.ones(2))
    plain = torch.compiler.disable(_double)
    run = _recorded(make, read, "mix", nn.Sequential(nn.Linear(2, 2)), lambda: plain(torch.ones(2))).run
    assert "compiled" not in run
    assert "notes" not in run
