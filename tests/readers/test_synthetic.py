"""The benchmark's dumps are what msprobe would write, agree but for the planted fault, and are read fast in little memory."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dumpscope.readers import discover, read_rank


@pytest.fixture(scope="module")
def synthetic(request: pytest.FixtureRequest) -> ModuleType:
    path = request.config.rootpath / "bench" / "synthetic.py"
    spec = importlib.util.spec_from_file_location("synthetic", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["synthetic"] = module
    spec.loader.exec_module(module)
    return module


def test_a_synthetic_dump_is_indented_like_a_real_one_and_has_no_problems(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    truth = synthetic.make_dump(tmp_path, 700, 3)
    text = (truth.folder / "dump.json").read_text()
    assert json.dumps(json.loads(text), indent=1) == text
    dump = read_rank(discover(tmp_path).ranks[0])
    assert (len(dump.nodes), len(dump.items)) == (700, truth.leaves)
    assert dump.problems == []
    assert not dump.tree.inferred


def test_two_sides_differ_from_the_fault_on_and_nowhere_before(synthetic: ModuleType, tmp_path: Path) -> None:
    synthetic.make_dump(tmp_path / "golden", 700, 3)
    truth = synthetic.make_dump(tmp_path / "target", 700, 3, 200)
    golden, target = (read_rank(discover(tmp_path / side).ranks[0]) for side in ("golden", "target"))
    assert target.nodes.names == golden.nodes.names
    differ = np.flatnonzero((target.items.stats != golden.items.stats).any(axis=1))
    nodes = sorted(set(target.items.node[differ].tolist()))
    assert target.nodes.names[nodes[0]] == truth.fault
    assert 200 <= nodes[0] <= 210
    assert 300 < len(nodes) < 500
    first = differ[target.items.node[differ] == nodes[0]]
    assert len(first) == 1  # its inputs agree, its output does not


def test_reading_costs_little_time_and_memory(synthetic: ModuleType, tmp_path: Path) -> None:
    """Guards the order of magnitude (half a second and 90 MB on a slow core)."""
    synthetic.make_dump(tmp_path, 30_000, 1)
    code = (
        "import re, sys, time; from dumpscope.readers import discover, read_rank; ref = discover(sys.argv[1]).ranks[0];"
        "start = time.process_time(); dump = read_rank(ref); spent = time.process_time() - start;"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024;"  # ru_maxrss keeps the parent's
        "print(len(dump.nodes), spent, peak)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    nodes, seconds, megabytes = done.stdout.split()
    assert int(nodes) == 30_000
    assert float(seconds) < 10
    assert float(megabytes) < 250
