"""Make versions.tar.xz: one training step of one model, run on two versions of torch, hashes and statistics by our own capture.

python tests/data/make_versions.py OLD NEW        writes the archive beside this file

OLD, NEW: Python interpreters, each with its torch (2.1 and 2.14 were used) and dumpscope_capture.

    old         on the old torch
    old_fault   the same, the result of the second gelu is 0.1 % too large
    new         on the new torch
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).with_name("versions.tar.xz")
CASES = ("old", "old_fault", "new")


def train(folder: str, case: str) -> None:
    import torch  # noqa: PLC0415
    import torch.nn.functional as F  # noqa: N812, PLC0415
    from torch import nn  # noqa: PLC0415
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

    from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

    class Fault(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ == "gelu":
                self.calls += 1
                if self.calls == 2 and case == "old_fault":
                    with torch._C.DisableTorchFunction():  # nor does a capture see it
                        out = out * 1.001
            return out

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(64)
            self.up = nn.Linear(64, 128)
            self.down = nn.Linear(128, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.down(F.gelu(self.up(self.norm(x))))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(50, 64)
            self.blocks = nn.Sequential(Block(), Block(), Block())
            self.head = nn.Linear(64, 50)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.blocks(self.tokens(ids)))

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Net()
    with torch.no_grad():  # every version draws the same from this
        for place, weight in enumerate(model.parameters()):
            wave = torch.sin(torch.arange(weight.numel(), dtype=torch.float64) * (place + 1) * 0.7 + place)
            weight.copy_((wave * 0.2).reshape(weight.shape).to(torch.float32))
    ids = torch.arange(32).reshape(2, 16)
    config = Path(folder) / f"{case}.json"
    settings = {"task": "statistics", "level": "mix", "dump_path": f"{folder}/{case}"}
    config.write_text(json.dumps({**settings, "statistics": {"summary_mode": "md5"}}), encoding="utf-8")
    debugger = PrecisionDebugger(str(config))
    with Fault():
        debugger.start(model)
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        debugger.stop()
        debugger.step()


def pack(folder: Path, prefixes: tuple[str, ...]) -> None:
    """prefixes: folders whose names stacks hold"""
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        for path in sorted(folder.glob("*/step*/*/*.json")):
            text = path.read_text(encoding="utf-8").replace(str(Path(__file__).parent), "/home/user/train")
            for prefix in prefixes:
                text = text.replace(prefix, "/home/user/python")
            data = text.replace(str(folder), "/home/user").encode()
            place = path.relative_to(folder)
            entry = tarfile.TarInfo(str(place.parent.with_name("rank0") / place.name))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def make(old: str, new: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            subprocess.run([new if case == "new" else old, __file__, "run", folder, case], check=True)
        pack(Path(folder), tuple(str(Path(one).parents[1]) for one in (old, new)))


if __name__ == "__main__":
    train(*sys.argv[2:]) if sys.argv[1] == "run" else make(*sys.argv[1:])
