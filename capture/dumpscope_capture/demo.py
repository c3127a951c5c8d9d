"""Two dumps that differ by one fault: `python -m dumpscope_capture.demo FOLDER`.

A small transformer (2 layers, d=8) is trained for two steps on the CPU, twice from the same seed. In FOLDER/target_fault the
softmax kernel of the second layer gives one attention row 2 % too large; FOLDER/golden is the healthy run. Both hold tensors.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope_capture import PrecisionDebugger, seed_all

WORDS: Final = 24
LENGTH: Final = 6
WIDTH: Final = 8
STEPS: Final = 2
FAULTY_LAYER: Final = 1
FAULT: Final = 1.02
RUNS: Final = {"golden": False, "target_fault": True}


class Attention(nn.Module):
    """Causal attention with two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = 2
        self.scale = (WIDTH // self.heads) ** -0.5
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        )
        scores = torch.matmul(query, key.transpose(-1, -2)) * self.scale
        weights = self.drop(functional.softmax(scores.masked_fill(mask, float("-inf")), dim=-1))
        joined = torch.matmul(weights, value).transpose(1, 2).reshape(batch, length, width)
        result: torch.Tensor = self.proj(joined)
        return result


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, 2 * WIDTH)
        self.fc2 = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.fc2(functional.gelu(self.fc1(x)))
        return result


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.ln2 = nn.LayerNorm(WIDTH)
        self.mlp = Mlp()

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln1(x), mask=mask)
        result: torch.Tensor = x + self.mlp(self.ln2(x))
        return result


class Transformer(nn.Module):
    """Token ids (batch, length) to logits (batch, length, words)."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.tok = nn.Embedding(WORDS, WIDTH)
        self.pos = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        x = self.tok(ids) + self.pos(torch.arange(length))
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        for layer in self.layers:
            x = layer(x, mask=mask)
        logits: torch.Tensor = self.head(self.ln_f(x))
        return logits


class FaultyKernel(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Below autograd and every function of torch: the softmax kernel scales one row of its result where it is `active`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.active = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.active and func is torch.ops.aten._softmax.default:
            result[0, 0, 1] *= FAULT
        return result


@contextmanager
def fault_in(layer: nn.Module) -> Iterator[None]:
    """Make the softmax kernel faulty while a layer computes."""
    kernel = FaultyKernel()
    begin = layer.register_forward_pre_hook(lambda *_: setattr(kernel, "active", True))
    end = layer.register_forward_hook(lambda *_: setattr(kernel, "active", False))
    try:
        with kernel:
            yield
    finally:
        begin.remove()
        end.remove()


def train(folder: Path, *, faulty: bool) -> None:
    """Train for `STEPS` steps and dump every one of them below `folder`."""
    seed_all(1234)
    model = Transformer()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    ids = torch.randint(0, WORDS, (2, LENGTH))
    targets = torch.randint(0, WORDS, (2, LENGTH))
    debugger = PrecisionDebugger(dump_path=str(folder), task="tensor", level="mix")
    for _ in range(STEPS):
        debugger.start(model=model)
        if faulty:
            with fault_in(model.layers[FAULTY_LAYER]):
                logits = model(ids)
        else:
            logits = model(ids)
        loss = functional.cross_entropy(logits.reshape(-1, WORDS), targets.reshape(-1))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad()
        debugger.stop()
        debugger.step()


def main() -> None:
    """Run both trainings, each in a process of its own: a process has one debugger."""
    if len(sys.argv) == 2:
        for name in RUNS:
            subprocess.run([sys.executable, "-m", "dumpscope_capture.demo", sys.argv[1], name], check=True)
    elif len(sys.argv) == 3 and sys.argv[2] in RUNS:
        train(Path(sys.argv[1]) / sys.argv[2], faulty=RUNS[sys.argv[2]])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
