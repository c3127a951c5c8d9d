"""A data-parallel training of two or more processes with every kind of collective call."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


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
    """One step; the process group stands."""
    size = dist.get_world_size()
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
    rows = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(rows, torch.full((2,), float(rank)))
    flat = torch.zeros(2 * size)
    dist.all_gather_into_tensor(flat, torch.full((2,), float(rank)))
    dist.broadcast(later, src=1)
    if rank % 2 == 0:
        dist.send(torch.arange(3.0), dst=rank + 1)
    else:
        dist.recv(torch.zeros(3), src=rank - 1)
    ahead, behind = (rank + 1) % size, (rank - 1) % size
    ops = [dist.P2POp(dist.isend, torch.ones(2) * rank, ahead), dist.P2POp(dist.irecv, torch.zeros(2), behind)]
    for one in dist.batch_isend_irecv(ops):
        one.wait()
    if debugger is not None:
        debugger.stop()
        debugger.step()


def shard(debugger: Any, rank: int) -> None:
    """One step of a linear layer whose weight is cut over the processes, and gathered results."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(3)
    layer = nn.Linear(4, 6)
    layer.weight = nn.Parameter(distribute_tensor(layer.weight.detach(), mesh, [Shard(0)]))
    layer.bias = nn.Parameter(distribute_tensor(layer.bias.detach(), mesh, [Shard(0)]))
    model = nn.Sequential(layer)
    x = distribute_tensor(torch.arange(8.0).reshape(2, 4), mesh, [Replicate()])
    if debugger is not None:
        debugger.start(model)
    out = F.gelu(model(x))
    out.redistribute(mesh, [Replicate()]).to_local().square().mean().backward()
    if debugger is not None:
        debugger.stop()
        debugger.step()
    gathered = layer.weight.grad.full_tensor()  # type: ignore[union-attr]
    assert gathered.shape == (6, 4)


def shard_fully(debugger: Any, rank: int) -> None:
    """Two passes of a model whose parameters are whole only while they are used."""
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(5)
    model = Net()
    for part in (model.fc1, model.fc2, model):
        fully_shard(part, mesh=mesh)
    if debugger is not None:
        debugger.start(model)
    for _ in range(2):
        model(torch.randn(2, 4) + rank).square().mean().backward()
    if debugger is not None:
        debugger.stop()
        debugger.step()
