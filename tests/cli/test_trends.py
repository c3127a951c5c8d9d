"""`dumpscope trends` as a shell sees it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dumpscope.cli.app import status
from dumpscope.readers import discover, read_rank

Said = pytest.CaptureFixture[str]


def told(capsys: Said, *arguments: object) -> Any:
    assert status(["trends", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def printed(capsys: Said, *arguments: object) -> str:
    assert status(["trends", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_one_dump_shows_the_norm_of_each_call_and_step(dumps: Path, capsys: Said) -> None:
    name = "Functional.softmax.1.forward"
    (row,) = told(capsys, dumps / "golden", "--node", name)["rows"]
    assert (row["name"], row["rank"], row["first_bad"]) == (name, 0, None)
    for cell, ref in zip(row["cells"], discover(dumps / "golden").ranks, strict=True):
        dump = read_rank(ref)
        output = [
            item
            for item, node in enumerate(dump.items.node.tolist())
            if dump.nodes.names[node] == name and dump.items.role[item] == 3
        ]
        assert cell["value"] == max(dump.items.stats[output, 3].tolist())
    text = printed(capsys, dumps / "golden", "--kind", "api", "--find", "softmax")
    head, columns, *rows = text.splitlines()
    assert head == "norm of the outputs, by step"
    assert columns.split() == ["call", "first", "bad", "growth", "0", "1"]
    assert len(rows) == sum("softmax" in name for name in dump.nodes.names)


def test_the_first_step_that_is_not_finite_is_named(dumps: Path, capsys: Said) -> None:
    document = told(capsys, dumps / "target_nan", "--node", "Functional.gelu.0.forward", "--statistic", "max")
    (row,) = document["rows"]
    assert row["first_bad"] == {"step": 0, "rank": 0}
    assert row["cells"][0]["value"] == "inf"
    assert "step 0" in printed(capsys, dumps / "target_nan", "--kind", "api", "--find", "gelu.0.forward")


def test_two_dumps_show_the_worst_verdict_and_on_request_both_numbers(dumps: Path, capsys: Said) -> None:
    sides = dumps / "target_fault", dumps / "golden"
    (row,) = told(capsys, *sides, "--node", "Functional.softmax.1.forward", "--statistic", "norm")["rows"]
    assert row["first_bad"] == {"step": 0, "rank": 0}
    assert row["cells"][0]["verdict"] == "no"
    assert all(math.isfinite(cell[side]) for cell in row["cells"] for side in ("target", "golden"))
    text = printed(capsys, *sides, "--kind", "api", "--find", "softmax.1.forward")
    assert "✗" in text
    assert "✓" not in text.splitlines()[-1]


def test_ranks_have_rows_of_their_own_on_request(dumps: Path, capsys: Said) -> None:
    sides = dumps / "dist2_stat_fault", dumps / "dist2_stat_golden"
    shared = told(capsys, *sides)
    own = told(capsys, *sides, "--by-rank")
    assert {row["rank"] for row in shared["rows"]} == {None}
    assert {row["rank"] for row in own["rows"]} == {0, 1} == set(own["ranks"])
    one = told(capsys, *sides, "--by-rank", "--rank", 1)
    assert {row["rank"] for row in one["rows"]} == {1}


def test_rows_beyond_the_limit_are_counted(dumps: Path, capsys: Said) -> None:
    every = told(capsys, dumps / "golden", "--kind", "all")["rows"]
    text = printed(capsys, dumps / "golden", "--kind", "all", "--limit", 30)
    assert len(text.splitlines()) == 33
    assert f"and {len(every) - 30} more" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kind", "layer"], "--kind 'layer' is not one of module, api, all"),
        (["--statistic", "median"], "--statistic 'median' is not one of norm, max, min, mean"),
        (["--step", "7"], "there is no step 7 (there are 0, 1)"),
        (["--node", "Module.nobody"], "no step and rank has a call 'Module.nobody'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(dumps: Path, capsys: Said, arguments: list[str], says: str) -> None:
    assert status(["trends", str(dumps / "golden"), *arguments]) == 2
    assert says in capsys.readouterr().err


def test_inputs_are_of_one_dump(dumps: Path, capsys: Said) -> None:
    assert told(capsys, dumps / "golden", "--inputs")["part"] == "input"
    assert status(["trends", str(dumps / "golden"), str(dumps / "golden"), "--inputs"]) == 2
    assert "--inputs is about one dump" in capsys.readouterr().err


def test_an_empty_step_is_a_problem_and_an_empty_rank_is_status_3(dumps: Path, tmp_path: Path, capsys: Said) -> None:
    (ref, *_) = discover(dumps / "golden").ranks
    whole = tmp_path / "step0" / "rank0"
    whole.mkdir(parents=True)
    (whole / "dump.json").write_bytes(Path(ref.dump_json).read_bytes())
    (tmp_path / "step1").mkdir()
    assert "problem: missing at step1" in printed(capsys, tmp_path)
    (tmp_path / "step1" / "rank0").mkdir()
    (tmp_path / "step1" / "rank0" / "dump.json").write_text("")
    (whole / "dump.json").unlink()
    assert status(["trends", str(tmp_path)]) == 3
    assert "problem: " in capsys.readouterr().out
