"""A small transformer whose norm, attention and activation are fused calls or written out; dumped by our own capture.

    python fused_model.py OUT fused|plain [FAULT]

FAULT: factor on what the fused norm makes, below what is captured.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn
from torch.nn import functional

from dumpscope_capture import PrecisionDebugger, seed_all

WIDTH, HEADS, WORDS = 32, 4, 50
FUSED = sys.argv[2] == "fused"


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        if FUSED:
            return functional.rms_norm(x, (WIDTH,), self.weight, 1e-6)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (part.view(rows, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        if FUSED:
            y = functional.scaled_dot_product_attention(q, k, v)
        else:
            y = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / (WIDTH // HEADS) ** 0.5, -1), v)
        found: Tensor = self.out(y.transpose(1, 2).reshape(rows, length, WIDTH))
        return found


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.attention, self.second = Norm(), Attention(), Norm()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        h = self.up(self.second(x))
        h = functional.gelu(h) if FUSED else h * 0.5 * (1.0 + torch.erf(h / 2**0.5))
        found: Tensor = x + self.down(h)
        return found


def main() -> None:
    seed_all(1)
    if len(sys.argv) > 3:
        kernel, factor = torch.rms_norm, float(sys.argv[3])
        torch.rms_norm = lambda *given: kernel(*given) * factor
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), Block(), Block(), nn.Linear(WIDTH, WORDS))
    words = torch.randint(0, WORDS, (2, 16))
    debugger = PrecisionDebugger(task="statistics", dump_path=sys.argv[1], level="mix", step=[0])
    debugger.start(model=model)
    functional.cross_entropy(model(words).view(-1, WORDS), words.view(-1)).backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main()
