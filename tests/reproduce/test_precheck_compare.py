"""The second stage: device A's pre-check against device B's, by msprobe's ratios and by our units."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from capture.launching import IMPORTED, MSPROBE
from warm_python import warm_python

from dumpscope.cli.app import status
from dumpscope.pipeline.operators.precheck import DETAILS, Workers, precheck
from dumpscope.pipeline.operators.precheck_compare import DETAIL_FILE, RESULT_FILE, compare_prechecks
from dumpscope.readers import discover
from dumpscope.reproduce.standards import COMPARED_DETAILS, COMPARED_RESULTS, compared
from dumpscope.reproduce.tables import DETAIL_COLUMNS, METRICS

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("warm")

PEER = os.environ.get("DUMPSCOPE_PEER_PYTHON", "")

OFF = """
import torch
gelu, norm, linear = torch.nn.functional.gelu, torch.nn.functional.layer_norm, torch.nn.functional.linear
torch.nn.functional.gelu = lambda x, **k: gelu(x, **k) * (1 + {gelu} * (x.dtype is not torch.float64))
torch.nn.functional.layer_norm = lambda x, *a, **k: norm(x, *a, **k) + {norm} * (x.dtype is not torch.float64)
torch.nn.functional.linear = lambda x, *a, **k: linear(x, *a, **k) * (1 + {linear} * (x.dtype is not torch.float64))
"""
BLANK = ("nonfinite", "rel_share", "abs_share", "unequal", "ulp_max", "ulp_mean", "ulp_share")
"""What msprobe leaves empty for a floating result."""


@pytest.fixture(scope="module")
def devices(dumps: Path, tmp_path_factory: pytest.TempPathFactory, warm: None) -> dict[str, Path]:
    """Pre-checks of one dump on devices that err by different amounts: exact, a (gelu 2 %), b (gelu, linear 1e-4), c."""
    folder = tmp_path_factory.mktemp("devices")
    refs = [ref for ref in discover(str(dumps / "golden")).ranks if ref.step == 0]
    found = {}
    for name, off in (
        ("exact", {"gelu": 0, "norm": 0, "linear": 0}),
        ("a", {"gelu": 2e-2, "norm": 3e-6, "linear": 0}),
        ("b", {"gelu": 1.5e-2, "norm": 0, "linear": 2e-4}),
    ):
        prelude = folder / f"{name}.py"
        prelude.write_text(OFF.format(**off))
        workers = Workers(python=sys.executable, jobs=2, prelude=str(prelude))
        precheck(refs, folder / name, workers, resume=False)
        found[name] = folder / name
    return found


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def as_msprobe(folder: Path, target: Path) -> Path:
    """Our details table with msprobe's columns only and the cells empty that it leaves empty."""
    titles = {key: title for title, key in METRICS.items()}
    target.mkdir()
    path = target / "accuracy_checking_details_20260101000000.csv"
    with open(path, "w", encoding="utf-8-sig", newline="") as stream:
        table = csv.DictWriter(stream, DETAIL_COLUMNS)
        table.writeheader()
        for row in read(folder / DETAILS):
            kept = {column: row[column] or " " for column in DETAIL_COLUMNS}
            floating = row["DEVICE Dtype"].startswith("torch.float")
            table.writerow({**kept, **{titles[key]: " " for key in BLANK if floating}})
    return path


@pytest.mark.skipif(not PEER, reason="DUMPSCOPE_PEER_PYTHON names a Python with msprobe")
@pytest.mark.parametrize(("mine", "other"), [("a", "exact"), ("b", "exact"), ("a", "b"), ("b", "a"), ("exact", "a")])
def test_verdicts_and_ratios_are_those_of_msprobe(
    devices: dict[str, Path], tmp_path: Path, mine: str, other: str
) -> None:
    given = [as_msprobe(devices[name], tmp_path / side) for name, side in ((mine, "npu"), (other, "gpu"))]
    command = [warm_python(IMPORTED["msprobe"], PEER), "-c", MSPROBE, "api_precision_compare"]
    out = tmp_path / "peer"
    whole = [*command, "-npu", given[0], "-gpu", given[1], "-o", out]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    theirs = {row["API Name"]: row for path in out.glob("*result*.csv") for row in read(path)}
    details = {row["API Name"]: row for path in out.glob("*details*.csv") for row in read(path)}
    calls, rows = compare_prechecks(given[0], given[1], None)
    assert [row["API Name"] for row in calls] == list(theirs)
    for row in calls:
        for column in ("Forward Test Success", "Backward Test Success"):
            assert row[column] == theirs[row["API Name"]][column].strip(), (row["API Name"], column)
    words = set()
    assert [row["API Name"] for row in rows] == list(details)
    for row in rows:
        their = details[row["API Name"]]
        assert tuple(their) == COMPARED_DETAILS
        for column in COMPARED_DETAILS[1:-1]:
            ours, cell = str(row[column]).strip(), their[column].strip()
            if "比值" in column and ours:
                assert float(ours) == pytest.approx(float(cell), abs=1e-9), (row["API Name"], column)
            else:
                assert ours == cell, (row["API Name"], column)
        words.add(row["比对结果"])
    assert words == ({"pass"} if mine == "exact" else {"pass", "error"})


