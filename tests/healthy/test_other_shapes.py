"""One program holds as one dimension what the other has apart: no batch against a batch of one, rows and positions in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from dumpscope.domain.context import _is_view  # noqa: E402
from dumpscope.domain.result import Answer, Unit  # noqa: E402
from healthy.recording import recorded, verdicts  # noqa: E402

WIDTH, HEADS, WORDS = 16, 2, 20


class Block(nn.Module):
    """Attention over the last but one dimension, without a batch too; `mix` where rows and positions are one."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any, *, attend: bool) -> Any:
        y = self.norm(x)
        query, key, value = self.query(y), self.key(y), self.value(y)
        if attend:
            places = (-3, -2)
            heads = [one.unflatten(-1, (HEADS, -1)).transpose(*places) for one in (query, key, value)]
            weights = torch.softmax(heads[0] @ heads[1].transpose(-1, -2) / 4, dim=-1)
            x = x + (weights @ heads[2]).transpose(*places).flatten(-2)
        else:
            x = x + query * torch.sigmoid(key) * value
        return x + self.down(F.gelu(self.up(y)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Any, *, attend: bool) -> Any:
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, attend=attend)
        return self.head(x)


class Fault(TorchDispatchMode):
    """The second gelu of the forward pass is wrong, below what a capture sees."""

    calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ == "gelu":
            self.calls += 1
            if self.calls == 2:
                with torch._C.DisableTorchFunction():
                    out = out * 1.01
        return out


def trained(path: Path, shape: tuple[int, ...], *, attend: bool, level: str, task: str, fault: bool = False) -> Path:
    torch.manual_seed(3)
    model = Net()
    ids = (torch.arange(24) * 7 % WORDS).reshape(shape)
    labels = (torch.arange(24) * 5 % WORDS).reshape(shape)

    def run() -> None:
        made = model(ids, attend=attend)
        F.cross_entropy(made.flatten(0, -2), labels.flatten()).backward()

    def broken() -> None:
        with Fault():
            run()

    return recorded(path, broken if fault else run, model=model, level=level, task=task)


CASES = [
    ("no batch", "L1", "tensor"),
    ("no batch", "mix", "statistics"),
    ("rows in one", "L0", "statistics"),
    ("rows in one", "mix", "tensor"),
]
SHAPES = {"no batch": ((24,), (1, 24), True), "rows in one": ((24,), (3, 8), False)}


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One step with fewer dimensions and with more, and the latter with a fault."""
    name, level, task = request.param
    few, more, attend = SHAPES[name]
    folder = tmp_path_factory.mktemp("shapes")

    def made(word: str, shape: tuple[int, ...], *, fault: bool = False) -> Path:
        return trained(folder / word, shape, attend=attend, level=level, task=task, fault=fault)

    return {
        "level": Path(level),
        "few": made("few", few),
        "more": made("more", more),
        "fault": made("fault", more, fault=True),
    }


@pytest.mark.parametrize("swapped", [False, True])
def test_a_healthy_pair_of_other_shapes_agrees(runs: dict[str, Path], swapped: bool) -> None:
    pair = (runs["more"], runs["few"]) if swapped else (runs["few"], runs["more"])
    answer, (unit,) = compare(*pair)
    assert answer.origins == []
    assert answer.counts.no == 0
    assert answer.outcome == "agrees"
    assert sum(rule == "F-1" for rule in verdicts(unit).values()) > 50


def test_a_fault_behind_other_shapes_is_named(runs: dict[str, Path]) -> None:
    answer, _ = compare(runs["fault"], runs["few"])
    (origin,) = answer.origins
    assert origin.kind == "computation"
    if str(runs["level"]) == "L0":
        assert origin.node == "Module.blocks.1.Block.forward.0"
    else:
        assert origin.node == "Functional.gelu.1.forward"
        assert origin.confidence >= 0.85


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_classes_behind_the_rows_of_a_loss_are_another_form(tmp_path: Path, task: str) -> None:
    scores, labels = torch.randn(3, 8, WORDS, generator=torch.Generator().manual_seed(1)), torch.arange(24) % WORDS

    def apart() -> None:
        given = (scores * 1).requires_grad_()
        F.cross_entropy(given.transpose(1, 2), labels.reshape(3, 8)).backward()

    def flat() -> None:
        given = (scores * 1).requires_grad_()
        F.cross_entropy(given.reshape(-1, WORDS), labels).backward()

    answer, unit = answer_to(tmp_path, apart, flat, task)
    assert (answer.outcome, answer.origins) == ("agrees", [])
    told = verdicts(unit)
    assert told["Functional.cross_entropy.0.forward.input.0"] in ("F-1", "M-1")
    assert told["Functional.cross_entropy.0.forward.input.1"] == "F-1"


def answer_to(tmp_path: Path, one: Callable[[], Any], other: Callable[[], Any], task: str) -> tuple[Answer, Unit]:
    answer, units = compare(recorded(tmp_path / "one", one, task=task), recorded(tmp_path / "other", other, task=task))
    return answer, units[0]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_places_and_sizes_that_follow_from_the_shape_are_no_cause(tmp_path: Path, task: str) -> None:
    x = torch.arange(96.0).reshape(1, 6, 16).sin()

    def batched() -> Any:
        y = torch.softmax(x.view(1, 6, 4, 4).transpose(1, 2), dim=3).transpose(1, 2).reshape(1, 6, 16)
        return torch.exp(y.cumsum(1).mean(1))

    def bare() -> Any:
        y = torch.softmax(x[0].view(6, 4, 4).transpose(0, 1), dim=2).transpose(0, 1).reshape(6, 16)
        return torch.exp(y.cumsum(0).mean(0))

    answer, _ = answer_to(tmp_path, batched, bare, task)
    assert answer.origins == []
    assert answer.counts.no == 0


def test_with_tensors_elements_at_other_places_are_seen_through_another_shape(tmp_path: Path) -> None:
    x = torch.arange(24.0).reshape(4, 6).sin()
    answer, unit = answer_to(tmp_path, lambda: torch.exp(x.reshape(-1)), lambda: torch.exp(x.flip(0)), "tensor")
    assert answer.outcome == "diverged"
    assert verdicts(unit)["Torch.exp.0.forward.output.0"] == "T-2"


def test_rows_and_columns_that_changed_places_are_another_shape(tmp_path: Path) -> None:
    x = torch.arange(24.0).reshape(4, 6).sin()
    answer, _ = answer_to(tmp_path, lambda: torch.exp(x), lambda: torch.exp(x.t().contiguous()), "statistics")
    assert answer.outcome != "agrees"


@pytest.mark.parametrize(
    ("one", "other", "view"),
    [
        ((24, 8), (1, 24, 8), True),
        ((24, 8), (3, 8, 8), True),
        ((2, 12, 4, 2), (24, 8), True),
        ((1, 192), (3, 8, 8), True),
        ((), (1, 1), True),
        ((6, 4), (4, 6), False),
        ((3, 8), (8, 3), False),
        ((2, 12), (3, 8), False),
        ((24, 8), (24, 9), False),
        ((0, 5), (0,), False),
    ],
)
def test_a_shape_is_another_one_with_dimensions_made_one(one: Any, other: Any, view: bool) -> None:
    assert _is_view(one, other) is _is_view(other, one) is view
    assert not view or np.zeros(one).size == np.zeros(other).size
