"""An anomaly in a watched training starts a dump of the step after it, and changes nothing in the training."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from capture.conftest import Dump, forget
from capture.launching import launch_together
from dumpscope.readers import discover, read_rank
from dumpscope_capture import ConfigError, PrecisionDebugger
from dumpscope_capture.monitor import Monitor, read_msprobe
from dumpscope_capture.monitor.rules import EXPLODED, FEWEST, RULES, Finding, Rules, Step, describe
from dumpscope_format.monitor import Group, Layout


@pytest.fixture(autouse=True)
def no_recorder() -> Iterator[None]:
    forget()
    yield
    forget()


def train(
    path: Path | None,
    bad: dict[int, float],
    *,
    steps: int = 8,
    debugger: Any = None,
    end: Callable[[Any], None] = lambda monitor: None,
    **more: Any,
) -> list[torch.Tensor]:
    """Losses and weights of a training in which the gradient of the first weight is multiplied in some steps, and the weights
    are what they were before."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    monitor = None if path is None else Monitor(model, optimizer, path, dump=debugger, **more)
    kept = []
    for step in range(steps):
        if isinstance(debugger, PrecisionDebugger) and path is not None:
            debugger.start(model)
        loss = (model(torch.randn(4, 6)) - 1).square().mean()
        loss.backward()
        model[0].weight.grad.mul_(bad.get(step, 1.0))  # type: ignore[union-attr]
        weights = [one.detach().clone() for one in model.parameters()]
        optimizer.step()
        optimizer.zero_grad()
        for one, before in zip(model.parameters(), weights, strict=True):
            one.data.copy_(before)
        if isinstance(debugger, PrecisionDebugger) and path is not None:
            debugger.stop()
            debugger.step()
        kept.append(loss.detach())
        if monitor is not None:
            monitor.step(loss=loss)
    if monitor is not None:
        monitor.close()
        assert monitor.errors.counts == {}
        end(monitor)
    return [*kept, *(one.detach().clone() for one in model.parameters()), torch.get_rng_state()]


def dumped(folder: Path) -> list[int]:
    return sorted(ref.step for ref in discover(folder).ranks) if folder.exists() else []


