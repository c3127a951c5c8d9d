"""`dumpscope monitor` on trainings that ran here: a planted fault is named with its step and module."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from monitored_training import FAULT, train  # noqa: E402

from dumpscope.cli.app import status  # noqa: E402
from dumpscope_capture.monitor import Monitor  # noqa: E402


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A golden run, one with a fault, and one that computes with other roundings."""
    folder = tmp_path_factory.mktemp("runs")
    train(folder / "golden")
    train(folder / "same")
    train(folder / "faulty", factor=1.05)
    train(folder / "rounded", scale=1 + 1e-6)
    train(folder / "both", scale=1 + 1e-6, factor=1.05)
    return folder


def test_a_gradient_that_is_5_percent_too_large_is_named_with_step_and_module(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["monitor", str(runs / "faulty"), str(runs / "golden"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (parts,) = found["divergences"]
    assert (parts["step"], parts["module"], parts["quiet"], parts["others"]) == (FAULT, "2.0", True, 0)
    assert (parts["first"]["name"], parts["first"]["metric"]) == ("2.0.weight", "grad_reduced")
    assert parts["first"]["distance"] == pytest.approx(0.05 / 1.05, rel=1e-4)
    assert f"at step {FAULT}: the gradient that the optimizer gets of 2.0.weight first" in found["summary"]


def test_the_fault_is_found_behind_the_noise_of_other_roundings(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["monitor", str(runs / "both"), str(runs / "golden"), "--json"]) == 1
    (parts,) = json.loads(capsys.readouterr().out)["divergences"]
    assert (parts["step"], parts["module"], parts["quiet"]) == (FAULT, "2.0", False)
    assert status(["monitor", str(runs / "rounded"), str(runs / "golden")]) == 0
    assert "no series of" in capsys.readouterr().out


def test_equal_runs_stay_together_and_a_healthy_run_has_nothing(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["monitor", str(runs / "same"), str(runs / "golden")]) == 0
    assert "is equal." in capsys.readouterr().out
    assert status(["monitor", str(runs / "golden")]) == 0
    assert "No series stands out." in capsys.readouterr().out


def test_a_spike_of_the_loss_is_an_anomaly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with Monitor(model, optimizer, tmp_path) as monitor:
        for step in range(64):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            reward = float("nan") if step == 50 else step % 3 - 1  # below zero factors say nothing
            monitor.step(loss=50.0 if step == 40 else 2.0, reward=reward, tokens=1e300)
    assert status(["monitor", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if line.startswith(("spike", "NaN"))] == [
        ["NaN", "or", "infinite", "50", "reward", "reward", "nan", "1", "0"],
        ["spike", "40", "loss", "loss", "50", "2", "0"],
    ]


def test_the_answer_is_told_in_chinese_and_as_a_table(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "findings.csv"
    assert status(["--lang", "zh", "monitor", str(runs / "faulty"), str(runs / "golden"), "--csv", str(table)]) == 1
    out = capsys.readouterr().out
    assert f"在 step {FAULT} 偏离" in out
    assert "2.0.weight 的优化器收到的梯度" in out
    (row,) = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    assert (row["finding"], row["step"], row["name"]) == ("divergence", str(FAULT), "2.0.weight")


def test_what_is_no_run_and_what_is_not_there_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["monitor", str(runs)]) == 2
    assert "name the folder that Monitor got" in capsys.readouterr().err
    assert status(["monitor", str(runs / "golden"), "--metric", "colour"]) == 2
    assert "there is exp_avg" in capsys.readouterr().err
    assert status(["monitor", str(runs / "golden"), "--rank", "7"]) == 2
    assert "there is no rank 7" in capsys.readouterr().err
