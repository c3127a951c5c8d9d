"""PrecisionDebugger as training scripts use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from warm_python import warm_python

from dumpscope_capture import ConfigError, PrecisionDebugger, random_save, seed_all, seeding
from dumpscope_capture.config import ConfigWatcher
from dumpscope_capture.context import rank

X = torch.tensor([[1.0, 2.0]])


def test_there_is_one_instance_and_the_class_stands_for_it(make: Any, read: Any) -> None:
    with pytest.raises(RuntimeError, match="not created"):
        PrecisionDebugger.start()
    debugger = make(level="L1")
    assert make(level="L1") is debugger
    assert PrecisionDebugger() is debugger
    assert debugger.config.level == "L1"
    PrecisionDebugger.start()
    F.relu(X)
    PrecisionDebugger.stop()
    PrecisionDebugger.step()
    assert list(read().data) == ["Functional.relu.0.forward"]


def test_other_arguments_make_a_second_recorder_in_a_folder_of_its_own(
    make: Any, read: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = make(level="L1")
    second = PrecisionDebugger(dump_path=str(tmp_path / "other"), level="L1", task="tensor")
    assert second is not first
    assert PrecisionDebugger(dump_path=str(tmp_path / "other"), level="L1", task="tensor") is second
    assert sum("a second PrecisionDebugger" in line for line in caplog.messages) == 1
    for debugger, call in ((first, F.relu), (second, F.gelu), (first, F.silu)):
        debugger.start()
        call(X)
        PrecisionDebugger.stop()  # of the one that records
        debugger.step()
    (folder,) = (tmp_path / "other" / "step0").iterdir()
    assert list(json.loads((folder / "dump.json").read_text())["data"]) == ["Functional.gelu.0.forward"]
    assert [list(read(step).data) for step in (0, 1)] == [["Functional.relu.0.forward"], ["Functional.silu.0.forward"]]


def test_a_second_recorder_is_refused_where_it_would_disturb_the_first(make: Any, tmp_path: Path) -> None:
    first = make(level="L1")
    with pytest.raises(ConfigError, match="already writes there"):
        PrecisionDebugger(dump_path=str(tmp_path / "dump"), level="L0")
    second = PrecisionDebugger(dump_path=str(tmp_path / "other"), level="L1")
    first.start()
    with pytest.raises(RuntimeError, match=r"stop\(\) it before"):
        second.start()
    first.stop()
    other = str(tmp_path / "other")
    assert PrecisionDebugger(dump_path=other, level="L1", model=nn.ReLU()) is second
    with pytest.raises(ConfigError, match="model"):
        PrecisionDebugger(dump_path=other, level="L1", model=nn.ReLU())


def test_a_missing_start_is_told_once(make: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    debugger = make(level="L1", step=[1])
    for step in range(3):
        if step == 0:
            debugger.start()
        F.relu(X)
        debugger.stop()
        debugger.step()
    assert [line for line in caplog.messages if "start() was not called" in line] == [
        "stop() in step 1, but start() was not called: nothing is recorded (told once)"
    ]


def test_positional_arguments_stand_in_the_documented_order(tmp_path: Path, make: Any) -> None:
    config = tmp_path / "c.json"
    config.write_text("{}", encoding="utf-8")
    debugger = PrecisionDebugger(str(config), "tensor", str(tmp_path / "d"), "L0", nn.Sequential(nn.ReLU()), [1])
    assert (debugger.config.task, debugger.config.level, debugger.config.step) == ("tensor", "L0", (1,))


def test_a_wrong_configuration_leaves_no_instance(make: Any) -> None:
    with pytest.raises(ConfigError):
        make(level="L9")
    assert make(level="L1").config.level == "L1"


def test_starting_twice_and_stopping_without_a_start_do_no_harm(make: Any, read: Any) -> None:
    debugger = make(level="L1")
    debugger.stop()
    debugger.start()
    debugger.start()
    F.relu(X)
    debugger.stop()
    F.relu(X)
    debugger.stop()
    debugger.start()
    F.relu(X)
    debugger.forward_backward_dump_end()
    debugger.step()
    assert list(read().data) == ["Functional.relu.0.forward", "Functional.relu.1.forward"]
    assert torch._C._len_torch_function_stack() == 0
    assert not nn.modules.module._global_forward_pre_hooks


def test_data_is_on_disk_after_stop_and_backward_may_follow(make: Any, read: Any) -> None:
    debugger = make(level="L1")
    x = X.clone().requires_grad_()
    debugger.start()
    y = F.gelu(x).sum()
    debugger.stop()
    assert list(read().data) == ["Functional.gelu.0.forward", "Tensor.sum.0.forward"]
    y.backward()
    debugger.step()
    assert list(read().data)[2:] == ["Tensor.sum.0.backward", "Functional.gelu.0.backward"]


def test_steps_outside_the_list_are_not_recorded_and_the_last_ends_it(make: Any, tmp_path: Path) -> None:
    debugger = make(level="L1", step=[1, "3-4"])
    for _ in range(8):
        debugger.start()
        F.relu(X)
        debugger.stop()
        debugger.step()
    assert sorted(folder.name for folder in (tmp_path / "dump").iterdir()) == ["step1", "step3", "step4"]


def test_set_init_step_moves_the_number(make: Any, tmp_path: Path) -> None:
    debugger = make(level="L1")
    debugger.set_init_step(100)
    for _ in range(2):
        debugger.start()
        F.relu(X)
        debugger.stop()
        debugger.step()
    assert sorted(folder.name for folder in (tmp_path / "dump").iterdir()) == ["step100", "step101"]
    with pytest.raises(ConfigError):
        debugger.set_init_step(-1)


def test_a_rank_outside_the_list_records_nothing(make: Any, tmp_path: Path) -> None:
    debugger = make(level="L1", rank=[2])
    debugger.start(rank_id=1)
    F.relu(X)
    debugger.stop()
    assert not (tmp_path / "dump").exists()


def test_a_given_rank_names_the_folder(make: Any, read: Any) -> None:
    debugger = make(level="L1", rank=[1])
    debugger.start(rank_id=1)
    F.relu(X)
    debugger.stop()
    debugger.step()
    assert read().folder.name == "rank1"


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        ({}, None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}, 0),
        ({"RANK": "3"}, None),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, 2),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8"}, 5),
        ({"LOCAL_RANK": "1"}, None),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, 1),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, 1),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "2"}, 9),
        ({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "WORLD_SIZE": "2", "NODE_RANK": "1"}, 1),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "16", "NODE_RANK": "1"}, None),
        ({"RANK": "x", "WORLD_SIZE": "4"}, None),
    ],
)
def test_launchers_number_processes_each_in_its_way(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], number: int | None
) -> None:
    for name in list(os.environ):
        if name.endswith(("RANK", "WORLD_SIZE")) or name.startswith("SLURM_"):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert rank() == number


def test_a_launcher_tells_the_rank(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    debugger = make(level="L1")
    debugger.start()
    F.relu(X)
    debugger.stop()
    debugger.step()
    assert read().folder.name == "rank3"


def test_a_second_run_keeps_the_first_ones_folder(make: Any, tmp_path: Path) -> None:
    from capture.conftest import forget  # noqa: PLC0415

    for number in range(2):
        forget()
        debugger = make(level="L1")
        debugger.start(rank_id=0)
        for _ in range(number + 1):
            F.relu(X)
        debugger.stop()
        debugger.step()
    now = json.loads((tmp_path / "dump" / "step0" / "rank0" / "dump.json").read_text())["data"]
    (kept,) = (tmp_path / "dump").glob("earlier-*/step0/rank0/dump.json")
    assert (len(now), len(json.loads(kept.read_text())["data"])) == (2, 1)


def test_models_are_demanded_and_checked(make: Any) -> None:
    debugger = make(level="mix")
    for model in (None, 3, [], [nn.ReLU(), 3]):
        with pytest.raises(ConfigError, match="model"):
            debugger.start(model)


def test_a_with_block_is_a_step(make: Any, read: Any) -> None:
    debugger = make(level="L1")
    with debugger:
        F.relu(X)
    with pytest.raises(ValueError, match="x"), debugger:  # noqa: PT012  (the call before the error is recorded)
        F.gelu(X)
        raise ValueError("x")
    debugger.step()
    assert list(read(0).data) == ["Functional.relu.0.forward"]
    assert list(read(1).data) == ["Functional.gelu.0.forward"]


def test_a_token_range_records_its_forward_passes_only(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.ReLU())
    debugger = make(level="mix")
    debugger.start(model, token_range=[1, 2])
    for number in range(5):
        model(X * (number + 1))
    debugger.stop()
    debugger.step()
    records = [record for node, record in read().data.items() if node.startswith("Module")]
    assert [record["input_args"][0]["Max"] for record in records] == [4.0, 6.0]
    for wrong in ([1], [2, 1], [-1, 2], [True, 2], "ab"):
        with pytest.raises(ConfigError, match="token_range"):
            debugger.start(model, token_range=wrong)


def _passes(read: Any, step: int) -> list[float]:
    """Inputs of the recorded passes of a step."""
    records = [record for node, record in read(step).data.items() if node.startswith("Module")]
    return [record["input_args"][0]["Max"] for record in records]


def test_a_token_range_holds_until_the_next_start_and_counts_anew_in_each_step(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.ReLU())
    debugger = make(level="mix")

    def passes() -> None:
        for number in range(4):
            model(torch.full((2,), number + 1.0))

    debugger.start(model, token_range=[1, 2])
    passes()
    debugger.step()  # without stop: the next step goes on
    passes()
    debugger.stop()
    debugger.step()
    debugger.start(model, token_range=[0, 0])
    passes()
    debugger.stop()
    debugger.step()
    debugger.start(model)
    passes()
    debugger.stop()
    debugger.step()
    assert [_passes(read, step) for step in range(4)] == [[2, 3], [2, 3], [1], [1, 2, 3, 4]]


def test_a_token_range_ends_with_the_configuration_it_began_in(
    make: Any, read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dumpscope_capture.config._ON_SECONDS", 0.0)
    model = nn.Sequential(nn.ReLU())
    debugger = make(level="mix", dump_enable=True)
    path = tmp_path / "config.json"
    hooks = len(torch.nn.modules.module._global_forward_pre_hooks)
    debugger.start(model, token_range=[3, 3])
    path.write_text(json.dumps({**json.loads(path.read_text()), "risk_level": "ALL"}), encoding="utf-8")
    debugger.start(model)
    for number in range(5):
        model(torch.full((2,), number + 1.0))
    debugger.stop()
    debugger.step()
    assert _passes(read, 0) == [1, 2, 3, 4, 5]
    assert len(torch.nn.modules.module._global_forward_pre_hooks) == hooks


def test_a_capture_stopped_in_another_thread_begins_anew_with_every_call_once(make: Any, read: Any) -> None:
    import threading  # noqa: PLC0415

    debugger = make(level="L1")
    debugger.start()
    other = threading.Thread(target=debugger.stop)
    other.start()
    other.join()
    F.relu(X)
    debugger.step()
    debugger.start()
    F.relu(X)
    debugger.stop()
    debugger.step()
    assert not read(0).data
    assert list(read(1).data) == ["Functional.relu.0.forward"]
    assert torch._C._len_torch_function_stack() == 0


def test_a_changed_file_switches_recording_on_and_off(
    make: Any, read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dumpscope_capture.config._ON_SECONDS", 0.0)
    monkeypatch.setattr("dumpscope_capture.config._OFF_SECONDS", 0.0)
    debugger = make(level="L1", dump_enable=False)
    path = tmp_path / "config.json"
    settings = json.loads(path.read_text())

    def step() -> None:
        debugger.start()
        F.relu(X)
        debugger.stop()
        debugger.step()

    step()
    path.write_text(json.dumps({**settings, "dump_enable": True, "risk_level": "ALL"}), encoding="utf-8")
    step()
    path.write_text(json.dumps({**settings, "dump_enable": True, "level": "wrong"}), encoding="utf-8")
    step()
    step()
    assert "step0" not in os.listdir(tmp_path / "dump")
    assert list(read(1).data) == ["Functional.relu.0.forward"]
    assert debugger.config.dump_enable is False
    assert "step3" not in os.listdir(tmp_path / "dump")


def test_a_watched_file_is_looked_at_only_so_often(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("1")
    watcher = ConfigWatcher(str(path))
    path.write_text("12")
    assert not watcher.has_changed(enabled=True)
    watcher._last -= 0.6
    assert not watcher.has_changed(enabled=False)
    assert watcher.has_changed(enabled=True)


def test_save_records_values_and_gradients_by_hand(make: Any, read: Any) -> None:
    debugger = make(level="debug", task="tensor")
    for factor in (1.0, 3.0):
        h = (torch.ones(2, requires_grad=True) * 2).requires_grad_()
        debugger.save({"h": h, "more": [h * 2, 5, "text", None]}, "a/b c")
        debugger.save(h.detach(), "plain", save_backward=False)
        (h * factor).sum().backward()
    debugger.save(object(), "refused")
    debugger.save(h, 3)
    debugger.step()
    data = read().json("debug.json")["data"]
    assert set(data) == {
        "a/b c.0.debug",
        "a/b c_grad.0.debug",
        "a/b c.1.debug",
        "a/b c_grad.1.debug",
        "plain.0.debug",
        "plain.1.debug",
    }
    assert data["a/b c_grad.1.debug"]["h"]["Max"] == 3.0
    assert data["a/b c_grad.1.debug"]["more"] == [None, None, None, None]
    assert data["a/b c.0.debug"]["more"][1] == {"type": "int", "value": 5}
    assert (read().folder / "dump_tensor_data" / data["plain.0.debug"]["data_name"]).is_file()


def test_structure_holds_names_stacks_and_parents_without_values(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    debugger = make(task="structure", level="mix")
    debugger.start(model)
    model(X).sum().backward()
    debugger.stop()
    debugger.step()
    assert set(map(str, read().data.values())) == {"{}"}
    assert "Functional.linear.0.backward" in read().construct


def test_no_extra_info_means_no_stack_and_construct(make: Any, read: Any) -> None:
    debugger = make(level="L1", extra_info=False)
    debugger.start()
    F.relu(X)
    debugger.stop()
    debugger.step()
    assert sorted(file.name for file in read().folder.iterdir()) == ["dump.json", "run.json"]


def test_a_tensor_list_saves_the_named_ones_only(make: Any, read: Any) -> None:
    debugger = make(level="L1", section={"tensor_list": ["gelu"]})
    debugger.start()
    F.gelu(F.relu(X))
    debugger.stop()
    debugger.step()
    assert sorted(file.name for file in (read().folder / "dump_tensor_data").iterdir()) == [
        "Functional.gelu.0.forward.input.0.pt", "Functional.gelu.0.forward.output.0.pt"]  # fmt: skip


@pytest.mark.parametrize("asynchronous", [False, True])
def test_async_dump_lets_more_tensors_wait_and_writes_the_same(make: Any, read: Any, asynchronous: bool) -> None:
    debugger = make(level="L1", async_dump=asynchronous, section={"tensor_list": ["relu"]})
    debugger.start()
    for number in range(3):
        F.relu(X * number)
    assert debugger._session.sink._files._limit == (4 << 30 if asynchronous else None)
    debugger.stop()
    debugger.step()
    files = sorted((read().folder / "dump_tensor_data").iterdir())
    assert [torch.load(file).max().item() for file in files] == [0, 0, 2, 2, 4, 4]


def test_overflow_keeps_what_overflows_and_lets_masks_pass(make: Any, read: Any) -> None:
    debugger = make(task="overflow_check", level="L1", section={"overflow_nums": -1})
    x = torch.tensor([1.0, 88.0, 89.0], requires_grad=True)
    debugger.start()
    masked = x.masked_fill(torch.tensor([True, False, False]), float("-inf"))
    F.softmax(masked, 0)
    big = torch.exp(x * 1.0)
    torch.sqrt(x * 0).sum().backward()
    debugger.stop()
    debugger.step()
    data = read().data
    assert big.isinf().any()
    assert list(data) == ["Torch.exp.0.forward", "Torch.sqrt.0.backward", "Tensor.__mul__.1.backward"]
    assert data["Torch.exp.0.forward"]["input_args"][0]["Max"] == 89.0
    assert (read().folder / "dump_tensor_data" / "Torch.exp.0.forward.input.0.pt").is_file()


def test_overflow_keeps_what_ends_in_the_last_number_of_its_type(make: Any, read: Any) -> None:
    debugger = make(task="overflow_check", level="L1", section={"overflow_nums": -1})
    last = torch.tensor([torch.finfo(torch.float16).max], dtype=torch.float16)
    with debugger:
        torch.add(last / 2, last / 2)
        F.relu(last)
        torch.full((2,), torch.finfo(torch.float32).min)
    assert list(read().data) == ["Torch.add.0.forward"]


def test_overflow_ends_after_as_many_as_asked_for(make: Any, read: Any) -> None:
    debugger = make(task="overflow_check", level="L1", section={"overflow_nums": 2})
    for _ in range(3):
        debugger.start()
        for _ in range(2):
            torch.log(torch.zeros(1)) + 1
        debugger.stop()
        debugger.step()
    assert list(read().data) == ["Torch.log.0.forward", "Torch.log.1.forward"] or len(read().data) == 2


def test_a_bench_dump_finds_where_runs_part(make: Any, read: Any, tmp_path: Path) -> None:
    from capture.conftest import forget  # noqa: PLC0415

    def run(debugger: Any, factor: float) -> None:
        debugger.start()
        y = F.relu(X)
        y = torch.nn.functional.gelu(y) if factor == 1 else Faulty.apply(y)
        torch.sin(y)
        debugger.stop()
        debugger.step()

    class Faulty:
        @staticmethod
        def apply(y: torch.Tensor) -> torch.Tensor:
            from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

            class Fault(TorchDispatchMode):
                def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    out = func(*args, **(kwargs or {}))
                    return out * 1.02 if "gelu" in str(func) else out

            with Fault():
                return F.gelu(y)

    run(make(level="L1", task="tensor", dump_path=str(tmp_path / "bench"), section={"summary_mode": "md5"}), 1)
    forget()
    debugger = make(
        level="L1",
        task="tensor",
        section={"summary_mode": "md5", "bench_path": str(tmp_path / "bench"), "diff_nums": -1},
    )
    run(debugger, 2)
    files = sorted(file.name for file in (read().folder / "dump_tensor_data").iterdir())
    assert files == ["Functional.gelu.0.forward.input.0.pt", "Functional.gelu.0.forward.output.0.pt"]


def test_aten_operators_are_recorded_at_level_two(make: Any, read: Any) -> None:
    debugger = make(level="L2", task="statistics")
    x = X.clone().requires_grad_()
    debugger.start()
    F.gelu(x).sum().backward()
    debugger.stop()
    debugger.step()
    assert {"Aten.gelu.0.forward", "Aten.sum.0.forward", "Aten.gelu_backward.0.forward"} <= set(read().data)


def test_modes_of_the_program_may_begin_inside_level_two_and_end_after_it(make: Any, read: Any) -> None:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, is_in_torch_dispatch_mode  # noqa: PLC0415
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    matrix = torch.ones(2, 2)
    counter = FlopCounterMode(display=False)
    debugger = make(level="L2")
    debugger.start()
    counter.__enter__()
    matrix @ matrix
    debugger.stop()
    matrix @ matrix
    counter.__exit__(None, None, None)
    debugger.step()
    assert counter.get_total_flops() == 2 * 2 * 2**3
    assert list(read().data) == ["Aten.mm.0.forward"]
    assert not _get_current_dispatch_mode_stack()
    assert not is_in_torch_dispatch_mode()


def test_level_two_may_be_stopped_in_another_thread(make: Any, read: Any) -> None:
    import threading  # noqa: PLC0415

    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack  # noqa: PLC0415

    from dumpscope_capture.hooks.aten import AtenMode  # noqa: PLC0415

    def stop() -> None:
        debugger.stop()
        stopped.append(True)

    stopped: list[bool] = []
    debugger = make(level="L2")
    debugger.start()
    torch.ones(2) + 1
    other = threading.Thread(target=stop)
    other.start()
    other.join()
    torch.ones(2) * 2
    debugger.step()
    assert [mode.leave() for mode in _get_current_dispatch_mode_stack() if isinstance(mode, AtenMode)] == [True]
    assert stopped
    assert list(read().data) == ["Aten.add.0.forward"]


def test_forked_children_record_nothing(make: Any, read: Any) -> None:
    debugger = make(level="L1")
    debugger.start()
    F.relu(X)
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)  # a child that hangs ends
        X + 1
        debugger.stop()
        debugger.step()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    F.relu(X)
    debugger.stop()
    debugger.step()
    assert list(read().data) == ["Functional.relu.0.forward", "Functional.relu.1.forward"]


def test_workers_of_a_loader_run_while_recording(make: Any, read: Any) -> None:
    loader = torch.utils.data.DataLoader([torch.ones(2) * n for n in range(4)], num_workers=1)
    debugger = make(level="L1")
    debugger.start()
    batches = [F.relu(batch) for batch in loader]
    debugger.stop()
    debugger.step()
    assert len(batches) == 4
    assert sum(node.startswith("Functional.relu") for node in read().data) == 4


def test_known_problems_of_the_environment_are_named_once(
    make: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NPU_ASD_ENABLE", "1")
    debugger = make(level="L1")
    for _ in range(2):
        debugger.start()
        F.relu(X)
        debugger.stop()
        debugger.step()
    assert caplog.text.count("NPU_ASD_ENABLE is set") == 1


def test_seeds_repeat_and_only_what_was_asked_for_is_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    import random  # noqa: PLC0415

    def draw() -> tuple[Any, ...]:
        return random.random(), np.random.rand(), torch.rand(2).tolist()

    try:
        seed_all(5)
        first = draw()
        seed_all(5)
        assert draw() == first
        assert not torch.are_deterministic_algorithms_enabled()
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark
        seed_all(5, rm_dropout=True)
        assert torch.equal(F.dropout(torch.ones(100), 0.9), torch.ones(100))
        assert torch.equal(nn.Dropout(0.9)(torch.ones(100)), torch.ones(100))
        seed_all(5, is_enhanced=True)
        assert draw() == draw()
        torch.rand(3)
        assert draw() == draw()
    finally:
        seeding.undo()
    for wrong in ((-1,), (2**32,), (True,), (1, 1)):
        with pytest.raises(ConfigError):
            seed_all(*wrong)


def test_random_calls_are_written_with_their_stacks(tmp_path: Path) -> None:
    try:
        path = random_save(str(tmp_path))
        torch.rand(2)
        torch.ones(2).uniform_()
        np.random.rand()
    finally:
        seeding.undo()
    lines = path.read_text().splitlines()
    assert lines[0] == "api_name,stack"
    names = [line.split(",")[0] for line in lines if line.startswith(("torch", "numpy"))]
    assert names == ["torch.rand", "torch._tensor.Tensor.uniform_", "numpy.random.rand"] or len(names) == 3
    assert Path(__file__).name in path.read_text()


def test_recording_that_is_off_costs_nothing(make: Any) -> None:
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)])
    x = torch.ones(1, 8)

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(20):
            model(x)
        return time.perf_counter() - start

    debugger = make(level="mix", step=[0])
    debugger.start(model)
    model(x)
    debugger.stop()
    debugger.step()
    assert torch._C._len_torch_function_stack() == 0
    assert not nn.modules.module._global_forward_hooks
    assert not nn.modules.module._global_forward_pre_hooks
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert measure() > 0


def test_two_processes_of_one_rank_never_write_into_one_folder(make: Any, tmp_path: Path) -> None:
    """Two launches into one folder at the same time, both with rank 0: the later one takes a folder of its own."""
    script = tmp_path / "other.py"
    script.write_text(
        f"""