def test_device_a_is_worse_where_it_is_and_not_where_both_err_alike(
    devices: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    command = ["precheck-compare", str(devices["a"]), str(devices["b"]), "-o", str(tmp_path), "--json"]
    assert status(command) == 1
    told = json.loads(capsys.readouterr().out)
    rows = {row["API Name"]: row for row in told["results"]}
    assert rows["Functional.gelu.0"]["Verdict"] == "pass"
    assert rows["Functional.gelu.0"]["Reason"].startswith("the other device is as far off")
    assert rows["Functional.linear.0"]["Verdict"] == "pass"
    assert {name.split(".")[1] for name, row in rows.items() if row["Forward Test Success"] == "error"} == {
        "layer_norm"
    }
    assert tuple(read(tmp_path / RESULT_FILE)[0])[: len(COMPARED_RESULTS)] == COMPARED_RESULTS
    assert tuple(read(tmp_path / DETAIL_FILE)[0])[: len(COMPARED_DETAILS)] == COMPARED_DETAILS
    assert status(["precheck-compare", str(devices["exact"]), str(devices["b"])]) == 0


def test_an_error_below_the_floor_of_the_ratio_is_an_error_by_units() -> None:
    titles = {key: title for title, key in METRICS.items()}
    empty = dict.fromkeys(titles.values(), "")
    small = {titles["rmse"]: "1e-5", titles["max_rel"]: "1e-5", titles["mean_rel"]: "1e-5"}
    row = {
        "API Name": "Functional.silu.0.forward.output.0", "DEVICE Dtype": "torch.float32", "Shape": "(4,)", **empty,
        "Message": "", "Step": "0", "Rank": "0",
    }  # fmt: skip
    made = compared(
        {**row, **small, "Verdict": "error", "Units": "2000", "Reason": "off"}, {**row, "Verdict": "pass", "Units": "1"}
    )
    assert (made["比对结果"], made["Verdict"]) == ("pass", "error")


def test_rows_of_one_side_are_listed_and_not_judged(devices: dict[str, Path], tmp_path: Path) -> None:
    lines = (devices["exact"] / DETAILS).read_text(encoding="utf-8-sig").splitlines(keepends=True)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("".join(lines[:4]), encoding="utf-8-sig")
    second.write_text("".join([lines[0], *lines[2:6]]), encoding="utf-8-sig")
    _, details = compare_prechecks(first, second, None)
    skipped = [row["Message"] for row in details if row["比对结果"] == "SKIP"]
    assert skipped == ["the other table has no such row", *["only the other table has this row"] * 2]


def test_a_call_that_dies_on_device_a_is_an_error_though_it_left_no_result(dumps: Path, tmp_path: Path) -> None:
    deadly = tmp_path / "deadly.py"
    deadly.write_text("import os, torch\ntorch.nn.functional.relu = lambda *a, **k: os.abort()\n")
    refs = discover(str(dumps / "conv_L1")).ranks
    for name, prelude in (("a", str(deadly)), ("b", None)):
        precheck(refs, tmp_path / name, Workers(python=sys.executable, prelude=prelude), resume=False)
    calls, _ = compare_prechecks(tmp_path / "a", tmp_path / "b", None)
    died = [row for row in calls if row["Verdict"] == "crash"]
    assert died
    assert all(row["API Name"].startswith("Functional.relu") and "signal 6" in row["Message"] for row in died)
    assert {row["Forward Test Success"] for row in died} == {"error"}


@pytest.mark.parametrize("given", ["a,b\n1,2\n", ""])
def test_another_file_is_refused_with_the_columns_it_lacks(tmp_path: Path, capsys: Any, given: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(given)
    assert status(["precheck-compare", str(path), str(path)]) == 2
    assert "it lacks API Name" in capsys.readouterr().err
    assert status(["precheck-compare", str(tmp_path), str(tmp_path / "none.csv")]) == 2
