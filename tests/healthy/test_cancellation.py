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
from dumpscope_capture import PrecisionDebugger  # noqa: E402
from healthy.recording import answer_of_kernels, recorded  # noqa: E402

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
    return answer_of_kernels(folder, run, kernels, Kernels(exact=True), task=task)


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


def norm_of_a_constant_batch(layer: nn.Linear, rows: Tensor) -> Tensor:
    """As in a first try on made-up data."""
    held = F.gelu(F.batch_norm(layer(torch.ones_like(rows)), None, None, training=True))
    return (held @ rows.new_ones(16)).sum() + held.square().sum()


def loss_that_no_norm_lets_change(layer: nn.Linear, rows: Tensor) -> Tensor:
    """The gradients of both branches are rounding, and so is their sum, which no recorded call makes."""
    held = F.layer_norm(F.gelu(layer(rows)), (16,))
    return F.layer_norm(held + torch.sin(held), (16,)).square().mean()


def attention_to_equal_values(layer: nn.Linear, rows: Tensor) -> Tensor:
    held = layer(rows)
    shares = torch.softmax(held @ held.mT, -1)
    return (shares @ layer(torch.ones_like(rows))).square().sum()


def row_made_a_unit(layer: nn.Linear, rows: Tensor) -> Tensor:
    """No loss depends on the length that the second scaling takes away: of its gradient rounding is left."""
    held = F.gelu(layer(rows)) * 1e-2
    held = held * torch.rsqrt(held.pow(2).sum(-1, keepdim=True) + 1e-9)
    return (held * torch.rsqrt(held.pow(2).sum(-1, keepdim=True) + 1e-9)).sin().sum()


def root_norm_by_hand(layer: nn.Linear, rows: Tensor) -> Tensor:
    """Both uses of its input have a gradient, and their sum, which no recorded call makes, is rounding; what is made of it is too
    small for a score, and large again later."""
    held = F.gelu(layer(rows)) * 1e-3
    for _ in range(2):
        held = held * (held.pow(2).mean(-1, keepdim=True) + 1e-12).pow(-0.5)
    return held.pow(2).mean()


def norms_in_a_chain(layer: nn.Linear, rows: Tensor) -> Tensor:
    """The second norm leaves a share of what the first has left."""
    held = F.layer_norm(F.gelu(layer(rows)), (16,))
    for scale in (1.0, 2.0):
        held = F.layer_norm(held + torch.sin(scale * held), (16,))
    return F.layer_norm(held, (16,)).square().mean()


def loss_of_all_and_of_one_row(layer: nn.Linear, rows: Tensor) -> Tensor:
    """What arrives at the last norm is a sum that no recorded call makes, and far larger than what is left behind it."""
    held = F.layer_norm(F.gelu(layer(rows)), (16,))
    last = F.layer_norm(held + torch.sin(held), (16,))
    return last.square().mean() + last[0].square().mean()


PROGRAMS = [
    summed_norm, variance_by_moments, centred_twice, weighted, distance_to_one, norm_of_a_constant_batch,
    loss_that_no_norm_lets_change, attention_to_equal_values, row_made_a_unit, root_norm_by_hand, norms_in_a_chain,
    loss_of_all_and_of_one_row,
]  # fmt: skip


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("run", PROGRAMS)
def test_rounding_in_a_sum_that_cancels_is_no_cause(
    tmp_path: Path, run: Callable[[nn.Linear, Tensor], Tensor], task: str
) -> None:
    answer = ask(tmp_path, run, task, Kernels())
    assert ([(one.node, one.kind) for one in answer.origins], answer.counts.no) == ([], 0)
    assert answer.outcome == "agrees"
    assert answer.counts.warning > 0


@pytest.mark.parametrize("run", PROGRAMS[:5])
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


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("wrong", ["native_batch_norm", "native_batch_norm_backward", "_softmax_backward_data"])
def test_a_wrong_norm_or_softmax_is_named_where_nothing_cancels(tmp_path: Path, wrong: str, *, exact: bool) -> None:
    def run(layer: nn.Linear, rows: Tensor) -> Tensor:
        held = F.gelu(F.batch_norm(layer(rows), None, None, training=True))
        return (torch.softmax(held, -1) * torch.linspace(-1, 1, 16)).square().sum()

    answer = ask(tmp_path, run, "tensor", Kernels((wrong, 0), exact=exact))
    name = "Torch.softmax" if "softmax" in wrong else "Functional.batch_norm"
    way = "backward" if "backward" in wrong else "forward"
    assert [(one.node, one.kind) for one in answer.origins][:1] == [(f"{name}.0.{way}", "computation")]


@pytest.mark.parametrize("exact", [True, False])
def test_a_gradient_that_is_more_than_what_a_norm_left_is_judged(tmp_path: Path, *, exact: bool) -> None:
    def run(layer: nn.Linear, rows: Tensor) -> Tensor:
        held = layer(rows)
        return F.layer_norm(held, (16,)).square().mean() + F.gelu(held).sum()

    answer = ask(tmp_path, run, "tensor", Kernels(("gelu_backward", 0), exact=exact))
    assert [(one.node, one.kind) for one in answer.origins][:1] == [("Functional.gelu.0.backward", "computation")]


def layers_before_a_norm() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(
        nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.LayerNorm(16)
    ), torch.randn(6, 8)


def layers_behind_a_norm() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 4)), torch.ones(6, 8)


def norm_without_weights() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Conv2d(4, 4, 1), nn.InstanceNorm2d(4)), torch.ones(
        2, 3, 6, 6
    )


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("make", [layers_before_a_norm, layers_behind_a_norm, norm_without_weights])
def test_modules_alone_show_what_is_rounding(
    tmp_path: Path, make: Callable[[], tuple[nn.Module, Tensor]], task: str
) -> None:
    sides = []
    for name, exact in (("target", False), ("golden", True)):
        torch.manual_seed(3)
        model, given = make()

        def step(model: nn.Module = model, given: Tensor = given, *, exact: bool = exact) -> None:
            with Kernels(exact=exact):
                model(given).square().mean().backward()

        sides.append(recorded(tmp_path / name, step, model=model, task=task, level="L0"))
    answer = compare(*sides)[0]
    assert ([(one.node, one.kind) for one in answer.origins], answer.counts.no) == ([], 0)


@pytest.mark.parametrize(("task", "seed"), [("statistics", 4), ("statistics", 6), ("tensor", 6)])
def test_weights_that_an_optimizer_made_of_rounding_accuse_no_call_of_the_next_step(
    tmp_path: Path, task: str, seed: int
) -> None:
    sides = []
    for name, exact in (("target", False), ("golden", True)):
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 4)
        )
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

        def train(model: nn.Module = model, optimizer: Any = optimizer, *, exact: bool = exact) -> None:
            for step in range(2):
                if step:
                    PrecisionDebugger.stop()
                    PrecisionDebugger.step()
                    PrecisionDebugger.start(model)
                with Kernels(exact=exact):
                    model(torch.ones(6, 8)).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()

        sides.append(recorded(tmp_path / name, train, model=model, task=task))
    answer = compare(*sides)[0]
    assert (answer.origins, answer.first_no.step if answer.first_no else None) == ([], 1)
