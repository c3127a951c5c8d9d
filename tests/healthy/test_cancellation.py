"""Sums whose terms cancel: what is left of them is rounding, whatever call sums, and so is all that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from dumpscope.domain.result import Answer  # noqa: E402
from healthy.recording import recorded  # noqa: E402

Tensor = torch.Tensor
ROUNDED = ("mm", "sum", "mean", "gelu", "norm", "var", "mv", "sin")
"""Words in the names of operators whose results depend on the kernel in the last place."""


class Kernels(TorchDispatchMode):
    """Kernels of another machine: results that are rounded differ in the last place. wrong: (operator, its n-th call) whose
    result is 1 % too large"""

    def __init__(self, wrong: tuple[str, int] | None = None, *, exact: bool = False) -> None:
        super().__init__()
        self.noise = torch.Generator().manual_seed(11)
        self.wrong, self.exact, self.calls = wrong, exact, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        first = made[0] if isinstance(made, tuple) else made
        if not isinstance(first, Tensor) or not first.is_floating_point():
            return made
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if not self.exact and any(word in name for word in ROUNDED) and 0 not in first.stride():
                first.mul_(1 + 6e-8 * torch.randn(first.shape, generator=self.noise))
            if self.wrong is not None and name == self.wrong[0]:
                if self.calls == self.wrong[1]:
                    first.mul_(1.01)
                self.calls += 1
        return made


def ask(folder: Path, run: Callable[[nn.Linear, Tensor], Any], task: str, kernels: Kernels) -> Answer:
    sides = []
    for name, mode in (("target", kernels), ("golden", Kernels(exact=True))):
        torch.manual_seed(3)
        layer, rows = nn.Linear(8, 16), torch.randn(6, 8)

        def step(layer: nn.Linear = layer, rows: Tensor = rows, mode: Kernels = mode) -> None:
            with mode:
                run(layer, rows).backward()

        sides.append(recorded(folder / name, step, model=layer, task=task))
    return compare(*sides)[0]


def summed_norm(layer: nn.Linear, rows: Tensor) -> Tensor:
    return F.layer_norm(F.gelu(layer(rows)), (16,)).sum()


def variance_by_moments(layer: nn.Linear, rows: Tensor) -> Tensor:
    held = F.gelu(layer(rows)) + 100
    return (held.square().mean(0) - held.mean(0).square()).sum()


def centred_twice(layer: nn.Linear, rows: Tensor) -> Tensor:
    held = F.gelu(layer(rows))
    held = held - held.mean(0)
    return (held.mean(0) * 1e6).sin().sum()


def weighted(layer: nn.Linear, rows: Tensor) -> Tensor:
    held = F.gelu(layer(rows))
    signs = torch.cat([torch.ones(16), -torch.ones(16)])
    twice = torch.cat([held, held], -1)
    return torch.einsum("bi,i->b", twice, signs).sum() + (twice @ signs).square().sum()


def distance_to_one(layer: nn.Linear, rows: Tensor) -> Tensor:
    return F.layer_norm(F.gelu(layer(rows)), (16,)).var(-1, unbiased=False).sub(1).square().sum()


PROGRAMS = [summed_norm, variance_by_moments, centred_twice, weighted, distance_to_one]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("run", PROGRAMS)
def test_rounding_in_a_sum_that_cancels_is_no_cause(
    tmp_path: Path, run: Callable[[nn.Linear, Tensor], Tensor], task: str
) -> None:
    answer = ask(tmp_path, run, task, Kernels())
    assert ([(one.node, one.kind) for one in answer.origins], answer.counts.no) == ([], 0)
    assert answer.outcome == "agrees"
    assert answer.counts.warning > 0


@pytest.mark.parametrize("run", PROGRAMS)
def test_a_wrong_call_before_the_sum_is_named(tmp_path: Path, run: Callable[[nn.Linear, Tensor], Tensor]) -> None:
    answer = ask(tmp_path, run, "tensor", Kernels(("gelu", 0)))
    assert [(one.node, one.kind) for one in answer.origins][:1] == [("Functional.gelu.0.forward", "computation")]


@pytest.mark.parametrize("exact", [True, False])
def test_a_wrong_sum_is_named_where_it_is_wrong_by_more_than_its_terms_allow(tmp_path: Path, *, exact: bool) -> None:
    def run(layer: nn.Linear, rows: Tensor) -> Tensor:
        held = F.gelu(layer(rows))
        return (held.sum(0) - 2 * held.mean(0)).square().sum()

    answer = ask(tmp_path, run, "tensor", Kernels(("sum", 0), exact=exact))
    assert [(one.node, one.kind) for one in answer.origins][:1] == [("Tensor.sum.0.forward", "computation")]


def test_a_difference_of_equal_numbers_has_one_result(tmp_path: Path) -> None:
    """Rounding comes in with operands: where they are equal, however near to each other, their difference is."""

    def run(layer: nn.Linear, rows: Tensor) -> Tensor:
        near = rows * (1 + 1e-5) - rows
        return F.gelu(layer(rows)).sum() + near.sum()

    answer = ask(tmp_path, run, "tensor", Kernels(("sub", 0)))
    assert [(one.node, one.kind) for one in answer.origins][:1] == [("Tensor.__sub__.0.forward", "computation")]
