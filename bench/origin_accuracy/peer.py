"""msprobe's own answers to planted pairs, beside ours. Run it with the Python of a venv that has msprobe:

    PYTHONPATH=tests:capture VENV/bin/python bench/origin_accuracy/peer.py OUT

For each pair of statistics dumps without hashes of one step (`compare -da` takes no others): the first node of
`compare -da`'s report, and the first call that `graph_visualize` does not colour as passed. An answer is right where it is
a node that score.py accepts; of a healthy pair, where there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planted.truth import accepted, ranks, reach


def forked(work: Callable[[], None]) -> None:
    """Run `work` in a child that stays silent: msprobe keeps state and exits as it likes."""
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):  # its helpers outlive it otherwise
        os.killpg(child, signal.SIGKILL)


def first_difference(target: Path, golden: Path, out: Path) -> str:
    """First node that `compare -da` reports; "" where it finds none."""

    def work() -> None:
        from msprobe.core.compare.find_first.analyzer import DiffAnalyzer  # noqa: PLC0415

        DiffAnalyzer(str(target), str(golden), str(out)).analyze()

    forked(work)
    for report in sorted(out.glob("diff_analyze*.json")):
        for nodes in json.loads(report.read_text()).values():
            if nodes:
                return str(nodes[0]["op_name"])
    return ""


def first_coloured(target: Path, golden: Path, out: Path) -> str:
    """First call, in the order of the graph, that is not coloured as passed; "" where all are."""

    def work() -> None:
        from msprobe.visualization import graph_service  # noqa: PLC0415

        sys.argv = ["graph_visualize", "-tp", str(target), "-gp", str(golden), "-o", str(out)]
        parser = argparse.ArgumentParser()
        graph_service._graph_service_parser(parser)
        graph_service._graph_service_command(parser.parse_args())

    forked(work)
    for found in out.glob("*.vis.db"):
        with sqlite3.connect(found) as base:
            row = base.execute(
                "SELECT node_name FROM tb_nodes WHERE data_source = 'NPU' AND node_type = '1' AND precision_index > 0 "
                "ORDER BY node_order LIMIT 1"
            ).fetchone()
        if row:
            return str(row[0])
    return ""


TOOLS = {"compare -da": first_difference, "graph_visualize": first_coloured}


def answers(root: Path, entry: dict[str, Any]) -> dict[str, str]:
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for side in ("target", "golden"):
            step = Path(folder) / side / "step0"
            shutil.copytree(ranks(root / entry[side])[0], step / "rank0")
            sides.append(step)
        for name, tool in TOOLS.items():
            out = Path(folder) / name
            out.mkdir()
            said[name] = tool(*sides, out)
    return said


def _share(entry: dict[str, Any]) -> str:
    return "all with noise" if entry["noise"] else "all noise-free"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--most", type=int, default=None, help="so many pairs only, from all over")
    options = parser.parse_args()
    import msprobe.visualization.graph_service  # noqa: F401, PLC0415

    groups: dict[str, Counter[str]] = defaultdict(Counter)
    entries = [json.loads(line) for line in (options.out / "pairs.jsonl").read_text().splitlines()]
    fitting = [entry for entry in entries if entry["task"] == "statistics" and entry["steps"] == 1]
    fitting = [entry for entry in fitting if reach(entry, accepted(entry)[1]) in ("clear", "hidden")]
    for entry in fitting[:: max(1, len(fitting) // (options.most or len(fitting)))][: options.most]:
        truth, _ = accepted(entry)
        said = answers(options.out, entry)
        for key in {"healthy"} if entry["cause"] == "healthy" else {entry["cause"], _share(entry)}:
            groups[key]["pairs"] += 1
            for name, node in said.items():
                groups[key][name] += node in truth if entry["cause"] != "healthy" else not node
        print(entry["id"], entry["cause"], truth[:2], said, flush=True)
    print(f"| pairs of | count | {' | '.join(TOOLS)} |")
    print("|---|---|" + "---|" * len(TOOLS))
    for key, count in sorted(groups.items()):
        print(f"| {key} | {count['pairs']} | " + " | ".join(str(count[name]) for name in TOOLS) + " |")


if __name__ == "__main__":
    main()
