"""Statistics comparison, side by side with msprobe on the same two dumps in the same run.

    python bench/compare_statistics.py --peer-bin /path/to/venv/bin --nodes 100000

Two synthetic dumps of N nodes a side are made with one planted fault. Then ours and, where --peer-bin names a folder with an
`msprobe`, its `compare` and `graph_visualize`. Whole processes are timed, start-up included, caches warm for both.
Exit status 1 where the planted fault is not the first cause named, or a target (TARGETS, DATABASE, MEMORY) is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from measure import Cost, folder_size, run
from synthetic import make_dump

MB = 1024 * 1024
TARGETS = {"msprobe compare": 40, "msprobe graph_visualize": 40}
"""How many times faster than each of msprobe's commands our first answer has to be, from 100 000 nodes a side on."""
SECONDS = 4.5
"""What it may take per 100 000 nodes a side."""
DATABASE = 1.2
"""Largest result database, as a multiple of the JSON of both sides."""
MEMORY = 1_000_000_000
"""Most memory of our command and its workers, in bytes."""


def make_pair(folder: Path, nodes: int) -> tuple[Path, Path, str]:
    """(target, golden, faulty node): the target has a fault planted half-way through forward. What lies there already is kept."""
    target, golden = folder / f"target-{nodes}", folder / f"golden-{nodes}"
    truth = folder / f"fault-{nodes}.txt"
    if not truth.exists():
        make_dump(golden, nodes, seed=1)
        truth.write_text(str(make_dump(target, nodes, seed=1, fault_at=nodes // 4).fault))
    return target, golden, truth.read_text()


def row(name: str, cost: Cost, reference: Cost | None = None) -> str:
    """One line of the table; the ratio says how many times faster than `reference` it was."""
    first = (
        f"{cost.first:8.2f}" if reference and cost.first is not None else "       -"
    )  # the peer prints its log there
    ratio = f"{reference.wall / cost.wall:7.1f}x" if reference else "       -"
    return f"{name:34} {cost.wall:8.2f} {first} {cost.peak / MB:9.0f} {ratio}"


def written(folder: Path, name: str) -> Path:
    """Folder of what the command called `name` writes."""
    return folder / name.replace(" ", "-")


def measure(folder: Path, target: Path, golden: Path, peer: Path | None, runs: int) -> dict[str, Cost]:
    """Best of `runs` of each command, ours and the peer's."""
    ours = [str(Path(sys.executable).with_name("dumpscope")), "compare", str(target), str(golden)]
    commands = {"dumpscope compare": [*ours, "--json"], "dumpscope compare -o": [*ours, "--format", "csv", "-o"]}
    if peer is not None:
        sides = ["--target_path", str(target / "step0"), "--golden_path", str(golden / "step0")]
        for verb in ("compare", "graph_visualize"):
            commands[f"msprobe {verb}"] = [str(peer / "msprobe"), verb, *sides, "--output_path"]
    costs: dict[str, Cost] = {}
    for name, command in commands.items():
        if command[-1] != "--json":
            command.append(str(written(folder, name)))
        tries = []
        for _ in range(runs):
            shutil.rmtree(written(folder, name), ignore_errors=True)
            tries.append(run(command))
        costs[name] = min(tries, key=lambda cost: cost.wall)
    return costs


def report(costs: dict[str, Cost], folder: Path, target: Path, golden: Path, fault: str, nodes: int) -> bool:
    """Print the table, what each named as the cause, the sizes of what each wrote; say whether every target is held."""
    peer = costs.get("msprobe compare")
    ours = [name for name in costs if name.startswith("dumpscope")]
    print(f"{'':34} {'wall s':>8} {'first s':>8} {'peak MB':>9} {'faster':>8}")
    for name, cost in costs.items():
        print(row(name, cost, (peer or cost) if name in ours else None))
    read = folder_size(target) + folder_size(golden)
    print(f"\ninput JSON of both sides           {read / MB:8.1f} MB")
    for name in costs:
        size = folder_size(written(folder, name))
        if size:
            print(f"written by {name:23} {size / MB:8.1f} MB  {size / read:5.2f} x input")
    answer = json.loads(costs["dumpscope compare"].output)
    print("\nfault planted in:", fault)
    print("cause named:     ", ", ".join(f"{one['node']} ({one['kind']})" for one in answer["origins"]) or "none")
    first = costs["dumpscope compare"]
    stored = folder_size(written(folder, "dumpscope compare -o"), "result.db*") / read
    held = [
        ("first cause named is the planted one", [one["node"] for one in answer["origins"]][:1] == [fault]),
        (f"result database {stored:.2f} x input JSON, at most {DATABASE}", stored <= DATABASE),
        (f"peak memory {first.peak / MB:.0f} MB, at most {MEMORY / MB:.0f}", first.peak <= MEMORY),
    ]
    seconds = SECONDS * max(nodes, 100_000) / 100_000
    held.append((f"answer after {first.wall:.1f} s, at most {seconds:.1f}", first.wall <= seconds))
    for name, times in TARGETS.items():
        if name in costs:
            faster = costs[name].wall / first.wall
            held.append((f"{faster:.1f} times faster than {name}, at least {times}", faster >= times))
    print()
    for what, good in held:
        print(f"{'held  ' if good else 'MISSED'}  {what}")
    return all(good for _, good in held)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-bin", type=Path, help="bin folder of an environment that has msprobe")
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes a side (default 100000)")
    parser.add_argument("--runs", type=int, default=1, help="runs of each command; the best counts (default 1)")
    parser.add_argument("--keep", type=Path, help="folder for the dumps and results, kept for the next run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        target, golden, fault = make_pair(folder, arguments.nodes)
        print(f"{arguments.nodes} nodes a side, target {target.name}, golden {golden.name}\n", flush=True)
        costs = measure(folder, target, golden, arguments.peer_bin, arguments.runs)
        good = report(costs, folder, target, golden, fault, arguments.nodes)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
