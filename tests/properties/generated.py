"""Small dumps of any content: names, shapes, dtypes, numbers that are not finite, calls that are missing, all three tasks."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]

TASKS: Final = ("statistics", "tensor", "md5")
DTYPES: Final = {
    "torch.float32": np.float32, "torch.float64": np.float64, "torch.float16": np.float16, "torch.int64": np.int64,
    "torch.uint8": np.uint8, "torch.bool": np.bool_,
}  # fmt: skip
SHAPES: Final[tuple[tuple[int, ...], ...]] = ((), (0,), (1,), (5,), (2, 3), (4, 1, 2))
SPOILS: Final = ("none", "none", "none", "none", "nan", "inf", "-inf", "zeros", "huge", "all nan", "unstored")
"""What is done to a tensor's numbers; of one "unstored" the dump holds no statistics, no hash and no file."""
APIS: Final = (
    "Functional.linear",
    "Functional.softmax",
    "Torch.mul",
    "Tensor.add_",
    "Torch.empty",
    "Functional.dropout",
)
SCALARS: Final[tuple[Any, ...]] = (0, -3, 2**70, 0.5, float("nan"), float("inf"), True, "mean", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    shape: tuple[int, ...]
    dtype: str
    seed: int
    spoil: str = "none"
    factor: float = 1.0

    def array(self) -> Array:
        rng = np.random.default_rng(self.seed)
        kind = DTYPES[self.dtype]
        if self.dtype == "torch.bool":
            return rng.integers(0, 2, self.shape).astype(kind)
        if "int" in self.dtype:
            return rng.integers(0, 100, self.shape).astype(kind)
        array = np.asarray(rng.normal(size=self.shape) * self.factor)
        if self.spoil == "zeros":
            array *= 0
        elif self.spoil == "huge":
            array = array * 1e4
        elif self.spoil == "all nan":
            array = array * np.nan
        elif array.size and self.spoil in ("nan", "inf", "-inf"):
            array.flat[self.seed % array.size] = float(self.spoil)
        return array.astype(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """module: number of the module that makes it, -1 outside all"""

    api: str
    module: int
    backward: bool
    taken: tuple[Value | Any, ...]
    made: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """ranks: calls by rank; summary: statistics are stored with their hashes in md5 dumps"""

    task: str
    ranks: tuple[tuple[Call, ...], ...]


values = st.builds(
    Value,
    shape=st.sampled_from(SHAPES),
    dtype=st.sampled_from(["torch.float32", *DTYPES]),
    seed=st.integers(0, 5),
    spoil=st.sampled_from(SPOILS),
    factor=st.just(1.0),
)
calls = st.builds(
    Call,
    api=st.sampled_from(APIS),
    module=st.integers(-1, 1),
    backward=st.booleans(),
    taken=st.lists(st.one_of(values, st.sampled_from(SCALARS)), max_size=3).map(tuple),
    made=st.lists(values, min_size=1, max_size=2).map(tuple),
)
runs = st.lists(calls, min_size=1, max_size=7).map(tuple)


@st.composite
def sides(draw: st.DrawFn, task: str | None = None, ranks: int | None = None) -> Side:
    count = draw(st.integers(1, 2)) if ranks is None else ranks
    return Side(
        task=draw(st.sampled_from(TASKS)) if task is None else task, ranks=tuple(draw(runs) for _ in range(count))
    )


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Side, Side]:
    """A run, and what became of it elsewhere: calls lost, inserted, renamed, and tensors that differ."""
    one = draw(sides())
    other = replace(one, ranks=tuple(tuple(_changed(draw, run)) for run in one.ranks))
    if draw(st.integers(0, 5)) == 0:
        other = replace(other, task=draw(st.sampled_from(TASKS)))
    return one, other


def _changed(draw: st.DrawFn, run: tuple[Call, ...]) -> list[Call]:
    out = []
    for call in run:
        change = draw(
            st.sampled_from(["same", "same", "same", "same", "gone", "extra", "api", "value", "shape", "dtype"])
        )
        if change == "extra":
            out.append(draw(calls))
        if change == "api":
            call = replace(call, api=draw(st.sampled_from(APIS)))  # noqa: PLW2901
        elif change in ("value", "shape", "dtype"):
            call = replace(call, made=tuple(_altered(draw, value, change) for value in call.made))  # noqa: PLW2901
        if change != "gone":
            out.append(call)
    return out or [draw(calls)]


def _altered(draw: st.DrawFn, value: Value, change: str) -> Value:
    if change == "shape":
        return replace(value, shape=draw(st.sampled_from(SHAPES)))
    if change == "dtype":
        return replace(value, dtype=draw(st.sampled_from([*DTYPES])))
    return replace(
        value, factor=draw(st.sampled_from([1 + 1e-7, 1 + 1e-4, 1.01, 1.5, -1.0])), spoil=draw(st.sampled_from(SPOILS))
    )


def write(folder: Path, side: Side) -> Path:
    """The dump root of a side."""
    for rank, run in enumerate(side.ranks):
        _write_rank(folder / "step0" / f"rank{rank}", side.task, run)
    return folder


def _write_rank(folder: Path, task: str, run: tuple[Call, ...]) -> None:
    tensors = folder / "dump_tensor_data"
    tensors.mkdir(parents=True)
    data: dict[str, Any] = {}
    construct: dict[str, str | None] = {}
    stack: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    modules: dict[int, tuple[str, Call]] = {}
    for call in run:
        number = numbers.get(call.api, 0)
        numbers[call.api] = number + 1
        parent = None
        if call.module >= 0:
            parent = f"Module.layers.{call.module}.Block.forward.0"
            modules[call.module] = parent, call
        name = f"{call.api}.{number}.forward"
        data[name] = _record(tensors, task, name, call.taken, call.made)
        construct[name] = parent
        stack[f"{len(stack)}"] = [[name], [f"File /home/user/train.py, line {number + 1}, in forward, \n x"]]
    for parent, call in modules.values():
        data[parent] = _record(tensors, task, parent, call.taken, call.made)
        construct[parent] = None
    for name, call in zip([*data][: len(run)][::-1], run[::-1], strict=True):
        if call.backward:
            back = name.replace(".forward", ".backward")
            record = _record(tensors, task, back, call.made, tuple(v for v in call.taken if isinstance(v, Value)))
            data[back] = {"input": record["input_args"], "output": record["output"]}
            construct[back] = None
    head = {
        "task": "tensor" if task == "tensor" else "statistics", "level": "mix", "framework": "pytorch",
        "dump_data_dir": str(tensors) if task == "tensor" else None,
    }  # fmt: skip
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}), encoding="utf-8")
    (folder / "construct.json").write_text(json.dumps(construct), encoding="utf-8")
    (folder / "stack.json").write_text(json.dumps(stack), encoding="utf-8")


