"""A captured run computes what the bare run computes, to the bit."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint

from capture import peer_models

LEVELS = ("L0", "L1", "mix", "L2")
SINES = {
    "L0": "Module.0.Linear.forward.0", "L1": "Torch.sin.0.forward", "mix": "Torch.sin.0.forward", "L2": "Aten.sin.0.forward",
}  # fmt: skip
"""A node of each level that a function transform or a module makes."""


class Odd(nn.Module):
    """A value used twice, in-place activations, dropout, buffers, a parameter used twice, no_grad inside."""

    def __init__(self, *, reentrant: bool | None = None) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Dropout(0.3), nn.Linear(8, 4))
        self.norm = nn.BatchNorm1d(4)
        self.w = nn.Parameter(torch.ones(4))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.reentrant is None:
            hidden = self.inner(x)
        else:
            hidden = checkpoint(self.inner, x, use_reentrant=self.reentrant)
        hidden = hidden + x * hidden
        hidden = hidden * hidden
        with torch.no_grad():
            scale = hidden.abs().max() + 1
        hidden = self.norm(hidden / scale)
        hidden[:, 0].mul_(2)
        hidden.add_(self.w).mul_(self.w)
        return F.dropout(hidden, 0.2, self.training)


def _run(
    model: nn.Module, loss_of: Callable[[Any], Any], debugger: Any, steps: int = 5
) -> dict[str, list[torch.Tensor]]:
    """Losses, gradients, weights and random states of a short training."""
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    kept: dict[str, list[torch.Tensor]] = {"loss": [], "grads": [], "random": []}
    for _ in range(steps):
        if debugger is not None:
            debugger.start(model)
        losses = loss_of(model)
        losses = losses if isinstance(losses, tuple) else (losses,)
        for loss in losses:
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        kept["loss"] += [loss.detach().clone() for loss in losses]
        kept["grads"] += [value.grad.clone() for value in model.parameters() if value.grad is not None]
        kept["random"].append(torch.get_rng_state())
        optimizer.zero_grad()
    kept["weights"] = [value.detach().clone() for value in model.state_dict().values()]
    return kept


def _same(left: dict[str, list[torch.Tensor]], right: dict[str, list[torch.Tensor]]) -> None:
    assert left.keys() == right.keys()
    for key, values in left.items():
        assert len(values) == len(right[key])
        for number, (one, other) in enumerate(zip(values, right[key], strict=True)):
            assert torch.equal(one, other), f"{key} {number}"


def _odd_loss(model: nn.Module) -> torch.Tensor:
    x = torch.linspace(-1, 1, 24).reshape(6, 4).requires_grad_()
    return model(x).square().mean() + x.sum() * 0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("reentrant", [None, True, False])
def test_an_odd_model_trains_the_same_at_every_level(make: Any, read: Any, level: str, reentrant: bool | None) -> None:
    torch.manual_seed(0)
    model = Odd(reentrant=reentrant)
    bare = _run(copy.deepcopy(model), _odd_loss, None)
    _same(bare, _run(model, _odd_loss, make(level=level)))
    assert read().data
    assert not read().errors


@pytest.mark.parametrize("name", ["gpt", "tied", "conv", "containers", "arithmetic", "microbatch"])
@pytest.mark.parametrize("task", ["tensor", "statistics"])
def test_ordinary_models_train_the_same(make: Any, read: Any, name: str, task: str) -> None:
    model, loss_of = peer_models.build(name)
    bare = _run(copy.deepcopy(model), loss_of, None, steps=2)
    _same(bare, _run(model, loss_of, make(task=task, section={"summary_mode": "md5"}), steps=2))
    assert not read().errors


def test_saving_by_hand_changes_nothing(make: Any, read: Any) -> None:
    def saved_loss(model: nn.Module) -> torch.Tensor:
        x = torch.linspace(-1, 1, 24).reshape(6, 4).requires_grad_()
        out = model(x)
        debugger.save({"x": x, "out": [out]}, "values")
        return out.square().mean() + x.sum() * 0

    torch.manual_seed(0)
    model = Odd()
    bare = _run(copy.deepcopy(model), _odd_loss, None)
    debugger = make(task="tensor", level="debug")
    _same(bare, _run(model, saved_loss, debugger))
    gradients = read(4).json("debug.json")["data"]["values_grad.0.debug"]
    assert gradients["out"][0]["Norm"] > 0
    assert gradients["x"]["Norm"] > 0


@pytest.mark.parametrize("level", LEVELS)
def test_gradients_with_autocast_and_saved_graphs_are_the_same(make: Any, read: Any, level: str) -> None:
    def run(debugger: Any) -> list[torch.Tensor]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 1))
        x = torch.randn(3, 4, requires_grad=True)
        if debugger is not None:
            debugger.start(model)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x).sum()
        out.backward(retain_graph=True)
        out.backward()
        (second,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
        second.sum().backward()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        return [x.grad, *(value.grad for value in model.parameters())]  # type: ignore[list-item]

    bare, captured = run(None), run(make(level=level))
    for one, other in zip(bare, captured, strict=True):
        assert torch.equal(one, other)
    assert not read().errors


@pytest.mark.parametrize("level", LEVELS)
def test_inference_mode_no_grad_and_vmap_compute_the_same(make: Any, read: Any, level: str) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.randn(5, 4)

    def run() -> list[torch.Tensor]:
        with torch.inference_mode():
            first = model(x) * 2
        with torch.no_grad():
            second = model(x) + first.clone()
        third = torch.func.vmap(lambda row: torch.sin(row) * row.sum())(x)
        fourth = torch.func.grad(lambda row: (row * row).sum())(x)
        weights = dict(model.named_parameters())
        fifth = torch.func.functional_call(model, weights, (x,))
        return [first.clone(), second, third, fourth, fifth.detach()]

    bare = run()
    debugger = make(level=level)
    debugger.start(model)
    captured = run()
    debugger.stop()
    debugger.step()
    for one, other in zip(bare, captured, strict=True):
        assert torch.equal(one, other)
    assert not read().errors
    assert SINES[level] in read().data


@pytest.mark.parametrize("level", LEVELS)
def test_functions_keep_their_identity_and_hooks_of_the_user_run_as_before(make: Any, level: str) -> None:
    before = (F.gelu, torch.relu, torch.Tensor.add, torch.nn.Module.__call__, F.dropout)
    model = nn.Linear(3, 3)
    seen: list[str] = []
    handles = [
        model.register_forward_pre_hook(lambda module, args: seen.append("pre")),
        model.register_forward_hook(lambda module, args, out: out * 2),
        model.register_full_backward_hook(lambda module, gin, gout: seen.append("back")),
    ]
    whole = nn.Sequential(model)
    x = torch.ones(2, 3, requires_grad=True)
    bare = whole(x)
    debugger = make(level=level)
    debugger.start(whole)
    assert (F.gelu, torch.relu, torch.Tensor.add, torch.nn.Module.__call__, F.dropout) == before
    assert all(
        now is then
        for now, then in zip((F.gelu, torch.relu, F.dropout), (before[0], before[1], before[4]), strict=True)
    )
    captured = whole(x)
    captured.sum().backward()
    debugger.stop()
    assert torch.equal(bare, captured)
    assert seen == ["pre", "pre", "back"]
    assert len(model._forward_hooks) == 1
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("level", LEVELS)
def test_a_captured_model_is_copied_pickled_and_saved_as_ever(make: Any, level: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))
    debugger = make(level=level)
    debugger.start(model)
    model(torch.ones(1, 3)).sum().backward()
    twin = copy.deepcopy(model)
    other = pickle.loads(pickle.dumps(model))
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.save(model, buffer)
    debugger.stop()
    buffer.seek(0)
    third = torch.load(buffer, weights_only=False)
    for made in (twin, other, third):
        assert torch.equal(made(torch.ones(1, 3)), model(torch.ones(1, 3)))
        assert not made[0]._forward_pre_hooks
        assert b"dumpscope" not in pickle.dumps(made)


def test_a_graph_is_freed_without_the_collector(make: Any) -> None:
    import gc  # noqa: PLC0415
    import weakref  # noqa: PLC0415

    class Big(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.mark = mark = Mark()
            marks.append(weakref.ref(mark))
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return grad * 2

    class Mark:
        pass

    marks: list[Any] = []
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    debugger = make()
    gc.collect()
    gc.disable()
    try:
        for backward in (True, False):
            debugger.start(model)
            loss = Big.apply(model(torch.ones(2, 3)) * 1).sum()
            if backward:
                loss.backward()
            del loss
            debugger.stop()
            debugger.step()
        assert [mark() for mark in marks] == [None, None]
    finally:
        gc.enable()


def test_steps_leave_nothing_for_the_collector(make: Any) -> None:
    import gc  # noqa: PLC0415

    model, loss_of = peer_models.build("gpt")
    debugger = make(task="tensor")

    def step() -> None:
        debugger.start(model)
        loss_of(model).backward()
        debugger.stop()
        debugger.step()

    step()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            step()
        assert gc.collect() < 30
    finally:
        gc.enable()
