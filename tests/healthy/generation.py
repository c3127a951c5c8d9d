"""A small model that generates: keys and values in a cache that grows, in one of full length, or made again in every pass."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils._python_dispatch import TorchDispatchMode

from healthy.tokens import Rms

IDS = torch.randint(3, 40, (2, 4), generator=torch.Generator().manual_seed(5))
NEW = 4
"""Words that are generated."""
Run = Callable[["Generator"], None]


class Growing:
    """Keys and values so far, by layer."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        self.past = 0

    def length(self, count: int) -> int:
        return self.past + count

    def take(self, layer: str, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if layer in self.held:
            k, v = torch.cat((self.held[layer][0], k), 2), torch.cat((self.held[layer][1], v), 2)
        self.held[layer] = k, v
        return k, v


class Behind(Growing):
    """The model takes all words in each pass, and cuts off behind its tables what the cache holds."""


class Full(Growing):
    """Keys and values of full length from the beginning; what is not filled yet is zero."""

    def length(self, count: int) -> int:
        return IDS.shape[1] + NEW + 1

    def take(self, layer: str, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if layer not in self.held:
            shape = (*k.shape[:2], self.length(0), k.shape[3])
            self.held[layer] = torch.zeros(shape), torch.zeros(shape)
        at = torch.arange(k.shape[2]) + self.past
        for whole, part in zip(self.held[layer], (k, v), strict=True):
            whole.index_copy_(2, at, part)
        return self.held[layer]


class Attention(nn.Module):
    """Two queries share a head of keys and values. eager: the softmax is written out"""

    def __init__(self, name: str, *, eager: bool) -> None:
        super().__init__()
        self.name, self.eager = name, eager
        self.q_proj, self.o_proj = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.k_proj, self.v_proj = nn.Linear(16, 8, bias=False), nn.Linear(16, 8, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None, cache: Growing | None) -> torch.Tensor:
        q = self.q_proj(x).unflatten(-1, (2, 8)).transpose(1, 2)
        k, v = self.k_proj(x)[:, None], self.v_proj(x)[:, None]
        if cache is not None:
            k, v = cache.take(self.name, k, v)
        count = x.shape[1]
        if self.eager:
            scores = torch.matmul(q, k.expand(-1, 2, -1, -1).transpose(-1, -2)) * 8**-0.5 + mask
            made = torch.matmul(F.softmax(scores, -1), v.expand(-1, 2, -1, -1))
        elif mask is not None and count == 1:  # queries of a group as more queries of one head
            made = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=mask == 0).transpose(1, 2)
        elif mask is not None:
            made = F.scaled_dot_product_attention(q, k, v, attn_mask=mask == 0, enable_gqa=True)
        else:
            made = F.scaled_dot_product_attention(q, k, v, is_causal=count > 1, enable_gqa=True)
        found: torch.Tensor = self.o_proj(made.transpose(1, 2).flatten(2))
        return found


class Cross(nn.Module):
    """Attention to what an encoder made, whose keys and values are made once where there is a cache."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(16, 16, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor, seen: torch.Tensor, cache: Growing | None) -> torch.Tensor:
        if cache is not None and self.name in cache.held:
            k, v = cache.held[self.name]
        else:
            k, v = self.k_proj(seen), self.v_proj(seen)
            if cache is not None:
                cache.held[self.name] = k, v
        scores = torch.matmul(self.q_proj(x), k.transpose(1, 2)) * 0.25
        found: torch.Tensor = torch.matmul(F.softmax(scores, -1), v)
        return found


class Layer(nn.Module):
    def __init__(self, place: int, *, eager: bool, cross: bool) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2 = Rms(16), Attention(f"{place}", eager=eager), Rms(16)
        self.cross = Cross(f"cross {place}") if cross else None
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None, cache: Growing | None, seen: torch.Tensor | None
    ) -> torch.Tensor:
        x = x + self.attn(self.norm1(x), mask, cache)
        if self.cross is not None:
            x = x + self.cross(x, seen, cache)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, *, eager: bool, cross: bool) -> None:
        super().__init__()
        self.eager = eager
        self.words, self.places = nn.Embedding(40, 16), nn.Embedding(16, 16)
        self.layers = nn.ModuleList(Layer(place, eager=eager, cross=cross) for place in range(2))
        self.norm, self.head = Rms(16), nn.Linear(16, 40, bias=False)

    def forward(self, ids: torch.Tensor, cache: Growing | None, seen: torch.Tensor | None) -> torch.Tensor:
        past, count = 0 if cache is None or isinstance(cache, Behind) else cache.past, ids.shape[1]
        at = torch.arange(count) + past
        x = self.words(ids) + self.places(at)
        if isinstance(cache, Behind):
            x, at, count = x[:, cache.past :], at[cache.past :], count - cache.past
        mask = None
        if self.eager or isinstance(cache, Full):
            length = count if cache is None else cache.length(count)
            hidden = torch.arange(length)[None, None, None] > at[:, None]
            mask = torch.zeros(1, 1, count, length).masked_fill(hidden, torch.finfo(torch.float32).min)
        for layer in self.layers:
            x = layer(x, mask, cache, seen)
        if cache is not None:
            cache.past += count
        logits: torch.Tensor = self.head(self.norm(x[:, -1:]))
        return logits


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.up, self.down = nn.Embedding(40, 16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = self.words(ids)
        return x + self.down(F.gelu(self.up(x)))


class Generator(nn.Module):
    """encoder: it reads the words, and the decoder begins with one of its own"""

    def __init__(self, *, eager: bool = False, encoder: bool = False) -> None:
        super().__init__()
        self.encoder = Encoder() if encoder else None
        self.decoder = Decoder(eager=eager, cross=encoder)


def generate(kind: type[Growing] | None, chunks: tuple[int, ...] = (4,), rows: int = 1) -> Run:
    """Greedy words. kind: of the cache, None: all words are taken again in every pass; chunks: how the given words are taken"""

    def run(model: Generator) -> None:
        cache = None if kind is None else kind()
        with torch.no_grad():
            ids = IDS[:rows]
            seen = None if model.encoder is None else model.encoder(ids)
            words = ids if seen is None else ids[:, :1]
            ends = [sum(chunks[: place + 1]) for place in range(len(chunks))] if seen is None else [1]
            for begin, end in pairwise([0, *ends]):
                logits = model.decoder(words[:, begin:end], cache, seen)
            for _ in range(NEW):
                words = torch.cat((words, logits[:, -1].argmax(-1, keepdim=True)), 1)
                logits = model.decoder(words if cache is None or kind is Behind else words[:, -1:], cache, seen)

    return run


class WrongPlace(TorchDispatchMode):
    """The n-th write into a cache of full length goes one place too far to the front."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.left = call

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ == "index_copy_":
            self.left -= 1
            if self.left == -1:
                args = (*args[:2], args[2] - 1, *args[3:])
        return func(*args, **(kwargs or {}))
