"""Memory of joining ranks, beside comparing one rank with itself.

    python bench/join_ranks.py --ranks 8 --nodes 40000

A synthetic dump of that many ranks, of which each holds a share of every weight, is compared with one of a single rank: as
shards, as replicas, and as pairs of shards that are replicas. Peak memory of the whole process tree, and seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import run

WIDTH = 64
MB = 1024 * 1024


def tensor(rng: np.random.Generator, shape: list[int], share: tuple[int, int] | None) -> dict[str, Any]:
    """A record. share: rank and ranks of a part whose statistics join to those of the whole, which are drawn"""
    high, low, mean, norm = rng.normal(size=4).tolist()
    if share is not None:
        rank, ranks = share
        mean, norm = mean + 1e-3 * (rank - (ranks - 1) / 2), norm / ranks**0.5
    return {
        "type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": abs(high) + 1, "Min": -abs(low) - 1,
        "Mean": mean * 0.1, "Norm": abs(norm) * 10, "requires_grad": True,
    }  # fmt: skip


def write_rank(folder: Path, nodes: int, rank: int, ranks: int) -> None:
    rng = np.random.default_rng(5)
    length = WIDTH // ranks
    share = (rank, ranks) if ranks > 1 else None
    data, parents = {}, {}
    for number in range(nodes // 2):
        call = f"Functional.linear.{number}.forward"
        module = f"Module.layers.{number // 10}.part{number % 10}.Linear.forward.0"
        taken = tensor(rng, [4, WIDTH], None)
        weight = tensor(rng, [length, WIDTH], share)
        made = tensor(rng, [4, length], share)
        data[call] = {"input_args": [taken, weight], "input_kwargs": {}, "output": [made]}
        data[module] = {
            "input_args": [taken], "input_kwargs": {}, "output": [made],
            "parameters": {"weight": weight, "bias": tensor(rng, [length], share)},
        }  # fmt: skip
        parents[call], parents[module] = module, None
    folder.mkdir(parents=True)
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}))
    (folder / "construct.json").write_text(json.dumps(parents))
    (folder / "stack.json").write_text("{}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8, choices=(2, 4, 8, 16, 32))
    parser.add_argument("--nodes", type=int, default=40_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rank in range(asked.ranks):
            write_rank(folder / f"split/step0/rank{rank}", asked.nodes, rank, asked.ranks)
        write_rank(folder / "whole/step0/rank0", asked.nodes, 0, 1)
        every = range(asked.ranks)
        plans = {
            "shards": [[list(every)]],
            "replicas": [[[rank]] for rank in every],
            "shards and replicas": [[[rank, rank + 1]] for rank in every[::2]],
        }
        command = [sys.executable, "-m", "dumpscope", "compare", "--jobs", "1", "--fail-on", "never"]
        alone = run([*command, str(folder / "whole"), str(folder / "whole")])
        print(f"{'one rank with itself':24}{alone.peak / MB:8.0f} MB {alone.wall:7.1f} s")
        for word, ranks in plans.items():
            plan = folder / "plan.yaml"
            plan.write_text(json.dumps({"units": [{"target": {"ranks": ranks}, "golden": {"ranks": 0}}]}))
            cost = run([*command, str(folder / "split"), str(folder / "whole"), "--plan", str(plan)])
            print(f"{word:24}{cost.peak / MB:8.0f} MB {cost.wall:7.1f} s   exit {cost.status}")


if __name__ == "__main__":
    main()
