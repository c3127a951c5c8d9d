"""The same model in another wrapping: all its calls have their partners, and nothing is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402

from dumpscope.domain.facts import LEFTOVER_WORDS  # noqa: E402
from dumpscope.domain.options import Options  # noqa: E402
from dumpscope.domain.result import Answer, Unit  # noqa: E402
from dumpscope_format import naming  # noqa: E402
from healthy.recording import recorded  # noqa: E402


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.fc(self.norm(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        found: torch.Tensor = self.head(x)
        return found


class Around(nn.Module):
    """A wrapper that keeps the model under this name."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.add_module(name, model)
        self.name = name

    def forward(self, x: torch.Tensor) -> Any:
        return getattr(self, self.name)(x)


class DistributedDataParallel(Around):
    """With the name by which torch's own is known; that one needs a process group."""


class CheckpointWrapper(Around):
    pass


def plain() -> nn.Module:
    return Net()


def compiled() -> nn.Module:
    return Around(Net(), "_orig_mod")


def data_parallel() -> nn.Module:
    return DistributedDataParallel(Net(), "module")


def data_parallel_and_compiled() -> nn.Module:
    return DistributedDataParallel(compiled(), "module")


def lora() -> nn.Module:
    return Around(Around(Net(), "model"), "base_model")


def lightning() -> nn.Module:
    return Around(Around(Net(), "model"), "model")


def model() -> nn.Module:
    return Around(Net(), "model")


def checkpointed() -> nn.Module:
    net = Net()
    net.layers = nn.ModuleList([CheckpointWrapper(layer, "_checkpoint_wrapped_module") for layer in net.layers])
    return net


def sharded() -> nn.Module:
    net = checkpointed()
    net.layers = nn.ModuleList([Around(layer, "_fsdp_wrapped_module") for layer in net.layers])
    return Around(net, "_fsdp_wrapped_module")


def inner_parallel() -> nn.Module:
    net = Net()
    net.layers[1] = DistributedDataParallel(net.layers[1], "module")
    return net


WRAPPINGS = (
    compiled, data_parallel, data_parallel_and_compiled, lora, lightning, model, checkpointed, sharded, inner_parallel,
)  # fmt: skip


def dumped(path: Path, make: Callable[[], nn.Module], *, inside: bool = False, factor: float = 1.0) -> Path:
    """inside: a module around it, so that the outermost wrapper has a node of its own; factor: of the loss"""
    torch.manual_seed(3)
    built = make()
    x = torch.randn(4, 8)
    whole = nn.Sequential(built) if inside else built

    def step() -> None:
        (whole(x).square().mean() * factor).backward()

    return recorded(path, step, model=whole)


def partners(answer: Answer, unit: Unit) -> None:
    """Every call of the plain model has a partner, and what has none is a wrapper's."""
    assert (answer.origins, answer.counts.no, answer.counts.warning) == ([], 0, 0)
    golden = set(unit.pairs.golden.tolist()) - {-1}
    assert len(golden) == len(unit.golden.nodes)
    lonely = [
        (unit.target.nodes.names[t], LEFTOVER_WORDS[code])
        for t, g, code in zip(
            unit.pairs.target.tolist(), unit.pairs.golden.tolist(), unit.pairs.leftover.tolist(), strict=True
        )
        if g < 0
    ]
    assert {word for _, word in lonely} <= {"wrapper"}, lonely
    paired = zip(unit.pairs.target.tolist(), unit.pairs.golden.tolist(), strict=True)
    for t, g in ((t, g) for t, g in paired if t >= 0 and g >= 0):
        names = unit.target.nodes.names[t], unit.golden.nodes.names[g]
        parsed = [naming.parse(name) for name in names]
        assert parsed[0].label.endswith(parsed[1].label.rpartition(".")[2]), names
        assert parsed[0].direction == parsed[1].direction, names


@pytest.mark.parametrize("make", WRAPPINGS, ids=lambda make: make.__name__)
def test_a_wrapped_model_against_the_plain_one(tmp_path: Path, make: Callable[[], nn.Module]) -> None:
    golden = dumped(tmp_path / "golden", plain)
    wrapped = dumped(tmp_path / "target", make)
    answer, units = compare(wrapped, golden)
    partners(answer, units[0])
    swapped, others = compare(golden, wrapped)
    assert (swapped.origins, swapped.counts.no) == ([], 0)
    pairs = [
        set(zip(*sides, strict=True))
        for sides in (
            (units[0].pairs.target.tolist(), units[0].pairs.golden.tolist()),
            (others[0].pairs.golden.tolist(), others[0].pairs.target.tolist()),
        )
    ]
    assert pairs[0] == pairs[1]


def test_wrappers_of_both_sides(tmp_path: Path) -> None:
    for number, (one, other) in enumerate(
        [(data_parallel_and_compiled, compiled), (lora, model), (sharded, checkpointed)]
    ):
        folder = tmp_path / str(number)
        answer, units = compare(dumped(folder / "target", one), dumped(folder / "golden", other))
        partners(answer, units[0])


def test_a_fault_in_a_wrapped_model_is_named(tmp_path: Path) -> None:
    def doubled() -> nn.Module:
        net = data_parallel()
        with torch.no_grad():
            net.module.layers[1].fc.weight.mul_(1.5)  # type: ignore[union-attr, operator, index]
        return net

    answer, _ = compare(dumped(tmp_path / "target", doubled), dumped(tmp_path / "golden", plain))
    assert [one.kind for one in answer.origins] == ["weight"]


def test_a_rename_of_the_user_goes_with_it(tmp_path: Path) -> None:
    class Other(Net):
        def __init__(self) -> None:
            super().__init__()
            self.last = self._modules.pop("head")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            found: torch.Tensor = self.last(x)  # type: ignore[operator]
            return found

    golden = dumped(tmp_path / "golden", plain)
    target = dumped(tmp_path / "target", lambda: DistributedDataParallel(Other(), "module"))
    for rule in (r"^last\.=head.", r"^module\.last\.=head."):
        answer, units = compare(target, golden, Options(rename=(rule,)))
        partners(answer, units[0])
