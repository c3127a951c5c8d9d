"""Dumps of modules alone (L0) hold no loss: a healthy one is silent in any form, and another one is told as what it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402

from dumpscope.domain.result import Answer  # noqa: E402
from dumpscope.export.answer_text import answer_lines  # noqa: E402
from dumpscope.export.report import headline  # noqa: E402
from healthy.recording import recorded  # noqa: E402

WIDTH, WORDS, EXPERTS = 16, 20, 4
ROUTER = "Module.blocks.1.experts.router.Linear"
Loss = Callable[["Net", Any, Any], Any]


class Experts(nn.Module):
    """detached: a router learns from the auxiliary loss alone."""

    def __init__(self, *, detached: bool) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))
        self.detached = detached

    def forward(self, x: Any) -> Any:
        self.logits = self.router(x)
        weights, chosen = torch.softmax(self.logits, -1).topk(2, -1)
        weights = weights.detach() if self.detached else weights
        made = [
            expert(x) * (weights * (chosen == place)).sum(-1, keepdim=True) for place, expert in enumerate(self.experts)
        ]
        return torch.stack(made).sum(0)


class Block(nn.Module):
    def __init__(self, *, detached: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.experts = Experts(detached=detached)

    def forward(self, x: Any) -> Any:
        return x + self.experts(self.norm(x))


class Net(nn.Module):
    def __init__(self, *, detached: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(detached=detached), Block(detached=detached)])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

    @property
    def logits(self) -> list[Any]:
        return [block.experts.logits.flatten(0, -2) for block in self.blocks]


def crossed(net: Net, made: Any, labels: Any) -> Any:
    return F.cross_entropy(made.flatten(0, -2), labels.flatten())


def balance(net: Net) -> Any:
    """The share of the tokens of each expert times its mean probability (Switch Transformer)."""
    total = torch.zeros(())
    for logits in net.logits:
        chances = torch.softmax(logits, -1)
        share = F.one_hot(chances.argmax(-1), EXPERTS).to(chances.dtype).mean(0)
        total = total + EXPERTS * (share * chances.mean(0)).sum()
    return total


def balance_in_other_order(net: Net) -> Any:
    parts = []
    for logits in reversed(net.logits):
        chances = torch.exp(logits - torch.logsumexp(logits, -1, keepdim=True))
        counts = torch.bincount(chances.argmax(-1), minlength=EXPERTS).to(chances.dtype)
        parts.append((chances.sum(0) * counts).sum() * (EXPERTS / len(logits) ** 2))
    return sum(parts)


def even(net: Net) -> Any:
    """Of experts that all take the same share: constant, so its gradient is rounding."""
    return sum(
        (torch.softmax(logits, -1).mean(0) * torch.ones(EXPERTS, dtype=logits.dtype)).sum() for logits in net.logits
    )


def even_in_other_order(net: Net) -> Any:
    chances = [torch.exp(one - torch.logsumexp(one, -1, keepdim=True)) for one in reversed(net.logits)]
    return sum((one.sum(0) / len(one)).sum() for one in chances)


def with_auxiliary(auxiliary: Callable[[Net], Any], factor: float = 0.01) -> Loss:
    return lambda net, made, labels: crossed(net, made, labels) + factor * auxiliary(net)


def trained(
    path: Path, loss: Loss, task: str, *, level: str = "L0", detached: bool = False, dtype: Any = torch.float32
) -> Path:
    torch.manual_seed(5)
    net = Net(detached=detached).to(dtype)
    ids, labels = torch.randint(0, WORDS, (4, 8)), torch.randint(0, WORDS, (4, 8))
    return recorded(path, lambda: loss(net, net(ids), labels).backward(), model=net, level=level, task=task)


def answer_to(folder: Path, target: Loss, golden: Loss, task: str, **keys: Any) -> Answer:
    answer, _ = compare(
        trained(folder / "target", target, task, **keys), trained(folder / "golden", golden, task, **keys)
    )
    return answer


TASKS = ("statistics", "tensor")


@pytest.mark.parametrize("task", TASKS)
def test_an_auxiliary_loss_in_another_form_is_silent(tmp_path: Path, task: str) -> None:
    pair = with_auxiliary(balance_in_other_order), with_auxiliary(balance)
    answer = answer_to(tmp_path, *pair, task)
    assert (answer.outcome, answer.origins) == ("agrees", [])


@pytest.mark.parametrize(("task", "dtype"), [("tensor", torch.float32), ("statistics", torch.bfloat16)])
def test_the_gradient_of_a_constant_loss_is_rounding_and_no_modules_fault(
    tmp_path: Path, task: str, dtype: Any
) -> None:
    pair = with_auxiliary(even_in_other_order), with_auxiliary(even)
    answer = answer_to(tmp_path, *pair, task, detached=True, dtype=dtype)
    assert (answer.outcome, answer.origins) == ("agrees", [])
    assert answer.counts.warning >= 4


def test_a_small_gradient_that_is_no_rounding_is_not_excused(tmp_path: Path) -> None:
    pair = with_auxiliary(balance, 2e-6), with_auxiliary(balance, 1e-6)
    answer = answer_to(tmp_path, *pair, "statistics", detached=True)
    assert answer.outcome == "diverged"


@pytest.mark.parametrize("task", TASKS)
def test_another_factor_of_an_auxiliary_loss_is_told_as_a_loss_that_was_not_recorded(tmp_path: Path, task: str) -> None:
    answer = answer_to(tmp_path, with_auxiliary(balance, 0.02), with_auxiliary(balance), task)
    (origin,) = answer.origins
    assert origin.unseen_loss
    assert origin.hidden
    assert f"another gradient arrives at the output of {ROUTER}.forward.0" in origin.evidence
    assert "an auxiliary loss made of this output" in origin.evidence
    assert "The module only receives this gradient." in origin.evidence
    assert '"level": "mix"' in origin.advice
    assert headline(answer).startswith("The loss, or what makes it, was not recorded and differs: first visible at")
    assert any("a loss that was not recorded, confidence medium" in line for line in answer_lines(answer, [(0, 0)]))


def test_another_loss_is_seen_from_the_first_backward_call_on(tmp_path: Path) -> None:
    answer = answer_to(tmp_path, lambda *given: crossed(*given) * 1.05, crossed, "statistics")
    (origin,) = answer.origins
    assert origin.node == "Module.head.Linear.backward.0"
    assert origin.unseen_loss
    assert "gradients differ from the first backward call on" in origin.evidence


def test_the_advised_level_names_the_call(tmp_path: Path) -> None:
    answer = answer_to(tmp_path, with_auxiliary(balance, 0.02), with_auxiliary(balance), "statistics", level="mix")
    (origin,) = answer.origins
    assert origin.kind == "configuration"
    assert "is 0.02 in the target and 0.01 in the golden" in origin.evidence


def test_a_module_whose_forward_differs_is_no_unseen_loss(tmp_path: Path) -> None:
    def broken(net: Net, made: Any, labels: Any) -> Any:
        return crossed(net, made, labels)

    golden = trained(tmp_path / "golden", crossed, "statistics")
    torch.manual_seed(5)
    net = Net(detached=False)
    ids, labels = torch.randint(0, WORDS, (4, 8)), torch.randint(0, WORDS, (4, 8))
    old = net.blocks[1].norm.forward
    net.blocks[1].norm.forward = lambda x: old(x) * 1.01
    target = recorded(
        tmp_path / "target", lambda: broken(net, net(ids), labels).backward(), model=net, level="L0", task="statistics"
    )
    answer, _ = compare(target, golden)
    (origin,) = answer.origins
    assert not origin.unseen_loss
    assert origin.node == "Module.blocks.1.norm.LayerNorm.forward.0"
