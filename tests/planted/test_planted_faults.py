"""Fresh random pairs: a kernel broken below autograd is named, and a pair in which nothing is broken is silent.

The bounds are binomial. The noise-free and the noisy pair of one cause fail together, so a cause counts once. Measured over
a thousand pairs, fewer than MISSED of the causes fail; the test allows as many as chance alone exceeds once in a million
runs, so it fails when origins got worse and not by bad luck. bench/origin_accuracy measures with more pairs.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from warm_python import warm_python

from planted.scoring import Scored, scored

PAIRS = 44
MISSED = 0.03
RARE = 1e-6

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch makes the pairs")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Scored]]:
    """DUMPSCOPE_PLANTED_SEED repeats a run."""
    seed = int(os.environ.get("DUMPSCOPE_PLANTED_SEED") or secrets.randbelow(1 << 30))
    out = tmp_path_factory.mktemp("planted")
    tests = Path(__file__).parents[1]
    command = [warm_python(), "-m", "planted.pairs", str(out), "--pairs", str(PAIRS), "--seed", str(seed)]
    made = subprocess.run([*command, "--healthy", "0.3"], cwd=tests, capture_output=True, text=True, check=False)
    assert made.returncode == 0, f"seed {seed}: {made.stderr[-2000:]}"
    return seed, [scored(out, json.loads(line)) for line in (out / "pairs.jsonl").read_text().splitlines()]


def allowed(causes: int) -> int:
    """Failing causes that chance exceeds less often than RARE."""
    left = 1.0
    for failing in range(causes + 1):
        left -= math.comb(causes, failing) * MISSED**failing * (1 - MISSED) ** (causes - failing)
        if left < RARE:
            return failing
    return causes


def failing(rows: list[Scored], bad: list[Scored]) -> tuple[int, int]:
    """Causes that fail, and how many may."""
    causes = {row.entry["number"] for row in rows}
    return len({row.entry["number"] for row in bad}), allowed(len(causes))


def told(seed: int, bad: list[Scored]) -> str:
    lines = [
        f"{row.entry['model']} {row.entry['dtype']} {row.entry['task']} {row.entry['level']} {row.entry['cause']}"
        f"{' noisy' if row.entry['noise'] else ''}: {row.origins or 'no origin'} for {row.truth or 'none'}"
        for row in bad
    ]
    return "\n".join([f"DUMPSCOPE_PLANTED_SEED={seed}", *lines])


def test_the_first_origin_is_where_the_fault_was_planted(rows: tuple[int, list[Scored]]) -> None:
    seed, every = rows
    planted = [row for row in every if row.entry["cause"] != "healthy" and row.counts]
    assert len(planted) > PAIRS / 4, f"seed {seed}: too few faults rise above what the dumps store"
    missed = [row for row in planted if row.outcome != "right"]
    count, most = failing(planted, missed)
    assert count <= most, told(seed, missed)


def test_healthy_pairs_are_silent(rows: tuple[int, list[Scored]]) -> None:
    seed, every = rows
    healthy = [row for row in every if row.entry["cause"] == "healthy"]
    loud = [row for row in healthy if row.false]
    count, most = failing(healthy, loud)
    assert count <= most, told(seed, loud)


def test_a_run_that_was_broken_off_ends_with_the_same_pairs_as_one_of_its_seed_that_was_not(tmp_path: Path) -> None:
    def make(name: str, pairs: int) -> str:
        options = ["--pairs", str(pairs), "--seed", "11", "--group", "1", "--models", "conv,towers"]  # the smallest
        command = [warm_python(), "-m", "planted.pairs", str(tmp_path / name), *options]
        subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=True)
        return (tmp_path / name / "pairs.jsonl").read_text()

    begun = make("broken", 1)
    unfinished = tmp_path / "broken" / "group1" / "first"
    unfinished.mkdir(parents=True)
    whole = make("broken", 3)
    assert whole.startswith(begun)
    assert whole != begun
    assert whole == make("other", 3)
