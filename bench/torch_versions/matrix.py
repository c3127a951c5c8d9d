"""`make matrix`: one program recorded under several Pythons and torches, each dump compared with that of this environment.

    python bench/torch_versions/matrix.py [--folder .matrix] [--only 3.8] [--docs]

Environments are made in FOLDER/py3.8-torch2.1.0... and reused; an old torch is a download of two gigabytes. A Python that is not
here is named and left out. In each, `pip install ./capture` must change no other package. Nodes, their order, parents and
arguments must be equal; statistics to 1e-6 of the largest number of their tensor. Level L2 records torch's own operators, which
differ between its versions: there only the nodes are counted. Unusual programs (odd_programs.py) must compute the same bits with
and without a recording, and no hook may fail. --docs writes the table into docs/capture.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, State
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover, read_rank

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "bench" / "torch_versions" / "program.py"
DOCS = ROOT / "docs" / "capture.md"
BEGIN, END = "<!-- make matrix: begin -->", "<!-- make matrix: end -->"
TOLERANCE = 1e-6
WANTED = (
    ("3.8", "2.1.0", "numpy<2"),
    ("3.8", "2.1.0", ""),
    ("3.10", "2.5.1", "numpy<2"),
    ("3.11", "2.7.1", "numpy<2"),
    ("3.12", "2.9.1", "numpy"),
    ("3.13", "newest", "numpy"),
)
"""(Python, torch, numpy); an empty numpy: as in an environment without numpy and PyYAML."""


@dataclass
class Row:
    """What one environment showed. wrong: sentences, empty where all is equal"""

    name: str
    levels: dict[str, tuple[int, int]] = field(default_factory=dict)  # compared nodes and records by level
    tasks: list[str] = field(default_factory=list)
    worst: float = 0.0
    aten: str = ""
    wrong: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        levels = [f"{self.levels[level][0]} / {self.levels[level][1]}" for level in ("L0", "L1", "mix")]
        return [
            self.name,
            *levels,
            f"{self.worst:.1e}" if self.worst else "0",
            self.aten,
            "; ".join(self.wrong) or "equal",
        ]


HEAD = ("environment", "L0", "L1", "mix", "worst statistic", "L2", "result")


def interpreter(version: str) -> str | None:
    """A working Python of this version."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in (*map(str, sorted(pyenv.glob(f"{version}.*/bin/python"))), f"python{version}"):
        try:
            done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if done.stdout.strip() == version:
            return path
    return None


def make(folder: Path, python: str, torch: str, numpy: str) -> Path:
    """The environment's interpreter; the environment is made where it is not there yet."""
    found = folder / "bin" / "python"
    if not (folder / ".made").exists():
        print(f"making {folder} ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        wanted = ["torch" if torch == "newest" else f"torch=={torch}", numpy or "numpy<2"]
        subprocess.run([found, "-m", "pip", "-q", "install", *wanted, "pyyaml"], check=True)
        (folder / ".made").touch()
    return found


def packages(python: Path) -> dict[str, str]:
    done = subprocess.run([python, "-m", "pip", "list", "--format", "json"], capture_output=True, text=True, check=True)
    return {row["name"]: row["version"] for row in json.loads(done.stdout)}


def install(python: Path, row: Row) -> None:
    """`pip install ./capture`, and nothing else may change."""
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "uninstall", "-y", "dumpscope-capture"], capture_output=True, check=False)
    before = packages(python)
    subprocess.run([*pip, "install", str(ROOT / "capture")], check=True)
    after = packages(python)
    after.pop("dumpscope-capture", None)
    if before != after:
        row.wrong.append(f"pip changed {sorted(set(before.items()) ^ set(after.items()))}")


def record(python: str | Path, folder: Path, without: list[str], path: str | None = None) -> str:
    """Run the program; empty, or the end of its output where it failed."""
    shutil.rmtree(folder, ignore_errors=True)
    env = {**os.environ, "DUMPSCOPE_LOG_LEVEL": "2", **({"PYTHONPATH": path} if path else {})}
    command = [str(python), "-W", "ignore", str(PROGRAM), str(folder), *(["--without", *without] if without else [])]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=folder.parent)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]


