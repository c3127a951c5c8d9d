"""Functions that jump: where noise moves elements to the other side, no call is at fault; a wrong comparison or rounding is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from dumpscope.domain.result import Answer  # noqa: E402
from dumpscope_capture import PrecisionDebugger  # noqa: E402
from healthy.recording import answer_of_kernels, recorded  # noqa: E402
from healthy.test_cancellation import Kernels  # noqa: E402

Tensor = torch.Tensor
Run = Callable[[nn.Linear, Tensor], Tensor]


class Replaced(Kernels):
    """Kernels of another machine, one of which is another function. other: by the name of an operator"""

    def __init__(self, other: dict[str, Any]) -> None:
        super().__init__()
        self.other = other

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own = self.other.get(func.overloadpacket.__name__)
        return super().__torch_dispatch__(
            func if own is None else getattr(own, func._overloadname), types, args, kwargs
        )


class Infinite(Kernels):
    """Kernels of another machine, of which a sine is infinite."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        if func.overloadpacket.__name__ == "sin":
            with torch._C.DisableTorchFunction(), torch.no_grad():
                made.mul_(float("inf"))
        return made


def ask(folder: Path, run: Run, kernels: Kernels, **keys: Any) -> Answer:
    return answer_of_kernels(folder, run, kernels, Kernels(exact=True), **keys)


def named(answer: Answer) -> list[tuple[str, str]]:
    return [(one.node, one.kind) for one in answer.origins]


def deviation(layer: nn.Linear, rows: Tensor) -> Tensor:
    """Nothing but rounding: equal rows, and their mean taken away."""
    held = F.gelu(layer(torch.ones_like(rows)))
    return held - held.mean(0)


def one(layer: nn.Linear, rows: Tensor) -> Tensor:
    """1 for every row, but for rounding."""
    return F.softmax(layer(rows), -1).sum(-1, keepdim=True)