def recorder(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {"dump_path": str(tmp_path / "dump"), "level": "mix", "task": "statistics", **more}


def test_a_nan_starts_a_dump_of_the_following_step_and_changes_nothing(tmp_path: Path) -> None:
    bare = train(None, {3: math.nan})
    watched = train(tmp_path / "monitor", {3: math.nan}, debugger=recorder(tmp_path), flush_every=1)
    assert all(torch.equal(one, other) for one, other in zip(bare, watched, strict=True))
    assert dumped(tmp_path / "dump") == [4]
    (ref,) = discover(tmp_path / "dump").ranks
    dump = read_rank(ref)
    assert {"Functional.tanh.0.forward", "Module.3.Linear.forward.0"} & set(dump.nodes.names)
    assert dump.problems == []
    run = Dump(tmp_path / "dump" / "step4").run
    assert run["trigger"] == ["step 3: grad_reduced of 0.weight is nan"]


def test_a_spike_is_seen_when_the_numbers_come_to_the_host(tmp_path: Path) -> None:
    settings_of = recorder(tmp_path, on=["spike"], steps=2)
    train(tmp_path / "monitor", {40: 200.0, 47: math.nan, 70: 200.0}, steps=90, debugger=settings_of)
    assert dumped(tmp_path / "dump") == [60, 61]  # 20 steps wait on the device
    (reason,) = Dump(tmp_path / "dump" / "step60").run["trigger"]
    assert reason.startswith("step 40: spike: grad_reduced of 0.weight is ")
    assert "trigger" not in Dump(tmp_path / "dump" / "step61").run
    assert not list((tmp_path / "monitor").glob("dump-*"))


def test_each_of_several_dumps_begins_with_an_anomaly_of_its_own(tmp_path: Path) -> None:
    bad = {3: math.nan, 4: math.nan, 5: math.nan, 9: math.inf, 12: math.nan, 15: math.nan}
    train(tmp_path / "monitor", bad, steps=18, debugger=recorder(tmp_path, times=3), flush_every=1)
    assert dumped(tmp_path / "dump") == [4, 10, 13]


def test_the_recorder_that_the_script_drives_waits_for_the_anomaly(tmp_path: Path, make: Any) -> None:
    debugger = make(level="L0")
    train(tmp_path / "monitor", {3: math.nan}, debugger=debugger, flush_every=1)
    assert dumped(tmp_path / "dump") == [4]
    assert Dump(tmp_path / "dump" / "step4").run["trigger"] == ["step 3: grad_reduced of 0.weight is nan"]
    assert debugger.waits


def test_without_an_anomaly_or_without_the_key_nothing_is_recorded(tmp_path: Path) -> None:
    hooks = torch.nn.modules.module._global_forward_hooks
    train(tmp_path / "off", {3: math.nan}, flush_every=1, end=lambda monitor: None)
    assert PrecisionDebugger.all() == []
    train(tmp_path / "quiet", {}, steps=70, debugger=recorder(tmp_path))
    assert (dumped(tmp_path / "dump"), dict(hooks)) == ([], {})


def test_a_training_that_ends_while_it_is_dumped_has_whole_files(tmp_path: Path) -> None:
    train(tmp_path / "monitor", {6: math.nan}, steps=8, debugger=recorder(tmp_path, steps=5), flush_every=1)
    assert dumped(tmp_path / "dump") == [7, 8]  # a step that nothing ran in: the recorder waited for it
    problems = [[one.kind for one in read_rank(ref).problems] for ref in discover(tmp_path / "dump").ranks]
    assert problems == [[], ["no_data"]]


def test_a_script_that_never_ends_a_step_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with Monitor(model, optimizer, tmp_path / "monitor", dump=recorder(tmp_path), flush_every=1):
        for step in range(4):
            (model(torch.ones(1, 2)).sum() * (math.nan if step == 1 else 1.0)).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert "does not call step()" in caplog.text
    assert dumped(tmp_path / "dump") == []


def test_all_ranks_dump_the_same_steps(tmp_path: Path) -> None:
    launch_together("capture.monitored_dumps", [str(tmp_path)], tmp_path, size=2)
    found = sorted((ref.step, ref.rank) for ref in discover(tmp_path / "dump").ranks)
    assert found == [(step, rank) for step in (9, 10) for rank in (0, 1)]  # seen after 5, and one more round of 3
    marks = {path.name: json.loads(path.read_text()) for path in (tmp_path / "monitor").glob("dump-*.json")}
    assert {name: (mark["step"], mark["first"]) for name, mark in marks.items()} == {"dump-rank1.json": (4, 9)}
    reasons = [json.loads((tmp_path / f"dump/step9/rank{rank}/run.json").read_text())["trigger"] for rank in (0, 1)]
    assert reasons == [["on rank1", "step 4: loss is nan"], ["step 4: loss is nan"]]


def test_what_cannot_start_a_dump_is_refused_by_name(tmp_path: Path, make: Any) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path / "own.json"
    for dump, word in (
        ({"on": ["drift"]}, "dump.on"),
        ({"steps": 0}, "dump.steps"),
        ({"times": True}, "dump.times"),
        ({"colour": 1}, "dump.colour"),
        ({"recorder": object()}, "dump"),
        ({"recorder": make(), "level": "L0"}, "dump.recorder"),
        (5, "dump"),
        (str(path), "nan"),
    ):
        path.write_text(json.dumps({"task": "statistics", "statistics": {}, "trigger": {"nan": True}}))
        with pytest.raises(ConfigError, match=word if word != "nan" else "without trigger"):
            Monitor(model, optimizer, tmp_path / "monitor", dump=dump)
    made = make()
    with pytest.raises(ConfigError, match="dump=debugger"):
        Monitor(model, optimizer, tmp_path / "monitor", dump=str(tmp_path / "config.json"))
    assert not made.waits
    found = read_msprobe({"wg_distribution": True, "dump": {"on": "spike", "level": "L0"}}).dump
    assert found is not None
    assert (found.on, found.steps, dict(found.arguments)) == (("spike",), 1, {"level": "L0"})


# -- the rules ---------------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
LAYOUT = Layout(0, ("loss", "lr"), (Group("grad_reduced", ("max", "norm"), NAMES), Group("update", ("norm",), NAMES)))


def judged(numbers: Any, losses: Any = None, wanted: tuple[str, ...] = RULES) -> list[tuple[int, Finding]]:
    """Findings with their steps. numbers: norms, a row a step"""
    rules, found = Rules(wanted), []
    for step, row in enumerate(numbers):
        both = struct.pack("<6f", *(value for norm in row for value in (math.nan, norm)))
        loss = 1.0 if losses is None else losses[step]
        for one in rules.judge(Step(step, LAYOUT, (loss, math.nan), (both, struct.pack("<3f", *[math.inf] * 3)))):
            found.append((step, one))
    return found


def healthy(seed: int, steps: int, noise: float = 0.3) -> Any:
    draw = np.random.default_rng(seed)
    trend = -2 * np.log2(1 + np.arange(steps) / 30) / 4
    return 2.0 ** (draw.uniform(-4, 4, 3) + trend[:, None] + noise * draw.standard_normal((steps, 3)))


@given(seed=st.integers(0, 2**32 - 1), noise=st.floats(0.0, 0.4))
@settings(max_examples=25, deadline=None)
def test_a_healthy_training_starts_nothing(seed: int, noise: float) -> None:
    assert judged(healthy(seed, 200, noise)) == []


@given(
    seed=st.integers(0, 2**32 - 1),
    step=st.integers(FEWEST, 149),
    place=st.integers(0, 2),
    factor=st.floats(64, 1e6) | st.sampled_from([math.nan, math.inf]),
)
@settings(max_examples=25, deadline=None)
def test_an_anomaly_is_found_in_its_step_and_series(seed: int, step: int, place: int, factor: float) -> None:
    numbers = healthy(seed, 150)
    numbers[step, place] *= factor
    ((at, one),) = judged(numbers)
    assert (at, one.rule, one.name) == (
        step,
        "spike" if math.isfinite(factor) else "not_finite",
        f"grad_reduced of {NAMES[place]}",
    )
    assert one.usual == pytest.approx(float(np.median(healthy(seed, 150)[max(0, step - 64) : step, place])), rel=0.6)


def test_a_series_that_rises_slowly_explodes_once() -> None:
    numbers = healthy(1, 400) * 2.0 ** (np.maximum(0, np.arange(400) - 64) / 20)[:, None]
    found = judged(numbers)
    assert {one.rule for _, one in found} == {"exploding"}
    assert sorted(one.name for _, one in found) == [f"grad_reduced of {name}" for name in NAMES]
    for at, one in found:
        assert EXPLODED / 4 < one.value / one.usual < EXPLODED * 16, at


def test_a_scalar_below_zero_has_no_spikes_and_zeros_count_as_the_number_before() -> None:
    numbers = healthy(2, 80)
    numbers[40:44, 0] = 0.0
    losses = [float(step % 5 - 1) for step in range(80)]
    losses[60], losses[70] = 1e6, math.nan
    ((at, one),) = judged(numbers, losses)
    assert (at, str(one)) == (70, "loss is nan")
    losses = [2.0] * 80
    losses[60] = 50.0
    ((at, one),) = judged(numbers, losses)
    assert (at, str(one)) == (60, "spike: loss is 50, 2 is usual")
    assert judged(numbers, losses, wanted=("not_finite",)) == []


def test_the_rules_work_on_the_host_whatever_device_is_the_default() -> None:
    numbers = healthy(3, 60)
    numbers[50, 1] *= 1000
    expected = str(judged(numbers))
    torch.set_default_device("meta")  # has no numbers: what is made on it would tell nothing
    try:
        assert (str(judged(numbers)), "spike" in expected) == (expected, True)
    finally:
        torch.set_default_device(None)


def test_many_findings_are_told_by_the_first_ones() -> None:
    found = [one for _, one in judged([[math.nan] * 3], [math.nan])]
    assert describe(found, 7) == [
        "step 7: grad_reduced of a is nan", "grad_reduced of b is nan", "grad_reduced of c is nan", "and 1 more"
    ]  # fmt: skip