def run_odd(python: Path, folder: Path) -> list[str]:
    """What a recording changes in unusual programs, or what fails in it."""
    command = [str(python), "-W", "ignore", str(PROGRAM.with_name("odd_programs.py")), str(folder)]
    env = {**os.environ, "DUMPSCOPE_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=folder.parent)
    said = [line for line in done.stdout.splitlines() if "not with this torch" not in line]
    return said or (["the unusual programs failed: " + done.stderr[-500:]] if done.returncode else [])


def ranks(folder: Path) -> list[RankDump]:
    return [read_rank(ref) for ref in discover(folder).ranks]


def compare(row: Row, level: str, task: str, here: Path, reference: Path) -> None:
    """Note in the row how a dump differs from the reference's."""
    name = f"{level} {task}"
    if len(discover(here).ranks) != len(discover(reference).ranks):
        row.wrong.append(f"{name}: other steps")
        return
    for mine, other in zip(ranks(here), ranks(reference), strict=True):
        if level == "L2":
            more = Counter(map(kind_of, mine.nodes.names)) - Counter(map(kind_of, other.nodes.names))
            less = Counter(map(kind_of, other.nodes.names)) - Counter(map(kind_of, mine.nodes.names))
            changes = [f"+{count} {what}" for what, count in more.items()] + [
                f"-{count} {what}" for what, count in less.items()
            ]
            row.aten = f"{len(mine.nodes)}" + (f" ({', '.join(changes)})" if changes else "")
            continue
        if mine.nodes.names != other.nodes.names:
            odd = [pair for pair in zip(mine.nodes.names, other.nodes.names, strict=False) if pair[0] != pair[1]]
            row.wrong.append(f"{name}: {len(mine.nodes)} nodes, not {len(other.nodes)}; first {odd[:1]}")
            continue
        if parents(mine) != parents(other):
            row.wrong.append(f"{name}: other parents")
        if arguments(mine) != arguments(other):
            odd = [pair for pair in zip(arguments(mine), arguments(other), strict=False) if pair[0] != pair[1]]
            row.wrong.append(f"{name}: other arguments, first {odd[:1]}")
            continue
        worst = statistics(mine, other)
        row.worst = max(row.worst, worst)
        if worst > TOLERANCE:
            row.wrong.append(f"{name}: statistics differ by {worst:.1e}")
        nodes, records = row.levels.get(level, (0, 0))
        row.levels[level] = (max(nodes, len(mine.nodes)), max(records, len(mine.items)))
    if level != "L2" and task in ("statistics", "tensor"):
        for step in sorted(path.name for path in here.glob("step*")):
            index, wanted = discover(here / step), discover(reference / step)
            found = compare_layouts(index, wanted, Options(), paths=(str(here), str(reference))).answer.counts
            if found.no + found.unmatched_target + found.unmatched_golden + found.unreadable:
                row.wrong.append(f"{name}: dumpscope compare finds {found}")


def kind_of(node: str) -> str:
    return node.rsplit(".", 2)[0]


def parents(dump: RankDump) -> list[str | None]:
    tree = dump.tree
    return [tree.names[up] if up >= 0 else None for up in tree.parent[: len(dump.nodes)].tolist()]


def arguments(dump: RankDump) -> list[tuple[Any, ...]]:
    """Each record but its statistics, hash and file."""
    items = dump.items

    def texts(codes: Any, table: list[Any]) -> list[Any]:
        return [table[code] if code >= 0 else None for code in codes.tolist()]

    return list(
        zip(
            items.node.tolist(), items.role.tolist(), texts(items.path, items.paths), texts(items.type, items.types),
            texts(items.dtype, items.dtypes), texts(items.shape, items.shapes), texts(items.value, items.values),
            items.requires_grad.tolist(), (items.hash >= 0).tolist(), (items.data_name >= 0).tolist(), strict=True,
        )
    )  # fmt: skip


def statistics(mine: RankDump, other: RankDump) -> float:
    """Largest difference of a statistic, relative to the largest number of its tensor; infinite where one is missing."""
    if not np.array_equal(mine.items.stat_state, other.items.stat_state):
        return float("inf")
    finite = mine.items.stat_state == State.FINITE
    if not finite.any():
        return 0.0
    ours, theirs = (np.where(finite, dump.items.stats, 0.0) for dump in (mine, other))
    size = np.maximum(np.abs(ours), np.abs(theirs)).max(1, keepdims=True)
    return float((np.abs(ours - theirs) / np.where(size > 0, size, 1.0)).max())


def table(rows: list[Row]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + ["| " + " | ".join(row.cells()) + " |" for row in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / ".matrix")
    parser.add_argument("--only", action="append", default=[], help="version of Python; may be repeated")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/capture.md")
    given = parser.parse_args()
    folder = given.folder.resolve()
    dumps = folder / "dumps"
    dumps.mkdir(parents=True, exist_ok=True)
    reference = dumps / "reference"
    failed = record(sys.executable, reference, [], str(ROOT / "capture"))
    if failed:
        print(failed)
        return 1
    combinations = sorted(path.name for path in reference.iterdir() if path.is_dir())
    rows = []
    for version, torch, numpy in WANTED:
        if given.only and version not in given.only:
            continue
        python = interpreter(version)
        if python is None:
            print(f"Not checked, no Python {version} here: torch {torch}")
            continue
        own = make(folder / f"py{version}-torch{torch}", python, torch, numpy)
        there = packages(own)
        name = f"Python {version}, torch {there['torch']}, " + (
            f"numpy {there['numpy']}" if numpy else "no numpy, no PyYAML"
        )
        row = Row(name)
        if numpy:
            install(own, row)
        here = dumps / re.sub(r"[^\w.]+", "-", name)
        failed = record(own, here, [] if numpy else ["numpy", "yaml"])
        if failed:
            row.wrong.append("the program failed")
            print(failed)
        for combination in combinations:
            level, _, task = combination.partition("-")
            if (here / combination).is_dir():
                compare(row, level, task, here / combination, reference / combination)
            else:
                row.wrong.append(f"{combination}: no dump")
        if numpy:
            row.wrong += run_odd(own, dumps / f"odd-{there['torch']}")
        for level in ("L0", "L1", "mix"):
            row.levels.setdefault(level, (0, 0))
        rows.append(row)
        print(f"{name}: {'; '.join(row.wrong) or 'equal'}", flush=True)
    print(table(rows))
    if given.docs:
        text = DOCS.read_text(encoding="utf-8")
        head, rest = text.split(BEGIN)
        DOCS.write_text(f"{head}{BEGIN}\n{table(rows)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
