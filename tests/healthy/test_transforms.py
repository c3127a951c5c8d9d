"""Calls inside function transforms (torch.func) are judged by their values, as calls outside of them are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from dumpscope.domain.result import Answer, Unit  # noqa: E402
from healthy.recording import recorded  # noqa: E402
from healthy.test_amounts import Scaled  # noqa: E402

ROWS = torch.randn(5, 8, generator=torch.Generator().manual_seed(2))


class Net(nn.Module):
    """mapped: whether `vmap` takes the rows one by one"""

    def __init__(self, *, mapped: bool) -> None:
        super().__init__()
        self.up, self.down, self.mapped = nn.Linear(8, 16), nn.Linear(16, 8), mapped

    def one(self, row: torch.Tensor) -> torch.Tensor:
        return torch.tanh(F.softmax(self.down(F.gelu(self.up(row))), -1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.func.vmap(self.one)(rows) if self.mapped else self.one(rows)
        return found * 2


def dump(path: Path, *, mapped: bool, task: str, wrong: bool = False) -> Path:
    torch.manual_seed(3)
    net = Net(mapped=mapped)

    def step() -> None:
        if wrong:
            with Scaled():
                net(ROWS).sum().backward()
        else:
            net(ROWS).sum().backward()

    return recorded(path, step, model=net, task=task)


def ask(folder: Path, task: str, target: dict[str, bool], golden: dict[str, bool]) -> tuple[Answer, Unit]:
    sides = [dump(folder / name, task=task, **how) for name, how in (("target", target), ("golden", golden))]
    answer, (unit,) = compare(*sides)
    return answer, unit


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize(("target", "golden"), [(True, True), (True, False), (False, True)])
def test_a_mapped_run_agrees_with_one_that_takes_all_rows_at_once(
    tmp_path: Path, *, target: bool, golden: bool, task: str
) -> None:
    answer, unit = ask(tmp_path, task, {"mapped": target}, {"mapped": golden})
    assert (answer.outcome, answer.origins, answer.counts.no, answer.counts.warning) == ("agrees", [], 0, 0)
    shapes = {unit.target.items.shapes[code] for code in unit.target.items.shape.tolist() if code >= 0}
    assert (5, 16) in shapes, "a mapped tensor has the dimension that is mapped over"


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("golden", [True, False])
def test_a_wrong_kernel_inside_of_vmap_is_named(tmp_path: Path, *, golden: bool, task: str) -> None:
    answer, _ = ask(tmp_path, task, {"mapped": True, "wrong": True}, {"mapped": golden})
    assert [(one.node, one.kind) for one in answer.origins] == [("Functional.gelu.0.forward", "computation")]


def test_a_backward_that_is_lacking_outside_of_transforms_is_told(tmp_path: Path) -> None:
    def run(*, detached: bool) -> Callable[[], None]:
        weight = torch.full((8,), 0.5, requires_grad=True)

        def step() -> None:
            made = torch.tanh(ROWS * weight)
            (F.gelu(made.detach() if detached else made).sum() + weight.sum()).backward()

        return step

    sides = [recorded(tmp_path / str(detached), run(detached=detached)) for detached in (False, True)]
    answer, _ = compare(*sides)
    assert answer.outcome == "diverged"
