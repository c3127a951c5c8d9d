"""A training of four steps, killed in the middle of the third where asked: `python killed_training.py FOLDER LEVEL kill|live`."""

from __future__ import annotations

import os
import signal
import sys

import torch
from torch import nn

from dumpscope_capture import PrecisionDebugger


class Deadly(nn.Module):
    """Ends the process in its third call."""

    def __init__(self, *, deadly: bool) -> None:
        super().__init__()
        self.deadly = deadly
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.deadly and self.calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return x


def main(folder: str, level: str, how: str) -> None:
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4), Deadly(deadly=how == "kill"), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = PrecisionDebugger(dump_path=folder, level=level)
    for _ in range(4):
        debugger.start(model, rank_id=0)
        model(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
        debugger.stop()
        debugger.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
