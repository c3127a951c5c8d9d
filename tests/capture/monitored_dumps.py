"""One rank of a training with a loss that is NaN on rank 1 alone.

python -m capture.monitored_dumps FOLDER     with RANK and WORLD_SIZE
"""

from __future__ import annotations

import math
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

from dumpscope_capture.monitor import Monitor

STEPS = 14
BAD = 4


def main(folder: str) -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dump = {"dump_path": f"{folder}/dump", "level": "L0", "steps": 2}
    with Monitor(model, optimizer, f"{folder}/monitor", flush_every=3, dump=dump) as monitor:
        for step in range(STEPS):
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            monitor.step(loss=math.nan if (rank, step) == (1, BAD) else 1.0)
    assert monitor.errors.counts == {}, monitor.errors.counts
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
