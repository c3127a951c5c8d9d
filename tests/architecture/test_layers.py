"""The shape of the code, held by machine: who may import whom, how long a module may be, what an import costs."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "backend", ROOT / "capture")
HEAVY = ("torch", "numba", "llvmlite", "distributed", "dask")
LONGEST = 400
DECLARATIONS = {"backend/dumpscope/index/store/tables.py"}
"""Modules that only declare, one thing after the other: they are as long as what they list."""


def modules() -> list[Path]:
    return sorted(path for source in SOURCES for path in source.rglob("*.py"))


def test_every_import_follows_the_layers() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_module_is_longer_than_one_can_read() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert len(lengths) > 20
    assert {name: length for name, length in lengths.items() if length > LONGEST and name not in DECLARATIONS} == {}


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [path for path in modules() if path.stem in drawers or path.parent.name in drawers] == []


def test_nothing_in_the_repository_names_a_machine() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, nothing to list")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    needles = [b"/wo" + b"rk/", b"/ho" + b"me/" + b"runner", b"/tmp/" + b"lab"]
    found = []
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and path.suffix not in (".xz", ".png", ".zip", ".gz"):
            data = path.read_bytes()
            found += [f"{name}: {needle.decode()}" for needle in needles if needle in data]
    assert found == []


@pytest.mark.parametrize(
    ("module", "most"),
    [
        ("dumpscope_format", 40),
        ("dumpscope.errors", 60),
        ("dumpscope.cli", 900),
        ("dumpscope.readers", 700),
        ("dumpscope.api.app", 1900),
    ],
)
def test_importing_the_entry_points_is_cheap_and_never_brings_torch(module: str, most: int) -> None:
    assert importlib.util.find_spec(module) is not None
    script = f"import json, sys; before = set(sys.modules); import {module}; print(json.dumps(sorted(set(sys.modules) - before)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    tops = {name.partition(".")[0] for name in loaded}
    assert tops.isdisjoint(HEAVY), f"{module} loads {sorted(tops.intersection(HEAVY))}"
    assert len(loaded) < most


def test_the_server_runs_where_torch_cannot_be_imported() -> None:
    entries = "dumpscope.cli, dumpscope.readers, dumpscope.api.app, dumpscope.pipeline"
    script = f"import sys; sys.modules['torch'] = None; import {entries}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
