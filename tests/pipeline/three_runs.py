"""One small transformer-like net as three runs that differ in precision, dumped by our own capture.

    python three_runs.py OUT float64|float32|bfloat16 tensor|statistics [NORM FACTOR]

NORM FACTOR: the kernel of that layer norm (counted from 0) multiplies what it makes, below what is captured.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope_capture import PrecisionDebugger, seed_all

WIDTH, BLOCKS = 64, 6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = x + self.down(functional.gelu(self.up(self.norm(x))))
        return found


class Planted(TorchDispatchMode):
    """The kernel of one layer norm multiplies what it makes."""

    def __init__(self, norm: int, factor: float) -> None:
        super().__init__()
        self.left, self.factor = norm, factor

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.native_layer_norm.default:
            if self.left == 0:
                made = (made[0] * self.factor, *made[1:])
            self.left -= 1
        return made


def main() -> None:
    out, dtype, task = sys.argv[1:4]
    norm, factor = (int(sys.argv[4]), float(sys.argv[5])) if len(sys.argv) > 4 else (-1, 1.0)
    seed_all(3)
    torch.set_default_dtype(torch.float64)  # the same numbers for all, rounded afterwards
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)])
    x = torch.randn(4, 16, WIDTH)
    precision = getattr(torch, dtype)
    model, x = model.to(precision), x.to(precision)
    debugger = PrecisionDebugger(task=task, dump_path=out, level="mix", step=[0])
    debugger.start(model=model)
    with Planted(norm, factor):
        model(x).square().mean().backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main()
