"""What is left of a run that ended in the middle of a step: every node finished before, with its statistics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dumpscope.domain.records import Role
from dumpscope.readers import discover, read_rank
from dumpscope_format.journal import JOURNAL
from dumpscope_format.layout import DUMP_JSON

pytest.importorskip("torch")
SCRIPT = Path(__file__).with_name("crashing.py")


@pytest.fixture(params=["kill", "exit", "raise"])
def crashed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[tuple[int, str, float]]]:
    """A dump folder, and (step, node, greatest input) of what was finished before the end."""
    root = tmp_path / "run"
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(root), request.param, "statistics"],
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


def test_only_the_step_that_did_not_end_is_reported(crashed: tuple[Path, list[tuple[int, str, float]]]) -> None:
    root, _ = crashed
    problems = [problem for ref in discover(root).ranks for problem in read_rank(ref).problems]
    assert [(problem.kind, problem.loc) for problem in problems] == [("truncated", f"step2/rank0/{JOURNAL}")]
    assert "21 complete records" in problems[0].message
    assert not (root / "step2" / "rank0" / DUMP_JSON).exists()
    assert not list(root.glob(f"step[01]/*/{JOURNAL}"))


def test_the_command_line_tells_of_the_killed_run(tmp_path: Path) -> None:
    run = [sys.executable, str(SCRIPT), str(tmp_path / "run"), "kill", "tensor"]
    assert subprocess.run(run, check=False, capture_output=True, timeout=120).returncode == -9
    info = subprocess.run(
        [str(Path(sys.executable).with_name("dumpscope")), "info", str(tmp_path / "run"), "--json"],
        check=False, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    told = json.loads(info.stdout)
    assert any("journal" in problem["message"] for problem in told["problems"])


def test_the_tensor_files_of_steps_that_ended_are_all_there(tmp_path: Path) -> None:
    run = [sys.executable, str(SCRIPT), str(tmp_path / "run"), "kill", "tensor"]
    subprocess.run(run, check=False, capture_output=True, timeout=120)
    for ref in discover(tmp_path / "run").ranks:
        dump = read_rank(ref)
        folder = Path(ref.folder) / "dump_tensor_data"
        missing = [name for name in dump.items.data_names if not (folder / name).exists()]
        assert len(dump.items.data_names) > 0
        if ref.step < 2:
            assert not missing
        assert not list(folder.glob(".*")) or ref.step == 2
