"""Ordinary trainings in 16 bits, and ordinary optimizers: noise moves elements over the jumps of a derivative, and makes full
steps of single elements."""

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
from healthy.recording import recorded  # noqa: E402

Run = Callable[[], tuple[nn.Module, Callable[[], Any]]]


class Kernels(TorchDispatchMode):
    """Kernels of another machine: a tenth of the 16-bit results is rounded the other way, those of 32 bits differ in the last
    place. wrong: operator whose results are `by` times as large"""

    def __init__(self, *, exact: bool = False, wrong: str = "", by: float = 1.5) -> None:
        super().__init__()
        self.noise = torch.Generator().manual_seed(5)
        self.exact, self.wrong, self.by = exact, wrong, by

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if func.is_view or name.endswith("_"):
            return made
        for one in made if isinstance(made, tuple | list) else [made]:
            if isinstance(one, torch.Tensor) and one.is_floating_point() and one.numel():
                with (
                    torch._C.DisableTorchFunction(),
                    torch.no_grad(),
                    torch.autograd._unsafe_preserve_version_counter(one),
                ):
                    self._round(one, name)
        return made

    def _round(self, one: Any, name: str) -> None:
        if not self.exact and any(word in name for word in ("mm", "conv", "norm", "softmax", "mean", "sum")):
            if one.dtype is torch.bfloat16:
                other = torch.rand(one.shape, generator=self.noise) < 0.1
                way = torch.randn(one.shape, generator=self.noise).sign().to(torch.int16)
                one.view(torch.int16).add_((other & (one != 0)).to(torch.int16) * way)
            elif one.dtype is torch.float32:
                one.mul_(1 + 6e-8 * torch.randn(one.shape, generator=self.noise))
        if name == self.wrong:
            one.mul_(self.by)


class Residual(nn.Module):
    """Its last ReLU is a function: dumps of modules alone do not hold it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 16, 3, padding=1, bias=False)

    def forward(self, images: Any) -> Any:
        return F.relu(images + self.second(F.relu(self.norm(self.first(images)))))


def convolutions() -> tuple[nn.Module, Callable[[], Any]]:
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), Residual(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 10),
    )  # fmt: skip
    images, classes = torch.randn(8, 3, 12, 12), torch.arange(8)
    return net, lambda: F.cross_entropy(net(images), classes)


def layers() -> tuple[nn.Module, Callable[[], Any]]:
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    rows, classes = torch.randn(32, 32), torch.arange(32) % 10
    return net, lambda: F.cross_entropy(net(rows), classes)


def attention() -> tuple[nn.Module, Callable[[], Any]]:
    net = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    rows = torch.randn(4, 9, 32)
    return net, lambda: net(rows).mean(1).square().sum(0).sin().sum()


class Causal(nn.Module):
    """A block with one projection for queries, keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.all, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.more = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))

    def forward(self, rows: Any) -> Any:
        parts = [one.unflatten(-1, (4, 8)).transpose(1, 2) for one in self.all(self.norm(rows)).chunk(3, -1)]
        rows = rows + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        return rows + self.more(rows)


def blocks() -> tuple[nn.Module, Callable[[], Any]]:
    net = nn.Sequential(Causal(), Causal(), Causal(), nn.LayerNorm(32), nn.Linear(32, 10))
    rows, classes = torch.randn(4, 16, 32), torch.arange(64) % 10
    return net, lambda: F.cross_entropy(net(rows).flatten(0, 1), classes)


class Distribution(nn.Module):
    """Its divergence is a difference of numbers that are nearly equal."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(32, 64), nn.SiLU())
        self.mean, self.spread = nn.Linear(64, 8), nn.Linear(64, 8)
        self.outer = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 32))

    def forward(self, rows: Any) -> Any:
        held = self.inner(rows)
        mean, spread = self.mean(held), self.spread(held)
        made = self.outer(mean + torch.exp(0.5 * spread) * torch.linspace(-2, 2, 8))
        return F.mse_loss(made, rows) - 0.5 * (1 + spread - mean.pow(2) - spread.exp()).mean()


def distribution() -> tuple[nn.Module, Callable[[], Any]]:
    net, rows = Distribution(), torch.randn(16, 32)
    return net, lambda: net(rows)


class Classes(nn.Module):
    """Its norm takes the mean of two rows."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm, self.two, self.head = (
            nn.Linear(8, 64),
            nn.BatchNorm1d(64),
            nn.Linear(64, 32),
            nn.Linear(32, 5),
        )

    def forward(self, rows: Any) -> Any:
        return self.head(F.hardswish(self.two(F.hardswish(self.norm(self.one(rows))))))


