"""One rank of a data-parallel training that is watched, bare and watched, with gradients in buckets and beside them.

python -m capture.monitored_ranks FOLDER     with RANK and WORLD_SIZE
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from dumpscope_capture.monitor import Monitor

STEPS = 4


def train(path: str | None, *, views: bool) -> list[torch.Tensor]:
    """Gradients and weights of a training with two backward passes a step, the first one without communication."""
    rank = dist.get_rank()
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(80, 96), nn.GELU(), nn.Linear(96, 4))
    wrapped = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=views, bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(100 + rank)
    monitor: Any = None if path is None else Monitor(wrapped, optimizer, path)
    local = []
    kept = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with wrapped.no_sync():
            wrapped(torch.randn(8, 80)).square().mean().backward()
        wrapped(torch.randn(8, 80)).square().mean().backward()
        kept += [one.grad.clone() for one in model.parameters()]
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
        if monitor is not None:
            monitor.step()
        local += [one.grad.clone() for one in model.parameters()]
    if monitor is not None:
        monitor.close()
        assert monitor.errors.counts == {}, monitor.errors.counts
    return [*kept, *local, *model.parameters()]


def main(folder: str) -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    for views in (False, True):
        bare = train(None, views=views)
        watched = train(f"{folder}/views-{views}", views=views)
        assert all(torch.equal(one, other) for one, other in zip(bare, watched, strict=True))
        torch.save([one.detach() for one in watched], f"{folder}/views-{views}-rank{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
