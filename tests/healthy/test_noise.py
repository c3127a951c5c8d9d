"""Noise that the analysis knows as noise is not No."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from capture.conftest import forget  # noqa: E402
from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from dumpscope.domain.result import Answer, Unit  # noqa: E402
from dumpscope_capture import PrecisionDebugger  # noqa: E402
from healthy.recording import answer_of, recorded, verdicts  # noqa: E402


class Net(nn.Module):
    """A bias before a norm: its gradient is zero but for rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(torch.tanh(self.norm(self.conv(x))).mean((2, 3)))
        return found


def step(scale: float = 1.0) -> tuple[nn.Module, Any]:
    torch.manual_seed(1)
    net = Net()
    x = torch.randn(8, 3, 12, 12) * scale

    def run() -> None:
        (net(x).square().mean()).backward()

    return net, run


def answer(folder: Path, task: str, scale: float) -> tuple[Answer, Unit]:
    net, run = step(scale)
    target = recorded(folder / "target", run, model=net, task=task)
    net, run = step()
    golden = recorded(folder / "golden", run, model=net, task=task)
    found, units = compare(target, golden)
    return found, units[0]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_gradient_that_cancels_is_a_warning(tmp_path: Path, task: str) -> None:
    found, unit = answer(tmp_path, task, 1 + 2e-6)
    rules = verdicts(unit)
    assert "C-1" in rules.values(), rules
    assert found.counts.no == 0, rules


def rounded(bits: float) -> Any:
    """Three products, of which the last is off by so much of its floor."""
    x = torch.randn(64, 64)
    for number in range(3):
        x = torch.matmul(x, torch.eye(64) + 0.1) * 0.3
        if number == 2:
            x = x.mul_(1 + bits)
    return torch.tanh(x)


@pytest.mark.parametrize("same", [True, False])
def test_bit_equal_calls_promise_nothing_of_other_kernels(tmp_path: Path, same: bool) -> None:
    """A difference of a tenth of a floor is a cause between two runs of one machine, and none between one thread and two."""
    target = recorded(tmp_path / "target", lambda: rounded(1e-5), model=None)
    golden = recorded(tmp_path / "golden", lambda: rounded(0.0), model=None)
    for file in tmp_path.rglob("run.json"):
        run = json.loads(file.read_text())
        run["numerics"]["threads"] = 1 if same or "golden" in str(file) else 2
        file.write_text(json.dumps(run))
    found, units = compare(target, golden)
    assert bool(found.origins) == same, verdicts(units[0])


def test_what_an_optimizer_makes_of_a_gradient_that_cancels_is_a_warning(tmp_path: Path) -> None:
    def run(scale: float) -> Any:
        net, back = step(scale)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

        def whole() -> None:
            back()
            optimizer.step()

        return net, whole

    paths = []
    for name, scale in (("target", 1 + 2e-6), ("golden", 1.0)):
        net, whole = run(scale)
        paths.append(recorded(tmp_path / name, whole, model=net))
    found, units = compare(*paths)
    assert (found.origins, found.counts.no) == ([], 0), verdicts(units[0])


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_another_precision_is_told_and_nothing_is_no(tmp_path: Path, task: str) -> None:
    def run(dtype: Any) -> Any:
        def whole() -> Any:
            x = torch.randn(32, 32).to(dtype)
            for _ in range(12):
                x = torch.nn.functional.layer_norm(torch.matmul(x, torch.tanh(x)), (32,))
            return x.square().mean()

        return whole

    answer, unit = answer_of(tmp_path, run(torch.bfloat16), run(torch.float32), task=task)
    assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)
    assert any("Precision differs" in text for text in answer.settings)


def test_an_argument_without_effect_is_a_warning(tmp_path: Path) -> None:
    def run(training: bool) -> Any:
        return lambda: torch.relu(torch.nn.functional.dropout(torch.randn(3, 4), 0.0, training))

    answer, unit = answer_of(tmp_path, run(True), run(False))
    assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)
    assert "V-3" in verdicts(unit).values()


