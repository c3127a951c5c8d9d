"""Weights that an optimizer updates within a step: what they inherit is no cause of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from healthy.recording import recorded  # noqa: E402


class Scaled(TorchDispatchMode):
    """The first result of an operator is 3 % too large."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ == self.name:
            self.name = ""
            with torch._C.DisableTorchFunction():
                made.mul_(1.03)
        return made


class Pair(nn.Module):
    """A generator and a critic, which judges before and after its own update."""

    def __init__(self) -> None:
        super().__init__()
        self.maker, self.critic = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 1))


def dump(path: Path, wrong: str, *, loaded: float = 0.0, **keys: Any) -> Path:
    torch.manual_seed(3)
    pair, noise, real = Pair(), torch.randn(5, 4), torch.randn(5, 4)
    with torch.no_grad():
        pair.critic[0].weight.mul_(1 + loaded)
    update = torch.optim.Adam(pair.critic.parameters(), foreach=False)

    def step() -> None:
        with Scaled(wrong):
            made = pair.maker(noise)
            (F.softplus(-pair.critic(real)).mean() + F.softplus(pair.critic(made.detach())).mean()).backward()
            update.step()
            F.softplus(-pair.critic(made)).mean().backward()

    return recorded(path, step, model=pair, task="tensor", **keys)


@pytest.mark.parametrize("optimizer", [True, False])
@pytest.mark.parametrize(
    ("wrong", "node"),
    [("sigmoid_backward", "Torch.sigmoid.1.backward"), ("softplus_backward", "Functional.softplus.1.backward")],
)
def test_a_wrong_gradient_is_named_and_not_the_weight_that_it_updates(
    tmp_path: Path, wrong: str, node: str, *, optimizer: bool
) -> None:
    sides = [dump(tmp_path / name, name, optimizer=optimizer) for name in (wrong, "sound")]
    answer, _ = compare(*sides)
    assert answer.origins[0].node == node, [(one.node, one.kind) for one in answer.origins]
    assert "weight" not in {one.kind for one in answer.origins}


def test_a_weight_that_was_loaded_otherwise_is_named(tmp_path: Path) -> None:
    answer, _ = compare(dump(tmp_path / "target", "", loaded=0.01), dump(tmp_path / "golden", ""))
    assert (answer.origins[0].node, answer.origins[0].kind) == ("Functional.linear.1.forward", "weight")
