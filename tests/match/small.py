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
    factor: float | None = None


def linear(seed: int) -> Call:
    return Call("Functional.linear", seed, True)


def relu(seed: int) -> Call:
    return Call("Functional.relu", seed, False)


def product(seed: int, factor: float) -> Call:
    """What is multiplied follows from the seed alone."""
    return Call("Tensor.__mul__", seed, False, factor)


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
        if call.factor is not None:
            inputs.append({"type": "float", "value": call.factor})
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


Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A call that takes and makes named tensors; `name:2x3` has that shape, the same name always the same numbers."""

    api: str
    takes: tuple[str, ...]
    makes: str
    module: str = ""


def step(api: str, takes: str, makes: str, module: str = "") -> Step:
    return Step(api, tuple(takes.split()), makes, module)


def flow(folder: Path, steps: list[Step], *, backward: bool = False, summary: str = "statistics") -> RankDump:
    """Write a dump of these steps (with their backward in reverse order) and read it. module: calls of a run stand inside it"""
    place = folder / "step0" / "proc1"
    place.mkdir(parents=True)
    counters: dict[str, int] = {}
    data: dict[str, Any] = {}
    construct: dict[str, str | None] = {}
    names: list[str] = []
    for number, one in enumerate(steps):
        index = counters[one.api] = counters.get(one.api, -1) + 1
        names.append(f"{one.api}.{index}")
        parent = f"Module.{one.module}.forward.0" if one.module else None
        construct[f"{names[-1]}.forward"] = parent
        if parent is not None:
            construct[parent] = None
        data[f"{names[-1]}.forward"] = {
            "input_args": [named(name, summary) for name in one.takes],
            "input_kwargs": {},
            "output": [named(one.makes, summary)],
        }
        last = number + 1 == len(steps) or steps[number + 1].module != one.module
        if parent is not None and last:
            inside = [other for other in steps if other.module == one.module]
            data[parent] = {
                "input_args": [named(inside[0].takes[0], summary)],
                "input_kwargs": {},
                "output": [named(one.makes, summary)],
            }
    for one, name in zip(steps[::-1], names[::-1], strict=True) if backward else ():
        construct[f"{name}.backward"] = None
        data[f"{name}.backward"] = {
            "input": [named(gradient(one.makes), summary)],
            "output": [named(gradient(taken), summary) for taken in one.takes],
        }
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (place / "dump.json").write_text(json.dumps(head))
    (place / "stack.json").write_text("{}")
    (place / "construct.json").write_text(json.dumps(construct))
    return read_rank(discover(folder).ranks[0])


def gradient(name: str) -> str:
    title, colon, shape = name.partition(":")
    return f"d{title}{colon}{shape}"


def named(name: str, summary: str) -> dict[str, Any]:
    title, _, shape = name.partition(":")
    seed = int.from_bytes(title.encode(), "big")
    record = tensor(np.random.default_rng(seed).normal(size=4)) | {"shape": list(map(int, (shape or "4x4").split("x")))}
    if summary == "md5":
        record = {key: value for key, value in record.items() if key not in ("Max", "Min", "Mean", "Norm")}
        record["md5"] = f"{seed % 2**32:08x}"
    elif summary == "structure":
        record = {key: value for key, value in record.items() if key not in ("Max", "Min", "Mean", "Norm")}
    return record
