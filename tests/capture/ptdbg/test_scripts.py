"""The example scripts of ptdbg's guide, rebuilt from what it says they do, with their import line changed and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from warm_python import COLD, warm_python

from capture.launching import rendezvous_port
from capture.ptdbg.reading import calls, line, lines, names

SCRIPTS = Path(__file__).with_name("scripts")
OLD_IMPORT, NEW_IMPORT = "from ptdbg_ascend import *", "from dumpscope_capture.ptdbg import *"
STEP0 = Path("ptdbg_dump_v6.0/step0/rank0")
FORWARD = [
    "Functional.linear.0", "Functional.layer_norm.0", "Torch.relu.0", "Functional.dropout.0", "Functional.linear.1",
    "Tensor.__mul__.0", "Tensor.square.0", "Tensor.mean.0",
]  # fmt: skip


def start(script: str, *arguments: str, python: str = "", **environment: str) -> subprocess.Popen[str]:
    text = (SCRIPTS / f"{script}.py").read_text(encoding="utf-8")
    assert text.count(OLD_IMPORT) == 1
    for name, content in ((script, text.replace(OLD_IMPORT, NEW_IMPORT)), ("net", (SCRIPTS / "net.py").read_text())):
        if not Path(f"{name}.py").exists():  # a rank that has begun may be reading it
            Path(f"{name}.py").write_text(content, encoding="utf-8")
    return subprocess.Popen(
        [python or warm_python(), f"{script}.py", *arguments],
        env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(script: str, *arguments: str, status: int = 0) -> str:
    """Run a script in the working directory. Returns what it printed."""
    process = start(script, *arguments)
    out, err = process.communicate(timeout=200)
    assert process.returncode == status, err
    assert "Traceback" not in err or status == 1
    return out + err


def test_a_single_card_dumps_under_the_names_of_the_file_form() -> None:
    run("single_card", "./npu_dump.pkl", "npu")
    run("single_card", "./gpu_dump.pkl", "gpu")
    for tag in ("npu", "gpu"):
        path = Path(f"{tag}_v2.3/rank0/{tag}_dump.pkl")
        forward = [name for name in calls(path) if name.endswith("forward")]
        assert [name.replace("_", "") for name in forward[-6:]] == [
            name.replace("_", "").replace(".", "") + "forward" for name in FORWARD[-6:]
        ]
        assert {file.stem for file in path.with_suffix("").iterdir()} == set(names(path))
    assert (Path("npu_v2.3/rank0/npu_dump.pkl")).read_bytes() == Path("gpu_v2.3/rank0/gpu_dump.pkl").read_bytes()


def test_a_single_card_dumps_under_the_names_of_the_folder_form() -> None:
    run("single_card", "./dump", "npu")
    path = Path("dump/npu_v6.0/step0/rank0/dump.pkl")
    assert [name.removesuffix(".forward") for name in calls(path) if name.endswith("forward")] == FORWARD
    backward = {name.removesuffix(".backward") for name in calls(path) if name.endswith("backward")}
    assert backward == set(FORWARD) - {"Functional.dropout.0"}  # it drops nothing, and so has no gradient of its own
    assert line(path, "Functional.linear.0.forward.input.1")[4] == [16, 8]


def test_several_cards_write_a_folder_each() -> None:
    port = rendezvous_port()
    processes = [
        start("multi_card", "./dump", "npu", RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
              OMP_NUM_THREADS="1", python=COLD)
        for rank in range(2)
    ]  # fmt: skip
    for process in processes:
        _, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
    root = Path("dump/npu_v6.0/step0")
    assert sorted(path.name for path in root.iterdir()) == ["rank0", "rank1"]
    listed = [calls(root / f"rank{rank}" / "api_stack_dump.pkl") for rank in range(2)]
    assert listed[0] == listed[1]
    assert "Distributed.all_reduce.0.forward" in listed[0]
    sums = line(root / "rank1" / "api_stack_dump.pkl", "Distributed.all_reduce.0.forward.output.0")
    assert sums[5][:3] == [2, 2, 2]


@pytest.mark.parametrize(
    ("mode", "listed", "wanted"),
    [
        ("list", ["Functional.linear.1.forward", "Torch_relu_0_backward"],
         ["Functional.linear.1.forward", "Torch.relu.0.backward"]),
        ("range", ["Torch_relu_0_forward", "Functional_linear_1_forward"], [f"{name}.forward" for name in FORWARD[2:5]]),
        ("stack", [], None),
        ("api_list", ["linear"], ["Functional.linear.0.forward", "Functional.linear.1.forward", "Functional.linear.1.backward",
                                  "Functional.linear.0.backward"]),
        ("api_stack", [], None),
    ],
)  # fmt: skip
def test_every_mode_records_what_it_names(mode: str, listed: list[str], wanted: list[str] | None) -> None:
    run("modes", "./dump", mode, *listed)
    path = "dump" / STEP0 / f"{mode}_dump.pkl"
    if wanted is None:
        assert [name.removesuffix(".forward") for name in calls(path) if name.endswith("forward")] == FORWARD
    else:
        assert calls(path) == wanted
    assert path.with_suffix("").exists() is (mode != "stack")
    assert any(len(fields) == 2 for fields in lines(path)) is (mode != "api_list")


def test_the_dump_of_device_kernels_is_refused_on_a_cpu_before_training() -> None:
    Path("acl").mkdir()
    Path("dump.json").write_text('{"dump": {"dump_list": [], "dump_path": "acl"}}')
    told = run("acl", "dump.json", status=1)
    assert "CompareException: dump_mode='acl' dumps what an Ascend device computes" in told
    assert "trained" not in told


def test_the_overflow_check_ends_the_program_at_the_count_asked_for() -> None:
    told = run("overflow", "./dump", status=3)
    assert "2 found" in told
    assert "never reached" not in told
    found = sorted(path.name for path in ("dump" / STEP0).iterdir())
    assert found == [f"Tensor___mul___{n - 1}_forward_{n}{end}" for n in (1, 2) for end in ("", ".pkl")]


def test_one_module_is_recorded_alone() -> None:
    run("one_module", "./dump")
    assert calls("dump" / STEP0 / "dump.pkl") == ["first_linear.0.forward", "first_linear.0.backward"]


@pytest.mark.parametrize("by", [[], ["loader"]])
def test_the_debugger_records_its_steps_and_ends_the_program_in_good_order(by: list[str]) -> None:
    told = run("debugger", "./dump", *by)
    assert "step 2, the last one asked for" in told
    assert "never reached" not in told
    root = Path("dump/ptdbg_dump_v6.0")
    assert sorted(path.name for path in root.iterdir()) == ["step0", "step2"]
    listed = [calls(root / step / "rank0" / "api_stack_dump.pkl") for step in ("step0", "step2")]
    assert listed[0] == listed[1]
    assert "Functional.linear.1.backward" in listed[0]


def test_the_debugger_records_the_modules_of_a_model() -> None:
    run("modules", "./dump")
    path = "dump" / STEP0 / "dump.pkl"
    forward = ["first.Linear.0", "norm.LayerNorm.0", "drop.Dropout.0", "last.Linear.0"]
    assert [name.removesuffix(".forward") for name in calls(path) if name.endswith("forward")] == forward
    assert re.fullmatch("[0-9a-f]{8}", line(path, "first.Linear.0.forward.output")[2])


def test_two_dumps_are_compared_into_a_table_and_the_first_deviation_is_advised_on() -> None:
    run("single_card", "./npu_dump.pkl", "npu", "1.5")
    run("single_card", "./gpu_dump.pkl", "gpu")
    Path("result").mkdir()
    run("comparing", "npu_v2.3/rank0/npu_dump.pkl", "gpu_v2.3/rank0/gpu_dump.pkl", "result")
    tables = sorted(path.name for path in Path("result").glob("compare_result_*"))
    assert [re.sub(r"\d{14}", "TIME", name) for name in tables] == [
        "compare_result_TIME.csv",
        "compare_result_TIME.xlsx",
    ]
    (advice,) = Path("result").glob("advisor_*.txt")
    assert re.fullmatch(r"advisor_\d{14}\.txt", advice.name)
    assert "Suspect Nodes" in advice.read_text()
    assert "Tensor___mul___0_forward" in advice.read_text()


def test_folders_of_ranks_are_compared_rank_by_rank() -> None:
    for tag in ("npu", "gpu"):
        run("modes", f"./{tag}", "api_stack")
    Path("result").mkdir()
    run("comparing_ranks", f"npu/{STEP0.parent}", f"gpu/{STEP0.parent}", "result")
    assert {re.sub(r"_\d{14}\..*", "", path.name) for path in Path("result").glob("compare_result*")} == {
        "compare_result_rank0-rank0"
    }


def test_parse_prints_statistics_and_the_stack() -> None:
    run("modes", "./dump", "api_stack")
    told = run("parsing", str("dump" / STEP0 / "api_stack_dump.pkl"), "Functional.linear.1.forward")
    assert "Functional.linear.1.forward.output" in told
    assert "net.py" in told
    assert "Functional.linear.0" not in told
