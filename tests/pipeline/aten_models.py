"""A transformer and a convolution net, one step of each dumped by our own capture at several levels.

    python aten_models.py OUT

Folders OUT/{net}_{level}_{what}. fault: another epsilon in one norm in the middle, which changes no input and no weight;
step: the loss is read, and an optimizer makes a step; good: neither.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from dumpscope_capture import PrecisionDebugger, seed_all

WIDTH, HEADS, WORDS = 32, 4, 50
OUT = Path(sys.argv[1])


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (part.view(rows, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5, -1)
        y = (weights @ v).transpose(1, 2).reshape(rows, length, WIDTH)
        x = x + functional.dropout(self.out(y), 0.1, self.training)
        found: Tensor = x + self.down(functional.gelu(self.up(self.second(x))))
        return found


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(Block(), Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.norm(self.blocks(self.words(x))))
        return found.flatten(0, 1)

    def data(self) -> tuple[Tensor, Tensor]:
        return torch.randint(0, WORDS, (2, 6)), torch.randint(0, WORDS, (12,))

    def break_norm(self) -> None:
        block = self.blocks[1]
        assert isinstance(block, Block)
        block.second.eps = 0.3


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norm_one, self.norm_two = nn.BatchNorm2d(8), nn.BatchNorm2d(16)
        self.pool, self.mean, self.head = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(functional.relu(self.norm_one(self.one(x))))
        x = self.pool(functional.relu(self.norm_two(self.two(x))))
        found: Tensor = self.head(self.mean(x).flatten(1))
        return found

    def data(self) -> tuple[Tensor, Tensor]:
        return torch.randn(2, 3, 16, 16), torch.randint(0, 10, (2,))

    def break_norm(self) -> None:
        self.norm_two.eps = 0.5


def dump(kind: type[Transformer] | type[Convolution], level: str, what: str) -> None:
    torch.manual_seed(7)
    model = kind()
    given, wanted = model.data()
    if what == "fault":
        model.break_norm()
    debugger.start(model)
    loss = functional.cross_entropy(model(given), wanted)
    if what == "step":
        loss.item()
    loss.backward()
    if what == "step":
        torch.optim.AdamW(model.parameters()).step()
    debugger.stop()
    debugger.step()


seed_all(7)
KINDS = {"transformer": Transformer, "convolution": Convolution}
net, level, what = sys.argv[2].split("_")
out = OUT / sys.argv[2]
config = OUT / f"{sys.argv[2]}.json"
config.write_text(
    json.dumps(
        {"task": "tensor", "dump_path": str(out), "rank": [], "step": [], "level": level, "tensor": {"list": []}}
    )
)
debugger = PrecisionDebugger(config_path=str(config))
dump(KINDS[net], level, what)
