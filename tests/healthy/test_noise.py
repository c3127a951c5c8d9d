"""Noise that the analysis knows as noise is not No."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402

from dumpscope.domain.result import Answer, Unit  # noqa: E402
from healthy.recording import recorded, verdicts  # noqa: E402


class Net(nn.Module):
    """A bias before a norm: its gradient is zero but for rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(torch.tanh(self.norm(self.conv(x))).mean((2, 3)))
        return found


def step(scale: float = 1.0) -> tuple[nn.Module, Any]:
    torch.manual_seed(1)
    net = Net()
    x = torch.randn(8, 3, 12, 12) * scale

    def run() -> None:
        (net(x).square().mean()).backward()

    return net, run


def answer(folder: Path, task: str, scale: float) -> tuple[Answer, Unit]:
    net, run = step(scale)
    target = recorded(folder / "target", run, model=net, task=task)
    net, run = step()
    golden = recorded(folder / "golden", run, model=net, task=task)
    found, units = compare(target, golden)
    return found, units[0]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_gradient_that_cancels_is_a_warning(tmp_path: Path, task: str) -> None:
    found, unit = answer(tmp_path, task, 1 + 2e-6)
    rules = verdicts(unit)
    assert "C-1" in rules.values(), rules
    assert found.counts.no == 0, rules
