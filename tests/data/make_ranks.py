"""Make ranks.tar.xz: real gloo runs of four processes with every kind of communication, dumped by our own capture.

python tests/data/make_ranks.py        writes the archive beside this file; needs torch

Each folder is one run of `exchange`; all but `golden` hold one fault (`FAULTS`), planted below the capture:

    relu        rank 1: one NaN in the output of its relu, which the first all_reduce spreads
    reduced     rank 2 and 3 get a wrong sum from the all_reduce of their own group
    everywhere  every rank gets a wrong sum from the first all_reduce
    late        rank 3, after many calls of its own: its first relu is wrong; rank 0: softmax, after the first all_reduce
    received    rank 3: a wrong message arrives from rank 2
    sent        rank 2: its silu is wrong, rank 3 receives it by recv, rank 0 and all others in the ring later
    rubbish     what non-members of a message hold: other buffers handed to broadcast, recv and scatter, leftovers of reduce
    root        rank 2: wrong gelu, seen by the group of 2 and 3, and by all through the broadcast from 2
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch.utils._python_dispatch import TorchDispatchMode

ARCHIVE = Path(__file__).with_name("ranks.tar.xz")
SIZE = 4
CASES = ("golden", "relu", "reduced", "everywhere", "late", "received", "sent", "rubbish", "root")

Spoil = Callable[[torch.Tensor], torch.Tensor]


class Planted(TorchDispatchMode):
    """Spoils the output of the n-th call of an aten operator."""

    def __init__(self, *faults: tuple[str, int, Spoil]) -> None:
        super().__init__()
        self._faults = faults
        self._calls: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        number = self._calls.get(name, 0)
        self._calls[name] = number + 1
        for wanted, at, spoil in self._faults:
            if wanted == name and at == number:
                with torch._C.DisableTorchFunction():  # a capture does not see it
                    out = spoil(out)
        return out


def nan(out: torch.Tensor) -> torch.Tensor:
    out = out.clone()
    out.view(-1)[3] = float("nan")
    return out


def shifted(out: torch.Tensor) -> torch.Tensor:
    return out + 0.05


def spoil_call(name: str, number: int) -> None:
    """The n-th call of a collective adds something to its result, below what a capture sees."""
    genuine, calls = getattr(dist, name), [0]

    def spoiled(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = genuine(tensor, *args, **kwargs)
        if calls[0] == number:
            tensor.add_(0.05)
        calls[0] += 1
        return result

    spoiled.__name__ = name
    setattr(dist, name, spoiled)


def exchange(rank: int, group: Any, *, rubbish: float) -> None:
    """One step with every kind of communication. group: of ranks 0 and 1, or 2 and 3; rubbish: what unread buffers hold"""
    torch.manual_seed(7)
    first, second = torch.randn(6, 4), torch.randn(6, 6, requires_grad=True)
    x = torch.randn(3, 4) + rank
    if rank == 3:  # a rank with much more to do before it first communicates
        for _ in range(12):
            x = F.hardtanh(x, -9.0, 9.0)
    h = F.relu(F.linear(x, first))
    total = h.clone()
    dist.all_reduce(total)
    h = F.layer_norm(h + total, (6,))
    h = F.softmax(F.linear(h, second), -1)
    h = F.gelu(h)
    part = h.detach().clone()
    dist.all_reduce(part, group=group)
    h = F.silu(h + part)
    message = h.detach().clone()
    if rank % 2 == 0:
        dist.send(message, rank + 1)
    else:
        message = torch.full((3, 6), rubbish)
        dist.recv(message, src=rank - 1)
    h = F.tanh(h + message)
    told = h.detach().clone() if rank == 2 else torch.full((3, 6), rubbish)
    dist.broadcast(told, src=2)
    h = F.hardswish(h + told)
    ring = torch.full((3, 6), rubbish)
    ops = [
        dist.P2POp(dist.isend, h.detach().clone(), (rank + 1) % SIZE),
        dist.P2POp(dist.irecv, ring, (rank - 1) % SIZE),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    h = F.elu(h + ring)
    rows = [torch.zeros(3, 6) for _ in range(SIZE)] if rank == 1 else None
    dist.gather(h.detach().clone(), rows, dst=1)
    mine = torch.full((3, 6), rubbish)
    dist.scatter(mine, [row * 2.0 for row in rows] if rows else None, src=1)
    h = F.selu(h + mine)
    kept = h.detach().clone()
    dist.reduce(kept, dst=0)
    if rank == 0:
        h = F.celu(h + kept)
    pieces = [torch.zeros(3, 6) for _ in range(SIZE)]
    dist.all_gather(pieces, h.detach().clone())
    h = F.mish(h + sum(pieces))
    h.square().mean().backward()


def case(name: str, rank: int) -> list[tuple[str, int, Spoil]]:
    """Faults of a run on this rank."""
    if name == "relu" and rank == 1:
        return [("relu", 0, nan)]
    if name == "reduced" and rank >= 2:
        spoil_call("all_reduce", 1)
    if name == "everywhere":
        spoil_call("all_reduce", 0)
    if name == "late":
        return {3: [("relu", 0, shifted)], 0: [("_softmax", 0, shifted)]}.get(rank, [])
    if name == "received" and rank == 3:
        spoil_call("recv", 0)
    if name == "sent" and rank == 2:
        return [("silu", 0, shifted)]
    if name == "rubbish" and rank > 0:
        spoil_call("reduce", 0)
    if name == "root" and rank == 2:
        return [("gelu", 0, shifted)]
    return []


def main(folder: str, name: str) -> None:
    from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{name}.store", rank=rank, world_size=SIZE)
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    faults = case(name, rank)
    config = Path(folder) / f"{name}.{rank}.json"
    settings = {"task": "statistics", "level": "L1", "dump_path": f"{folder}/{name}", "statistics": {}}
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = PrecisionDebugger(str(config))
    debugger.start()
    with Planted(*faults):
        exchange(rank, groups[rank // 2], rubbish=5.0 if name == "rubbish" else 0.0)
    debugger.stop()
    debugger.step()
    dist.barrier()
    dist.destroy_process_group()


def pack(folder: Path) -> None:
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        for path in sorted(folder.glob("*/step*/rank*/*.json")):
            if path.name == "run.json":
                continue
            text = path.read_text(encoding="utf-8").replace(str(Path(__file__).parent), "/home/user/train")
            data = text.replace(str(folder), "/home/user").encode()
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def make() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        for name in CASES:
            command = [sys.executable, __file__, str(folder), name]
            running = [subprocess.Popen(command, env={**os.environ, "RANK": str(rank)}) for rank in range(SIZE)]
            assert [process.wait(timeout=300) for process in running] == [0] * SIZE, name
        pack(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    make() if len(sys.argv) == 1 else main(*sys.argv[1:])
