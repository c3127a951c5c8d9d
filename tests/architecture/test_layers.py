"""The shape of the code: who may import whom, how full a folder and how long a module may be, what an import costs."""

from __future__ import annotations

import ast
import importlib.util
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Final

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "backend", ROOT / "capture")
HEAVY = ("torch", "numba", "llvmlite", "distributed", "dask")
MOST_IN_A_FOLDER: Final = 16
LONGEST_MEDIAN: Final = 200
"""Lines. A table of declarations may be long; most modules are not."""
SHORT: Final = 60

CROWDED: Final = {
    "capture/dumpscope_capture/ptdbg": "one legacy interface, kept apart so that it can be dropped as one folder",
    "backend/dumpscope/cli/commands": "one file per command, as many as there are commands",
}
REASONS: Final = {
    name: reason
    for reason, names in {
        "entry point that a tool names": (
            "backend/dumpscope/__main__.py",
            "backend/dumpscope/api/openapi.py",
            "backend/dumpscope/index/migrations/env.py",
        ),
        "data types that several packages share, or that cut a circle": (
            "backend/dumpscope/api/models/dataflow.py",
            "backend/dumpscope/api/models/metrics.py",
            "backend/dumpscope/api/models/transfers.py",
            "backend/dumpscope/api/models/trees.py",
            "backend/dumpscope/api/state.py",
            "backend/dumpscope/cli/exit_codes.py",
            "backend/dumpscope/domain/distances.py",
            "backend/dumpscope/domain/job.py",
            "backend/dumpscope/domain/limits.py",
            "backend/dumpscope/domain/options.py",
            "backend/dumpscope/domain/run.py",
            "backend/dumpscope/analysis/unit/rounding_only.py",
            "backend/dumpscope/match/operators/arguments.py",
            "backend/dumpscope/parallel/experts.py",
            "backend/dumpscope/parallel/wrappers.py",
            "backend/dumpscope/pipeline/figures/request.py",
            "backend/dumpscope/plots/table.py",
            "backend/dumpscope/verdict/rules.py",
            "capture/dumpscope_capture/ptdbg/errors.py",
            "capture/dumpscope_format/ptdbg.py",
            "capture/dumpscope_format/recipe.py",
            "capture/dumpscope_format/run.py",
            "capture/dumpscope_format/schema.py",
        ),
        "stands in for what an older environment lacks": (
            "capture/dumpscope_capture/calls/name_lists.py",
            "capture/dumpscope_capture/optional_numpy.py",
            "capture/dumpscope_format/older_python.py",
        ),
        "one rule of the analysis, with its reasons": (
            "backend/dumpscope/analysis/ranks/strays.py",
            "backend/dumpscope/analysis/classes.py",
            "backend/dumpscope/analysis/overflow/tree.py",
            "backend/dumpscope/analysis/trends.py",
            "backend/dumpscope/analysis/unit/calls.py",
            "backend/dumpscope/match/operators/operations.py",
            "backend/dumpscope/pipeline/compare/provisional.py",
        ),
        "one way of reading, which the readers of two kinds of logs share": (
            "backend/dumpscope/readers/text_lines.py",
        ),
        "one route, command or middleware": (
            "backend/dumpscope/api/cancellable.py",
            "backend/dumpscope/api/comparisons.py",
            "backend/dumpscope/api/downloads.py",
            "backend/dumpscope/api/http/header_timeout.py",
            "backend/dumpscope/api/http/methods.py",
            "backend/dumpscope/api/ingest.py",
            "backend/dumpscope/api/http/proxy_prefix.py",
            "backend/dumpscope/api/routes/comparisons/notes.py",
            "backend/dumpscope/api/routes/comparisons/source.py",
            "backend/dumpscope/api/routes/dumps/runs.py",
            "backend/dumpscope/api/routes/dumps/sample.py",
            "backend/dumpscope/api/routes/dumps/uploads.py",
            "backend/dumpscope/api/routes/health.py",
            "backend/dumpscope/api/routes/jobs.py",
            "backend/dumpscope/api/routes/metrics.py",
            "backend/dumpscope/api/uploads/checksums.py",
            "backend/dumpscope/cli/commands/demo.py",
            "backend/dumpscope/cli/commands/proof/handover.py",
            "backend/dumpscope/cli/dry_run.py",
            "backend/dumpscope/cli/find_call.py",
            "backend/dumpscope/cli/opening.py",
            "backend/dumpscope/cli/commands/health.py",
            "backend/dumpscope/cli/commands/mcp.py",
            "backend/dumpscope/cli/commands/upload.py",
            "backend/dumpscope/cli/printing.py",
            "backend/dumpscope/cli/progress.py",
        ),
        "one output format or its style": (
            "backend/dumpscope/api/one_file/maps.py",
            "backend/dumpscope/cli/one_file.py",
            "backend/dumpscope/export/number_csv.py",
            "backend/dumpscope/export/words.py",
            "backend/dumpscope/export/report_style.py",
            "backend/dumpscope/export/table/cell_text.py",
            "backend/dumpscope/ptdbg/export/files.py",
        ),
        "a small mechanism that several rooms use": (
            "backend/dumpscope/analysis/rules/registry.py",
            "backend/dumpscope/extensions.py",
            "backend/dumpscope/gc_tuning.py",
            "backend/dumpscope/index/store/recent.py",
            "backend/dumpscope/index/store/rollup.py",
            "backend/dumpscope/index/trees/row_numbers.py",
            "backend/dumpscope/metrics/differing_elements.py",
            "backend/dumpscope/pipeline/figures/registry.py",
            "backend/dumpscope/pipeline/results/require_dumps.py",
            "backend/dumpscope/pipeline/server/overflow_cache.py",
            "backend/dumpscope/pipeline/server/rounds.py",
            "backend/dumpscope/pipeline/uploads/names.py",
            "backend/dumpscope/pipeline/uploads/piece.py",
            "backend/dumpscope/readers/archives/limits.py",
            "backend/dumpscope/readers/opening.py",
            "backend/dumpscope/readers/regular_file.py",
            "backend/dumpscope/readers/tensors/tensor_file.py",
            "capture/dumpscope_capture/calls/graph_makers.py",
            "capture/dumpscope_capture/record/step.py",
            "capture/dumpscope_capture/values/live_memory.py",
        ),
        "below what imports it: merged, rooms of the index would form a circle": (
            "backend/dumpscope/index/comparisons/joined_dumps.py",
            "backend/dumpscope/verdict/shown_errors.py",
            "backend/dumpscope/index/pair_queries/node_details.py",
        ),
        "one file form of a dump": (
            "backend/dumpscope/readers/archives/entry_names.py",
            "backend/dumpscope/readers/msprobe/journal.py",
            "backend/dumpscope/readers/msprobe/raw_records.py",
            "backend/dumpscope/readers/records/record_keys.py",
            "backend/dumpscope/readers/records/tree_builder.py",
        ),
        "one kind of hook or recorded value": (
            "capture/dumpscope_capture/calls/held_arguments.py",
            "capture/dumpscope_capture/hooks/compiled.py",
            "capture/dumpscope_capture/hooks/patches.py",
            "capture/dumpscope_capture/proof/module_paths.py",
            "capture/dumpscope_capture/ptdbg/compare_data.py",
            "capture/dumpscope_capture/values/distributed_objects.py",
            "capture/dumpscope_capture/values/slices.py",
        ),
    }.items()
    for name in names
}
"""Modules of fewer than SHORT lines, and why each is a module."""


