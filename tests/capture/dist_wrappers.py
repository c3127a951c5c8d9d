"""Trains small models under the wrappers of torch.distributed, bare and captured, and compares the two bit for bit.

python -m capture.dist_wrappers FOLDER WRAPPER...     with RANK and WORLD_SIZE in the environment; the processes meet in FOLDER

Each captured training writes FOLDER/{wrapper}-{level}-{task}-{summary}.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

SETTINGS: Final = [
    *((level, task, "statistics") for level in ("L0", "L1", "mix") for task in ("statistics", "tensor")),
    ("mix", "statistics", "md5"), ("mix", "tensor", "xor"), ("mix", "structure", "statistics"),
    ("mix", "overflow_check", "statistics"), ("L2", "tensor", "md5"),
]  # fmt: skip
"""(level, task, summary_mode) of the captured trainings."""

STEPS: Final = 2

Made = tuple[nn.Module, torch.optim.Optimizer]


class Net(nn.Module):
    """Values of both signs and zeros, dropout, an in-place activation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.last = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.norm(self.first(x)), inplace=True)
        return self.last(F.dropout(hidden, 0.1, self.training))


def _net() -> nn.Sequential:
    torch.manual_seed(7)
    return nn.Sequential(Net(), Net())


def ddp() -> Made:
    model = nn.parallel.DistributedDataParallel(_net())
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def zero() -> Made:
    """Each rank holds the state of the optimizer for a part of the parameters."""
    from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: PLC0415

    model = nn.parallel.DistributedDataParallel(_net())
    return model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)


def fsdp1() -> Made:
    return _fsdp1(originals=False)


def fsdp1_originals() -> Made:
    return _fsdp1(originals=True)


def _fsdp1(*, originals: bool) -> Made:
    from torch.distributed.fsdp import FullyShardedDataParallel as Wrapper  # noqa: PLC0415

    options: dict[str, Any] = {"use_orig_params": originals, "device_id": torch.device("cpu")}
    model = _net()
    for place in range(2):
        model[place] = Wrapper(model[place], **options)
    whole = Wrapper(model, **options)
    return whole, torch.optim.AdamW(whole.parameters(), lr=0.01)


def fsdp2() -> Made:
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = _net()
    for part in model:
        fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


class Partitioned:
    """Keeps a part of each parameter on each rank, and the whole only around its use: hooks of the modules exchange the memory
    behind a parameter, as wrappers do that partition parameters."""

    def __init__(self, model: nn.Module) -> None:
        self.parts: dict[nn.Parameter, tuple[torch.Tensor, torch.Size]] = {}
        for module in model.modules():
            own = list(module.parameters(recurse=False))
            for one in own:
                part = one.data.flatten().tensor_split(dist.get_world_size())[dist.get_rank()].clone()
                self.parts[one] = part, one.shape
                one.register_post_accumulate_grad_hook(self._keep_part)
            if own:
                module.register_forward_pre_hook(lambda module, args: self._gather(module))
                module.register_forward_hook(lambda module, args, result: self._release(module, result))
                self._release(module)

    def _gather(self, module: nn.Module) -> None:
        for one in module.parameters(recurse=False):
            part, shape = self.parts[one]
            whole = torch.empty(shape.numel())
            dist.all_gather_into_tensor(whole, part)
            one.data = whole.view(shape)

    def _release(self, module: nn.Module, result: torch.Tensor | None = None) -> None:
        if result is not None:
            result.register_hook(lambda gradient: self._gather(module))
        for one in module.parameters(recurse=False):
            one.data = torch.empty(0)

    def _keep_part(self, one: torch.Tensor) -> None:
        assert isinstance(one, nn.Parameter)
        assert one.grad is not None
        dist.all_reduce(one.grad)
        part = self.parts[one][0]
        part.grad = one.grad.flatten().tensor_split(dist.get_world_size())[dist.get_rank()].clone()
        one.grad = None
        one.data = torch.empty(0)


def partitioned() -> Made:
    model = _net()
    wrapper = Partitioned(model)
    return model, torch.optim.SGD([part for part, _ in wrapper.parts.values()], lr=0.1, momentum=0.9)


def tensor_parallel() -> Made:
    from torch.distributed.tensor.parallel import (  # noqa: PLC0415
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


WRAPPERS: Final[dict[str, Callable[[], Made]]] = {
    one.__name__: one for one in (ddp, zero, fsdp1, fsdp1_originals, fsdp2, partitioned, tensor_parallel)
}


def train(make: Callable[[], Made], debugger: Any, rank: int) -> list[torch.Tensor]:
    """Losses, gradients, random states and weights, as this rank has them."""
    model, optimizer = make()
    torch.manual_seed(11 if make is tensor_parallel else 11 + rank)
    kept: list[torch.Tensor] = []
    for _ in range(STEPS):
        x = torch.randn(4, 8)
        x[0] = 0
        if debugger is not None:
            debugger.start(model)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        kept += [loss.detach().clone(), torch.get_rng_state()]
        kept += [_local(value.grad).clone() for value in _trained(optimizer) if value.grad is not None]
        optimizer.zero_grad()
    return [*kept, *(_local(value.detach()).clone() for value in _trained(optimizer))]


def _trained(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [value for group in optimizer.param_groups for value in group["params"]]


def _local(value: Any) -> torch.Tensor:
    local: torch.Tensor = value.to_local() if hasattr(value, "to_local") else value
    return local


def main(folder: str, names: list[str]) -> int:
    from capture.conftest import forget  # noqa: PLC0415
    from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    wrong = []
    for name in names:
        make = WRAPPERS[name]
        bare = train(make, None, rank)
        for level, task, mode in SETTINGS:
            label = f"{name}-{level}-{task}-{mode}"
            section: dict[str, Any] = {"overflow_nums": -1} if task == "overflow_check" else {"summary_mode": mode}
            settings = {"task": task, "dump_path": f"{folder}/{label}", "level": level, task: section}
            path = Path(folder, f"{label}.{rank}.json")
            path.write_text(json.dumps(settings), encoding="utf-8")
            try:
                captured = train(make, PrecisionDebugger(str(path)), rank)
            except Exception as error:
                wrong.append(f"{label}: {type(error).__name__}: {error}")
                break
            finally:
                forget()
            if not all(torch.equal(one, other) for one, other in zip(bare, captured, strict=True)):
                wrong.append(f"{label}: other numbers")
    dist.destroy_process_group()
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
