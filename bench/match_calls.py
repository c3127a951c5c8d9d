"""Matching of two large dumps of which one makes extra calls, beside reading the same files in the same process.

    python bench/match_calls.py --items 300000 --extra 40

Two synthetic dumps of about N items a side; the target makes extra calls, evenly spread, so that all counters behind them shift.
CPU seconds, best of `--runs`; the memory is what matching adds to the peak of reading.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synthetic import make_dump

from dumpscope.domain.options import Options
from dumpscope.match import Matched, match
from dumpscope.readers import discover, read_rank

ITEMS_A_NODE = 3.2
"""Of a synthetic dump, about."""
MB = 1024 * 1024
CALL = "Functional.inserted"


def insert_calls(folder: Path, extra: int) -> int:
    """Add `extra` calls, evenly spread over the forward pass, to a written dump. Returns how many there are."""
    place = folder / "step0" / "proc1"
    dump, construct = (json.loads((place / name).read_text()) for name in ("dump.json", "construct.json"))
    names = [name for name in dump["data"] if name.endswith(".forward") and construct.get(name)]
    after = names[len(names) // (2 * extra) :: len(names) // extra][:extra]
    data: dict[str, Any] = {}
    spread = dict(zip(after, range(extra), strict=False))
    for name, record in dump["data"].items():
        data[name] = record
        if name in spread:
            fresh = f"{CALL}.{spread[name]}.forward"
            data[fresh] = record
            construct[fresh] = construct[name]
    renumbered, order = _renumber(data), dict(construct)
    dump["data"] = {renumbered[name]: record for name, record in data.items()}
    construct = {renumbered.get(name, name): renumbered.get(parent, parent) for name, parent in order.items()}
    (place / "dump.json").write_text(json.dumps(dump))
    (place / "construct.json").write_text(json.dumps(construct))
    return len(spread)


def _renumber(data: dict[str, Any]) -> dict[str, str]:
    """The inserted calls carry the label of the call before them, and every call behind gets the next number."""
    counters: dict[str, int] = {}
    fresh: dict[str, str] = {}
    last = ""
    for name in data:
        label, _, _ = name.rpartition(".forward")[0].rpartition(".")
        if not name.endswith(".forward"):
            fresh[name] = name
            continue
        label = last if label == CALL else label
        counters[label] = counters.get(label, -1) + 1
        fresh[name] = f"{label}.{counters[label]}.forward"
        last = label
    for name in data:  # a backward call carries the number of its forward call
        if name.endswith(".backward"):
            fresh[name] = fresh.get(f"{name[: -len('.backward')]}.forward", name).replace(".forward", ".backward")
    return fresh


def least(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Least CPU seconds of `runs`, and the last result."""
    spent = []
    result = None
    for _ in range(runs):
        begin = time.process_time()
        result = work()
        spent.append(time.process_time() - begin)
    return min(spent), result


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=300_000, help="items a side (default 300000)")
    parser.add_argument("--extra", type=int, default=40, help="extra calls of the target (default 40)")
    parser.add_argument("--flat", action="store_true", help="without module tree: one long sequence of calls")
    parser.add_argument("--runs", type=int, default=2, help="runs of each; the best counts (default 2)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nodes = int(arguments.items / ITEMS_A_NODE)
        for side in ("target", "golden"):
            make_dump(folder / side, nodes, seed=1, noise=1e-6 if side == "target" else 0.0)
        inserted = insert_calls(folder / "target", arguments.extra)
        if arguments.flat:
            for side in ("target", "golden"):
                (folder / side / "step0" / "proc1" / "construct.json").write_text("{}")
        refs = [discover(folder / side).ranks[0] for side in ("target", "golden")]
        reading, dumps = least(lambda: [read_rank(ref) for ref in refs], arguments.runs)
        before = peak()
        spent, matched = least(lambda: match(dumps[0], dumps[1], Options()), arguments.runs)
        report(matched, inserted, reading, spent, peak() - before, [len(dump.items) for dump in dumps])


def report(matched: Matched, inserted: int, reading: float, spent: float, memory: int, items: list[int]) -> None:
    alone = [int((column < 0).sum()) for column in (matched.pairs.golden, matched.pairs.target)]
    print(f"items a side           {items[0]:10} {items[1]:10}")
    print(f"reading both sides     {reading:10.2f} s CPU")
    print(f"matching               {spent:10.2f} s CPU   {spent / reading:5.2f} x reading   +{memory / MB:.0f} MB")
    print(f"peak of the process    {peak() / MB:10.0f} MB")
    print(f"calls inserted         {inserted:10}")
    print(f"without a partner      {alone[0]:10} target {alone[1]:10} golden")


if __name__ == "__main__":
    sys.exit(main())