def _record(
    tensors: Path, task: str, name: str, taken: tuple[Value | Any, ...], made: tuple[Value, ...]
) -> dict[str, Any]:
    return {
        "input_args": [_leaf(tensors, task, f"{name}.input.{place}", value) for place, value in enumerate(taken)],
        "input_kwargs": {},
        "output": [_leaf(tensors, task, f"{name}.output.{place}", value) for place, value in enumerate(made)],
    }


def _leaf(tensors: Path, task: str, name: str, value: Value | Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, Value):
        return {"type": type(value).__name__, "value": value}
    array = value.array()
    wide = array.astype(np.float64)
    number = array.size > 0 and value.spoil != "unstored"
    exact = array.dtype.kind not in "f"
    found: dict[str, Any] = {
        "type": "torch.Tensor", "dtype": value.dtype, "shape": list(value.shape), "Max": None, "Min": None, "Mean": None,
        "Norm": None, "requires_grad": False,
    }  # fmt: skip
    if number:
        with np.errstate(all="ignore"):
            found["Max"], found["Min"] = (
                (int(wide.max()), int(wide.min())) if exact else (float(wide.max()), float(wide.min()))
            )
            if not exact:
                found["Mean"], found["Norm"] = float(wide.mean()), float(np.linalg.norm(wide.ravel()))
    if task == "md5" and value.spoil != "unstored":
        found["md5"] = f"{zlib.crc32(array.tobytes()):08x}"
    if task == "tensor" and value.spoil != "unstored":
        found["data_name"] = f"{name}.npy"
        np.save(tensors / found["data_name"], array)
    return found
