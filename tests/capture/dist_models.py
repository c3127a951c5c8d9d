"""A data-parallel training of two processes with every kind of collective call.

RANK=r WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... python dist_models.py ENGINE TASK FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 6)
        self.fc2 = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.fc2(F.gelu(self.fc1(x)))
        total = hidden.detach().clone()
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        return hidden + total * 0.1


def run(debugger: Any, rank: int) -> None:
    torch.manual_seed(5)
    model = nn.parallel.DistributedDataParallel(Net())
    x = torch.randn(2, 4) + rank
    if debugger is not None:
        debugger.start(model)
    loss = model(x).square().mean()
    loss.backward()
    later = torch.full((3,), float(rank + 1))
    work = dist.all_reduce(later, async_op=True)
    work.wait()
    rows = [torch.zeros(2) for _ in range(2)]
    dist.all_gather(rows, torch.full((2,), float(rank)))
    flat = torch.zeros(4)
    dist.all_gather_into_tensor(flat, torch.full((2,), float(rank)))
    dist.broadcast(later, src=1)
    if rank == 0:
        dist.send(torch.arange(3.0), dst=1)
    else:
        dist.recv(torch.zeros(3), src=0)
    ops = [dist.P2POp(dist.isend, torch.ones(2) * rank, 1 - rank), dist.P2POp(dist.irecv, torch.zeros(2), 1 - rank)]
    for one in dist.batch_isend_irecv(ops):
        one.wait()
    if debugger is not None:
        debugger.stop()
        debugger.step()


def main(engine: str, task: str, folder: str) -> None:
    rank = int(os.environ["RANK"])
    path = os.path.join(folder, f"config{rank}.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"task": task, "dump_path": os.path.join(folder, "dump"), "level": "mix"}, out)
    debugger: Any = None
    if engine == "dumpscope":
        from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

        debugger = PrecisionDebugger(path)
    elif engine == "msprobe":
        from msprobe.pytorch import PrecisionDebugger as Peer  # type: ignore[import-not-found]  # noqa: PLC0415

        debugger = Peer(path)
    dist.init_process_group("gloo")
    before = (dist.all_reduce, dist.send, dist.Work.wait)
    run(debugger, rank)
    if engine == "dumpscope":
        assert (dist.all_reduce, dist.send, dist.Work.wait) == before
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
