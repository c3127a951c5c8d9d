"""One training run of a small network that dumps, in a forked child. Needs torch, and msprobe for its dumps."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
from torch.utils.checkpoint import set_checkpoint_early_stop

from planted.dumpers import DUMPERS, configured
from planted.faults import Call, Fault, Kernels
from planted.models import MODELS, Net

torch.set_num_threads(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One dump. weight: (parameter, factor or None for one element) changed before the run; batch: the input is changed;
    dtype: other than the group's; kernels: other kernels of this machine ("threads", "plain", "" for the usual ones)"""

    task: str = "tensor"
    level: str = "mix"
    noise: int = 0
    loudness: float = 1.0
    faults: tuple[Fault, ...] = ()
    insert: int | None = None
    changes: bool = False
    weight: tuple[str, float | None] | None = None
    batch: float = 0.0
    approximate: str = "none"
    eps: float = 1e-5
    gain: float = 0.9
    drop: float | None = None
    dtype: str = ""
    kernels: str = ""
    record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """optimizer: "sgd", "adam", or "unseen": its step runs after the dump was stopped. dtype: "autocast" computes in bfloat16
    where torch thinks it safe; micro: batches a step; checkpointed: parts of the forward run again in the backward pass"""

    model: str
    dtype: str
    seed: int
    optimizer: str
    steps: int
    micro: int
    checkpointed: bool
    dumper: str
    folder: Path = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """calls: kernels where they were recorded; hits: those with a fault; inserted: node of the inserted call"""

    calls: list[Call]
    hits: list[Call]
    inserted: str


def made(group: Group, run: Run, path: Path) -> Made:
    """Run the training of a group in a forked child that dumps into `path`."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 1
        try:
            warnings.simplefilter("ignore")
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            answer = _train(group, run, path)
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(answer, pipe)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        raw = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"the run {run} of {group} failed")
    answer: Made = pickle.loads(raw)
    return answer


def _train(group: Group, run: Run, path: Path) -> Made:
    path.mkdir(parents=True)
    if run.kernels == "threads":
        torch.set_num_threads(2)
    if run.kernels == "plain":
        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    net, batches, optimizer = _built(group, run)
    dumper = DUMPERS[group.dumper](configured(path, task=run.task, level=run.level))
    kernels = Kernels(
        dumper, insert_code=Net.place.__code__, faults=run.faults, noise=run.noise, loudness=run.loudness, record=run.record
    )  # fmt: skip
    cast = torch.autocast("cpu", torch.bfloat16) if group.dtype == "autocast" and not run.dtype else nullcontext()
    for step in range(group.steps):
        kernels.step = step
        dumper.debugger.start(model=net)
        # msprobe records no function after a recomputation that was stopped early
        with kernels, set_checkpoint_early_stop(group.dumper == "ours"):
            for batch in batches[step * group.micro : (step + 1) * group.micro]:
                kernels.phase = "forward"
                with cast:
                    loss = net(*batch)
                kernels.phase = "backward"
                loss.backward()
            kernels.phase = "optimizer"
            if group.optimizer != "unseen":
                optimizer.step()
        dumper.debugger.stop()
        if group.optimizer == "unseen":
            optimizer.step()
        dumper.debugger.step()
        optimizer.zero_grad()
    if len(kernels.hits) < len(run.faults):
        raise RuntimeError(f"a kernel of {run.faults} never ran")
    return Made(calls=kernels.calls, hits=kernels.hits, inserted=kernels.inserted)


def _built(group: Group, run: Run) -> tuple[Net, list[tuple[Any, ...]], torch.optim.Optimizer]:
    torch.manual_seed(group.seed)
    net = MODELS[group.model]()
    dtype = getattr(torch, (run.dtype or group.dtype).replace("autocast", "float32"))
    net.to(dtype)
    draw = torch.Generator().manual_seed(group.seed)
    batches = [net.batch(draw) for _ in range(group.steps * group.micro)]
    net.insert, net.changes, net.approximate, net.eps = run.insert, run.changes, run.approximate, run.eps
    net.gain, net.checkpointed = run.gain, group.checkpointed
    if run.drop is not None:
        for module in net.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = run.drop
    if run.batch:
        first, *rest = batches[0]
        changed = first.clone()
        if changed.is_floating_point():
            changed = changed + run.batch
        else:
            changed[0, 0] = (changed[0, 0] + 1) % 32
        batches[0] = (changed, *rest)
    batches = [
        tuple(one.to(dtype) if one.is_floating_point() and number == 0 else one for number, one in enumerate(batch))
        for batch in batches
    ]
    if run.weight:
        name, factor = run.weight
        parameter = net.get_parameter(name)
        with torch.no_grad():
            if factor is None:
                parameter.view(-1)[parameter.numel() // 2] += 0.1
            else:
                parameter.mul_(factor)
    kinds: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "sgd": lambda: torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, foreach=False),
        "unseen": lambda: torch.optim.SGD(net.parameters(), lr=0.05, foreach=False),
        "adam": lambda: torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False),
    }
    torch.manual_seed(group.seed + 1)
    return net, batches, kinds[group.optimizer]()
