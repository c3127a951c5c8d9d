"""Make steps.tar.xz: real trainings of three steps in one process, statistics by our own capture, with modules and gradients.

python tests/data/make_steps.py        writes the archive beside this file; needs torch

    golden      plain
    rate        the learning rate is wrong in the optimizer of step 1
    scaled      the gradients are multiplied by 1.2 between backward and optimizer of step 1
    one_weight  one weight is overwritten between step 1 and step 2
    noisy       healthy, every matrix product with relative noise of 1e-6, as other hardware
    noisy_rate, noisy_tokens    the same with the wrong rate, with other token ids in step 2
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

ARCHIVE = Path(__file__).with_name("steps.tar.xz")
CASES = ("golden", "rate", "scaled", "one_weight", "noisy", "noisy_rate", "noisy_tokens")


class Noise(TorchDispatchMode):
    """Other hardware: relative noise in matrix products, forward and backward."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in ("mm", "addmm", "bmm"):
            with torch._C.DisableTorchFunction():  # nor does a capture see it
                out = out * (1 + 1e-6 * torch.randn(out.shape, generator=self.generator))
        return out

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(11)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.up = nn.Linear(12, 24)
        self.down = nn.Linear(24, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 12)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(12, 20)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.tokens(ids)))


def train(debugger: Any, case: str) -> None:
    torch.manual_seed(3)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(3):
        ids = torch.randint(0, 20, (4, 6), generator=torch.Generator().manual_seed(step))
        if case == "noisy_tokens" and step == 2:
            ids = ids.flip(0).clamp(max=15)
        debugger.start(model)
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        debugger.stop()
        debugger.step()
        if step == 1 and case == "scaled":
            for weight in model.parameters():
                assert weight.grad is not None
                weight.grad.add_(torch.sign(weight.grad) * 0.01)
        optimizer.param_groups[0]["lr"] = 2e-2 if step == 1 and case.endswith("rate") else 1e-2
        optimizer.step()
        if step == 1 and case == "one_weight":
            with torch.no_grad():
                model.blocks[1].up.weight.mul_(1.1)


def main(folder: str, case: str) -> None:
    from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

    torch.set_num_threads(1)
    config = Path(folder) / f"{case}.json"
    settings = {"task": "statistics", "level": "mix", "dump_path": f"{folder}/{case}", "statistics": {}}
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = PrecisionDebugger(str(config))
    if case.startswith("noisy"):
        with Noise():
            train(debugger, case)
    else:
        train(debugger, case)


def pack(folder: Path) -> None:
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        for path in sorted(folder.glob("*/step*/*/*.json")):
            if path.name == "run.json":
                continue
            text = path.read_text(encoding="utf-8").replace(str(Path(__file__).parent), "/home/user/train")
            data = text.replace(str(folder), "/home/user").encode()
            place = path.relative_to(folder)
            entry = tarfile.TarInfo(str(place.parent.with_name("rank0") / place.name))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def make() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        for case in CASES:
            subprocess.run([sys.executable, __file__, str(folder), case], check=True)
        pack(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    make() if len(sys.argv) == 1 else main(*sys.argv[1:])