def modules() -> list[Path]:
    return sorted(path for source in SOURCES for path in source.rglob("*.py"))


def test_every_import_follows_the_layers() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Module -> the modules here that it imports: lazily, inside a function, and for type checkers too."""
    found = {name_of(path): path for path in modules()}
    return {name: imported(path, set(found)) - {name} for name, path in found.items()}


def name_of(path: Path) -> str:
    source = next(source for source in SOURCES if path.is_relative_to(source))
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path, known: set[str]) -> set[str]:
    names: set[str] = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            assert statement.level == 0, f"{path}: a relative import"
            members = {f"{statement.module}.{alias.name}" for alias in statement.names}
            names |= members & known
            if members - known:  # something that the module itself defines
                names.add(statement.module)
    return names & known


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches every other one of its group."""
    remaining = dict.fromkeys(graph)
    found = []
    while remaining:
        start = next(iter(remaining))
        there = reachable(graph, start)
        group = {name for name in there if start in reachable(graph, name)} | {start}
        if len(group) > 1:
            found.append(sorted(group))
        for name in group:
            remaining.pop(name, None)
    return found


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_circles_are_found_where_there_are_some() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"f"}, "f": {"e"}, "g": {"a"}}
    assert circles(graph) == [["a", "b", "c"], ["e", "f"]]


def test_no_modules_import_each_other_in_a_circle(imports: dict[str, set[str]]) -> None:
    assert len(imports) > 400
    assert circles(imports) == []


def test_no_folder_shows_more_modules_than_one_can_take_in() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in modules() if path.name != "__init__.py")
    crowded = {str(folder): count for folder, count in counts.items() if count > MOST_IN_A_FOLDER}
    assert {folder for folder in crowded if folder not in CROWDED} == set(), crowded


def test_modules_are_short_in_the_median() -> None:
    lengths = [lines(path) for path in modules() if path.name != "__init__.py" and "versions" not in path.parts]
    assert len(lengths) > 400
    assert median(lengths) < LONGEST_MEDIAN


def test_a_very_short_module_has_a_reason() -> None:
    short = {
        str(path.relative_to(ROOT)): lines(path)
        for path in modules()
        if path.name != "__init__.py" and "versions" not in path.parts and lines(path) < SHORT
    }
    assert {name: count for name, count in short.items() if name not in REASONS} == {}


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


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
