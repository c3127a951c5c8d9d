"""A small training under our monitor, with or without a planted fault."""

from __future__ import annotations

from pathlib import Path

import torch

from dumpscope_capture.monitor import Monitor

FAULT = 40


def train(folder: Path, *, factor: float = 1.0, steps: int = 48, scale: float = 1.0) -> None:
    """A small training; from step FAULT on one layer's gradient is multiplied. scale: of the noise put on the input"""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the matrices are so small that threads cost twenty times as much
    try:
        _train(folder, factor, steps, scale)
    finally:
        torch.set_num_threads(threads)


def _train(folder: Path, factor: float, steps: int, scale: float) -> None:
    torch.manual_seed(2)
    block = [torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16)) for _ in range(4)]
    model = torch.nn.Sequential(*block)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    with Monitor(model, optimizer, folder) as monitor:
        for step in range(steps):
            optimizer.zero_grad()
            loss = (model(scale * torch.randn(32, 16)) - 1).square().mean()
            loss.backward()
            if step >= FAULT:
                model[2][0].weight.grad.mul_(factor)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 100.0)
            optimizer.step()
            monitor.step(loss=loss)
