"""The search finds exactly the calls that are needed, in few runs, and goes on after it was cut off."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from warm_python import warm_python

from dumpscope.cli.app import status
from dumpscope.pipeline.operators.bisect import through_runner
from dumpscope.reproduce.bisection import budget, needed, patterns
from dumpscope_format.interventions import matches

PROGRAM = Path(__file__).parent / "wrong_program.py"


def found(count: int, truth: Collection[int]) -> tuple[list[int] | None, list[frozenset[int]]]:
    """What the search finds in a simulated program, and its runs, the first one as it is left out."""
    calls = {f"Functional.f{number % 3}.{number}": number for number in range(count)}
    runs: list[frozenset[int]] = []

    def repairs(chosen: Sequence[str]) -> bool:
        places = [calls[name] for name in chosen]
        assert places == sorted(places)
        runs.append(frozenset(places))
        return runs[-1].issuperset(truth)

    names = needed(list(calls), repairs)
    return None if names is None else [calls[name] for name in names], runs


@settings(deadline=None)
@given(st.integers(1, 3000), st.data())
def test_one_or_two_planted_calls_are_found_in_two_logarithms(count: int, data: st.DataObject) -> None:
    truth = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2))
    names, runs = found(count, truth)
    assert names == sorted(truth)
    assert len(runs) <= budget(count)
    assert frozenset(truth) in runs or len(truth) == count  # the answer itself was run
    assert len(set(runs)) == len(runs)  # and nothing twice


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 100_000))
def test_the_runs_promised_for_two_calls_are_at_most_three_more_than_any_search_needs(count: int) -> None:
    # the two ends of a last run never are two pairs: a pair takes two of the 2^runs ends
    least = math.ceil(math.log2(count * (count - 1)))
    promised = budget(count)
    assert promised <= math.ceil(2 * math.log2(count)) + 3
    assert promised <= least + 3 or count < 5


@settings(deadline=None)
@given(st.integers(3, 2000), st.data())
def test_one_call_takes_at_most_twice_the_logarithm(count: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, count - 1))
    names, runs = found(count, [place])
    assert names == [place]
    assert len(runs) <= 2 * math.log2(count)
    assert len(runs) <= math.ceil(math.log2(count)) + 2


def test_every_pair_of_a_program_of_152_calls_is_found() -> None:
    spent = []
    for pair in combinations(range(0, 152, 3), 2):
        names, runs = found(152, pair)
        assert names == list(pair)
        spent.append(len(runs))
    assert max(spent) <= 18
    assert sum(spent) / len(spent) < 16


@settings(deadline=None)
@given(st.integers(3, 400), st.data())
def test_more_calls_take_a_search_of_two_each(count: int, data: st.DataObject) -> None:
    truth = data.draw(st.sets(st.integers(0, count - 1), min_size=3, max_size=9))
    names, runs = found(count, truth)
    assert names == sorted(truth)
    assert len(runs) <= (len(truth) + 1) // 2 * budget(count)


def test_that_nothing_repairs_shows_before_a_second_call_is_looked_for() -> None:
    runs: list[int] = []
    calls = [f"Tensor.add.{number}" for number in range(1000)]
    assert needed(calls, lambda chosen: bool(runs.append(len(chosen)))) is None
    assert len(runs) <= 21
    assert runs[-1] == 1000


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
    done = subprocess.run([warm_python(), PROGRAM, *map(str, wrong)], capture_output=True, text=True, check=True)
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
    return [*command, *more, "--", warm_python(), str(PROGRAM), *map(str, wrong)]


def test_planted_calls_of_a_program_are_found_and_a_search_goes_on(tmp_path: Path, capfd: Any) -> None:
    pytest.importorskip("torch")
    assert status(search(tmp_path, 17)) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["needed"] == ["Functional.gelu.17"]
    assert told["calls"] >= 150
    assert len(told["runs"]) <= 2 * math.log2(told["calls"])
    for number in range(len(told["runs"])):
        assert "loss " in (tmp_path / "runs" / f"{number:03}" / "output.txt").read_text()
        assert json.loads((tmp_path / "runs" / f"{number:03}" / "report.json").read_text())["calls"]

    assert status(search(tmp_path, 17)) == 2
    assert "continue it with --resume" in capfd.readouterr().err
    state = json.loads((tmp_path / "bisect.json").read_text())
    del state["trials"][-2:]
    (tmp_path / "bisect.json").write_text(json.dumps(state))
    assert status(search(tmp_path, 17, more=["--resume"])) == 0
    again = json.loads(capfd.readouterr().out)
    assert again["needed"] == told["needed"]
    assert [one["seconds"] for one in again["runs"][:-2]] == [one["seconds"] for one in told["runs"][:-2]]
    assert status(search(tmp_path, 18, more=["--resume"])) == 2


def test_a_command_that_fails_at_once_names_its_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["bisect", "-o", str(tmp_path / "search"), "--", sys.executable, str(tmp_path / "missing.py")]) == 2
    assert f"status 2 and reported no calls ({tmp_path}/search/runs/000/output.txt holds" in capsys.readouterr().err
    assert "missing.py" in (tmp_path / "search" / "runs" / "000" / "output.txt").read_text()
