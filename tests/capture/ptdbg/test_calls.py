"""What the calls accept, in which order, and how they refuse."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from warm_python import warm_python

from capture.ptdbg.reading import calls
from dumpscope_capture import ptdbg
from dumpscope_capture.ptdbg import (
    CompareException,
    DumpException,
    OverflowEnd,
    ParameterError,
    PrecisionDebugger,
    StepsEnd,
    acc_cmp_dump,
    configure,
    core,
    module_dump,
    overflow_check,
    register_hook,
    seed_all,
    set_backward_input,
    set_dump_path,
    set_dump_switch,
    set_overflow_check_switch,
)
from dumpscope_capture.ptdbg.errors import Code

NEW = Path("out/ptdbg_dump_v6.0/step0/rank0/dump.pkl")
NET = torch.nn.Linear(2, 2)

WRONG: list[tuple[Callable[[], Any], int, str]] = [
    (lambda: seed_all(-1), 11, "seed"),
    (lambda: seed_all(mode="yes"), 11, "mode"),  # type: ignore[arg-type]
    (set_dump_path, 1, "ASCEND_WORK_PATH"),
    (lambda: set_dump_path(""), 1, "not empty"),
    (lambda: set_dump_path("a\0b"), 1, "'\\0'"),
    (lambda: set_dump_path("x", dump_tag="a/b"), 11, "without '/'"),
    (lambda: register_hook(NET, print), 11, "acc_cmp_dump or overflow_check"),
    (lambda: register_hook(NET, overflow_check, overflow_nums=0), 11, "-1 for no limit"),
    (lambda: register_hook(NET, overflow_check, overflow_nums=True), 11, "overflow_nums"),
    (lambda: register_hook(NET, acc_cmp_dump, dump_mode="kernel"), 11, "api, acl or model"),
    (lambda: register_hook(NET, acc_cmp_dump, dump_mode="acl"), 11, "dump_config"),
    (lambda: register_hook(NET, acc_cmp_dump, rank=-1), 11, "rank"),
    (lambda: register_hook(NET, acc_cmp_dump, ranks=1), 11, "register_hook is 'ranks'"),
    (lambda: set_dump_switch("on"), 11, "in capitals"),
    (lambda: set_dump_switch("ON", mode="most"), 11, "api_stack"),
    (lambda: set_dump_switch("ON", mode="list"), 11, "at least one name"),
    (lambda: set_dump_switch("ON", mode="range", scope=["a"]), 11, "the first and the last"),
    (lambda: set_dump_switch("ON", mode="stack", scope=["a", "b", "c"]), 11, "scope"),
    (lambda: set_dump_switch("ON", mode="acl", scope=["a", "b"]), 11, "one name"),
    (lambda: set_dump_switch("ON", mode="list", scope="Torch_relu_0"), 11, "a list of names"),
    (lambda: set_dump_switch("ON", mode="api_list"), 11, "api_list"),
    (lambda: set_dump_switch("ON", filter_switch="on"), 11, "filter_switch"),
    (lambda: set_dump_switch("ON", dump_mode=["sideways"]), 11, "dump_mode"),
    (lambda: set_dump_switch("ON", summary_only=1), 11, "True or False"),  # type: ignore[arg-type]
    (lambda: set_overflow_check_switch("YES"), 11, "switch"),
    (lambda: set_overflow_check_switch("ON", "maybe"), 11, "filter_switch"),
    (lambda: set_backward_input([]), 11, "one .npy file"),
    (lambda: set_backward_input(["nowhere.npy"]), 1, "nowhere.npy"),
    (lambda: module_dump("net", "name"), 11, "nn.Module"),  # type: ignore[arg-type]
    (lambda: module_dump(NET, ""), 11, "module_name"),
    (lambda: configure(generation="5.0"), 11, "2.3, 4.0, 6.0"),
    (lambda: configure(layout="zip"), 11, "msprobe"),
    (lambda: configure(wrap_ops="nowhere.yaml"), 11, "wrap_ops"),
    (lambda: configure(leave_out="t"), 11, "leave_out"),
    (lambda: PrecisionDebugger("out"), 11, "hook_name"),
    (lambda: PrecisionDebugger("out", hook_name="dumps"), 11, "overflow_check"),
    (lambda: PrecisionDebugger(None, hook_name="dump"), 1, "ASCEND_WORK_PATH"),
    (lambda: PrecisionDebugger("out", hook_name="dump", rank=-1), 11, "rank"),
    (lambda: PrecisionDebugger("out", hook_name="dump", step=3), 11, "step"),  # type: ignore[arg-type]
    (lambda: PrecisionDebugger("out", hook_name="dump", step=[1, "2"]), 11, "step"),  # type: ignore[list-item]
    (lambda: PrecisionDebugger("out", hook_name="dump", enable_dataloader="x"), 11, "enable_dataloader"),  # type: ignore[arg-type]
    (lambda: PrecisionDebugger("out", hook_name="dump", model="net"), 11, "model"),  # type: ignore[arg-type]
    (lambda: PrecisionDebugger("out", hook_name="overflow_check", model=NET), 11, "model"),
    (lambda: PrecisionDebugger("out", hook_name="dump").configure_hook(mode="acl", scope=["a"]), 11, "acl_config"),
    (lambda: PrecisionDebugger("out", hook_name="dump").configure_hook(scopes=[]), 11, "scopes"),
    (
        lambda: PrecisionDebugger("out", hook_name="dump").configure_hook(summary_only=True, summary_mode="md5"),
        11,
        "summary_only",
    ),
    (lambda: PrecisionDebugger("out", hook_name="dump").configure_hook(summary_mode="crc"), 11, "md5"),
    (
        lambda: PrecisionDebugger("out", hook_name="dump", model=NET).configure_hook(mode="acl", scope=["a"]),
        15,
        "model=",
    ),
    (lambda: PrecisionDebugger("out", hook_name="overflow_check").configure_hook(mode="all"), 11, "api or acl"),
]


@pytest.mark.parametrize(("call", "code", "text"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_an_exception_with_ptdbgs_code_and_says_what_is_allowed(
    call: Callable[[], Any], code: int, text: str
) -> None:
    with pytest.raises(CompareException) as found:
        call()
    assert found.value.code == code
    assert text in str(found.value)


def test_errors_of_arguments_and_paths_can_be_told_apart() -> None:
    with pytest.raises(ValueError, match="scope"):
        set_dump_switch("ON", mode="list", scope=[])
    with pytest.raises(DumpException):
        set_dump_path(None)
    assert issubclass(ParameterError, CompareException)
    assert Code.SUMMARY_MODE == 19


ORDER: list[Callable[[], None]] = [
    lambda: set_dump_path("./out"),
    lambda: register_hook(None, acc_cmp_dump),
    lambda: set_dump_switch("ON"),
]


@pytest.mark.parametrize("order", list(permutations(ORDER)), ids=range(6))
def test_the_calls_may_come_in_any_order(order: tuple[Callable[[], None], ...]) -> None:
    for call in order:
        call()
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert calls(NEW) == ["Functional.relu.0.forward"]
    assert [path.name for path in Path().iterdir()] == ["out"]


def test_without_a_path_data_goes_to_the_working_directory_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        register_hook(None, acc_cmp_dump)
        set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert calls("ptdbg_dump_v6.0/step0/rank0/dump.pkl")
    assert "set_dump_path was not called" in caplog.text


def test_the_work_path_stands_in_for_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_WORK_PATH", "work")
    set_dump_path()
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    assert calls("work/dump_data/ptdbg_dump_v6.0/step0/rank0/dump.pkl")


def test_a_path_may_change_while_recording() -> None:
    set_dump_path("./one")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_path("./two")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert calls("one/ptdbg_dump_v6.0/step0/rank0/dump.pkl") == ["Functional.relu.0.forward"]
    assert calls("two/ptdbg_dump_v6.0/step0/rank0/dump.pkl") == ["Functional.relu.1.forward"]


def test_a_folder_is_no_file_for_the_first_generation() -> None:
    configure(generation="2.3")
    Path("folder").mkdir()
    with pytest.raises(DumpException, match=r"path of the \.pkl file") as found:
        set_dump_path("folder")
    assert found.value.code == 1


def test_switching_on_without_a_hook_records_nothing_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    set_dump_path("./out")
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        set_dump_switch("ON")
        F.relu(torch.ones(2))
        set_dump_switch("OFF")
    assert "register_hook was never called" in caplog.text
    assert not Path("out").exists()


def test_dropout_drops_nothing_from_the_second_generation_on() -> None:
    for path, kept in (("./npu.pkl", False), ("./out", True)):
        set_dump_path(path)
        register_hook(None, acc_cmp_dump)
        set_dump_switch("ON")
        assert bool((F.dropout(torch.ones(1000), 0.5) == 1).all()) is kept
        set_dump_switch("OFF")


def test_seeding_makes_two_runs_alike() -> None:
    rolls = []
    for _ in range(2):
        seed_all(7)
        rolls.append((random.random(), float(np.random.rand()), torch.rand(1).item()))
    assert rolls[0] == rolls[1]


def test_all_names_of_the_old_package_are_there() -> None:
    wanted = {
        "register_hook", "set_dump_path", "set_dump_switch", "set_overflow_check_switch", "seed_all", "acc_cmp_dump",
        "overflow_check", "compare", "parse", "compare_distributed", "set_backward_input", "PrecisionDebugger", "module_dump",
        "module_dump_end",
    }  # fmt: skip
    assert wanted <= set(ptdbg.__all__)


def test_comparing_needs_the_server_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dumpscope.ptdbg", None)
    with pytest.raises(CompareException, match=r"pip install \. in a clone"):
        ptdbg.parse("x.pkl", "Torch")
    with pytest.raises(CompareException, match="compare_distributed needs"):
        ptdbg.compare_distributed("a", "b", "c")


def test_comparing_raises_the_servers_errors_as_they_are() -> None:
    with pytest.raises(CompareException) as found:
        ptdbg.compare({}, "nowhere")
    assert found.value.code in (1, 11)
    with pytest.raises(CompareException):
        ptdbg.parse("nowhere.pkl", "Torch")


def test_the_import_brings_nothing_of_the_server() -> None:
    script = "import sys, dumpscope_capture.ptdbg; print([name for name in sys.modules if name.split('.')[0] == 'dumpscope'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_import_seeds_as_the_old_package_did() -> None:
    script = "import random, torch; from dumpscope_capture.ptdbg import *; print(random.random(), torch.rand(1).item())"
    rolls = {subprocess.run([warm_python(), "-c", script], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(rolls) == 1


# -- PrecisionDebugger -------------------------------------------------------------------------------------------------


def step(debugger: PrecisionDebugger) -> None:
    debugger.start()
    F.relu(torch.ones(2))
    debugger.stop()
    debugger.step()


def test_the_debugger_writes_a_folder_for_each_step_asked_for_and_then_ends_the_program() -> None:
    debugger = PrecisionDebugger("./out", hook_name="dump", step=[2, 0])
    debugger.configure_hook(mode="all")
    for _ in range(3):
        step(debugger)
    with pytest.raises(StepsEnd) as found:
        debugger.start()
    assert found.value.code == 0
    assert "step 2" in str(found.value)
    root = Path("out/ptdbg_dump_v6.0")
    assert {path.name for path in root.iterdir()} == {"step0", "step2"}
    assert calls(root / "step2" / "rank0" / "dump.pkl") == ["Functional.relu.0.forward"]


@pytest.mark.parametrize(("steps", "folder"), [(None, "rank0"), ([0], "step0/rank0")])
def test_the_second_generation_has_step_folders_where_steps_are_named(steps: list[int] | None, folder: str) -> None:
    configure(generation="4.0")
    debugger = PrecisionDebugger("./out", hook_name="dump", step=steps)
    step(debugger)
    assert calls(Path("out/ptdbg_dump_v4.0") / folder / "api_stack_dump.pkl") == ["Functional_relu_0_forward"]


def test_the_debugger_is_one_and_answers_on_its_class() -> None:
    first = PrecisionDebugger("./out", hook_name="dump")
    assert PrecisionDebugger("./other", hook_name="overflow_check") is first
    PrecisionDebugger.start()
    F.relu(torch.ones(2))
    PrecisionDebugger.stop()
    PrecisionDebugger.step()
    assert calls(NEW.with_name("api_stack_dump.pkl")) == ["Functional.relu.0.forward"]


def test_a_call_on_the_class_before_there_is_a_debugger_says_so() -> None:
    with pytest.raises(CompareException, match="was not made"):
        PrecisionDebugger.start()


@pytest.mark.parametrize(("rank", "written"), [(0, True), (1, False)])
def test_only_the_rank_asked_for_writes(rank: int, written: bool) -> None:
    debugger = PrecisionDebugger("./out", hook_name="dump", rank=rank)
    step(debugger)
    assert Path("out").exists() is written


def test_a_loader_steps_the_debugger(caplog: pytest.LogCaptureFixture) -> None:
    debugger = PrecisionDebugger("./out", hook_name="dump", step=[0, 1], enable_dataloader=True)
    debugger.configure_hook(mode="all")
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2)
    seen = []
    with caplog.at_level(logging.WARNING, logger="dumpscope"), pytest.raises(StepsEnd):  # noqa: PT012
        for batch in loader:
            debugger.start()
            seen.append(F.relu(batch).tolist())
            debugger.step()
    assert seen == [[0, 1], [2, 3]]
    root = Path("out/ptdbg_dump_v6.0")
    assert [calls(root / f"step{n}" / "rank0" / "dump.pkl") for n in (0, 1)] == [["Functional.relu.0.forward"]] * 2
    assert "the loader does it" in caplog.text


def test_loaders_are_as_before_once_the_debugger_is_gone() -> None:
    PrecisionDebugger("./out", hook_name="dump", enable_dataloader=True)
    core.forget()
    assert [batch.tolist() for batch in torch.utils.data.DataLoader(torch.arange(2.0))] == [[0.0], [1.0]]
    assert not Path("out").exists()


def test_a_step_that_is_not_asked_for_is_not_recorded_where_stop_was_left_out() -> None:
    debugger = PrecisionDebugger("./out", hook_name="dump", step=[0, 2])
    debugger.start()
    for _ in range(3):
        F.relu(torch.ones(2))
        debugger.step()
    assert [path.name for path in Path("out/ptdbg_dump_v6.0").iterdir()] == ["step0"]


def test_warnings_of_the_surroundings_come_once_and_not_at_every_step(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NPU_ASD_ENABLE", "1")
    debugger = PrecisionDebugger("./out", hook_name="dump")
    with caplog.at_level(logging.WARNING, logger="dumpscope"):
        for _ in range(3):
            step(debugger)
    assert caplog.text.count("NPU_ASD_ENABLE is set") == 1


def test_a_program_may_change_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    set_dump_path("./out")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON")
    F.relu(torch.ones(2))
    set_dump_switch("OFF")
    assert calls(Path("..") / NEW)
    assert not list(Path().iterdir())


def test_a_check_that_has_ended_begins_anew_with_another_wish() -> None:
    set_dump_path("./out")
    register_hook(None, overflow_check)
    big = torch.full((2,), 1e38)
    with pytest.raises(OverflowEnd):
        torch.mul(big, 100)
    register_hook(None, overflow_check, overflow_nums=2)
    torch.mul(big, 100)
    with pytest.raises(OverflowEnd):
        torch.mul(big, 100)


def test_a_path_that_cannot_be_made_is_refused_at_once_and_leaves_the_one_before() -> None:
    Path("taken").write_text("")
    set_dump_path("./good")
    for call in (
        lambda: set_dump_path("./taken/out"),
        lambda: set_dump_path("./taken/npu.pkl"),
        lambda: PrecisionDebugger("./taken", hook_name="dump"),
    ):
        with pytest.raises(DumpException) as found:
            call()
        assert found.value.code == 1
        assert "taken is no folder" in str(found.value)
    place = core.current_capture().place
    assert place is not None
    assert place.path == os.path.abspath("good")


def test_a_path_below_a_folder_that_is_closed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DumpException) as found:
        set_dump_path("./out")
    assert found.value.code == 7


@pytest.mark.parametrize(
    ("path", "tag"), [(f"out/{'x' * 300}", "npu"), ("out", "t" * 253), (f"{'f' * 250}.pkl", "npu"), ("ü" * 200, "npu")]
)
def test_a_name_that_the_disk_cannot_hold_is_refused_before_training(path: str, tag: str) -> None:
    with pytest.raises(DumpException, match="bytes; the disk takes") as found:
        set_dump_path(path, dump_tag=tag)
    assert found.value.code == 1


def test_the_first_generation_without_a_path_writes_below_the_working_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("work").mkdir()
    monkeypatch.chdir("work")
    configure(generation="2.3")
    register_hook(None, acc_cmp_dump)
    set_dump_switch("ON")
    torch.ones(2).relu()
    set_dump_switch("OFF")
    assert [path.name for path in Path("..").iterdir()] == ["work"]
    assert Path("ptdbg_dump_v2.3/rank0/anonymous.pkl").stat().st_size
