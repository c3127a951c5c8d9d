"""From a training that goes wrong on a device to the operator that is to blame, as an engineer goes about it.

The field note: a diffusion model fails in backward, deterministically; anomaly mode leads to group_norm; its input, weight and
bias are saved, 32 groups and eps remembered; alone it is replayed with the input cast to float and `.sum().backward()`; with only
group_norm on the CPU the net trains.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from dumpscope_capture import explain_backward, intervene, prove
from dumpscope_capture.proof.proving import nearest
from dumpscope_capture.saved_call import load
from dumpscope_format.saved_call import find

GROUPS, EPS = 32, 1e-6


class Residual(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.GroupNorm(GROUPS, 64, eps=EPS)
        self.conv = torch.nn.Conv1d(64, 64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.silu(self.norm(x))
        return x + self.conv(hidden)


class Denoiser(torch.nn.Module):
    """A small motion module: blocks around work on the transposed data, one silu of which sees it in that layout."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = torch.nn.Conv1d(4, 64, 1)
        self.blocks = torch.nn.ModuleList([Residual(), Residual()])
        self.mix = torch.nn.Linear(64, 64)
        self.leave = torch.nn.Conv1d(64, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks[0](self.enter(x))
        x = F.silu(self.mix(x.transpose(1, 2)).transpose(1, 2))
        return self.leave(self.blocks[1](x))  # type: ignore[no-any-return]


def trainer(where: str, half: bool = False) -> Callable[[], float]:
    """Trains from the same start each time; gives the last loss."""

    def train() -> float:
        torch.manual_seed(7)
        model = Denoiser()
        noisy, clean = torch.randn(2, 4, 16), torch.randn(2, 4, 16)
        dtype = torch.bfloat16 if half else torch.float32
        model = model.to(where, dtype)
        noisy, clean = noisy.to(where, dtype), clean.to(where, dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(6):
            optimizer.zero_grad()
            loss = F.mse_loss(model(noisy), clean)
            loss.backward()
            optimizer.step()
        return float(loss.detach().cpu())

    return train


@pytest.fixture(scope="module")
def right() -> float:
    """Last loss of the run that is trusted."""
    return trainer("cpu")()


def _healed(right: float, share: float = 1e-3) -> Callable[[float], bool]:
    return lambda loss: abs(loss - right) <= share * abs(right)


def _wrong(out: Any) -> Any:
    return (out[0] * 4, *out[1:])


def _nan(out: Any) -> Any:
    return (out[0] * float("nan"), *out[1:])


NORMS = "Functional.group_norm.*"


def test_the_device_trains_as_the_cpu_does_while_its_kernels_are_right(sim: Any, right: float) -> None:
    assert _healed(right)(trainer("sim")())


def test_the_whole_way_from_a_nan_loss_to_the_operator(sim: Any, right: float, make: Any, tmp_path: Path) -> None:
    train = trainer("sim")
    with sim.planted(native_group_norm_backward=sim.Fault(damage=_nan)):
        assert torch.tensor(train()).isnan()

        # 1: which call stands behind the backward?
        with explain_backward("nan") as explained:
            train()
        failure = explained.failures[0]
        assert failure.origin is not None
        assert (failure.origin.name, failure.node) == ("Functional.group_norm.1", "NativeGroupNormBackward0")
        assert failure.origin.module == "blocks.1.norm (GroupNorm)"

        # 2: keep what it was given
        debugger = make(level="L1", save_calls=[failure.origin.name])
        debugger.start()
        train()
        debugger.stop()
        debugger.step()
        (folder,) = find(tmp_path / "dump")
        call = load(folder, device=None)
        assert [value for value in call.args if not isinstance(value, torch.Tensor)] == [GROUPS, EPS]
        assert call.args[0].device.type == "sim"

        # 3: alone, with the saved gradient, and the way the note did it
        assert all(gradient is None or gradient.cpu().isnan().any() for gradient in call.backward(call.run())[:1])
        there = load(folder, device="cpu")
        assert not any(gradient.isnan().any() for gradient in there.backward(there.run()) if gradient is not None)
        x, groups, weight, bias, eps = load(folder, device="cpu").args
        x = x.detach().float().requires_grad_()
        F.group_norm(x, groups, weight, bias, eps).sum().backward()
        assert not x.grad.isnan().any()

        # 4: in the net, with the controls
        proof = prove(NORMS, train, _healed(right), scalars={"eps": 1e-5})
    assert proof.judgement.blamed, str(proof)
    assert proof.judgement.helped == ("substitute",)
    assert {outcome.trial.kind for outcome in proof.outcomes if outcome.touched} == {
        "substitute", "neighbour", "roundtrip", "contiguous", "scalar",
    }  # fmt: skip
    assert "fault stays" in str(proof)


def test_a_wrong_number_instead_of_nan_is_blamed_as_well(sim: Any, right: float) -> None:
    with sim.planted(native_group_norm_backward=sim.Fault(damage=_wrong)) as wrong:
        proof = prove(NORMS, trainer("sim"), _healed(right))
    assert proof.judgement.blamed, str(proof)
    assert wrong["native_group_norm_backward"].hits > 0


@pytest.mark.parametrize("innocent", ["Functional.conv1d", "Functional.silu", "Functional.mse_loss"])
def test_an_innocent_operator_is_not_blamed(innocent: str, sim: Any, right: float) -> None:
    with sim.planted(native_group_norm_backward=sim.Fault(damage=_wrong)):
        proof = prove(innocent, trainer("sim"), _healed(right))
    assert proof.judgement.word == "refuted"


def test_a_kernel_that_is_wrong_for_one_layout_is_not_blamed_before_the_layout(sim: Any, right: float) -> None:
    fault = sim.Fault(damage=lambda out: out * 4, when=lambda args: not args[0].is_contiguous())
    with sim.planted(silu=fault):
        train = trainer("sim")
        assert not _healed(right)(train())
        proof = prove("Functional.silu", train, _healed(right))
    assert proof.judgement.word == "confounded", str(proof)
    assert proof.judgement.helped == ("substitute", "contiguous")


def test_a_kernel_that_is_wrong_for_one_type_heals_in_another_on_the_device_itself(sim: Any) -> None:
    train = trainer("sim", half=True)
    fine = train()
    fault = sim.Fault(damage=_wrong, when=lambda args: args[0].dtype is torch.bfloat16)
    with sim.planted(native_group_norm_backward=fault):
        assert not _healed(fine, 0.02)(train())
        with intervene({NORMS: "float32"}) as done:
            assert _healed(fine, 0.02)(train())
    assert done.tallies[NORMS].substituted == 12


def test_a_run_without_the_fault_proves_nothing(sim: Any, right: float) -> None:
    assert prove(NORMS, trainer("sim"), _healed(right)).judgement.word == "not reproduced"


def test_a_run_that_breaks_off_is_a_fault_that_stays(sim: Any, right: float) -> None:
    broken = sim.Fault(damage=lambda out: (out[0][:1], *out[1:]))
    with sim.planted(native_group_norm_backward=broken):
        proof = prove(NORMS, trainer("sim"), _healed(right))
    assert proof.judgement.blamed, str(proof)
    assert "invalid gradient" in proof.outcomes[0].note


def test_neighbours_are_calls_of_other_operators_the_nearest_first() -> None:
    names = [
        "Functional.conv1d.0",
        "Functional.silu.0",
        "Functional.group_norm.0",
        "Functional.group_norm.1",
        "Tensor.sum.0",
    ]
    assert nearest("Functional.group_norm.1", names) == ["Tensor.sum.0", "Functional.silu.0", "Functional.conv1d.0"]
    assert nearest("Functional.gelu", names) == []