class TanhForm(TorchDispatchMode):
    """A gelu kernel that takes the approximation by tanh, whatever it is asked for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func.overloadpacket.__name__ == "gelu":
            kwargs["approximate"] = "tanh"
        return func(*args, **kwargs)


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_gradient_of_pure_rounding_takes_no_blame_for_a_forward_kernel(
    tmp_path: Path, task: str, dtype: torch.dtype
) -> None:
    """The mean square of a layer norm's result hardly depends on what goes in: its gradient is rounding. In bfloat16 the other
    form of gelu is less than a rounding, so naming nothing is right too."""

    def run(mode: Any) -> Any:
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.LayerNorm(64)).to(dtype)
        x = torch.randn(16, 64, dtype=dtype)

        def step() -> None:
            with mode:
                made = net(x)
            (made.float() ** 2).mean().backward()

        return net, step

    sides = []
    for name, mode in (("target", TanhForm()), ("golden", nullcontext())):
        net, step = run(mode)
        sides.append(recorded(tmp_path / name, step, model=net, task=task))
    found, _ = compare(*sides)
    named = [one.node for one in found.origins]
    assert named in ([], ["Functional.gelu.0.forward"]), [(one.node, one.confidence) for one in found.origins]
    assert named or dtype == torch.bfloat16


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_what_is_made_of_a_gradient_of_pure_rounding_is_a_warning(tmp_path: Path, task: str) -> None:
    def run(scale: float) -> tuple[nn.Module, Any]:
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.LayerNorm(64))
        x = torch.randn(16, 64) * scale
        return net, lambda: net(x).square().mean().backward()

    sides = []
    for name, scale in (("target", 1 + 3e-6), ("golden", 1.0)):
        net, step = run(scale)
        sides.append(recorded(tmp_path / name, step, model=net, task=task))
    found, (unit,) = compare(*sides)
    assert (found.origins, found.counts.no) == ([], 0), verdicts(unit)
    assert task == "statistics" or "C-1" in verdicts(unit).values()


class Plain(nn.Module):
    """Adds its bias before a norm, and scales behind it, in code of its own: parameters that plain functions take."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.scale, self.norm = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.ones(8)), nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.tanh(self.norm(x + self.bias)) * self.scale
        return found


class Large(TorchDispatchMode):
    """The fourth tanh, that of the second block in the second step, is 5 % too large."""

    calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.tanh.default:
            self.calls += 1
            if self.calls == 4:
                with torch._C.DisableTorchFunction():
                    made.mul_(1.05)
        return made


def two_steps(folder: Path, noise: float, *, wrong: str = "") -> Path:
    """Steps with Adam. noise: of the data; wrong: what is wrong in the second step"""
    torch.manual_seed(1)
    between = nn.Tanh if wrong in ("biases", "layers", "none") else Plain
    net = nn.Sequential(nn.Linear(6, 8), between(), nn.Linear(8, 8), between(), nn.Linear(8, 3))
    update = torch.optim.Adam(net.parameters(), lr=1e-3)
    x = torch.randn(32, 6) * (1 + noise)
    forget()
    debugger = PrecisionDebugger(task="statistics", dump_path=str(folder), level="mix")
    kernels = Large() if wrong == "kernel" else nullcontext()
    for number in range(2):
        with torch.no_grad():
            if number and wrong == "weight":
                net[3].scale += 0.3
            for layer in (net[0], net[2], net[4]) if number and wrong in ("biases", "layers") else ():
                layer.bias += 0.02
                layer.weight += 0.02 if wrong == "layers" else 0.0
        debugger.start(net)
        with kernels:
            net(x).square().mean().backward()
        update.step()
        update.zero_grad()
        debugger.stop()
        debugger.step()
    forget()
    return folder


def test_a_parameter_that_a_plain_function_takes_is_a_weight_in_a_later_step(tmp_path: Path) -> None:
    golden = two_steps(tmp_path / "golden", 0.0)
    found, units = compare(two_steps(tmp_path / "target", 2e-6), golden)
    assert (found.origins, found.counts.no) == ([], 0), [verdicts(unit) for unit in units]
    for wrong in ("weight", "kernel"):
        faulty, _ = compare(two_steps(tmp_path / wrong, 2e-6, wrong=wrong), golden)
        assert faulty.outcome == "diverged"
        if wrong == "kernel":
            assert (faulty.origins[0].step, faulty.origins[0].node) == (1, "Torch.tanh.1.forward")


def test_vectors_alone_are_no_wrong_update_of_a_noisy_pair(tmp_path: Path) -> None:
    """An optimizer makes full steps of single elements of a bias whose gradients are rounding; of a matrix it does not."""
    golden = two_steps(tmp_path / "golden", 0.0, wrong="none")
    kinds = {}
    for wrong in ("biases", "layers"):
        faulty, _ = compare(two_steps(tmp_path / wrong, 2e-6, wrong=wrong), golden)
        assert faulty.outcome == "diverged"
        kinds[wrong] = {(one.step, one.kind) for one in faulty.origins}
    assert (1, "weight") not in kinds["biases"]
    assert (1, "weight") in kinds["layers"]
