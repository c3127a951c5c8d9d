"""Triggers: the steps around the first bad one stay on disk, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from warm_python import warm_python

from capture.launching import rendezvous_port
from dumpscope.readers import discover, read_rank
from dumpscope_capture.config import ConfigError, Trigger, load
from dumpscope_capture.context import HookErrors
from dumpscope_capture.record.marks import Marks
from dumpscope_capture.record.triggers import TriggerEnd, TriggerWatch

SCRIPT = Path(__file__).with_name("triggered.py")


def train(
    debugger: Any, bad: dict[int, float], *, steps: int = 8, given: str = "loss", norm: float | None = None
) -> nn.Module:
    """Steps with a loss of about 1, times the factor of `bad`. given: what is given to `step`, "loss" or nothing"""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.0)
    for step in range(steps):
        debugger.start(net)
        loss = (net(torch.ones(2, 4)).sum() + 1) * bad.get(step, 1.0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step(**({"loss": loss} if given == "loss" else {}), **({} if norm is None else {"grad_norm": norm}))
    return net


def kept(tmp_path: Path) -> list[int]:
    """The steps on disk. Nothing that was being deleted is left."""
    names = os.listdir(tmp_path / "dump")
    assert not [name for name in names if name.startswith(".")]
    return sorted(int(name[len("step") :]) for name in names if name.startswith("step"))


@pytest.mark.parametrize(
    ("trigger", "steps"),
    [
        ({"loss": 50.0}, [3, 4, 5]),
        ({"loss": 50.0, "keep": 3, "steps": 2}, [2, 3, 4, 5, 6]),
        ({"loss": 50.0, "keep": 0}, [5]),
        ({"loss": 50.0, "keep": 9, "steps": 9}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"grad_norm": 50.0, "keep": 1}, [4, 5]),
        ({"loss": 1e6, "keep": 2}, [6, 7]),  # never crossed: the last steps
    ],
)
def test_the_steps_around_the_one_that_crosses_stay(
    make: Any, tmp_path: Path, trigger: dict[str, Any], steps: list[int]
) -> None:
    train(make(level="L0", task="tensor", trigger=trigger), {5: 100.0, 6: 200.0})
    assert kept(tmp_path) == steps
    for ref in discover(tmp_path / "dump").ranks:
        dump = read_rank(ref)
        assert dump.items.data_names
        assert all((Path(ref.folder) / "dump_tensor_data" / name).exists() for name in dump.items.data_names)


@pytest.mark.parametrize("given", ["loss", "nothing"])
def test_a_nan_is_found_in_the_loss_and_in_the_gradients(make: Any, read: Any, tmp_path: Path, given: str) -> None:
    train(make(level="L0", trigger={"keep": 1}), {3: float("nan")}, given=given)
    assert kept(tmp_path) == [2, 3]
    assert read(3).run["trigger"] == (["loss is nan"] if given == "loss" else []) + ["grad_norm is nan"]
    assert "trigger" not in read(2).run
    assert read(2).run["settings"]["trigger"]["keep"] == 1
    (mark,) = (tmp_path / "dump").glob("trigger-*.json")
    assert json.loads(mark.read_text())["step"] == 3


def test_a_nan_is_ignored_where_it_is_not_asked_for(make: Any, tmp_path: Path) -> None:
    train(make(level="L0", trigger={"nan": False, "loss": 50.0, "keep": 1}), {3: float("nan")})
    assert kept(tmp_path) == [7]


def test_a_given_norm_counts_instead_of_that_of_the_gradients(make: Any, read: Any, tmp_path: Path) -> None:
    train(make(level="L0", trigger={"grad_norm": 50.0, "keep": 1}), {5: 100.0}, steps=3, norm=75.0)
    assert read(0).run["trigger"] == ["grad_norm 75 > 50"]
    assert kept(tmp_path) == [0]


def test_the_norm_is_that_of_the_gradients_at_the_optimizers_step(make: Any, read: Any) -> None:
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    debugger = make(level="L0", trigger={"grad_norm": 0.0})
    debugger.start(net)
    net(torch.randn(5, 3)).square().sum().backward()
    norm = float(torch.stack([one.grad.norm() for one in net.parameters() if one.grad is not None]).norm())
    optimizer.step()
    optimizer.zero_grad()
    debugger.stop()
    debugger.step()
    (reason,) = read().run["trigger"]
    assert float(reason.split()[1]) == pytest.approx(norm, rel=1e-5)


def test_a_step_with_nothing_to_judge_is_told_once(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    debugger = make(level="L1", trigger={"loss": 1.0})
    for _ in range(2):
        debugger.start()
        torch.relu(torch.ones(2))
        debugger.stop()
        debugger.step()
    assert sum("has nothing to judge" in line for line in caplog.messages) == 1


def test_a_loss_of_another_form_is_told_and_training_goes_on(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    debugger = make(level="L1", trigger={"loss": 1.0})
    for loss in (torch.ones(3), {"loss": 1}, "1"):
        debugger.start()
        debugger.stop()
        debugger.step(loss=loss)
    assert any("takes a number or a tensor with one element, not a dict" in line for line in caplog.messages)


def test_one_start_for_all_steps_is_enough(make: Any, tmp_path: Path) -> None:
    net = nn.Linear(3, 1)
    debugger = make(level="L0", trigger={"loss": 50.0, "keep": 1, "steps": 2})
    debugger.start(net)
    for step in range(8):
        loss = net(torch.ones(1, 3)).sum() * 0 + (100.0 if step == 4 else 1.0)
        debugger.step(loss=loss)
    debugger.stop()
    assert kept(tmp_path) == [3, 4, 5]


def test_without_a_trigger_step_takes_a_loss_and_does_nothing_with_it(make: Any, tmp_path: Path) -> None:
    train(make(level="L0"), {1: float("nan")}, steps=3)
    assert kept(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("keep", [0, 2])
def test_deleted_steps_do_not_count_for_the_limit_of_tensor_files(make: Any, read: Any, keep: int) -> None:
    debugger = make(level="L1", task="tensor", trigger={"loss": 50.0, "keep": keep}, max_gb=300_000 / (1 << 30))
    for step in range(12):
        debugger.start()
        torch.relu(torch.randn(64, 64) + step)
        debugger.stop()
        debugger.step(loss=1.0 if step < 11 else 100.0)
    assert "files_over_max_gb" not in read(11).run["counts"]
    assert (read(11).folder / "dump_tensor_data" / "Torch.relu.0.forward.output.0.pt").exists()


@pytest.mark.parametrize("trigger", [
    {}, {"loss": "high"}, {"loss": float("inf")}, {"keep": -1}, {"steps": 0}, {"end": "always"}, {"nan": 1}, {"losses": 1.0},
    [10.0], {"nan": False},
])  # fmt: skip
def test_a_wrong_trigger_is_refused_with_its_key(trigger: Any) -> None:
    if trigger == {}:
        assert load(trigger=trigger)[0].trigger is not None  # a NaN alone is asked for
        return
    with pytest.raises(ConfigError, match="trigger"):
        load(trigger=trigger)


def test_the_job_ends_in_the_main_thread_with_a_status(make: Any, tmp_path: Path) -> None:
    with pytest.raises(TriggerEnd) as ended:
        train(make(level="L0", trigger={"keep": 1, "steps": 2, "end": "after_nan"}), {3: float("nan")})
    assert ended.value.code == 3
    assert kept(tmp_path) == [2, 3, 4]  # the steps that were asked for come first


def test_a_nan_after_the_recorded_steps_still_ends_the_job(make: Any, tmp_path: Path) -> None:
    with pytest.raises(TriggerEnd):
        train(make(level="L0", trigger={"loss": 50.0, "keep": 0, "end": "after_nan"}), {2: 100.0, 6: float("nan")})
    assert kept(tmp_path) == [2]


def test_another_thread_than_the_main_one_is_not_ended(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    debugger = make(level="L1", trigger={"end": "after_nan"})
    debugger.start()
    debugger.stop()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(debugger.step, float("nan")).result()
    assert any("called in another thread" in line for line in caplog.messages)


def _run(folder: Path, trigger: dict[str, Any], bad: str, how: str, *, ranks: int = 1) -> list[int]:
    """Exit statuses of a training, one a rank."""
    port = rendezvous_port()
    started = [
        subprocess.Popen(
            [warm_python(), str(SCRIPT), str(folder), json.dumps(trigger), bad, how],
            env={
                **os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1",
                "MASTER_PORT": port,
            },
            stdout=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    return [one.wait(timeout=240) for one in started]


def test_a_killed_job_leaves_the_steps_of_the_ring(tmp_path: Path) -> None:
    assert _run(tmp_path, {"keep": 2}, "0:7", "kill") == [-9]
    assert kept(tmp_path) == [5, 6, 7]
    layout = discover(tmp_path / "dump")
    problems = {ref.step: [problem.kind for problem in read_rank(ref).problems] for ref in layout.ranks}
    assert problems == {5: [], 6: [], 7: ["truncated"]}
    assert all(len(read_rank(ref).nodes) for ref in layout.ranks)


def test_all_ranks_keep_the_same_steps_and_end_together(tmp_path: Path) -> None:
    assert _run(tmp_path, {"loss": 1000.0, "keep": 2, "end": "after_nan"}, "1:6", "nan", ranks=2) == [3, 3]
    steps = sorted((ref.step, ref.rank) for ref in discover(tmp_path / "dump").ranks)
    assert steps == [(step, rank) for step in (4, 5, 6, 7) for rank in (0, 1)]
    (mark,) = (tmp_path / "dump").glob("trigger-*.json")
    assert mark.name == "trigger-rank1.json"


def test_a_rank_that_records_nothing_is_judged_as_well(tmp_path: Path) -> None:
    errors = HookErrors()
    ranks = [TriggerWatch(Trigger(loss=10.0, keep=1), tmp_path, errors) for _ in range(2)]
    for step in range(5):
        folder = tmp_path / f"step{step}" / "rank0"
        folder.mkdir(parents=True)
        for rank, watch in enumerate(ranks):
            watch.begin([], rank)
        for rank in (0, 1) if step % 2 else (1, 0):  # whichever comes first
            watch = ranks[rank]
            watch.judge(step, 99.0 if (rank, step) == (1, 3) else 1.0, None)
            watch.end_step(step, folder if rank == 0 else None)
        assert [watch.records_no_more(step) for watch in ranks] == [step == 4] * 2
    assert sorted(path.name for path in tmp_path.glob("step*")) == ["step2", "step3", "step4"]
    assert not errors.counts
    for watch in ranks:
        watch.remove()


def test_marks_of_an_earlier_run_are_no_crossing(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    for rank in (0, 1, 5):
        mark = {"step": 1, "reasons": ["loss is nan"], "nan_step": 1, "process": f"rank{rank}"}
        (tmp_path / "dump" / f"trigger-rank{rank}.json").write_text(json.dumps(mark))
    assert _run(tmp_path, {"loss": 1000.0, "keep": 1, "end": "after_nan"}, "", "", ranks=2) == [0, 0]
    assert kept(tmp_path) == [10, 11]


def test_nothing_of_a_run_changes(make: Any) -> None:
    plain = train(_Nothing(), {3: 100.0})
    state = torch.get_rng_state()
    watched = train(make(level="L0", trigger={"loss": 50.0, "grad_norm": 50.0}), {3: 100.0})
    assert torch.equal(torch.get_rng_state(), state)
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one, other)


class _Nothing:
    """A debugger that does nothing."""

    def start(self, model: Any) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""

    def step(self, **given: Any) -> None:
        """Nothing."""


def test_a_mark_that_is_removed_while_others_are_listed_leaves_none_of_an_earlier_run(tmp_path: Path) -> None:
    for name in ("rank1", "rank2"):
        Marks(tmp_path, "trigger-", name).leave({"step": 3})
    (tmp_path / "trigger-rank0a.json").symlink_to(tmp_path / "gone")  # listed, and not there any more
    mine = Marks(tmp_path, "trigger-", "rank0")
    mine.forget_earlier()
    assert mine.of_others() == []
    Marks(tmp_path, "trigger-", "rank2").leave({"step": 5})
    assert [mark["step"] for mark in mine.of_others()] == [5]
