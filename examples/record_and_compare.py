"""Record two runs of one small model, the second with a fault, and compare them.

    python examples/record_and_compare.py FOLDER

The model is trained for two steps on the CPU. In the second run the exact GELU is replaced by its tanh approximation: the
results look right and differ by less than 0.1 %. The answer names the call, the argument, and the line below that made it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from dumpscope_capture import PrecisionDebugger, seed_all

STEPS = 2


class Model(nn.Module):
    """Two linear layers with a GELU between them. approximate: what torch's GELU takes, "none" or "tanh"."""

    def __init__(self, approximate: str) -> None:
        super().__init__()
        self.approximate = approximate
        self.first = nn.Linear(16, 32)
        self.second = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = functional.gelu(self.first(x), approximate=self.approximate)
        return self.second(hidden)


def record(folder: Path, approximate: str) -> None:
    """Train for two steps and record every call with its tensors. The seed makes both runs start alike."""
    seed_all(7)
    model = Model(approximate)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = PrecisionDebugger(dump_path=str(folder), task="tensor", level="mix", model=model)
    for _ in range(STEPS):
        with debugger:  # starts recording, stops it, and counts the step
            loss = model(torch.randn(8, 16)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main() -> int:
    """Record each run in a process of its own, for a process holds one debugger, then compare."""
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        record(folder, sys.argv[2])
        return 0
    target, golden = folder / "target", folder / "golden"
    for dump, approximate in ((target, "tanh"), (golden, "none")):
        subprocess.run([sys.executable, __file__, dump, approximate], check=True)
    return subprocess.run([sys.executable, "-m", "dumpscope", "compare", target, golden], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
