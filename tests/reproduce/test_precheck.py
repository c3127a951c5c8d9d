"""Every API of a dump alone: nothing crashes the run, each is judged or skipped with a reason, wrong ones are found."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from warm_python import COLD

from dumpscope.cli.app import status
from dumpscope.pipeline.operators.precheck import DETAILS, RESULTS, STATE, Workers, precheck
from dumpscope.readers import discover
from dumpscope.reproduce.tables import DETAIL_COLUMNS, RESULT_COLUMNS

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("warm")

PEER: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "peer_verdicts.json").read_text())
"""What msprobe 26.2.0 says of the dumps when its device is the CPU: API -> forward, backward."""


def workers() -> Workers:
    return Workers(python=sys.executable, jobs=2)


def table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def by_name(output: Path, step: int = 0) -> dict[str, dict[str, str]]:
    return {row["API name"]: row for row in table(output / RESULTS) if row["Step"] == str(step)}


def peer_differs(name: str, node: str, side: int) -> bool:
    """Where ours must not be what msprobe says."""
    api = node.split(".")[1]
    if name == "types_L1" and node in (
        "Torch.add.0",
        "Torch.add.1",
        "Torch.mul.0",
        "Functional.pad.0",
        "Tensor.masked_fill.0",
    ):
        return True  # equal NaN and infinities are an error there
    if api == "masked_fill" and side == 0:
        return True  # the same: a mask of -inf
    if node == "Torch.add.3":
        return True  # empty: skipped here
    if side == 1 and (name, node) in (
        (
            "conv_L1",
            "Functional.conv2d.0",
        ),  # the gradient of a bias before a batch norm is 0: noise, and its reference is float32
        ("target_bf16", "Functional.layer_norm.4"),  # one of 8 sums of bf16 changes with the number of threads
    ):
        return True
    return (name, node) in (("types_L1", "Torch.add.4"), ("conv_L1", "Functional.max_pool2d.0"))  # complex; two results


@pytest.mark.parametrize("name", sorted(PEER))
def test_verdicts_by_msprobes_thresholds_are_those_of_msprobe(name: str, dumps: Path, tmp_path: Path) -> None:
    refs = [ref for ref in discover(str(dumps / name)).ranks if ref.step == 0]
    precheck(refs, tmp_path / "out", workers(), resume=False)
    ours = by_name(tmp_path / "out")
    assert list(ours) == list(PEER[name])
    for node, theirs in PEER[name].items():
        for side, column in enumerate(("Forward Test Success", "Backward Test Success")):
            if not peer_differs(name, node, side):
                assert ours[node][column] == theirs[side], (node, column)
            elif theirs[side] == "error":
                assert ours[node][column] == "pass", (node, column)
    assert all(row["Verdict"] in ("pass", "SKIP") for row in ours.values())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("target_fault", {"Functional.softmax.1"}),
        ("target_fault_bwd", {"Functional.layer_norm.3"}),
        ("target_nan", {"Functional.gelu.0"}),
        ("target_nan_mask", set()),  # the mask is wrong, not a kernel
        ("target_fault_weight", set()),  # a weight is
        ("target_fault_gelu_arg", set()),  # an argument is
        ("target_extra_op", set()),  # a call too many
        ("dist2_tensor_fault", set()),
    ],
)
def test_recorded_results_that_are_wrong_are_those_of_kernels_made_wrong(
    name: str, wrong: set[str], dumps: Path, tmp_path: Path
) -> None:
    refs = [ref for ref in discover(str(dumps / name)).ranks if (ref.step, ref.rank or 0) == (0, 0)]
    precheck(refs, tmp_path, workers(), resume=False)
    rows = by_name(tmp_path)
    assert {call for call, row in rows.items() if row["Recorded Verdict"] == "error"} == wrong
    assert {row["Verdict"] for row in rows.values()} <= {"pass", "SKIP"}
    assert all(row["Message"] for row in rows.values() if row["Verdict"] == "SKIP")


def test_the_tables_begin_with_msprobes_columns_and_name_every_result(dumps: Path, tmp_path: Path) -> None:
    assert status(["precheck", str(dumps / "conv_mix_stat"), "-o", str(tmp_path / "out"), "--jobs", "1"]) == 0
    rows, details = table(tmp_path / "out" / RESULTS), table(tmp_path / "out" / DETAILS)
    assert tuple(rows[0])[: len(RESULT_COLUMNS)] == RESULT_COLUMNS
    assert tuple(details[0])[: len(DETAIL_COLUMNS)] == DETAIL_COLUMNS
    assert {row["Inputs"] for row in rows} == {"made up"}
    names = [row["API Name"] for row in details]
    assert "Functional.conv2d.0.forward.output.0" in names
    assert "Functional.conv2d.0.backward.output.1" in names
    assert len(names) == len(set(names))


def test_a_wrong_kernel_is_found_and_healthy_ones_pass(dumps: Path, tmp_path: Path, capsys: Any) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import torch\n"
        "right = torch.nn.functional.gelu\n"
        "torch.nn.functional.gelu = lambda x, **k: right(x, **k) * (1.02 if x.dtype is torch.float32 else 1)\n"
    )
    out = tmp_path / "out"
    command = ["precheck", str(dumps / "golden"), "--step", "0", "-o", str(out), "--prelude", str(wrong), "--json"]
    assert status([*command, "--save-error-data"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["counts"] == {"pass": 63, "error": 2}
    assert {name for name, row in by_name(out).items() if row["Verdict"] == "error"} == {
        "Functional.gelu.0",
        "Functional.gelu.1",
    }
    kept = {path.name for path in (out / "ut_error_data").iterdir()}
    assert {
        "Functional.gelu.0.forward.input.0.pt", "Functional.gelu.0.forward.output.bench.0.pt",
        "Functional.gelu.0.forward.output.device.0.pt", "Functional.gelu.0.backward.output.device.0.pt",
    } <= kept  # fmt: skip


def test_a_call_that_kills_its_process_is_a_row_and_the_others_are_judged(dumps: Path, tmp_path: Path) -> None:
    deadly = tmp_path / "deadly.py"
    deadly.write_text("import os, torch\ntorch.nn.functional.gelu = lambda *a, **k: os.abort()\n")
    refs = [ref for ref in discover(str(dumps / "golden")).ranks if ref.step == 0]
    precheck(refs, tmp_path / "out", Workers(python=sys.executable, prelude=str(deadly)), resume=False)
    rows = by_name(tmp_path / "out")
    crashed = {name: row["Reason"] for name, row in rows.items() if row["Verdict"] == "crash"}
    assert set(crashed) == {"Functional.gelu.0", "Functional.gelu.1"}
    assert all("signal 6" in reason for reason in crashed.values())
    assert sum(row["Verdict"] == "pass" for row in rows.values()) == len(rows) - 2


def test_a_call_that_hangs_is_a_row(dumps: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time, torch\ntorch.nn.functional.max_pool2d = lambda *a, **k: time.sleep(600)\n")
    impatient = Workers(python=sys.executable, prelude=str(slow), call_seconds=20.0, only=("max_pool2d",))
    precheck(discover(str(dumps / "conv_L1")).ranks, tmp_path / "out", impatient, resume=False)
    rows = by_name(tmp_path / "out")
    assert rows["Functional.max_pool2d.0"]["Reason"] == "no answer after 20 s"
    assert rows["Functional.relu.0"]["Reason"] == "not on the white list"


def test_a_run_that_was_cut_off_goes_on_where_it_was(dumps: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    command = ["precheck", str(dumps / "conv_L1"), "-o", str(out), "--jobs", "1"]
    assert status(command) == 0
    whole = (out / RESULTS).read_text(), (out / DETAILS).read_text()
    lines = (out / STATE).read_text().splitlines(keepends=True)
    (out / STATE).write_text("".join(lines[:6]) + lines[6][:40])
    capsys.readouterr()
    assert status(command) == 2
    assert "continue it with --resume" in capsys.readouterr().err
    assert status([*command, "--resume"]) == 0
    assert ((out / RESULTS).read_text(), (out / DETAILS).read_text()) == whole
    assert len((out / STATE).read_text().splitlines()) == len(lines)
    assert status([*command, "--resume", "--device", "cuda"]) == 2


def test_communication_is_skipped_with_the_reason(dumps: Path, tmp_path: Path) -> None:
    assert status(["precheck", str(dumps / "dist2_tensor_fault"), "-o", str(tmp_path / "out"), "--rank", "1"]) == 0
    rows = by_name(tmp_path / "out")
    skipped = {name.rpartition(".")[0]: row["Message"] for name, row in rows.items() if row["Verdict"] == "SKIP"}
    assert "Distributed.all_reduce" in skipped
    assert all("needs the other ranks" in why for why in skipped.values())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cfg_L0_stat", "it holds only modules (level L0)"),
        ("conv_L0", "it holds only modules (level L0)"),
        ("cfg_structure", "it holds no values"),
        ("cfg_data_mode_bwd", "it holds only backward calls"),
        ("debug_save_stat", "it holds saved variables"),
    ],
)
def test_a_dump_without_calls_says_why_and_what_to_do(
    name: str, said: str, dumps: Path, tmp_path: Path, capsys: Any
) -> None:
    assert status(["precheck", str(dumps / name), "-o", str(tmp_path)]) == 3
    told = capsys.readouterr().out
    assert told.startswith(f"nothing to run: {said}")
    assert "capture with" in told


def test_a_config_of_msprobe_says_what_is_run_and_where_wrong_calls_are_kept(
    dumps: Path, tmp_path: Path, capsys: Any
) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import torch\n"
        "right = torch.nn.functional.relu\n"
        "torch.nn.functional.relu = lambda x, *a, **k: right(x, *a, **k) + (x.dtype is torch.float32)\n"
    )
    kept = tmp_path / "kept"
    kept.mkdir()
    section = {"white_list": ["relu", "conv2d"], "black_list": ["conv2d"], "error_data_path": str(kept)}
    config = tmp_path / "config.json"
    command = ["precheck", str(dumps / "conv_L1"), "--prelude", str(wrong), "--config", str(config)]
    for number, document in enumerate(({"task": "acc_check", "acc_check": section}, {"run_ut": section})):
        config.write_text(json.dumps(document))
        assert status([*command, "-o", str(tmp_path / f"out{number}")]) == 1
        rows = by_name(tmp_path / f"out{number}")
        run = {name for name, row in rows.items() if row["Verdict"] != "SKIP"}
        assert run
        assert {name.split(".")[1] for name in run} == {"relu"}
        assert rows["Functional.conv2d.0"]["Message"] == "on the black list"
    assert any(path.name.startswith("Functional.relu.0.forward.output.device") for path in kept.rglob("*.pt"))
    capsys.readouterr()
    for changed, said in (
        ({"white_list": ["con2d"]}, "no API is called 'con2d'"),
        ({"white_list": "relu"}, "acc_check.white_list is no list of texts"),
        ({"error_data_path": str(tmp_path / "none")}, "is no existing folder"),
    ):
        config.write_text(json.dumps({"acc_check": {**section, **changed}}))
        assert status([*command, "-o", str(tmp_path / "refused")]) == 2
        assert said in capsys.readouterr().err
    config.write_text(json.dumps({"task": "tensor"}))
    assert status([*command, "-o", str(tmp_path / "refused")]) == 2
    assert "no section acc_check" in capsys.readouterr().err


def test_a_python_without_torch_is_refused_in_one_line(dumps: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{COLD}" -S -I "$@"\n')
    python.chmod(0o755)
    command = [sys.executable, "-m", "dumpscope", "precheck", str(dumps / "conv_L1"), "-o", str(tmp_path / "out")]
    done = subprocess.run([*command, "--python", python], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "--python names a Python that has torch" in done.stderr


DRAWN = """
import torch
from dumpscope_capture.ptdbg import *
configure(layout="msprobe")
set_dump_path("./out")
register_hook(None, acc_cmp_dump)
set_dump_switch("ON")
x = torch.randn(40, 50, dtype=torch.bfloat16)
torch.bernoulli(torch.full((40, 50), 0.3))
x.type_as(torch.ones(1, dtype=torch.float16))
x @ x.t()
set_dump_switch("OFF")
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, warm: None) -> dict[str, dict[str, str]]:
    """Details of calls that draw numbers, choose a type or compute in 16 bits, by the call."""
    folder = tmp_path_factory.mktemp("drawn")
    subprocess.run([sys.executable, "-c", DRAWN], cwd=folder, check=True, capture_output=True, timeout=120)
    precheck(discover(str(folder / "out")).ranks, folder / "tables", workers(), resume=False)
    return {row["API Name"].partition(".0.forward")[0]: row for row in table(folder / "tables" / DETAILS)}


