"""What is left of a run that ended in the middle of a step: every node finished before, with its statistics."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from warm_python import warm_python

from dumpscope.domain.records import Role
from dumpscope.readers import discover, read_rank
from dumpscope_format.journal import JOURNAL
from dumpscope_format.paths import DUMP_JSON

pytest.importorskip("torch")
SCRIPT = Path(__file__).with_name("crashing.py")


@pytest.fixture(params=["kill", "exit", "raise"])
def crashed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[tuple[int, str, float]]]:
    """A dump folder, and (step, node, greatest input) of what was finished before the end."""
    root = tmp_path / "run"
    run = subprocess.run(
        [warm_python(), str(SCRIPT), str(root), request.param, "statistics"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode not in (0, 2)
    lines = [line.split() for line in run.stdout.splitlines()]
    return root, [(int(step), name, float(top)) for step, name, top in lines]


def test_every_node_finished_before_the_end_is_readable_with_its_statistics(
    crashed: tuple[Path, list[tuple[int, str, float]]],
) -> None:
    root, finished = crashed
    layout = discover(root)
    assert layout.steps == [0, 1, 2]
    found = {}
    for ref in layout.ranks:
        dump = read_rank(ref)
        assert dump.header.task == "statistics"
        assert not dump.tree.inferred
        inputs = np.flatnonzero(dump.items.role == Role.INPUT)
        for item in inputs:
            node = dump.items.node[item]
            assert dump.nodes.stack[node] >= 0
            found[ref.step, dump.nodes.names[node]] = dump.items.stats[item, 0]
    assert found == {(step, name): top for step, name, top in finished}
    assert len(finished) == 40 + 40 + 21


TRAINING = Path(__file__).with_name("killed_training.py")
BEFORE = {
    "L0": ["Module.0.Linear.forward.0", "Module.1.GELU.forward.0", "Module.2.Linear.forward.0"],
    "L1": ["Functional.linear.0.forward", "Functional.gelu.0.forward", "Functional.linear.1.forward"],
    "L2": [
        "Aten.randn.0.forward", "Aten.t.0.forward", "Aten.addmm.0.forward", "Aten.gelu.0.forward", "Aten.t.1.forward",
        "Aten.addmm.1.forward",
    ],
}  # fmt: skip
BEFORE["mix"] = [node for pair in zip(BEFORE["L1"], BEFORE["L0"], strict=True) for node in pair]
"""What the third step has finished when it is killed."""


def _train(root: Path, level: str, how: str) -> int:
    command = [warm_python(), str(TRAINING), str(root), level, how]
    return subprocess.run(command, check=False, capture_output=True, timeout=120).returncode


def _cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("dumpscope")), *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"}
    )


@pytest.mark.parametrize("level", ["L0", "L1", "mix", "L2"])
def test_a_killed_training_keeps_what_a_whole_one_has_up_to_the_kill(tmp_path: Path, level: str) -> None:
    assert _train(tmp_path / "kill", level, "kill") == -9
    assert _train(tmp_path / "live", level, "live") == 0
    killed, whole = (discover(tmp_path / how).ranks for how in ("kill", "live"))
    assert [ref.step for ref in killed] == [0, 1, 2]
    for ref, other in zip(killed, whole, strict=False):
        dump, reference = read_rank(ref), read_rank(other)
        nodes = list(dump.nodes.names)
        assert nodes == (BEFORE[level] if ref.step == 2 else list(reference.nodes.names))
        assert nodes == list(reference.nodes.names)[: len(nodes)]
        items = len(dump.items)
        assert np.array_equal(dump.items.stats, reference.items.stats[:items], equal_nan=True)
        assert [dump.nodes.stacks[code] for code in dump.nodes.stack[:3]] == [
            reference.nodes.stacks[code] for code in reference.nodes.stack[:3]
        ]


def test_a_killed_step_says_how_it_was_run(tmp_path: Path) -> None:
    assert _train(tmp_path / "kill", "L1", "kill") == -9
    told = [json.loads((tmp_path / "kill" / f"step{step}" / "rank0" / "run.json").read_text()) for step in range(3)]
    assert [one["ended"] for one in told] == ["closed", "closed", None]
    assert told[2]["versions"] == told[0]["versions"]
    assert told[2]["settings"] == told[0]["settings"]


def test_stacks_of_a_killed_run_are_told_and_stand_in_its_tables(tmp_path: Path) -> None:
    assert _train(tmp_path / "kill", "L1", "kill") == -9
    assert _train(tmp_path / "live", "L1", "live") == 0
    told = json.loads(_cli("info", str(tmp_path / "kill"), "--json").stdout)
    assert [unit["stacks"] for unit in told["units"]] == [True, True, True]
    _cli("compare", str(tmp_path / "kill" / "step2"), str(tmp_path / "live" / "step2"), "-o", str(tmp_path / "out"),
         "--format", "csv")  # fmt: skip
    (table,) = (tmp_path / "out").glob("*.csv")
    with table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert "killed_training.py" in rows[0]["NPU_Stack_Info"]


def test_only_the_step_that_did_not_end_is_reported(crashed: tuple[Path, list[tuple[int, str, float]]]) -> None:
    root, _ = crashed
    problems = [problem for ref in discover(root).ranks for problem in read_rank(ref).problems]
    assert [(problem.kind, problem.loc) for problem in problems] == [("truncated", f"step2/rank0/{JOURNAL}")]
    assert "21 complete records" in problems[0].message
    assert not (root / "step2" / "rank0" / DUMP_JSON).exists()
    assert not list(root.glob(f"step[01]/*/{JOURNAL}"))


def test_the_command_line_tells_of_the_killed_run(tmp_path: Path) -> None:
    run = [warm_python(), str(SCRIPT), str(tmp_path / "run"), "kill", "tensor"]
    assert subprocess.run(run, check=False, capture_output=True, timeout=120).returncode == -9
    told = json.loads(_cli("info", str(tmp_path / "run"), "--json").stdout)
    assert any("journal" in problem["message"] for problem in told["problems"])


@pytest.mark.parametrize("how", ["kill", "exit", "abort"])
def test_the_tensor_files_of_calls_that_ended_are_all_there(tmp_path: Path, how: str) -> None:
    run = [warm_python(), str(SCRIPT), str(tmp_path / "run"), how, "tensor"]
    subprocess.run(run, check=False, capture_output=True, timeout=120)
    assert len(discover(tmp_path / "run").ranks) == 3
    for ref in discover(tmp_path / "run").ranks:
        dump = read_rank(ref)
        folder = Path(ref.folder) / "dump_tensor_data"
        missing = [name for name in dump.items.data_names if not (folder / name).exists()]
        assert len(dump.items.data_names) == (80 if ref.step < 2 else 42)
        assert not missing
        assert not list(folder.glob(".*"))