import os, torch
from dumpscope_capture import PrecisionDebugger
debugger = PrecisionDebugger(task="statistics", dump_path={str(tmp_path / "dump")!r}, level="L1")
debugger.start(rank_id=0)
torch.tanh(torch.ones(2))
debugger.stop()
debugger.step()
"""
    )
    debugger = make(level="L1")
    debugger.start(rank_id=0)
    torch.relu(torch.ones(3))
    done = subprocess.run([warm_python(), str(script)], check=True, capture_output=True, text=True)
    debugger.stop()
    debugger.step()
    assert "another process writes into" in done.stderr
    folders = sorted((tmp_path / "dump" / "step0").iterdir(), key=lambda path: path.name)
    assert [folder.name[:4] for folder in folders] == ["proc", "rank"]
    nodes = [list(json.loads((folder / "dump.json").read_text())["data"]) for folder in folders]
    assert nodes == [["Torch.tanh.0.forward"], ["Torch.relu.0.forward"]]
    again = subprocess.run([warm_python(), str(script)], check=True, capture_output=True, text=True)
    assert "held an earlier run's dump" in again.stderr  # nobody has the folder any more


def test_overflow_of_a_call_in_place_shows_its_arguments(make: Any, read: Any) -> None:
    with make(level="L1", task="overflow_check", section={"overflow_nums": -1}):
        x = torch.full((3,), 3e38)
        x.mul_(10)
        y = torch.zeros(2)
        y.log_()
        y.exp_()  # of -inf, which gives 0
        F.relu(torch.full((2,), -1e38).mul(10), inplace=True)  # of -inf as well
    dump = read()
    assert list(dump.data) == ["Tensor.mul_.0.forward", "Tensor.log_.0.forward", "Tensor.mul.0.forward"]
    given = [node["input_args"][0]["Max"] for node in dump.data.values()]
    assert given == pytest.approx([3e38, 0, -1e38])
    saved = torch.load(dump.folder / "dump_tensor_data" / "Tensor.log_.0.forward.input.0.pt")
    assert torch.equal(saved, torch.zeros(2))
    assert not dump.errors
