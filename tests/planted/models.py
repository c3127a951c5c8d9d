"""Small networks whose training step runs every family of operator a dump usually holds. Needs torch.

Each takes `insert`: the number of a place in its forward where one extra call runs (a product with 1, or `changes`: a sum
with 0.01), as a script of another version would have it; None for no extra call. `gain`: a number that stands in the
script. `checkpointed`: parts of it are run again in the backward pass.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH = 16
BESIDE = 2
"""Last places of a network, right beside a call of the operator that is inserted."""


class Net(nn.Module):
    """Base: places for an inserted call. PLACES: how many a subclass has."""

    PLACES = 6

    def __init__(self) -> None:
        super().__init__()
        self.insert: int | None = None
        self.changes = False
        self.approximate = "none"
        self.eps = 1e-5
        self.gain = 0.9
        self.checkpointed = False

    def part(self, module: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = checkpoint(module, x, use_reentrant=False) if self.checkpointed else module(x)
        return out

    def place(self, x: Tensor, number: int) -> Tensor:
        if number != self.insert:
            return x
        return x + 0.01 if self.changes else x * 1.0

    def gained(self, x: Tensor, number: int) -> Tensor:
        """A product with the script's number, with a place right before it and one right behind."""
        return self.place(self.place(x, number) * self.gain, number + 1)


class Attention(nn.Module):
    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.triu(torch.ones(16, 16, dtype=torch.bool), 1))

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        length = x.shape[1]
        scores = torch.matmul(q, k.transpose(-2, -1)) / (q.shape[-1] ** 0.5)
        scores = scores.masked_fill(self.mask[:length, :length], float("-inf"))
        seen = torch.matmul(functional.softmax(scores, dim=-1), v)
        return self.proj(seen.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, net: Net, number: int) -> None:
        super().__init__()
        self.net, self.number = [net], number
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.fc1, self.fc2 = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        net = self.net[0]
        x = x + self.attn(self.ln1(x))
        x = net.place(x, 2 * self.number)
        y = functional.layer_norm(x, (WIDTH,), self.ln2.weight, self.ln2.bias, net.eps if self.number else 1e-5)
        y = functional.gelu(self.fc1(y), approximate=net.approximate if self.number else "none")
        return x + self.fc2(net.place(y, 2 * self.number + 1))


class Gpt(Net):
    """Two decoder layers with a causal mask buffer; input (2, 8) token numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(32, WIDTH), nn.Embedding(16, WIDTH)
        self.layers = nn.ModuleList([Block(self, number) for number in range(2)])
        self.ln = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 32)

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        for number, layer in enumerate(self.layers):
            x = self.part(layer, x)
            x = self.gained(x, 4) if number == 0 else x * self.gain
        logits = self.head(self.ln(x))
        return functional.cross_entropy(logits.reshape(-1, 32).float(), labels.reshape(-1))

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        tokens = torch.randint(0, 32, (2, 9), generator=generator)
        return tokens[:, :-1], tokens[:, 1:]


class ConvUnit(nn.Module):
    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(out)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class Conv(Net):
    """Convolutions with batch norm, in-place ReLU, pooling and a residual; input (4, 3, 8, 8) pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvUnit(3, 8)
        self.pool = nn.MaxPool2d(2)
        self.one, self.two = ConvUnit(8, 8), ConvUnit(8, 8)
        self.down = nn.Conv2d(8, WIDTH, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        x = self.place(self.pool(self.gained(self.stem(x), 4)), 0)
        x = x + self.place(self.part(self.two, self.part(self.one, x)), 1)
        x = self.place(functional.silu(self.norm(self.down(x))), 2)
        x = self.place(functional.adaptive_avg_pool2d(x, 1).flatten(1), 3)
        return functional.nll_loss(functional.log_softmax(self.head(x).float(), dim=-1), labels)

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.randn(4, 3, 8, 8, generator=generator), torch.randint(0, 10, (4,), generator=generator)


class MixerBlock(nn.Module):
    def __init__(self, net: Net, number: int, tokens: int) -> None:
        super().__init__()
        self.net, self.number = [net], number
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix1, self.mix2 = nn.Linear(tokens, 2 * tokens), nn.Linear(2 * tokens, tokens)
        self.up, self.gate, self.down = (
            nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH, bias=False),
        )  # fmt: skip
        self.scale = nn.Parameter(torch.full((WIDTH,), 0.7))
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        net = self.net[0]
        y = self.norm1(x).transpose(1, 2)
        y = self.mix2(functional.gelu(self.mix1(y), approximate=net.approximate if self.number else "none"))
        x = x + net.place(y.transpose(1, 2), 2 * self.number)
        y = functional.layer_norm(x, (WIDTH,), self.norm2.weight, self.norm2.bias, net.eps if self.number else 1e-5)
        y = net.place(functional.silu(self.gate(y)) * self.up(y), 2 * self.number + 1)
        return x + self.drop(self.down(y) * self.scale)


class Mixer(Net):
    """Token and channel mixing with gating, residuals and dropout; input (2, 6, 12) numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(12, WIDTH)
        self.blocks = nn.ModuleList([MixerBlock(self, number, 6) for number in range(2)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = self.part(block, x)
        x = self.gained(x, 4)
        guess = torch.tanh(self.head(self.norm(x).mean(dim=1)))
        return functional.mse_loss(guess.float(), labels.float())

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.randn(2, 6, 12, generator=generator), torch.randn(2, 4, generator=generator)


class Recurrent(Net):
    """An LSTM, a GRU cell by hand and a gate; input (5, 3, 8) numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(8, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH)
        self.reset, self.update, self.fresh = (nn.Linear(2 * WIDTH, WIDTH) for _ in range(3))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        x = self.place(functional.leaky_relu(self.gained(self.stem(x), 4)), 0)
        x = self.place(self.lstm(x)[0], 1)
        state = torch.zeros_like(x[0])
        for moment in range(3):
            both = torch.cat([x[moment], state], dim=-1)
            update = torch.sigmoid(self.update(both))
            fresh = torch.tanh(self.fresh(torch.cat([x[moment], torch.sigmoid(self.reset(both)) * state], dim=-1)))
            state = (1 - update) * state + update * fresh
        state = self.place(self.part(self.norm, self.place(state, 2)), 3)
        return functional.smooth_l1_loss(self.head(state).float(), labels.float())

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.randn(5, 3, 8, generator=generator), torch.randn(3, 4, generator=generator)


class Tower(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(12, width), nn.LayerNorm(width)
        self.second = nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(functional.gelu(self.norm(self.first(x))))


class Towers(Net):
    """Two towers that read the same input and meet only in the loss; input (6, 12) numbers."""

    PLACES = 4

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = Tower(WIDTH), Tower(2 * WIDTH)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        left = self.place(self.left(x), 0)
        right = self.place(self.right(self.gained(x, 2)), 1)
        return functional.mse_loss(left.float(), labels.float()) + functional.l1_loss(right.float(), labels.float())

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.randn(6, 12, generator=generator), torch.randn(6, 4, generator=generator)


MODELS: dict[str, type[Net]] = {"gpt": Gpt, "conv": Conv, "mixer": Mixer, "recurrent": Recurrent, "towers": Towers}
