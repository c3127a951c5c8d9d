"""A weight that holds on one side what calls of the other side compute: a merged adapter, a norm folded into a layer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils.fusion import fuse_conv_bn_eval  # noqa: E402

from healthy.recording import recorded, verdicts  # noqa: E402


class Adapted(nn.Module):
    """A layer with a product of two small ones beside it, or with its input or its result scaled."""

    def __init__(self, layer: nn.Linear, how: str) -> None:
        super().__init__()
        self.base, self.how, self.merged = layer, how, False
        self.down, self.up = nn.Linear(layer.in_features, 2, bias=False), nn.Linear(2, layer.out_features, bias=False)
        self.before, self.behind = (nn.Parameter(torch.rand(n) + 0.5) for n in (layer.in_features, layer.out_features))

    def forward(self, x: torch.Tensor) -> Any:
        if self.merged:
            return self.base(x)
        if self.how == "beside":
            return self.base(x) + self.up(self.down(x)) * 2.0
        return self.base(x * self.before) if self.how == "before" else self.base(x) * self.behind

    @torch.no_grad()
    def merge(self) -> None:
        weight, self.merged = self.base.weight, True
        if self.how == "beside":
            weight += 2.0 * self.up.weight @ self.down.weight
        elif self.how == "before":
            weight *= self.before
        else:
            weight *= self.behind[:, None]
            self.base.bias *= self.behind


class Block(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.norm, self.q, self.out = nn.LayerNorm(8), Adapted(nn.Linear(8, 8), how), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        return x + self.out(torch.tanh(self.q(self.norm(x))))


class Convolved(nn.Module):
    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, bias=bias), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.relu(self.norm(self.conv(x)))


def _pair(folder: Path, target: nn.Module, golden: nn.Module, x: torch.Tensor, task: str) -> Any:
    def run(model: nn.Module) -> Any:
        return lambda: torch.no_grad()(model)(x)

    return compare(
        recorded(folder / "target", run(target), model=target, task=task),
        recorded(folder / "golden", run(golden), model=golden, task=task),
    )


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("how", ["beside", "before", "behind"])
def test_a_merged_adapter_is_no_cause(tmp_path: Path, how: str, task: str) -> None:
    torch.manual_seed(1)
    golden = nn.Sequential(Block(how), Block(how))
    target = copy.deepcopy(golden)
    for block in target:
        block.q.merge()
    for number, sides in enumerate([(target, golden), (golden, target)]):
        answer, (unit,) = _pair(tmp_path / str(number), *sides, torch.randn(4, 8), task)
        assert (answer.origins, answer.counts.no, answer.outcome) == ([], 0, "agrees"), verdicts(unit)
        assert "V-4" in verdicts(unit).values()


def _convolved(outer: type[nn.Module] | None, *, bias: bool = True) -> tuple[nn.Module, nn.Module]:
    """A model into whose convolution the norm behind it is folded, and the one before. outer: a module around both"""
    torch.manual_seed(1)
    golden = Convolved(bias).eval()
    golden.norm.running_mean.normal_()
    golden.norm.running_var.uniform_(0.5, 2.0)
    target = copy.deepcopy(golden)
    target.conv, target.norm = fuse_conv_bn_eval(target.conv, target.norm), nn.Identity()
    return (target, golden) if outer is None else (outer(target, nn.Flatten()), outer(golden, nn.Flatten()))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outer", [None, nn.Sequential])
def test_a_norm_that_is_folded_into_a_convolution_is_no_cause(
    tmp_path: Path, outer: type[nn.Module] | None, *, bias: bool
) -> None:
    target, golden = _convolved(outer, bias=bias)
    for number, sides in enumerate([(target, golden), (golden, target)]):
        answer, (unit,) = _pair(tmp_path / str(number), *sides, torch.randn(2, 3, 6, 6), "statistics")
        assert (answer.origins, answer.counts.no, answer.outcome) == ([], 0, "agrees"), verdicts(unit)


def test_a_norm_that_is_folded_wrongly_is_named(tmp_path: Path) -> None:
    target, golden = _convolved(None)
    with torch.no_grad():
        target.get_submodule("conv").weight[1] *= 1.1
    answer, _ = _pair(tmp_path, target, golden, torch.randn(2, 3, 6, 6), "statistics")
    assert (answer.outcome, answer.origins[0].node) == ("diverged", "Functional.conv2d.0.forward")


@pytest.mark.parametrize("fault", ["merged by another scale", "weight beside the adapter"])
def test_a_wrong_weight_beside_a_merged_adapter_is_named(tmp_path: Path, fault: str) -> None:
    torch.manual_seed(1)
    golden = nn.Sequential(Block("beside"), Block("beside"))
    target = copy.deepcopy(golden)
    for block in target:
        block.q.merge()
    with torch.no_grad():
        if fault == "weight beside the adapter":
            target[1].out.weight[2, 3] += 0.3
        else:
            target[1].q.base.weight += 0.2 * golden[1].q.up.weight @ golden[1].q.down.weight
    answer, _ = _pair(tmp_path, target, golden, torch.randn(4, 8), "statistics")
    assert answer.outcome == "diverged"
    expected = "Functional.linear.3.forward" if fault == "weight beside the adapter" else "Functional.linear.2.forward"
    assert (answer.origins[0].node, answer.origins[0].kind) == (expected, "weight")