def sign(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (torch.sign(deviation(layer, rows)) * layer(rows)).square().sum()


def greater(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (layer(rows) * (deviation(layer, rows) > 0)).square().sum()


def at_least(layer: nn.Linear, rows: Tensor) -> Tensor:
    return torch.where(one(layer, rows) >= 1, layer(rows), -layer(rows)).sin().sum()


def rest(layer: nn.Linear, rows: Tensor) -> Tensor:
    return ((one(layer, rows) % 1.0) * layer(rows)).square().sum()


def whole(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (torch.floor(one(layer, rows) * 3) * layer(rows)).square().sum()


def bucket(layer: nn.Linear, rows: Tensor) -> Tensor:
    at = torch.bucketize(one(layer, rows) * 2, torch.tensor([0.0, 1.0, 2.0, 3.0]))
    return (torch.linspace(0, 3, 6)[at] * layer(rows)).sin().sum()


def cast(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (torch.linspace(0, 3, 5)[(one(layer, rows) * 2).int()] * layer(rows)).sin().sum()


def largest(layer: nn.Linear, rows: Tensor) -> Tensor:
    return layer(rows)[F.gelu(layer(torch.ones_like(rows))).argmax(0)].sin().sum()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("run", [sign, greater, at_least, rest, whole, bucket, cast])
def test_elements_that_noise_moves_over_a_jump_are_no_cause(tmp_path: Path, run: Run, task: str) -> None:
    answer = ask(tmp_path, run, Kernels(), task=task, risk_level="ALL")
    assert (named(answer), answer.counts.no) == ([], 0)
    assert answer.counts.warning > 8  # they did move


def test_another_pick_of_elements_that_noise_makes_unequal_is_no_cause(tmp_path: Path) -> None:
    answer = ask(tmp_path, largest, Kernels(), task="tensor")
    assert (named(answer), answer.counts.no) == ([], 0)
    assert answer.outcome == "agrees"


def test_a_pick_that_only_tensors_can_prove_is_told_and_not_judged(tmp_path: Path) -> None:
    answer = ask(tmp_path, largest, Kernels())
    assert (named(answer), answer.counts.no, answer.outcome) == ([], 0, "not_fully_judged")
    assert answer.coverage.first is not None
    assert (answer.coverage.first.node, answer.coverage.first.reason) == ("Tensor.argmax.0.forward", "picked")
    (told,) = [one for one in answer.settings if "nobody can tell" in one]
    assert '"list": ["Tensor.argmax.0"]' in told


def above(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (layer(rows) + 3 * (F.relu(layer(rows)) > 0)).square().sum()


def floored(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (torch.floor(layer(rows) * 4) * layer(rows)).square().sum()


def signs(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (torch.sign(F.relu(layer(rows))) * layer(rows)).square().sum()


def remains(layer: nn.Linear, rows: Tensor) -> Tensor:
    return (torch.remainder(layer(rows) * 4, 1.0) * layer(rows)).square().sum()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize(
    ("run", "other", "node"),
    [
        (above, {"gt": torch.ops.aten.ge}, "Tensor.__gt__.0.forward"),
        (floored, {"floor": torch.ops.aten.round}, "Torch.floor.0.forward"),
        (whole, {"floor": torch.ops.aten.neg}, "Torch.floor.0.forward"),
        (signs, {"sign": torch.ops.aten.cos}, "Torch.sign.0.forward"),
        (remains, {"remainder": torch.ops.aten.fmod}, "Torch.remainder.0.forward"),
    ],
)
def test_another_comparison_or_rounding_is_named(tmp_path: Path, run: Run, other: Any, node: str, task: str) -> None:
    assert named(ask(tmp_path, run, Replaced(other), task=task))[:1] == [(node, "computation")]


def test_another_comparison_of_numbers_that_noise_makes_unequal_is_named_by_its_tensors(tmp_path: Path) -> None:
    answer = ask(tmp_path, at_least, Replaced({"ge": torch.ops.aten.lt}), task="tensor")
    assert named(answer)[:1] == [("Tensor.__ge__.0.forward", "computation")]


def beside(layer: nn.Linear, rows: Tensor) -> Tensor:
    return at_least(layer, rows) + F.gelu(layer(rows)).square().sum()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_wrong_call_beside_what_crossed_is_named(tmp_path: Path, task: str) -> None:
    answer = ask(tmp_path, beside, Kernels(("gelu", 0)), task=task)
    assert named(answer)[:1] == [("Functional.gelu.0.forward", "computation")]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_number_that_is_infinite_behind_what_crossed_is_named(tmp_path: Path, task: str) -> None:
    answer = ask(tmp_path, at_least, Infinite(), task=task)
    assert named(answer)[:1] == [("Tensor.sin.0.forward", "overflow")]


def continued(folder: Path, kernels: Kernels, *, half: bool) -> Path:
    """A training step, and a second one that picks rows which are equal but for rounding, by number."""
    torch.manual_seed(3)
    layer, rows = nn.Linear(8, 16), torch.randn(6, 8)
    update = torch.optim.Adam(layer.parameters(), 1e-2)

    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            held = layer(rows)
        held.float().sin().sum().backward()
        update.step()
        PrecisionDebugger.stop()
        PrecisionDebugger.step()
        PrecisionDebugger.start(layer)
        with kernels, torch.no_grad():
            words = F.gelu(layer(torch.ones(6, 8))).argmax(0)
            torch.cat([layer(F.embedding(words, layer.weight)), layer(rows)]).sin().sum()

    return recorded(folder, run, model=layer, task="tensor")


@pytest.mark.parametrize("half", [False, True])
def test_a_pick_in_a_later_step_is_no_cause_nor_are_weights_that_differ_by_then(tmp_path: Path, *, half: bool) -> None:
    golden = continued(tmp_path / "golden", Kernels(exact=True), half=False)
    answer = compare(continued(tmp_path / "target", Kernels(), half=half), golden)[0]
    assert (named(answer), answer.counts.no) == ([], 0)
    answer = compare(continued(tmp_path / "wrong", Replaced({"argmax": torch.ops.aten.argmin}), half=half), golden)[0]
    assert named(answer)[:1] == [("Tensor.argmax.0.forward", "computation")]
