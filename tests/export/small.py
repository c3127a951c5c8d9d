"""Comparisons of a few records, made the whole way from two dump.json files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dumpscope.domain.facts import Facts
from dumpscope.domain.options import Options
from dumpscope.domain.records import State
from dumpscope.domain.result import Unit
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.readers import discover, read_rank

NODE = "Torch.add.0.forward"
Records = Mapping[str, Sequence[Any]]


def tensor(*stats: float | None, dtype: str = "torch.float32", **more: Any) -> dict[str, Any]:
    """A record with up to four statistics."""
    named = dict(zip(("Max", "Min", "Mean", "Norm"), stats, strict=False))
    return {"type": "torch.Tensor", "dtype": dtype, "shape": [2], **named, "requires_grad": False, **more}


def small_unit(folder: Path, target: Records, golden: Records | None = None) -> Unit:
    """The comparison of calls that have these inputs (name -> records); golden: as target where not given"""
    dumps = []
    for word, calls in (("target", target), ("golden", golden or target)):
        path = folder / word / "step0" / "rank0"
        path.mkdir(parents=True)
        data = {name: {"input_args": list(args), "input_kwargs": {}, "output": []} for name, args in calls.items()}
        head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
        (path / "dump.json").write_text(json.dumps({**head, "data": data}))
        dumps.append(read_rank(discover(folder / word).ranks[0]))
    return compare_rank(*dumps, step=0, rank=0, options=Options())


def with_facts(unit: Unit, mode: str = "statistics", **columns: Any) -> Unit:
    """The unit with other measurements. Numbers are given as they are (None absent), one list per row; counts as they are."""
    facts = unit.facts
    for name, rows in columns.items():
        facts = _with(facts, name, rows)
    return replace(unit, mode=mode, facts=facts)


def _with(facts: Facts, name: str, rows: Any) -> Facts:
    if f"{name}_state" not in Facts.__slots__:
        return replace(facts, **{name: np.array(rows, getattr(facts, name).dtype)})
    states = np.array([[_state(value) for value in row] for row in rows], np.uint8)
    values = np.array([[0.0 if value is None else value for value in row] for row in rows])
    return replace(facts, **{name: values, f"{name}_state": states})


def _state(value: float | None) -> State:
    if value is None:
        return State.ABSENT
    if value != value:  # noqa: PLR0124 - nan
        return State.NAN
    return {float("inf"): State.POS_INF, float("-inf"): State.NEG_INF}.get(value, State.FINITE)
