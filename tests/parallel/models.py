"""A small language model that runs whole, cut into tensor-parallel shards, as pipeline
stages, as data-parallel replicas and by its sequence.

    python -m parallel.models LAYOUT FOLDER [key=value ...]

LAYOUT: whole, tp, pp, dp, cp or tp_pp. Every rank is one process of a gloo group (RANK, WORLD_SIZE, a file in FOLDER); weights
come from one seed, so that all layouts compute the same numbers up to rounding.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn

from dumpscope_capture import PrecisionDebugger

VOCABULARY, WIDTH, HEADS, LAYERS = 24, 16, 4, 4
BATCH, LENGTH = 4, 6


class _Copy(torch.autograd.Function):
    """Whole going forward, summed over the shards going backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        grad = grad.contiguous().clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class _Reduce(torch.autograd.Function):
    """Summed over the shards going forward, whole going backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        x = x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, None


class ColumnParallelLinear(nn.Module):
    """Holds rows of the weight; its output is a share of the features. blocks: the weight is this many matrices in one"""

    def __init__(self, whole: nn.Linear, shard: int, shards: int, group: Any, blocks: int = 1) -> None:
        super().__init__()
        self.group = group
        parts = [block.chunk(shards)[shard] for block in whole.weight.detach().chunk(blocks)]
        self.weight = nn.Parameter(torch.cat(parts).clone())
        parts = [block.chunk(shards)[shard] for block in whole.bias.detach().chunk(blocks)]
        self.bias = nn.Parameter(torch.cat(parts).clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(_Copy.apply(x, self.group), self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """Holds columns of the weight; takes a share of the features, and its partial output is summed over the shards."""

    def __init__(self, whole: nn.Linear, shard: int, shards: int, group: Any) -> None:
        super().__init__()
        self.group = group
        self.weight = nn.Parameter(whole.weight.detach().chunk(shards, dim=1)[shard].clone())
        self.bias = nn.Parameter(whole.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Reduce.apply(F.linear(x, self.weight), self.group) + self.bias


class _Gather(torch.autograd.Function):
    """The whole sequence going forward, this rank's part of the sum going backward. share: places of every rank's part"""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, share: list[list[int]]) -> torch.Tensor:
        ctx.share = share
        parts = [torch.empty_like(x) for _ in share]
        dist.all_gather(parts, x.contiguous())
        whole = x.new_zeros((*x.shape[:2], sum(map(len, share)), x.shape[3]))
        for places, part in zip(share, parts, strict=True):
            whole[:, :, places] = part
        return whole

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad[:, :, ctx.share[dist.get_rank()]], None


class VocabularyParallelEmbedding(nn.Module):
    """Holds rows of the table, which is padded so that every shard has as many; the results are summed over the shards."""

    def __init__(self, whole: nn.Embedding, shard: int, shards: int, group: Any, padded: int) -> None:
        super().__init__()
        self.group, self.first, self.rows = group, shard * padded // shards, padded // shards
        self.weight = nn.Parameter(_padded(whole.weight.detach(), padded).chunk(shards)[shard].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        away = (x < self.first) | (x >= self.first + self.rows)
        found = F.embedding((x - self.first).masked_fill(away, 0), self.weight)
        return _Reduce.apply(found.masked_fill(away[..., None], 0.0), self.group)


def _padded(table: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.cat([table, torch.full((rows - len(table), *table.shape[1:]), 0.25)])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = HEADS
        self.share: list[list[int]] | None = None
        self.qkv: nn.Module = nn.Linear(WIDTH, 3 * WIDTH)
        self.out: nn.Module = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, WIDTH // HEADS).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        if self.share is not None:
            k, v = _Gather.apply(k, self.share), _Gather.apply(v, self.share)
        weights = F.softmax(torch.matmul(q, k.transpose(2, 3)) * (WIDTH // HEADS) ** -0.5, dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, -1)
        return self.out(mixed)


class Mlp(nn.Module):
    def __init__(self, more: int = 0) -> None:
        super().__init__()
        self.up: nn.Module = nn.Linear(WIDTH, 4 * WIDTH + more)
        self.down: nn.Module = nn.Linear(4 * WIDTH + more, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, more: int = 0) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2, self.mlp = nn.LayerNorm(WIDTH), Mlp(more)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Stage(nn.Module):
    """Some layers of the model; the first stage has the embedding, the last one the head."""

    def __init__(self, layers: nn.ModuleList, embedding: nn.Module | None, head: nn.Module | None) -> None:
        super().__init__()
        if embedding is not None:
            self.embedding = embedding
        self.layers = layers
        if head is not None:
            self.head = head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if hasattr(self, "embedding"):
            x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x) if hasattr(self, "head") else x


def build(more: int = 0) -> Stage:
    """more: columns by which the inner width is no multiple of the shards"""
    torch.manual_seed(7)
    model = Stage(
        nn.ModuleList(Block(more) for _ in range(LAYERS)), nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
    )
    for name, parameter in model.named_parameters():
        if "norm" in name:  # otherwise all layers have the same ones
            nn.init.normal_(parameter, mean=1.0, std=0.1)
    return model


def shard(model: Stage, place: int, shards: int, group: Any) -> None:
    """Replace the linear layers of every block by one shard of them."""
    for block in model.layers:
        attention, mlp = block.attention, block.mlp  # type: ignore[union-attr]
        attention.heads = HEADS // shards
        attention.qkv = ColumnParallelLinear(attention.qkv, place, shards, group, blocks=3)
        attention.out = RowParallelLinear(attention.out, place, shards, group)
        mlp.up = ColumnParallelLinear(mlp.up, place, shards, group)
        mlp.down = RowParallelLinear(mlp.down, place, shards, group)


def shard_vocabulary(model: Stage, place: int, shards: int, group: Any, padded: int) -> None:
    """Cut the table of the embedding and the head, both padded to a multiple of the shards."""
    head = model.head
    assert isinstance(head, nn.Linear)
    whole = nn.Linear(WIDTH, padded)
    with torch.no_grad():
        whole.weight.copy_(_padded(head.weight, padded))
        whole.bias.copy_(_padded(head.bias, padded))
    model.embedding = VocabularyParallelEmbedding(model.embedding, place, shards, group, padded)  # type: ignore[arg-type]
    model.head = ColumnParallelLinear(whole, place, shards, group)


class _Logits(torch.autograd.Function):
    """Logits of all shards, without their padding."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any, shards: int) -> torch.Tensor:
        ctx.shards = shards
        parts = [torch.empty_like(x) for _ in range(shards)]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad.chunk(ctx.shards, dim=-1)[dist.get_rank()].contiguous(), None, None


