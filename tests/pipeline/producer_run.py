"""A small training step, recorded by our capture, in which values alone do not tell who made what: `python producer_run.py FOLDER
[LEVEL] [--fault]`. --fault: the kernel behind the first torch.exp is off by one percent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope_capture import PrecisionDebugger


class Gate(nn.Module):
    """Takes and gives containers; what it puts out is a view that no call made."""

    def forward(self, pair: Any, *, scale: torch.Tensor) -> dict[str, Any]:
        return {"left": (pair[0] * scale).view(-1), "right": [F.gelu(pair[1])]}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.gate = Gate()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        once, again = torch.exp(x), torch.exp(x)  # equal, and made by two calls
        hidden = F.relu(self.inner(x))
        twice = F.softmax(hidden, dim=0) + torch.sigmoid(hidden)
        nothing = F.relu(-x.abs() - 1)  # zeros
        grown = torch.sin(once)
        grown.mul_(2)
        gated = self.gate((torch.tanh(grown), torch.cos(nothing)), scale=torch.sigmoid(again))
        return twice.sum() + torch.sin(gated["left"]).sum() + torch.tanh(gated["right"][0]).sum()


class OffByOnePercent(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.left = 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.exp.default and self.left:
            self.left -= 1
            return out * 1.01
        return out


def main(folder: Path, level: str, fault: bool) -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    net, x = Net(), torch.randn(3, 4)
    debugger = PrecisionDebugger(task="statistics", dump_path=str(folder), level=level)
    debugger.start(net)
    if fault:
        with OffByOnePercent():
            net(x).backward()
    else:
        net(x).backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        next((word for word in sys.argv[2:] if not word.startswith("-")), "mix"),
        "--fault" in sys.argv,
    )
