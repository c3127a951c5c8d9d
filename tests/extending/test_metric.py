"""A metric of another package is a number like the others: in the answer, in tables, in REST."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index.databases import KINDS, empty_url

from dumpscope import extensions
from dumpscope.errors import DumpscopeError
from dumpscope.metrics import METRICS, Metric, all_metrics, table
from dumpscope.readers.tensors.tensor_file import load

REST = """
import json, sys
from pathlib import Path
from fastapi.testclient import TestClient
from api.conftest import BASE, compare
from dumpscope.api.app import create_app
from dumpscope.settings import Settings

folder, dumps, url = sys.argv[1:]
settings = Settings(data_dir=folder, roots=[dumps], executor="threads:1", database_url=url)
with TestClient(create_app(settings), base_url=BASE) as client:
    where = f"/api/comparisons/{compare(client, Path(dumps, 'target_fault'), Path(dumps, 'golden'))}"
    listed = client.get(f"{where}/pairs", params={"sort": "-score", "limit": 200}).json()["items"]
    one = next(pair for pair in listed if "psnr" in pair["metrics"])
    print(json.dumps({
        "metrics": client.get("/api/metrics").json()["items"],
        "listed": listed,
        "one": client.get(f"{where}/pairs/{one['id']}").json(),
        "first": client.get(f"{where}/summary").json()["first_no"]["metrics"],
        "csv": client.get(f"{where}/export.csv").text,
    }))
"""


def psnr(target: np.ndarray[Any, Any], golden: np.ndarray[Any, Any]) -> float:
    """By the definition, from the values themselves."""
    mean = float(np.mean((target.astype(np.float64) - golden) ** 2))
    return math.inf if mean == 0 else 10 * math.log10(float(np.abs(golden).max()) ** 2 / mean)


def run(environment: dict[str, str], *arguments: str | Path) -> str:
    ran = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def checked(numbers: dict[str, Any], dumps: Path) -> float:
    """The PSNR that some tensor pair of step 0 shows, once it is that of the two files. numbers: item name -> metrics"""
    for name, metrics in numbers.items():
        target, golden = (
            load(next((dumps / side).glob(f"step0/*/dump_tensor_data/{name}.pt"))).array
            for side in ("target_fault", "golden")
        )
        if target.size > 1 and isinstance(metrics.get("psnr"), float):
            assert metrics["psnr"] == pytest.approx(psnr(target, golden), rel=1e-6)
            return float(metrics["psnr"])
    raise AssertionError("no pair shows the metric")


def test_it_is_in_the_answer_and_in_the_table(extended: dict[str, str], dumps: Path, tmp_path: Path) -> None:
    sides = (dumps / "target_fault", dumps / "golden")
    command = ("-m", "dumpscope", "compare", *sides, "--step", "0", "--json", "--pairs", "-o", tmp_path)
    answer = json.loads(run(extended, *command, "--format", "csv"))
    assert isinstance(answer["first_no"]["metrics"]["psnr"], float)
    numbers = {pair["target"]: pair["metrics"] for pair in answer["pairs"] if "cosine" in pair["metrics"]}
    found = checked(numbers, dumps)
    (file,) = tmp_path.glob("*.csv")
    with file.open(newline="") as stream:
        column = [row["PSNR"] for row in csv.DictReader(stream)]
    assert repr(found) in column
    assert "inf" in column  # equal tensors
    assert "unsupported" in column  # what is no tensor


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_in_rest_by_label_and_unit(extended: dict[str, str], dumps: Path, tmp_path: Path, kind: str) -> None:
    tests = str(Path(__file__).parents[1])
    environment = {**extended, "PYTHONPATH": os.pathsep.join([extended["PYTHONPATH"], tests])}
    answer = json.loads(run(environment, "-c", REST, tmp_path, dumps, empty_url(kind, tmp_path)))
    assert [metric["name"] for metric in answer["metrics"]] == [*(metric.name for metric in METRICS), "psnr"]
    last = answer["metrics"][-1]
    assert (last["label"], last["unit"], last["higher_is_worse"]) == ("PSNR", "dB", False)
    assert isinstance(answer["first"]["psnr"], float)
    listed = {pair["target"]: pair["metrics"] for pair in answer["listed"] if "cosine" in pair["metrics"]}
    found = checked(listed, dumps)
    assert answer["one"]["metrics"]["psnr"] in [metrics.get("psnr") for metrics in listed.values()]
    assert repr(found) in answer["csv"]


def loaded(monkeypatch: pytest.MonkeyPatch, *metrics: Any) -> tuple[Metric, ...]:
    """What all_metrics gives where another package brings these."""
    monkeypatch.setattr(extensions, "load", lambda group: metrics)
    return all_metrics.__wrapped__()


def derived(name: str, derive: Any = lambda measured: measured.metric("cosine")) -> Metric:
    return Metric(name=name, label=name, formula="", higher_is_worse=True, derive=derive)


def test_a_metric_that_cannot_be_used_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [metric.name for metric in loaded(monkeypatch, derived("mine"))][-1] == "mine"
    for name in ("cosine", "elements", "score", "max_diff"):
        with pytest.raises(DumpscopeError, match=f"two numbers are called '{name}'"):
            loaded(monkeypatch, derived(name))
    with pytest.raises(DumpscopeError, match="two numbers are called 'mine'"):
        loaded(monkeypatch, derived("mine"), derived("mine"))
    with pytest.raises(DumpscopeError, match="must be a Metric"):
        loaded(monkeypatch, "psnr")
    with pytest.raises(DumpscopeError, match="must have `derive`"):
        loaded(monkeypatch, dataclasses.replace(METRICS[0], name="mine"))


@pytest.mark.parametrize(
    ("derive", "says"),
    [
        (lambda measured: 1 / 0, "cannot be derived"),
        (lambda measured: np.zeros(3), r"gives the shape \(3,\) for 5 pairs"),
    ],
)
def test_a_metric_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, derive: Any, says: str) -> None:
    monkeypatch.setattr(table, "all_metrics", lambda: (derived("mine", derive),))
    with pytest.raises(DumpscopeError, match=f"the metric 'mine' {says}"):
        table.derive_metrics(None, range(5))  # type: ignore[arg-type]
