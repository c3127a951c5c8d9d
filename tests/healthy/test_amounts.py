"""Other amounts of the same data: the relation is told, what both took is compared, and nothing is accused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from dumpscope.domain.facts import Outcome  # noqa: E402
from dumpscope.domain.result import Answer, Unit  # noqa: E402
from healthy.recording import recorded  # noqa: E402

IDS = torch.randint(3, 40, (8, 10), generator=torch.Generator().manual_seed(5))


class Net(nn.Module):
    """One layer of a language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(40, 16), nn.LayerNorm(16)
        self.mix, self.up, self.down, self.out = (
            nn.Linear(16, 48),
            nn.Linear(16, 32),
            nn.Linear(32, 16),
            nn.Linear(16, 40),
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        q, k, v = (one.unflatten(-1, (2, 8)).transpose(1, 2) for one in self.mix(self.norm(x)).chunk(3, -1))
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.down(F.gelu(self.up(x)))
        found: torch.Tensor = self.out(x.flatten(0, 1))
        return found


class Scaled(TorchDispatchMode):
    """A gelu kernel whose result is 2 % too large."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        return made * 1.02 if func.overloadpacket.__name__ == "gelu" else made


def train(*batches: torch.Tensor) -> Callable[[nn.Module], None]:
    def run(net: nn.Module) -> None:
        for ids in batches:
            loss = F.cross_entropy(net(ids), ids.flatten())
            (loss / len(batches)).backward()

    return run


def add_up(*batches: torch.Tensor) -> Callable[[nn.Module], None]:
    def run(net: nn.Module) -> None:
        for ids in batches:
            F.cross_entropy(net(ids), ids.flatten()).backward()

    return run


def ask(
    folder: Path, target: Callable[[nn.Module], None], golden: Callable[[nn.Module], None], task: str, fault: Any = None
) -> tuple[Answer, Unit]:
    sides = []
    for name, run, mode in (("target", target, fault or nullcontext()), ("golden", golden, nullcontext())):
        torch.manual_seed(3)
        net = Net()

        def step(run: Any = run, net: nn.Module = net, mode: Any = mode) -> None:
            with mode:
                run(net)

        sides.append(recorded(folder / name, step, model=net, task=task))
    answer, (unit,) = compare(*sides)
    return answer, unit


def padded(ids: torch.Tensor) -> torch.Tensor:
    return F.pad(ids, (3, 0), value=2)


PAIRS = {
    "one row of four": (train(IDS[:4]), train(IDS[2:3]), "took 4 rows of data at a time, the golden 1"),
    "micro-batches of a part": (add_up(*IDS[:4].split(2)), add_up(IDS), "took 2 rows of data at a time, the golden 8"),
    "prefill": (train(IDS[:4, :6]), train(IDS[:4]), "took sequences of length 6, the golden of 10"),
    "left padding": (train(padded(IDS[:1])), train(IDS[:1]), "took sequences of length 13, the golden of 10"),
}


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", list(PAIRS))
def test_a_healthy_pair_is_told_and_not_accused(tmp_path: Path, name: str, swapped: bool, task: str) -> None:
    target, golden, said = PAIRS[name]
    answer, unit = ask(tmp_path, *((golden, target) if swapped else (target, golden)), task)
    assert [(one.node, one.kind, one.evidence) for one in answer.origins] == []
    assert answer.counts.no == 0, answer.first_no
    assert answer.outcome == "not_fully_judged", "gradients and losses of other data were not compared"
    words = " ".join(answer.settings)
    assert ("rows of data at a time" in words) == ("rows" in said)
    assert swapped or said in words
    compared = (unit.facts.unequal >= 0) & unit.context.shape_differs
    assert compared.any() == (task == "tensor" and name != "left padding")
    assert (unit.facts.outcome[compared] == Outcome.COMPARED).all()
    assert ("what both took is compared" in words) == bool(compared.any())
    assert ("forward passes" in words) == (name == "micro-batches of a part")


@pytest.mark.parametrize("name", ["one row of four", "micro-batches of a part", "prefill"])
def test_a_fault_in_the_common_part_is_named(tmp_path: Path, name: str) -> None:
    target, golden, _ = PAIRS[name]
    answer, _ = ask(tmp_path, target, golden, "tensor", Scaled())
    assert [(one.node, one.kind) for one in answer.origins][:1] == [("Functional.gelu.0.forward", "computation")]


def test_other_rows_are_no_common_data(tmp_path: Path) -> None:
    answer, unit = ask(tmp_path, train(IDS[:4]), train(IDS[5:6]), "tensor")
    assert "no part that both took at the same place" in " ".join(answer.settings)
    assert not ((unit.facts.unequal >= 0) & unit.context.shape_differs).any()


def test_a_shape_that_a_call_made_of_equal_data_stays_a_fault(tmp_path: Path) -> None:
    class Cut(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            return made[1:] if func.overloadpacket.__name__ == "addmm" and made.shape[-1] == 40 else made

    def forward(net: nn.Module) -> None:
        with torch.no_grad():
            net(IDS[:4])

    answer, _ = ask(tmp_path, forward, forward, "tensor", Cut())
    assert answer.origins[0].node == "Functional.linear.3.forward"
    assert answer.outcome == "diverged"


def test_a_batch_without_a_row_is_told_as_well(tmp_path: Path) -> None:
    def forward(ids: torch.Tensor) -> Callable[[nn.Module], None]:
        return lambda net: net(ids).sum().backward()

    answer, _unit = ask(tmp_path, forward(IDS[:0]), forward(IDS[:2, :7]), "statistics")
    assert "The target took 0 rows of data at a time, the golden 2" in " ".join(answer.settings)
    assert not answer.origins