def two_rows() -> tuple[nn.Module, Callable[[], Any]]:
    net, rows, shares = Classes(), torch.randn(2, 8), torch.randn(2, 5).softmax(-1)
    return net, lambda: -(shares * F.log_softmax(net(rows).float(), -1)).sum(-1).mean()


def train(
    folder: Path,
    run: Run,
    kernels: Kernels,
    *,
    steps: int = 1,
    half: bool = False,
    tried: str | None = None,
    **keys: Any,
) -> Path:
    """tried: a step more that computes the loss in float32 alone, with this operator wrong ("" for none)"""
    torch.manual_seed(3)
    net, loss_of = run()
    rates = keys.pop("rates", {})
    groups = [{"params": [one], "lr": rates.get(name, 1e-3)} for name, one in net.named_parameters()]
    optimizer = torch.optim.AdamW(groups)

    def whole() -> None:
        for step in range(steps):
            if step:
                PrecisionDebugger.stop()
                PrecisionDebugger.step()
                PrecisionDebugger.start(net)
            with kernels:
                with torch.autocast("cpu", torch.bfloat16, enabled=half):
                    loss = loss_of()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        if tried is not None:
            PrecisionDebugger.stop()
            PrecisionDebugger.step()
            PrecisionDebugger.start(net)
            with Kernels(exact=True, wrong=tried), torch.no_grad():
                loss_of()

    return recorded(folder, whole, model=net, **keys)


def ask(folder: Path, run: Run, kernels: Kernels, **keys: Any) -> Answer:
    target = train(folder / "target", run, kernels, **keys)
    keys.pop("rates", None)
    return compare(target, train(folder / "golden", run, Kernels(exact=True), **keys))[0]


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("run", [convolutions, layers, distribution])
def test_rounding_of_16_bits_and_elements_that_it_moves_over_a_jump_are_no_cause(
    tmp_path: Path, run: Run, task: str, level: str
) -> None:
    answer = ask(tmp_path, run, Kernels(), half=True, task=task, level=level)
    assert ([(one.node, one.kind) for one in answer.origins], answer.counts.no) == ([], 0)


@pytest.mark.parametrize(
    ("run", "wrong", "node"),
    [
        (convolutions, "convolution_backward", "Functional.conv2d.2.backward"),
        (layers, "threshold_backward", "Functional.relu.1.backward"),
    ],
)
def test_a_wrong_call_of_the_backward_pass_is_named_behind_jumps(
    tmp_path: Path, run: Run, wrong: str, node: str
) -> None:
    answer = ask(tmp_path, run, Kernels(wrong=wrong), half=True, task="tensor")
    assert [(one.node, one.kind) for one in answer.origins][:1] == [(node, "computation")]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_an_infinite_gradient_behind_jumps_is_named(tmp_path: Path, task: str) -> None:
    kernels = Kernels(wrong="threshold_backward", by=float("inf"))
    answer = ask(tmp_path, layers, kernels, half=True, task=task)
    assert [(one.node, one.kind) for one in answer.origins][:1] == [("Functional.relu.1.backward", "overflow")]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize(("run", "level"), [(attention, "mix"), (blocks, "mix"), (blocks, "L0")])
def test_steps_of_keys_alone_in_a_bias_of_queries_keys_and_values_are_a_warning(
    tmp_path: Path, run: Run, task: str, level: str
) -> None:
    answer = ask(tmp_path, run, Kernels(), steps=2, task=task, level=level)
    assert ([(one.node, one.kind) for one in answer.origins], answer.counts.no) == ([], 0)


