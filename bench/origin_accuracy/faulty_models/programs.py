# ruff: noqa: PLC0415 - each program imports its own library
"""What is run and recorded: the cases of bench/model_cases, and small programs for what these do not hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from model_cases.cases import CASES, STEPS, classify, loss_of, new_gpt2, new_llama, text, texts, tokens
from model_cases.runs import Run, train
from torch import nn


@dataclass(frozen=True, kw_only=True)
class Program:
    """steps: parts of the run that are recorded; settings: more of the recorder's"""

    run: Callable[[Run], None]
    steps: int = 1
    ranks: int = 1
    level: str = "mix"
    settings: dict[str, Any] = field(default_factory=dict)


PROGRAMS: Final[dict[str, Program]] = {
    name: Program(run=CASES[name].run)
    for name in (
        "llama",
        "llama_checkpoint",
        "mixtral",
        "qwen2_moe",
        "bert",
        "t5",
        "gpt2",
        "whisper",
        "vit",
        "convnext",
        "unet",
        "lora",
    )
}
PROGRAMS["generate"] = Program(run=CASES["generate"].run)
PROGRAMS["detector"] = Program(run=CASES["detector"].run, settings={"custom_op_namespaces": ["torchvision"]})
PROGRAMS["bert_two_steps"] = Program(run=CASES["bert"].run, steps=2)


def program(**more: Any) -> Callable[[Callable[[Run], None]], Any]:
    def add(run: Callable[[Run], None]) -> Callable[[Run], None]:
        PROGRAMS[run.__name__] = Program(run=run, **more)
        return run

    return add


@program()
def llama_eager(run: Run) -> None:
    """Attention by its parts: two products and a softmax."""
    train(run, new_llama(attn_implementation="eager", attention_dropout=0.0), texts(), loss_of)


@program()
def llama_long(run: Run) -> None:
    """300 tokens."""
    model = new_llama(attention_dropout=0.0, max_position_embeddings=512)
    ids = tokens(1, 300)
    train(run, model, [{"input_ids": ids, "labels": ids}], loss_of)


@program()
def llama_autocast(run: Run) -> None:
    model = new_llama(attention_dropout=0.0)

    def loss(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return loss_of(model, batch)

    train(run, model, texts(), loss)


@program()
def llama_bfloat16(run: Run) -> None:
    train(run, new_llama(attention_dropout=0.0).bfloat16(), texts(), loss_of)


@program()
def llama_half_masked(run: Run) -> None:
    """An additive mask of minus infinity, eager attention."""
    model = new_llama(attn_implementation="eager", attention_dropout=0.0)
    batch = text()
    hidden = torch.full((12, 12), float("-inf")).triu(1)
    batch["attention_mask"] = hidden.expand(2, 1, 12, 12).clone()
    batch["labels"] = batch["input_ids"]
    train(run, model, [batch], loss_of)


@program(steps=3)
def resnet(run: Run) -> None:
    """Two training steps and one in evaluation."""
    from torchvision.models.resnet import BasicBlock, ResNet

    model = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5, width_per_group=64)
    model.layer3 = model.layer4 = nn.Identity()
    model.fc = nn.Linear(128, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
    train(run, model, [torch.randn(4, 3, 32, 32) for _ in range(STEPS)], classify, optimizer)
    model.eval()
    run.begin(model)
    with torch.no_grad():
        classify(model, torch.randn(4, 3, 32, 32))
    run.end()


@program(ranks=2)
def summed(run: Run) -> None:
    """Data parallel by hand: each rank sums its gradients with the others'."""
    model = new_gpt2()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    torch.manual_seed(100 + run.rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    run.begin(model)
    loss_of(model, {"input_ids": (ids := tokens()), "labels": ids}).backward()
    for value in model.parameters():
        torch.distributed.all_reduce(value.grad)
        value.grad.div_(run.size)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    run.end()


@program(ranks=2)
def exchanged(run: Run) -> None:
    """Tensor parallel by hand: each rank has half of a hidden layer; sums, gathers and broadcasts of activations."""
    torch.manual_seed(100 + run.rank)
    up, down, out = nn.Linear(16, 24), nn.Linear(24, 16), nn.Linear(32, 8)
    model = nn.ModuleList([up, down, out])
    x = torch.randn(4, 16)
    run.begin(model)
    torch.distributed.broadcast(x, 0)
    part = down(nn.functional.gelu(up(x)))
    torch.distributed.all_reduce(part)
    whole = [torch.empty(4, 16) for _ in range(run.size)]
    torch.distributed.all_gather(whole, torch.tanh(part * (run.rank + 1)).contiguous())
    out(torch.cat(whole, -1)).square().mean().backward()
    run.end()
