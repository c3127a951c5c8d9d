"""A small causal model with a KV cache, and the ways in which one sequence or one batch can be computed in several passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils._python_dispatch import TorchDispatchMode

IDS = torch.randint(3, 40, (4, 6), generator=torch.Generator().manual_seed(5))
Cache = list[tuple[torch.Tensor, torch.Tensor] | None]
Run = Callable[[nn.Module], None]


class Rms(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    """Two heads, rotary positions, keys and values of earlier positions from a cache. eager: the softmax is written out"""

    def __init__(self, place: int, *, eager: bool) -> None:
        super().__init__()
        self.place, self.eager = place, eager
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(16, 16, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: Cache | None) -> torch.Tensor:
        q, k, v = (part(x).unflatten(-1, (2, 8)).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj))
        q, k = (one * cos + torch.cat((-one[..., 4:], one[..., :4]), -1) * sin for one in (q, k))
        if cache is not None:
            held = cache[self.place]
            if held is not None:
                k, v = torch.cat((held[0], k), 2), torch.cat((held[1], v), 2)
            cache[self.place] = k, v
        if self.eager:
            scores = torch.matmul(q, k.transpose(-1, -2)) * 8**-0.5
            places = torch.arange(k.shape[2]), torch.arange(q.shape[2]) + (k.shape[2] - q.shape[2])
            scores = scores.masked_fill(places[0][None] > places[1][:, None], -1e9)
            made = torch.matmul(F.softmax(scores, -1), v)
        else:
            made = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
        found: torch.Tensor = self.o_proj(made.transpose(1, 2).flatten(2))
        return found


class Layer(nn.Module):
    def __init__(self, place: int, *, eager: bool) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2 = Rms(16), Attention(place, eager=eager), Rms(16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: Cache | None) -> torch.Tensor:
        x = x + self.attn(self.norm1(x), cos, sin, cache)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, *, eager: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.layers = nn.ModuleList(Layer(place, eager=eager) for place in range(2))
        self.norm, self.head = Rms(16), nn.Linear(16, 40, bias=False)

    def forward(self, ids: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        past = 0 if cache is None or cache[0] is None else cache[0][0].shape[2]
        angles = torch.arange(past, past + ids.shape[1])[:, None] / 100 ** (torch.arange(4) / 4)
        angles = torch.cat((angles, angles), -1)
        x, cos, sin = self.words(ids), angles.cos(), angles.sin()
        for layer in self.layers:
            x = layer(x, cos, sin, cache)
        x = self.norm(x)
        logits: torch.Tensor = self.head(x if cache is None else x[:, -1:])
        return logits


def whole(rows: int = 1, length: int = 6) -> Run:
    """One pass over the sequences, without a cache."""

    def run(model: nn.Module) -> None:
        with torch.no_grad():
            model(IDS[:rows, :length])

    return run


def decode(prefill: int, rows: int = 1, length: int = 6) -> Run:
    """A pass over the first places, then one pass per place. prefill: their number"""

    def run(model: nn.Module) -> None:
        cache: Cache = [None, None]
        with torch.no_grad():
            model(IDS[:rows, :prefill], cache)
            for place in range(prefill, length):
                logits = model(IDS[:rows, place : place + 1], cache)
                logits[:, -1].argmax(-1)

    return run


def train(rows: int, *, mean: bool = True, order: tuple[int, ...] = (0, 1, 2, 3), padded: bool = False) -> Run:
    """A step over four sequences, `rows` at a time, in this order. mean: the loss is divided by the number of passes
    padded: another number of labels counts in every row"""

    def run(model: nn.Module) -> None:
        batches = IDS[list(order)].split(rows)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for ids in batches:
            labels = ids.roll(-1, 1)
            if padded:
                labels = labels.masked_fill(torch.arange(labels.shape[1]) < ids[:, :1] % 5, -100)
            (ids > 2).sum()
            loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
            (loss / len(batches) if mean and len(batches) > 1 else loss).backward()
        optimizer.step()

    return run


class Fault(TorchDispatchMode):
    """One kernel's result is 5 % too large in its n-th call and right in all others."""

    def __init__(self, kernel: str, call: int) -> None:
        super().__init__()
        self.kernel, self.left = kernel, call

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ != self.kernel:
            return made
        self.left -= 1
        return made * 1.05 if self.left == -1 else made
