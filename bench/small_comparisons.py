"""What small comparisons cost as commands: the demo's two dumps with their tensors, and with their statistics alone.

    python bench/small_comparisons.py [--runs 9] [--peer msprobe]

Whole processes, start-up included. Of several runs the shortest and the least processor time are shown: on a shared machine the
second is the steadier. `python` and `numpy` are the share that no change here can take away. With --peer, msprobe's `compare`
of the same dumps. Exit status 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dumpscope.demo import unpack

TENSORS, STATISTICS = "compare tensors", "compare statistics"
GOALS = {TENSORS: 0.6, STATISTICS: 0.4}
"""Seconds that a command may take."""


def cost(command: list[str], runs: int, clean: Path) -> tuple[float, float]:
    """Shortest wall time and least processor time of a command in seconds; `clean` is removed before each run."""
    walls, processor = [], []
    for _ in range(runs):
        shutil.rmtree(clean, ignore_errors=True)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        walls.append(time.perf_counter() - start)
        processor.append(used.ru_utime + used.ru_stime)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):  # 1 is the answer "they differ"
            sys.exit(f"{' '.join(command)}: status {process.returncode}")
    return min(walls), min(processor)


def without_tensors(dump: Path, folder: Path) -> Path:
    """A copy of a dump that holds its records alone."""
    return shutil.copytree(dump, folder / dump.name, ignore=shutil.ignore_patterns("*.pt"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="runs of each command; the best counts (default 9)")
    parser.add_argument("--peer", help="the msprobe command; left out, only our own rows are printed")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program starts from compiled modules
    ours = str(Path(sys.executable).with_name("dumpscope"))
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        target, golden = unpack(room / "demo")
        bare = [str(without_tensors(dump, room / "bare")) for dump in (target, golden)]
        sides, out = [str(target), str(golden)], room / "out"
        commands = {
            "python": [sys.executable, "-c", ""],
            "numpy": [sys.executable, "-c", "import numpy"],
            "--help": [ours, "--help"],
            "info": [ours, "info", str(golden)],
            TENSORS: [ours, "compare", *sides],
            STATISTICS: [ours, "compare", *bare],
            f"{TENSORS} -o": [ours, "compare", *sides, "-o", str(out)],
            f"{STATISTICS} -o": [ours, "compare", *bare, "-o", str(out)],
        }
        if options.peer:
            files = [str(next(dump.rglob("dump.json"))) for dump in (target, golden)]
            commands["peer: compare tensors"] = [
                options.peer,
                "compare",
                "-tp",
                files[0],
                "-gp",
                files[1],
                "-o",
                str(out),
            ]
        print(f"{'':24} {'wall s':>7} {'cpu s':>7}")
        held = True
        for name, command in commands.items():
            wall, processor = cost(command, options.runs, out)
            goal = GOALS.get(name)
            held &= goal is None or wall <= goal
            said = "" if goal is None else f"  {'held' if wall <= goal else 'MISSED'}: at most {goal} s"
            print(f"{name:24} {wall:7.2f} {processor:7.2f}{said}", flush=True)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
