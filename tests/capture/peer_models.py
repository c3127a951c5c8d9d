"""Small models that run under this capture or under msprobe, with the same seeds."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.matmul(q, k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = self.drop(F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1))
        return self.proj(torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Gpt(nn.Module):
    """Width 8, two layers, 24 tokens. tied: the head shares the embedding's weight."""

    def __init__(self, *, tied: bool = False) -> None:
        super().__init__()
        self.tok = nn.Embedding(24, 8)
        self.pos = nn.Embedding(6, 8)
        self.layers = nn.ModuleList(Block(8, 2) for _ in range(2))
        self.ln_f = nn.LayerNorm(8)
        self.head = nn.Linear(8, 24, bias=False)
        if tied:
            self.head.weight = self.tok.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln_f(x))


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2)
        self.conv2 = nn.Conv2d(4, 3, 3, stride=2, bias=False)
        self.act = nn.SiLU()
        self.norm = nn.GroupNorm(1, 3)
        self.up = nn.ConvTranspose2d(3, 2, 2)
        self.avg = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x, where = self.pool(x)
        x = self.unpool(x, where)
        x = self.norm(self.act(self.conv2(x)))
        x = self.avg(torch.sigmoid(self.up(x)) + torch.tanh(x.mean()))
        return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)


Pair = collections.namedtuple("Pair", ["hidden", "score"])


class GivesDict(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor, extra: dict[str, Any] | None = None) -> dict[str, Any]:
        y = self.lin(x) * scale
        return {"y": y, "z": [y + 1, (y * 2, None)], "flag": True}


class GivesPair(nn.Module):
    def forward(self, parts: dict[str, Any]) -> Pair:
        return Pair(parts["y"] * 2, parts["z"][0].sum())


class GivesNothing(nn.Module):
    def forward(self, x: torch.Tensor) -> None:
        return None


class TakesNested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.ones(4))

    def forward(self, nest: Any, options: Any, *, name: str, cut: slice) -> tuple[torch.Tensor, torch.Tensor]:
        (first, (second, third)), more = nest
        return first * self.p + more["k"], second + third


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        self.gives_dict = GivesDict()
        self.gives_pair = GivesPair()
        self.nothing = GivesNothing()
        self.nested = TakesNested()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, c) = self.lstm(x, (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)))
        parts = self.gives_dict(out, scale=torch.full((4,), 0.5), extra={"t": torch.zeros(4)})
        pair = self.gives_pair(parts)
        self.nothing(pair.hidden)
        left, right = self.nested(
            ((pair.hidden, (h, c)), {"k": out}), {"a": 1, "b": [2.5, None, "s"]}, name="abc", cut=slice(1, 3)
        )
        return left.sum() + right.sum() + pair.score


class Arithmetic(nn.Module):
    """Operators, mirrored operators, methods and functions of the same names, keyword and positional arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 3.0
        self.w = nn.Parameter(torch.linspace(0.5, 1.5, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = 2.0
        y = x + 1
        y = 1 + y
        y = scale * y
        y = y * scale
        y = self.scale * y * self.w
        y = y / 2 - 1
        y = 3 - y
        y = y**2
        y = torch.add(y, x, alpha=2).add(x).mul(self.w)
        y = 1.0 / (y.abs() + 1) + abs(y)
        y = F.softmax(y, -1) + F.softmax(input=y, dim=0) + torch.softmax(y, 1)
        y = F.layer_norm(y, (4,), weight=self.w) + F.dropout(y, 0.5, training=False)
        y = torch.where(x > 0, y, x) + y.norm(2, dim=-1, keepdim=True) + torch.norm(y)
        y = y + torch.einsum("ij,j->i", y, self.w).unsqueeze(1)
        y = torch.relu(y) + F.relu(y) + y.relu() + F.sigmoid(y) + F.tanh(y)
        y = sum([y, y]) % 5 + y.clamp(min=-1, max=1) + torch.stack([y, y]).max(dim=0)[0]
        y += 1
        y = y @ torch.ones(4, 4) + F.pad(y, (0, 0)) + y.pow(2).sqrt()
        top, _ = torch.topk(y, 2)
        return F.smooth_l1_loss(y, x, beta=0.5) + top.std() + (y == y).sum() * 0.1 + F.mse_loss(y, x, reduction="mean")  # noqa: PLR0124


def _gpt(tied: bool) -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    ids, targets = torch.randint(0, 24, (2, 6)), torch.randint(0, 24, (2, 6))

    def loss(model: nn.Module) -> torch.Tensor:
        logits = model(ids)
        return F.cross_entropy(logits.reshape(-1, 24).float(), targets.reshape(-1))

    return Gpt(tied=tied), loss


class Recurrent(nn.Module):
    """Two layers in both directions, and single cells."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
        self.cell = nn.LSTMCell(8, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, _) = self.lstm(x)
        state = (h[0], torch.tanh(h[1]))
        for row in out:
            state = self.cell(row, state)
        return self.head(state[0]).square().mean()


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.fc2(F.gelu(self.fc1(x))))


class Blocks(nn.Module):
    """Modules with modules and functions inside, for filters by name."""

    def __init__(self) -> None:
        super().__init__()
        self.a = Halves()
        self.b = Halves()
        self.c = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(self.b(self.a(x))).sum()


def build(name: str) -> tuple[Any, Callable[[Any], torch.Tensor]]:
    """A model and a function that gives its loss."""
    torch.manual_seed(7)
    if name in ("gpt", "tied"):
        return _gpt(name == "tied")
    if name == "conv":
        x, targets = torch.randn(3, 2, 8, 8), torch.tensor([0, 3, 1])
        return ConvNet(), lambda model: F.nll_loss(model(x), targets)
    if name == "blocks":
        x = torch.randn(3, 4, requires_grad=True)
        return Blocks(), lambda model: model(x)
    if name == "containers":
        x = torch.randn(2, 3, 4, requires_grad=True)
        return Containers(), lambda model: model(x)
    if name == "lstm":
        x = torch.randn(5, 2, 3)
        return Recurrent(), lambda model: model(x)
    if name == "arithmetic":
        x = torch.randn(4, 4)
        return nn.ModuleDict({"a": Arithmetic()}), lambda model: model["a"](x)
    if name == "list":
        x = torch.randn(3, 4)
        pair = [nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Sequential(nn.Linear(4, 2))]
        return pair, lambda models: models[1](models[0](x)).sum()
    if name == "checkpoint":
        x = torch.randn(3, 4)
        model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})

        def loss(models: Any) -> torch.Tensor:
            hidden = torch.relu(models["a"](x))
            return torch.utils.checkpoint.checkpoint(models["b"], hidden, use_reentrant=False).sum()

        return model, loss
    if name == "microbatch":
        x = torch.randn(4, 3)
        return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)), lambda model: (
            model(x[:2]).sum(),
            model(x[2:]).sum(),
        )  # type: ignore[return-value]
    raise ValueError(name)


def train(name: str, debugger: Any, steps: int = 2) -> None:
    model, loss_of = build(name)
    members = model if isinstance(model, list) else [model]
    optimizer = torch.optim.SGD([value for member in members for value in member.parameters()], lr=0.1)
    for _ in range(steps):
        if debugger is not None:
            debugger.start(model)
        losses = loss_of(model)
        for loss in losses if isinstance(losses, tuple) else (losses,):
            loss.backward()
        optimizer.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        optimizer.zero_grad()
