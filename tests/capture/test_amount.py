"""Less of a big run: without the optimizer's calls and the weights that are not trained, and with a limit for tensor files."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from warm_python import DUMPSCOPE, warm_python

from capture.conftest import forget


def _train(debugger: Any, steps: int = 1) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(steps):
        debugger.start(model)
        model(torch.randn(4, 64)).sum().mul(2.0).backward()
        optimizer.step()
        torch.ones(3).mul(2.0)
        debugger.stop()
        debugger.step()


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_without_the_optimizer_all_else_keeps_its_name(make: Any, read: Any, level: str) -> None:
    _train(make(level=level, optimizer=False), steps=2)
    without = read(1)
    assert not without.errors
    assert {name.split(".")[1] for name in without.data if not name.startswith("Module")} == {
        "linear",
        "relu",
        "sum",
        "mul",
    }
    assert "optimizer" not in without.construct
    numbers = [int(name.split(".")[2]) for name in without.data if name.startswith("Tensor.mul.") and "forward" in name]
    assert numbers[0] == 0
    assert len(numbers) == 2


def test_the_limit_ends_files_and_keeps_statistics(make: Any, read: Any, caplog: pytest.LogCaptureFixture) -> None:
    limit = 60_000
    _train(make(task="tensor", level="L1", max_gb=limit / (1 << 30)), steps=2)
    sizes = [
        sum(path.stat().st_size for path in read(step).folder.rglob("*.pt") if path.stat().st_nlink == 1)
        for step in (0, 1)
    ]
    assert 0 < sum(sizes) < limit + 20_000  # the file that passes the limit is whole
    assert read(1).run["counts"]["files_over_max_gb"] > 10
    assert read(1).data["Functional.linear.0.forward"]["output"][0]["Norm"] > 0
    assert "data_name" not in read(1).data["Functional.linear.0.forward"]["output"][0]
    assert sum("max_gb: " in line and "statistics only" in line for line in caplog.messages) == 2  # once a step


def test_the_size_is_told_before_the_first_step_with_tensors(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dumpscope")
    _train(make(task="tensor", level="L1"), steps=2)
    assert sum("the first step with tensors writes at least" in line for line in caplog.messages) == 1


def test_a_step_before_the_first_recorded_one_is_counted(
    make: Any, read: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "dumpscope")
    _train(make(task="tensor", level="mix", step=[2, 3], max_gb=1), steps=4)
    (line,) = [line for line in caplog.messages if "a step with tensors writes up to" in line]
    found = re.match(
        r"counted in step 1, .* up to (\S+) GiB in (\d+) files; 2 steps: (\S+) GiB\. Free: .* max_gb: 1, which", line
    )
    assert found is not None
    assert sorted(os.listdir(tmp_path / "dump")) == ["step2", "step3"]
    assert not [line for line in caplog.messages if "at least" in line or "took" in line]
    files = read(2).run["tensor_files"]
    written = sum(path.stat().st_size for path in read(2).folder.rglob("*.pt")) - 1500 * files["linked"]
    counted = float(found[1]) * (1 << 30)
    content = files["bytes"] - 1500 * files["written"]  # the heads of the files
    assert 0.95 * content < counted < 1.6 * content
    assert files["written"] <= int(found[2]) <= files["written"] + files["linked"]
    assert written > 0
    assert not read(2).errors


def test_what_the_first_step_took_is_told_after_it(make: Any, read: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dumpscope")
    _train(make(task="tensor", level="L1"), steps=2)
    (line,) = [line for line in caplog.messages if "the first step with tensors took" in line]
    told = float(line.split("took ")[1].split()[0]) * (1 << 30)
    assert told == pytest.approx(read(0).run["tensor_files"]["bytes"], rel=0.01)


def _compare(target: Path, golden: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [warm_python(DUMPSCOPE), "-m", "dumpscope", "compare", str(target), str(golden), "-o", str(out)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"}
    )


def test_a_dump_that_met_its_limit_is_whole_and_compares_with_a_full_one(make: Any, read: Any, tmp_path: Path) -> None:
    _train(make(task="tensor", level="L1", dump_path=str(tmp_path / "full")))
    forget()
    _train(make(task="tensor", level="L1", max_gb=60_000 / (1 << 30)))
    assert read().run["ended"] == "closed"
    assert not read().errors
    files = list((read().folder / "dump_tensor_data").iterdir())
    assert files
    for path in files:
        assert isinstance(torch.load(path, weights_only=True), torch.Tensor)
    named = set(re.findall(r'"data_name": "([^"]+)"', (read().folder / "dump.json").read_text()))
    assert named == {path.name for path in files}
    run = _compare(tmp_path / "dump", tmp_path / "full", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 unreadable" in run.stdout


class _Adapted(nn.Module):
    """A layer that is not trained, with a small one beside it that is."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(64, 64)
        self.down = nn.Linear(64, 2, bias=False)
        self.up = nn.Linear(2, 64, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        again: torch.Tensor = torch.matmul(x, self.base.weight.t())
        out: torch.Tensor = self.base(x) + self.up(self.down(x)) + again
        return out


def _adapt(debugger: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(_Adapted(), nn.ReLU())
    debugger.start(model)
    model(torch.randn(4, 64, requires_grad=True)).sum().backward()
    debugger.stop()
    debugger.step()


def _records(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Tensor records by item name."""
    found: dict[str, dict[str, Any]] = {}

    def gather(value: Any, name: str) -> None:
        if isinstance(value, dict) and "shape" in value:
            found[name] = value
        elif isinstance(value, (dict, list)):
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                gather(part, f"{name}.{key}")

    for node, body in data.items():
        gather(body, node)
    return found


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_frozen_weights_have_statistics_and_no_file(make: Any, read: Any, level: str, tmp_path: Path) -> None:
    _adapt(make(task="tensor", level=level, dump_path=str(tmp_path / "full"), risk_level="ALL"))
    forget()
    _adapt(make(task="tensor", level=level, frozen=False, risk_level="ALL"))
    (folder,) = (tmp_path / "full" / "step0").iterdir()
    full = _records(json.loads((folder / "dump.json").read_text())["data"])
    light = _records(read().data)
    assert full.keys() == light.keys()
    without = {name for name, record in light.items() if "data_name" not in record}
    assert all("data_name" in record for record in full.values())
    assert {tuple(light[name]["shape"]) for name in without} == {
        (64, 64),
        (64,),
    }  # the weight, its bias and views of it
    assert all(not light[name]["requires_grad"] for name in without)
    assert all(light[name]["Norm"] == full[name]["Norm"] for name in light)
    assert any(".down." in name or "linear.1." in name for name in light.keys() - without)
    assert read().run["frozen"] == {"records": len(without), "bytes": 4 * (64 * 64 * 1 + 64)}
    assert read().run["settings"]["frozen"] is False
    assert not read().errors


def test_a_comparison_does_not_miss_the_files_of_frozen_weights(make: Any, tmp_path: Path) -> None:
    _adapt(make(task="tensor", dump_path=str(tmp_path / "full")))
    forget()
    _adapt(make(task="tensor", frozen=False))
    for target, golden in (("dump", "full"), ("full", "dump")):
        run = _compare(tmp_path / target, tmp_path / golden, tmp_path / f"out-{target}")
        assert run.returncode == 0, run.stdout + run.stderr
        assert "No divergence" in run.stdout
        assert "0 not comparable, 0 only in target, 0 only in golden, 0 unreadable" in run.stdout
