"""The program that `make matrix` records under each Python and torch: a small model and a training loop of its own.

    python program.py FOLDER [--without MODULE...]    a dump for each level and task, in FOLDER/{level}-{task}

Its weights and data come from formulas, not from random generators, and its optimizer is written out: torch.optim calls other
functions in each version. It computes in float64, so that kernels that add in another order agree to 1e-6.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from pathlib import Path

for _name in sys.argv[3:]:  # as in an environment that lacks them
    sys.modules[_name] = None  # type: ignore[assignment]

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from dumpscope_capture import PrecisionDebugger  # noqa: E402

STEPS = 2
TASKS = ("statistics", "tensor", "md5", "xor", "structure", "overflow_check")
COMBINATIONS = (
    *((level, task) for level in ("L0", "L1", "mix") for task in TASKS if (level, task) != ("L1", "structure")),
    ("L2", "statistics"),
)
WIDTH, HEADS, LENGTH, WORDS, BATCH = 16, 4, 6, 11, 3


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH)
        self.kv = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.out = nn.Linear(in_features=WIDTH, out_features=WIDTH)
        self.scale = 1 / math.sqrt(WIDTH // HEADS)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        batch, length, width = x.shape
        q = self.q(x).view(batch, length, HEADS, width // HEADS).transpose(1, 2)
        k, v = self.kv(x).chunk(2, dim=-1)
        k = k.reshape(batch, length, HEADS, -1).permute(0, 2, 3, 1)
        v = v.reshape(batch, length, HEADS, -1).transpose(1, 2)
        scores = (q @ k) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = functional.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).contiguous().view(batch, length, width)
        return self.out(mixed), {"weights": weights}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.conv = nn.Conv1d(WIDTH, WIDTH, kernel_size=3, padding=1, groups=2)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Dropout(p=0.0), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> torch.Tensor:
        mixed, extra = self.attention(self.norm(x), mask=mask)
        x = x + mixed
        near = self.conv(x.transpose(1, 2)).transpose(1, 2)
        near += x
        share = 1 - extra["weights"].mean()
        return near * share + self.mlp(x) / 2


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.batch_norm = nn.BatchNorm1d(LENGTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = torch.tril(torch.ones(LENGTH, LENGTH))[None, None]
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x, mask=mask)
        x = self.batch_norm(x)
        x = torch.where(x > 3, torch.tensor(3.0, dtype=x.dtype), x)
        return self.head(-(x.neg() ** 1))


def fill(model: nn.Module) -> None:
    """Weights from a formula."""
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            places = torch.arange(parameter.numel(), dtype=torch.float64)
            values = torch.sin(places * 0.7 + number) / math.sqrt(parameter.shape[-1])
            parameter.copy_((values + (1 if parameter.dim() == 1 else 0)).view(parameter.shape))


def loss_of(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    logits = model(tokens)
    loss = functional.cross_entropy(
        logits.view(-1, WORDS), tokens.roll(1, dims=1).flatten(), reduction="mean", label_smoothing=0.1
    )
    penalty = torch.stack([part.float().norm() for part in model.parameters()]).sum()
    top, _ = torch.max(logits, dim=-1)
    return loss + 1e-3 * penalty.to(loss) - torch.add(top.mean(), top.std(), alpha=2) * 1e-3


def update(model: nn.Module, rate: float) -> None:
    norm = torch.stack([part.grad.pow(2).sum() for part in model.parameters() if part.grad is not None]).sum().sqrt()
    scale = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
    with torch.no_grad():
        for part in model.parameters():
            if part.grad is not None:
                part.grad.mul_(scale)
                part.add_(part.grad, alpha=-rate)
                part.grad = None


def record(folder: Path, level: str, task: str) -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    model = Model()
    fill(model)
    settings = {"dump_path": str(folder), "level": level, "task": task}
    if task in ("md5", "xor"):
        settings.update(task="statistics", statistics={"summary_mode": task})
    config = folder.with_name(f"{folder.name}.json")
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = PrecisionDebugger(str(config))
    for step in range(STEPS):
        tokens = (torch.arange(BATCH * LENGTH).view(BATCH, LENGTH) * 5 + step) % WORDS
        debugger.start(model)
        loss_of(model, tokens).backward()
        update(model, rate=0.1)
        debugger.stop()
        debugger.step()


def main(folder: Path) -> int:
    """Record each in a process of its own; forks, as importing torch takes seconds. Returns how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for level, task in COMBINATIONS:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                record(folder / f"{level}-{task}", level, task)
                status = 0
            except Exception:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(status)
        failed += os.waitpid(pid, 0)[1] != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
