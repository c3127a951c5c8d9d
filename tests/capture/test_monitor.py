"""A watched training computes what the bare one computes, and the file holds what plain operations give."""

from __future__ import annotations

import copy
import math
import os
import resource
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from warm_python import warm_python

from capture.launching import launch_together
from capture.monitored_ranks import STEPS as STEPS_OF_RANKS
from dumpscope.domain.monitor.tables import MetricTable
from dumpscope.readers.monitors.opening import open_monitor
from dumpscope_capture import ConfigError
from dumpscope_capture.monitor import Monitor, read_msprobe

STEPS = 7


class Net(nn.Module):
    """A large weight, small ones, dropout, and a parameter that never gets a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 96)
        self.first = nn.Linear(96, 96)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(96, 3)
        self.unused = nn.Parameter(torch.ones(5))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(torch.tanh(self.first(self.embed(ids)))))


Each = Callable[[nn.Module, int], None]


def train(
    path: Path | None, *, clip: float | None = 0.1, passes: int = 1, before: Each | None = None, **settings: Any
) -> list[torch.Tensor]:
    """Losses, gradients, weights and the random state of a short training."""
    torch.manual_seed(5)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    monitor = Monitor(model, optimizer, path, **settings) if path is not None else None
    kept = []
    for step in range(STEPS):
        optimizer.zero_grad()
        for _ in range(passes):
            loss = model(torch.randint(0, 64, (8,))).square().mean()
            loss.backward()
        if before is not None:
            before(model, step)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        kept += [loss.detach(), *(one.grad.clone() for one in model.parameters() if one.grad is not None)]
        if monitor is not None:
            monitor.step(loss=loss)
    if monitor is not None:
        monitor.close()
        assert monitor.errors.counts == {}
    return [*kept, *(one.detach() for one in model.parameters()), torch.get_rng_state()]


def table(path: Path, metric: str) -> MetricTable:
    return open_monitor(path).ranks[0].load(metric)


@pytest.mark.parametrize("passes", [1, 3])
def test_a_watched_run_is_bit_equal_to_the_bare_one(tmp_path: Path, passes: int) -> None:
    bare = train(None, passes=passes)
    watched = train(tmp_path, passes=passes, activations="*", activation_gradients=True, update_every=1, weights=True)
    assert len(bare) == len(watched)
    assert all(torch.equal(one, other) for one, other in zip(bare, watched, strict=True))


def test_statistics_are_those_of_plain_operations(tmp_path: Path) -> None:
    seen: list[list[float]] = []

    def look(model: nn.Module, step: int) -> None:
        grads = [one.grad for name, one in model.named_parameters() if one.grad is not None]
        if step == 2:
            grads[1].view(-1)[7] = math.nan
        if step == 3:
            grads[0].fill_(1e30)
        for grad in grads:
            wide = grad.double()
            zeros = float((grad.abs() < 1e-8).sum()) / grad.numel()
            nans = float(torch.isnan(grad).sum())
            seen.append([float(wide.norm()), float(grad.min()), float(grad.max()), float(wide.mean()), zeros, nans])

    train(tmp_path, clip=None, before=look)
    found = table(tmp_path, "grad_reduced")
    assert found.names == ("embed.weight", "first.weight", "first.bias", "last.weight", "last.bias")
    assert found.statistics == ("norm", "min", "max", "mean", "zeros", "nans")
    expected = np.array(seen).reshape(STEPS, 5, 6)
    scale = np.nanmax(np.abs(expected[:, :, 1:3]), axis=2, keepdims=True)
    np.testing.assert_allclose(found.values[:, :, :3], expected[:, :, :3], rtol=2e-7)
    np.testing.assert_allclose(found.values[:, :, 3:4] / scale, expected[:, :, 3:4] / scale, atol=1e-7)
    np.testing.assert_allclose(found.values[:, :, 4:], expected[:, :, 4:], rtol=1e-6)
    assert found.values[2, 1, 5] == 1


def test_clipping_shows_as_two_norms_and_scalars_are_kept(tmp_path: Path) -> None:
    train(tmp_path, clip=0.01)
    rank = open_monitor(tmp_path).ranks[0]
    early, late = rank.load("grad_unclipped"), rank.load("grad_reduced").column("norm")
    total = np.sqrt(np.nansum(np.square(late), axis=1))
    np.testing.assert_allclose(total, 0.01, rtol=1e-4)
    assert (early.column("norm") > late).all()
    assert rank.scalars["lr"][1].tolist() == [0.01] * STEPS
    assert len(rank.scalars["loss"][1]) == STEPS
    assert (rank.first_step, rank.last_step) == (0, STEPS - 1)


def test_of_several_backward_passes_the_sum_is_measured(tmp_path: Path) -> None:
    train(tmp_path, clip=None, passes=3)
    early, late = (table(tmp_path, metric).column("norm") for metric in ("grad_unclipped", "grad_reduced"))
    np.testing.assert_allclose(early[1:], late[1:], rtol=1e-6)


def test_moments_and_updates_take_turns(tmp_path: Path) -> None:
    train(tmp_path, moments_every=3, update_every=2)
    moments, update = table(tmp_path, "exp_avg"), table(tmp_path, "update")
    assert moments.present.sum(axis=0).max() <= math.ceil(STEPS / 3)
    assert moments.present.any(axis=0).all()
    assert 3 <= update.present.sum(axis=0).min() <= update.present.sum(axis=0).max() <= 4
    ratio = update.column("ratio")
    assert np.nanmin(ratio[:, update.names.index("first.weight")]) > 0
    assert np.nanmax(ratio[:, update.names.index("unused")]) == 0


def test_an_update_over_its_weight_is_exact(tmp_path: Path) -> None:
    weights: list[torch.Tensor] = []
    train(tmp_path, update_every=1, before=lambda model, step: weights.append(model.first.weight.detach().clone()))
    update = table(tmp_path, "update")
    place = update.names.index("first.weight")
    expected = [float((new - old).norm() / old.norm()) for old, new in pairwise(weights)]
    np.testing.assert_allclose(update.column("ratio")[:-1, place], expected, rtol=1e-5)


def test_activations_and_their_gradients_are_measured_where_asked(tmp_path: Path) -> None:
    train(tmp_path, activations=["fir*", "last"], activation_gradients=True)
    for metric in ("actv", "actv_grad"):
        found = table(tmp_path, metric)
        assert sorted(found.names) == ["first.output", "last.output"]
        assert found.present.all()


def test_only_the_asked_steps_and_parameters_are_recorded(tmp_path: Path) -> None:
    train(tmp_path, start=1, every=2, times=2, parameters="*.weight")
    found = table(tmp_path, "grad_reduced")
    assert found.steps.tolist() == [1, 3]
    assert found.names == ("embed.weight", "first.weight", "last.weight")


def test_a_killed_run_loses_only_the_steps_that_wait(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal, torch\nfrom dumpscope_capture.monitor import Monitor\n"
        "model = torch.nn.Linear(4, 4)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"Monitor(model, optimizer, {str(tmp_path / 'run')!r}, flush_every=4)\n"
        "for step in range(11):\n    model(torch.ones(2, 4)).sum().backward()\n    optimizer.step()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
        encoding="utf-8",
    )
    done = subprocess.run([warm_python(), str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert table(tmp_path / "run", "grad_reduced").steps.tolist() == list(range(8)), done.stderr


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_steps_that_a_full_disk_took_half_of_are_lost_and_no_others(tmp_path: Path) -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Monitor(model, optimizer, tmp_path, flush_every=1) as monitor:
        for step, room in enumerate((60, None, 60, 60, None)):  # bytes that are left; at first too few for the header
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            size = os.path.getsize(monitor.path) if step else 0
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft if room is None else size + room, hard))
            try:
                monitor.step()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sum(monitor.errors.counts.values()) == 3
    read = open_monitor(tmp_path)
    assert read.ranks[0].load("grad_reduced").steps.tolist() == [1, 4]
    assert read.problems == ()


def test_ranks_show_their_own_gradients_then_the_reduced_ones(tmp_path: Path) -> None:
    launch_together("capture.monitored_ranks", [str(tmp_path)], tmp_path, size=2)
    for views in (False, True):
        first, second = open_monitor(tmp_path / f"views-{views}").ranks
        assert (first.rank, second.rank) == (0, 1)
        own = [rank.load("grad_unreduced").column("norm") for rank in (first, second)]
        assert own[0].shape == (STEPS_OF_RANKS, 4)
        assert (np.abs(own[0] / own[1] - 1) > 1e-4).all()
        reduced = [rank.load("grad_unclipped").column("norm") for rank in (first, second)]
        np.testing.assert_array_equal(*reduced)
        seen = torch.load(tmp_path / f"views-{views}-rank0.pt")
        expected = np.array([float(one.norm()) for one in seen[: 4 * STEPS_OF_RANKS]]).reshape(-1, 4)
        names = first.load("grad_unclipped").names
        assert names == tuple(f"module.{name}" for name in ("0.weight", "0.bias", "2.weight", "2.bias"))
        np.testing.assert_allclose(reduced[0], expected, rtol=1e-5)
        clipped = first.load("grad_reduced").column("norm")
        np.testing.assert_allclose(np.sqrt(np.square(clipped).sum(axis=1)), 0.01, rtol=1e-3)


def test_a_second_run_moves_the_first_away_and_a_resumed_one_goes_on(tmp_path: Path) -> None:
    train(tmp_path)
    train(tmp_path)
    assert len(list(tmp_path.glob("earlier-*/rank0.monitor"))) == 1
    train(tmp_path, resume=True, step=5)
    assert table(tmp_path, "grad_reduced").steps.tolist() == list(range(5 + STEPS))


def test_a_watched_model_is_copied_pickled_and_checkpointed_as_before(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    with Monitor(model, optimizer, tmp_path / "run", activations="*", activation_gradients=True) as monitor:
        for reentrant in (True, False):
            given = torch.randn(3, 4, requires_grad=True)
            checkpoint(model, given, use_reentrant=reentrant).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.save(model, tmp_path / "model.pt")
        torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
        copied = copy.deepcopy(model)
    assert monitor.errors.counts == {}
    assert torch.equal(copied[0].weight, torch.load(tmp_path / "model.pt", weights_only=False)[0].weight)
    assert table(tmp_path / "run", "grad_unclipped").present.all()


def test_no_hook_is_left_behind(tmp_path: Path) -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Monitor(model, optimizer, tmp_path, activations="*").close()
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks
    assert not torch.nn.modules.module._global_forward_hooks
    assert not any(one._post_accumulate_grad_hooks for one in model.parameters())


def test_wrong_settings_are_refused_by_name(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for key, value in (("statistics", ["sum"]), ("every", 0), ("eps", 0), ("colour", "red")):
        with pytest.raises(ConfigError, match=key):
            Monitor(model, optimizer, tmp_path, **{key: value})
    with pytest.raises(ConfigError, match="optimizer"):
        Monitor(model, object(), tmp_path)


def test_a_configuration_of_msprobe_is_understood() -> None:
    found = read_msprobe(
        {"targets": {"0:layers": {}}, "wg_distribution": True, "mv_distribution": True, "ops": ["norm", "nans", "id"],
         "xy_distribution": True, "forward_only": True, "step_interval": 2, "start_step": 3, "module_ranks": [1]}
    )  # fmt: skip
    assert found.takes_parameter("layers.0.weight")
    assert not found.takes_parameter("head.weight")
    assert found.statistics == found.unreduced == found.moments == ("norm", "nans")
    assert (found.moments_every, found.update_every, found.ranks) == (1, 0, (1,))
    assert found.activation_inputs
    assert not found.activation_gradients
    assert [step for step in range(8) if found.takes_step(step)] == [3, 5, 7]