def zigzag(length: int, parts: int) -> list[list[int]]:
    """Places of every part of a sequence: a chunk counted from either end."""
    chunks = torch.arange(length).chunk(2 * parts)
    return [[*chunks[part].tolist(), *chunks[2 * parts - 1 - part].tolist()] for part in range(parts)]


def cut(model: Stage, stage: int, stages: int) -> Stage:
    """The layers of one (virtual) stage, numbered from 0."""
    each = LAYERS // stages
    layers = nn.ModuleList(list(model.layers)[stage * each : (stage + 1) * each])
    first, last = stage == 0, stage == stages - 1
    return Stage(layers, model.embedding if first else None, model.head if last else None)


def plant(model: nn.Module, path: str, fault: str) -> None:
    """Make one module compute something wrong from its input on."""
    module = model.get_submodule(path)
    plain = module.forward

    def wrong(x: torch.Tensor) -> torch.Tensor:
        return plain(x) * 1.5 if fault == "scale" else F.relu(plain(x))

    module.forward = wrong  # type: ignore[method-assign]


def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1))


def train(layout: str, debugger: Any, rank: int, size: int, options: dict[str, str]) -> None:
    """Captures the steps of a training."""
    model = build(int(options.get("more", "0")))
    length = int(options.get("length", LENGTH))
    share = zigzag(length, size) if layout == "cp" else None
    if share is not None:
        for block in model.layers:
            block.attention.share = share  # type: ignore[union-attr]
    stages, shards, chunks = (int(options.get(name, "1")) for name in ("pp", "tp", "vpp"))
    stage, place = rank // shards % stages, rank % shards
    groups = [dist.new_group(list(range(first, first + shards))) for first in range(0, size, shards)]
    if shards > 1:
        shard(model, place, shards, groups[rank // shards])
        if options.get("vocabulary"):
            shard_vocabulary(model, place, shards, groups[rank // shards], int(options["vocabulary"]))
    held: list[Stage] = [cut(model, chunk * stages + stage, stages * chunks) for chunk in range(chunks)]
    if stages == 1:
        held = [model]
    runner: Any = nn.parallel.DistributedDataParallel(model) if layout == "dp" else held if chunks > 1 else held[0]
    if options.get("fault") and rank == int(options["on"]):
        plant(held[0], options["at"], options["fault"])
    optimizer = torch.optim.SGD([one for part in held for one in part.parameters()], lr=0.05)
    for step in range(int(options.get("steps", "1"))):
        torch.manual_seed(100 + step)
        tokens = torch.randint(VOCABULARY, (BATCH, length + 1))
        if options.get("data") == "own":
            tokens = (tokens + rank) % VOCABULARY
        elif layout == "dp" and options.get("data") != "same":
            tokens = tokens.chunk(size)[rank]
        micro = tokens.chunk(int(options.get("micro", "1")))
        debugger.start(runner)
        if stages == 1:
            for part in micro:
                inputs, labels = part[:, :-1], part[:, 1:]
                if share is not None:
                    inputs, labels = inputs[:, share[rank]], labels[:, share[rank]]
                logits = runner(inputs)
                if options.get("vocabulary"):
                    logits = _Logits.apply(logits, groups[rank // shards], shards)[..., :VOCABULARY]
                loss_of(logits, labels).backward()
            if share is not None:
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                    parameter.grad /= size  # type: ignore[operator]
        else:
            run_stages(held, micro, stage, stages, shards, rank)
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()


def run_stages(
    held: list[Stage], micro: tuple[torch.Tensor, ...], stage: int, stages: int, shards: int, rank: int
) -> None:
    """Forward of all micro-batches, then backward; the last of plain stages goes back as soon as it can."""
    inputs: dict[tuple[int, int], torch.Tensor] = {}
    outputs: dict[tuple[int, int], torch.Tensor] = {}
    sent: list[Any] = []  # a blocking send would wait for a neighbour that sends itself
    last = len(held) * stages - 1
    ahead, behind = (rank + shards) % (stages * shards), (rank - shards) % (stages * shards)

    def forward(chunk: int, number: int) -> None:
        part = micro[number]
        virtual = chunk * stages + stage
        x = part[:, :-1]
        if virtual > 0:
            x = torch.zeros(len(part), LENGTH, WIDTH)
            dist.recv(x, src=behind)
            x.requires_grad_()
        y = held[chunk](x)
        inputs[chunk, number] = x
        outputs[chunk, number] = loss_of(y, part[:, 1:]) if virtual == last else y
        if virtual < last:
            sent.append(dist.isend(y.detach().clone(), dst=ahead))

    def backward(chunk: int, number: int) -> None:
        virtual = chunk * stages + stage
        y = outputs[chunk, number]
        if virtual == last:
            y.backward()
        else:
            grad = torch.zeros_like(y)
            dist.recv(grad, src=ahead)
            y.backward(grad)
        if virtual > 0:
            sent.append(dist.isend(inputs[chunk, number].grad.clone(), dst=behind))

    numbers = range(len(micro))
    if len(held) == 1 and stage == stages - 1:
        for number in numbers:
            forward(0, number)
            backward(0, number)
    else:
        for chunk in range(len(held)):
            for number in numbers:
                forward(chunk, number)
        for chunk in reversed(range(len(held))):
            for number in numbers:
                backward(chunk, number)
    for work in sent:
        work.wait()


def main() -> None:
    layout, folder, *rest = sys.argv[1:]
    options = dict(word.split("=", 1) for word in rest)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    if size > 1:
        store = dist.FileStore(str(Path(folder) / "store"), size)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    else:
        dist.new_group = lambda _ranks: None  # type: ignore[assignment]
    task = options.get("task", "statistics")
    settings = {"task": task, "dump_path": str(Path(folder) / "dump"), "level": options.get("level", "mix"), task: {}}
    config = Path(folder) / f"config{rank}.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    train(layout, PrecisionDebugger(str(config)), rank, size, options)
    if size > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