def test_faq_m_precheck_2_a_conversion_is_judged_by_the_type_it_was_told(alone: dict[str, dict[str, str]]) -> None:
    row = alone["Tensor.type_as"]
    assert (row["Bench Dtype"], row["DEVICE Dtype"], row["Verdict"]) == ("torch.float16", "torch.float16", "pass")


def test_faq_m_precheck_4_what_is_drawn_is_judged_by_its_share_of_zeros_and_says_so(
    alone: dict[str, dict[str, str]],
) -> None:
    row = alone["Torch.bernoulli"]
    assert row["Verdict"] == "pass"
    assert row["Reason"].startswith("random: ")


def test_faq_m_precheck_5_each_row_says_the_type_of_its_reference(alone: dict[str, dict[str, str]]) -> None:
    row = alone["Tensor.__matmul__"]
    assert (row["Bench Dtype"], row["DEVICE Dtype"]) == ("torch.float32", "torch.bfloat16")


@pytest.mark.parametrize("prelude", [True, False])
def test_a_gelu_of_another_formula_is_doubtful_and_never_right(tmp_path: Path, prelude: bool, capsys: Any) -> None:
    """tanh in place of erf is off by some 200 times what rounding does: a warning, here and in the dump or in the dump alone."""
    other = (
        "import torch\nright = torch.nn.functional.gelu\n"
        "torch.nn.functional.gelu = lambda x, **k: right(x, **(k if x.dtype is torch.float64 else {'approximate': 'tanh'}))\n"
    )
    (tmp_path / "other.py").write_text(other)
    recorded = tmp_path / "recorded.py"
    recorded.write_text(
        "import torch\nfrom dumpscope_capture import PrecisionDebugger\n"
        f"d = PrecisionDebugger(dump_path={str(tmp_path / 'dump')!r}, task='tensor', level='L1')\n"
        "x = torch.linspace(-0.5, 0.5, 600)\nd.start()\nk = torch.nn.functional.gelu(x)\nd.stop()\nd.step()\n"
    )
    source = recorded.read_text().replace("gelu(x)", "gelu(x, approximate='tanh')")
    recorded.write_text(source)
    subprocess.run([sys.executable, str(recorded)], check=True, timeout=300, capture_output=True)
    (dump,) = (tmp_path / "dump").rglob("dump.json")
    held = json.loads(dump.read_text())
    held["data"]["Functional.gelu.0.forward"]["input_kwargs"] = {}  # the kernel used tanh though nobody asked for it
    dump.write_text(json.dumps(held))
    status(["reproduce", str(tmp_path / "dump"), "Functional.gelu.0", "-o", str(tmp_path / "one.py"), "--copy"])
    capsys.readouterr()
    command = [
        sys.executable,
        str(tmp_path / "one.py"),
        *(["--prelude", str(tmp_path / "other.py")] if prelude else []),
    ]
    done = subprocess.run(command, timeout=300, capture_output=True, text=True, check=False)
    assert "Right here, and right in the dump" not in done.stdout
    assert ("Doubtful here and in the dump" if prelude else "Right here, doubtful in the dump") in done.stdout
    assert "tanh in place of erf" in done.stdout


def test_a_device_that_is_not_there_is_told_once_and_leaves_no_folder_in_the_way(
    dumps: Path, tmp_path: Path, capsys: Any
) -> None:
    command = ["precheck", str(dumps / "conv_L1"), "-o", str(tmp_path / "out"), "--jobs", "1"]
    assert status([*command, "--device", "npu"]) == 2
    told = capsys.readouterr()
    assert "no call can run on npu" in told.err
    assert "torch_npu" in told.err
    assert told.out == ""
    assert status([*command, "--white-list", "relu"]) == 0
