"""Less of a big run: without the optimizer's calls, and with a limit for tensor files."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn


def _train(debugger: Any, steps: int = 1) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(steps):
        debugger.start(model)
        model(torch.randn(4, 64)).sum().mul(2.0).backward()
        optimizer.step()
        torch.ones(3).mul(2.0)
        debugger.stop()
        debugger.step()


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_without_the_optimizer_all_else_keeps_its_name(make: Any, read: Any, level: str) -> None:
    _train(make(level=level, optimizer=False), steps=2)
    without = read(1)
    assert not without.errors
    assert {name.split(".")[1] for name in without.data if not name.startswith("Module")} == {
        "linear",
        "relu",
        "sum",
        "mul",
    }
    assert "optimizer" not in without.construct
    numbers = [int(name.split(".")[2]) for name in without.data if name.startswith("Tensor.mul.") and "forward" in name]
    assert numbers[0] == 0
    assert len(numbers) == 2


def test_the_limit_ends_files_and_keeps_statistics(make: Any, read: Any, caplog: pytest.LogCaptureFixture) -> None:
    limit = 60_000
    _train(make(task="tensor", level="L1", max_gb=limit / (1 << 30)), steps=2)
    sizes = [
        sum(path.stat().st_size for path in read(step).folder.rglob("*.pt") if path.stat().st_nlink == 1)
        for step in (0, 1)
    ]
    assert 0 < sum(sizes) < limit + 20_000  # the file that passes the limit is whole
    assert read(1).run["counts"]["files_over_max_gb"] > 10
    assert read(1).data["Functional.linear.0.forward"]["output"][0]["Norm"] > 0
    assert "data_name" not in read(1).data["Functional.linear.0.forward"]["output"][0]
    assert sum("max_gb: " in line and "statistics only" in line for line in caplog.messages) == 2  # once a step


def test_the_size_is_told_before_the_first_step_with_tensors(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dumpscope")
    _train(make(task="tensor", level="L1"), steps=2)
    assert sum("the first step with tensors writes at least" in line for line in caplog.messages) == 1
