"""A model that was written again under other names, and a layer inside an adapter: their calls and modules meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402

from healthy.recording import recorded, verdicts  # noqa: E402


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.down(torch.tanh(self.up(self.norm(x))))
        return found + x


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.act, self.w2 = nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.w2(self.act(self.w1(x)))
        return found


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.mlp = nn.LayerNorm(8), Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.mlp(self.before(x))
        return x + found


class Stack(nn.Module):
    def __init__(self, part: type[nn.Module], name: str, output: str) -> None:
        super().__init__()
        self.name, self.output = name, output
        self.add_module(name, nn.ModuleList([part(), part()]))
        self.add_module(output, nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> Any:
        for part in getattr(self, self.name):
            x = part(x)
        return getattr(self, self.output)(x)


def step(model: nn.Module, scale: float = 1.0) -> Any:
    numbers = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn(value.shape, generator=numbers) * 0.5)
    x = torch.randn(4, 8, generator=numbers)

    def run() -> None:
        (model(x) * scale).square().mean().backward()

    return run


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_model_that_was_written_again(tmp_path: Path, task: str) -> None:
    one, other = Stack(Block, "layers", "head"), Stack(Layer, "blocks", "out")
    target = recorded(tmp_path / "target", step(one), model=one, task=task)
    golden = recorded(tmp_path / "golden", step(other), model=other, task=task)
    answer, (unit,) = compare(target, golden)
    assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)
    found = {
        unit.target.nodes.names[t]: unit.golden.nodes.names[g]
        for t, g in zip(unit.pairs.target.tolist(), unit.pairs.golden.tolist(), strict=True)
        if t >= 0 and g >= 0
    }
    assert found["Module.layers.1.up.Linear.forward.0"] == "Module.blocks.1.mlp.w1.Linear.forward.0"
    assert found["Module.layers.0.Block.forward.0"] == "Module.blocks.0.Layer.forward.0"
    assert found["Module.layers.1.down.Linear.parameters_grad.0"] == "Module.blocks.1.mlp.w2.Linear.parameters_grad.0"


def test_a_fault_in_a_model_that_was_written_again(tmp_path: Path) -> None:
    one, other = Stack(Block, "layers", "head"), Stack(Layer, "blocks", "out")
    run = step(one)
    with torch.no_grad():
        one.layers[1].up.weight[3, 2] += 0.3
    target = recorded(tmp_path / "target", run, model=one)
    golden = recorded(tmp_path / "golden", step(other), model=other)
    answer, _ = compare(target, golden)
    assert answer.origins[0].kind == "weight"


class Linear(nn.Module):
    """An adapter that is switched off, named like the layer in whose place it stands."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.base_layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.base_layer(x)
        return found


def test_a_layer_inside_an_adapter(tmp_path: Path) -> None:
    bare, adapted = Stack(Block, "layers", "head"), Stack(Block, "layers", "head")
    run = step(adapted)
    for block in adapted.layers:
        block.up = Linear(block.up)
    for number, sides in enumerate([(adapted, run, bare, step(bare)), (bare, step(bare), adapted, run)]):
        folder = tmp_path / str(number)
        bare.zero_grad()
        adapted.zero_grad()
        target = recorded(folder / "target", sides[1], model=sides[0])
        golden = recorded(folder / "golden", sides[3], model=sides[2])
        answer, (unit,) = compare(target, golden)
        assert answer.outcome == "agrees", verdicts(unit)