def test_another_learning_rate_of_one_matrix_is_no_step_of_single_elements(tmp_path: Path) -> None:
    answer = ask(tmp_path, attention, Kernels(), task="tensor", rates={"linear1.weight": 2e-3, "linear1.bias": 2e-3})
    assert answer.counts.no > 0


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_noise_that_a_call_made_is_noise_where_the_next_call_takes_it(tmp_path: Path, task: str) -> None:
    rates = dict.fromkeys(("one.weight", "norm.weight", "two.weight", "head.weight"), 0.1)
    sides = [
        train(tmp_path / name, two_rows, Kernels(exact=True), steps=2, half=half, task=task, rates=dict(rates))
        for name, half in (("target", True), ("golden", False))
    ]
    answer = compare(*sides)[0]
    assert (answer.outcome, answer.origins, answer.counts.no) == ("agrees", [], 0)


def test_statistics_show_no_less_than_rounding_to_16_bits_behind_steps_that_computed_so(tmp_path: Path) -> None:
    """1 and -1 of a norm over two rows have the same statistics wherever they stand, and the layer behind takes them all."""
    rates = dict.fromkeys((name for name, _ in Classes().named_parameters()), 3e-3)
    sides = {
        name: train(tmp_path / name, two_rows, Kernels(exact=True), steps=2, half=half, tried=tried, rates=dict(rates))
        for name, half, tried in (("target", True, ""), ("wrong", True, "hardswish"), ("golden", False, ""))
    }
    answer = compare(sides["target"], sides["golden"])[0]
    assert (answer.outcome, answer.origins, answer.counts.no) == ("agrees", [], 0)
    answer = compare(sides["wrong"], sides["golden"])[0]
    assert [(one.node, one.step) for one in answer.origins][:1] == [("Functional.hardswish.0.forward", 2)]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_loss_in_float32_behind_steps_in_16_bits_on_one_side_carries_their_rounding(
    tmp_path: Path, task: str
) -> None:
    target = train(tmp_path / "target", blocks, Kernels(exact=True), steps=2, half=True, tried="", task=task)
    golden = train(tmp_path / "golden", blocks, Kernels(exact=True), steps=2, tried="", task=task)
    answer = compare(target, golden)[0]
    assert ([(one.node, one.kind) for one in answer.origins], answer.counts.no) == ([], 0)
    wrong = train(tmp_path / "wrong", blocks, Kernels(exact=True), steps=2, half=True, tried="gelu", task=task)
    answer = compare(wrong, golden)[0]
    assert [(one.node, one.kind) for one in answer.origins][:1] == [("Functional.gelu.0.forward", "computation")]
    assert answer.counts.no > 0


class Spike(Kernels):
    """One element of the result of the second `tanh` is too large, by less than the floor of the distance of all elements."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        if func.overloadpacket.__name__ == "tanh":
            self.calls += 1
            if self.calls == 2:
                with torch._C.DisableTorchFunction(), torch.no_grad():
                    made.view(-1)[:1].add_(0.12)
        return made


def test_a_forward_call_behind_the_first_backward_pass_is_judged_by_its_elements(tmp_path: Path) -> None:
    """Noise moves elements over the jump of a derivative, which a forward call of another micro-batch does not compute."""

    def micro_batches(name: str, kernels: Kernels) -> Path:
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
        net, rows = net.to(torch.bfloat16), torch.randn(2, 64, 16).to(torch.bfloat16)

        def run() -> None:
            with kernels:
                for part in rows:
                    net(part).square().mean().backward()

        return recorded(tmp_path / name, run, model=net, task="tensor")

    golden = micro_batches("golden", Kernels(exact=True))
    answer = compare(micro_batches("target", Kernels()), golden)[0]
    assert (answer.origins, answer.counts.no) == ([], 0)
    answer = compare(micro_batches("wrong", Spike()), golden)[0]
    assert [one.node for one in answer.origins][:1] == ["Torch.tanh.1.forward"]
    assert answer.counts.no > 0
