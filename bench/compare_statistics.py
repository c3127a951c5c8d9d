"""Statistics comparison, side by side with msprobe on the same two dumps in the same run.

    python bench/compare_statistics.py --peer-bin /path/to/venv/bin --nodes 100000

Two synthetic dumps of N nodes a side are made with one planted fault. Then ours and, where --peer-bin names a folder with an
`msprobe`, its `compare` and `graph_visualize`. Whole processes are timed, start-up included, caches warm for both.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from measure import Cost, folder_size, run
from synthetic import make_dump

MB = 1024 * 1024


def make_pair(folder: Path, nodes: int) -> tuple[Path, Path]:
    """(target, golden) below `folder`, the target with a fault planted in its middle; kept when they are there already."""
    target, golden = folder / f"target-{nodes}", folder / f"golden-{nodes}"
    for path, fault in ((golden, None), (target, nodes // 2)):
        if not path.exists():
            make_dump(path, nodes, seed=1, fault_at=fault)
    return target, golden


def row(name: str, cost: Cost, reference: Cost | None = None) -> str:
    """One line of the table; the ratio says how many times faster than `reference` it was."""
    first = f"{cost.first:8.2f}" if cost.first is not None else "       -"
    ratio = f"{reference.wall / cost.wall:7.1f}x" if reference else "       -"
    return f"{name:34} {cost.wall:8.2f} {first} {cost.peak / MB:9.0f} {ratio}"


def measure(folder: Path, target: Path, golden: Path, peer: Path | None, runs: int) -> dict[str, Cost]:
    """Best of `runs` of each command, ours and the peer's."""
    ours = str(Path(sys.executable).with_name("dumpscope"))
    table = folder / "ours"
    commands: dict[str, list[str]] = {
        "dumpscope compare": [ours, "compare", str(target), str(golden), "--json"],
        "dumpscope compare -o (csv)": [ours, "compare", str(target), str(golden), "-o", str(table), "--format", "csv"],
    }
    if peer is not None:
        sides = ["--target_path", str(target / "step0"), "--golden_path", str(golden / "step0")]
        for verb in ("compare", "graph_visualize"):
            commands[f"msprobe {verb}"] = [str(peer / "msprobe"), verb, *sides, "--output_path", str(folder / verb)]
    costs: dict[str, Cost] = {}
    for name, command in commands.items():
        tries = [run(command) for _ in range(runs)]
        costs[name] = min(tries, key=lambda cost: cost.wall)
    return costs


def report(costs: dict[str, Cost], folder: Path, target: Path, golden: Path) -> None:
    """Print the table, what each named as the cause, and the sizes of what each wrote."""
    peer = costs.get("msprobe compare")
    print(f"{'':34} {'wall s':>8} {'first s':>8} {'peak MB':>9} {'faster':>8}")
    for name, cost in costs.items():
        print(row(name, cost, peer if name.startswith("dumpscope") else None))
    read = folder_size(target) + folder_size(golden)
    print(f"\ninput JSON of both sides           {read / MB:8.1f} MB")
    for name in ("ours", "compare", "graph_visualize"):
        if (folder / name).exists():
            size = folder_size(folder / name)
            print(f"written by {name:23} {size / MB:8.1f} MB  {size / read:5.2f} x input")
    answer = json.loads(costs["dumpscope compare"].output)
    print("\ncause named:", ", ".join(f"{one['node']} ({one['kind']})" for one in answer["origins"]) or "none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-bin", type=Path, help="bin folder of an environment that has msprobe")
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes a side (default 100000)")
    parser.add_argument("--runs", type=int, default=1, help="runs of each command; the best counts (default 1)")
    parser.add_argument("--keep", type=Path, help="folder for the dumps and results, kept for the next run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        target, golden = make_pair(folder, arguments.nodes)
        print(f"{arguments.nodes} nodes a side, target {target.name}, golden {golden.name}\n", flush=True)
        report(measure(folder, target, golden, arguments.peer_bin, arguments.runs), folder, target, golden)


if __name__ == "__main__":
    main()
