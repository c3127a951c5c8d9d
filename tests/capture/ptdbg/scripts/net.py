"""The network that the example scripts train."""

from __future__ import annotations

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.norm(self.first(x)))
        return self.last(self.drop(hidden))


def train(net: nn.Module, x: torch.Tensor, scale: float = 1.0) -> None:
    """One forward and one backward."""
    (net(x) * scale).square().mean().backward()
