"""Small msprobe dumps made of a list of calls; statistics come from a seed, so equal seeds are equal calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dumpscope.domain.records import RankDump
from dumpscope.readers import discover, read_rank


@dataclass(frozen=True, slots=True)
class Call:
    api: str
    seed: int
    weight: bool


def linear(seed: int) -> Call:
    return Call("Functional.linear", seed, True)


def relu(seed: int) -> Call:
    return Call("Functional.relu", seed, False)


def dump(folder: Path, calls: list[Call]) -> RankDump:
    """Write an L1 statistics dump of these calls and read it."""
    step = folder / "step0" / "proc1"
    step.mkdir(parents=True)
    counters: dict[str, int] = {}
    data: dict[str, Any] = {}
    for call in calls:
        index = counters.get(call.api, 0)
        counters[call.api] = index + 1
        numbers = np.random.default_rng(call.seed).normal(size=12)
        inputs = [tensor(numbers[:4]), *([tensor(numbers[4:8])] if call.weight else [])]
        data[f"{call.api}.{index}.forward"] = {
            "input_args": inputs, "input_kwargs": {}, "output": [tensor(numbers[8:])],
        }  # fmt: skip
    head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (step / "dump.json").write_text(json.dumps(head, indent=1))
    (step / "stack.json").write_text("{}")
    (step / "construct.json").write_text("{}")
    return read_rank(discover(folder).ranks[0])


def tensor(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    low, mean, high, norm = sorted(float(x) for x in numbers)
    return {
        "type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 4],
        "Max": high, "Min": low, "Mean": mean, "Norm": abs(norm) * 4, "requires_grad": False,
    }  # fmt: skip
