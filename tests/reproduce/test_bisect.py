"""The search finds exactly the calls that are needed, in few runs, and goes on after it was cut off."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpscope.cli.app import status
from dumpscope.pipeline.bisect import through_runner
from dumpscope.reproduce.bisection import needed, patterns
from dumpscope_format.interventions import matches

PROGRAM = Path(__file__).parent / "wrong_program.py"


@given(st.integers(1, 400), st.data())
def test_the_needed_calls_are_found_whatever_they_are_and_logarithmically(count: int, data: st.DataObject) -> None:
    calls = [f"Functional.f{number % 3}.{number}" for number in range(count)]
    truth = data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=4, unique=True))
    runs: list[Sequence[str]] = []

    def repairs(chosen: Sequence[str]) -> bool:
        runs.append(chosen)
        return set(truth) <= set(chosen)

    assert needed(calls, repairs) == sorted(truth, key=calls.index)
    assert len(runs) <= len(truth) * (math.ceil(math.log2(count)) + 2)


def test_a_program_that_nothing_repairs_has_no_answer() -> None:
    assert needed(["Functional.a.0", "Functional.a.1"], lambda chosen: False) is None
    assert needed([], lambda chosen: False) is None


@given(st.lists(st.integers(0, 60), min_size=1, unique=True), st.lists(st.integers(0, 60), unique=True))
def test_patterns_mean_exactly_the_chosen_calls(one: list[int], other: list[int]) -> None:
    chosen = {f"Functional.linear.{number}" for number in one} | {f"Tensor.__add__.{number}" for number in other}
    made = patterns(sorted(chosen), "cpu")
    every = [f"{label}.{number}" for label in ("Functional.linear", "Tensor.__add__") for number in range(62)]
    assert {name for name in every if any(matches(pattern, name) for pattern in made)} == chosen


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("python train.py -m x", "python -m dumpscope_capture.run train.py -m x"),
        ("bin/python3.11 -u -X dev -m pkg.train -l 1", "bin/python3.11 -u -X dev -m dumpscope_capture.run -m pkg.train -l 1"),
        ("torchrun --nproc 2 train.py", "torchrun --nproc 2 train.py"),
        ("python -m dumpscope_capture.run train.py", "python -m dumpscope_capture.run train.py"),
    ],
)  # fmt: skip
def test_a_python_command_goes_through_the_runner(command: str, run: str) -> None:
    assert through_runner(command.split()) == run.split()


def loss(*wrong: int) -> float:
    done = subprocess.run([sys.executable, PROGRAM, *map(str, wrong)], capture_output=True, text=True, check=True)
    found = re.search(r"loss (\S+)", done.stdout)
    assert found is not None
    return float(found[1])


def search(folder: Path, *wrong: int, more: Sequence[str] = ()) -> list[str]:
    command = [
        "bisect",
        "--metric",
        r"loss (\S+)",
        "--expect",
        str(loss()),
        "--as",
        "float64",
        "-o",
        str(folder),
        "--json",
    ]
    return [*command, *more, "--", sys.executable, str(PROGRAM), *map(str, wrong)]


def test_planted_calls_of_a_program_are_found_and_a_search_goes_on(tmp_path: Path, capfd: Any) -> None:
    pytest.importorskip("torch")
    assert status(search(tmp_path, 17)) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["needed"] == ["Functional.gelu.17"]
    assert told["calls"] >= 150
    assert len(told["runs"]) <= 2 * math.log2(told["calls"])

    assert status(search(tmp_path, 17)) == 2
    assert "--resume goes on with it" in capfd.readouterr().err
    state = json.loads((tmp_path / "bisect.json").read_text())
    del state["trials"][-2:]
    (tmp_path / "bisect.json").write_text(json.dumps(state))
    assert status(search(tmp_path, 17, more=["--resume"])) == 0
    again = json.loads(capfd.readouterr().out)
    assert again["needed"] == told["needed"]
    assert [one["seconds"] for one in again["runs"][:-2]] == [one["seconds"] for one in told["runs"][:-2]]
    assert status(search(tmp_path, 18, more=["--resume"])) == 2
