"""Writes the two sides of a result table as dumps, so that all that compares dumps compares them.

    compare_result_rank0.csv -> target/step0/rank0/{dump,stack,run}.json, golden/step0/rank0/{dump,run}.json

A table holds statistics, hashes or distances of tensors, and no tensor. The distances stand in the target's records under
`measured`. A table has no line for a call that only the golden made.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from dumpscope.errors import UnreadableError
from dumpscope.readers.result_tables.files import TableFile
from dumpscope.readers.result_tables.rows import Cell, Row
from dumpscope.texts import say
from dumpscope_format import naming
from dumpscope_format.paths import CONSTRUCT_JSON, DEBUG_JSON, DUMP_JSON, RUN_JSON, STACK_JSON
from dumpscope_format.run import NOTES, TABLE_NOTE
from dumpscope_format.schema import MEASURED_KEY, STATISTIC_KEYS, TENSOR_TYPE

SIDES: Final = ("target", "golden")
_BODIES: Final = {"input": "input_args", "output": "output", "parameters": "parameters"}
_BACKWARD_BODIES: Final = {"input": "input", "output": "output"}
_PLAIN: Final = {"<class 'int'>": "int", "<class 'float'>": "float", "<class 'bool'>": "bool", "<class 'str'>": "str"}
_SIZE: Final = "torch.Size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """target, golden: folders of the two dumps"""

    target: Path
    golden: Path


@dataclass(slots=True)
class _Side:
    """Bodies of nodes in the order of their first row, and stacks by node."""

    data: dict[str, Any] = field(default_factory=dict)
    stacks: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, cell: Cell, more: dict[str, Any]) -> None:
        node, key, path = _place(cell.name)
        record = _record(cell, more)
        kind = naming.parse(node).kind
        if kind == "debug":
            if path:
                _put(self.data.setdefault(node, []), path, record)
            else:
                self.data[node] = record
        elif kind == "gradient":
            self.data.setdefault(node, {})[path or "0"] = [record]
        elif key in ("parameters", "input_kwargs"):
            self.data.setdefault(node, {}).setdefault(key, {})[path or "0"] = record
        else:
            _put(self.data.setdefault(node, {}).setdefault(key or "output", []), path, record)

    def sort_like(self, target: _Side) -> None:
        """Put the nodes of the golden in the order of the target's of the same names. The table has the target's order only, and
        msprobe may pair a call with another one of its kind."""
        places = {name: place for place, name in enumerate(target.data)}
        met = {name: place for place, name in enumerate(self.data)}
        self.data = dict(sorted(self.data.items(), key=lambda entry: places.get(entry[0], met[entry[0]])))


def write_dumps(tables: Iterable[TableFile], folder: Path) -> Opened:
    """Write both sides of these tables, one a rank, into a new folder. Raises UnreadableError where no line is an item."""
    for table in tables:
        target, golden = _Side(), _Side()
        for row in table.rows():
            _add_row(row, target, golden)
        golden.sort_like(target)
        if not target.data:
            raise UnreadableError(say("readers.table_without_rows"), where=table.path, hint=say("readers.table_again"))
        rank = "rank" if table.rank is None else f"rank{table.rank}"
        for name, side in zip(SIDES, (target, golden), strict=True):
            _write(folder / name / "step0" / rank, side, os.path.basename(table.path))
    return Opened(target=folder / SIDES[0], golden=folder / SIDES[1])


def _add_row(row: Row, target: _Side, golden: _Side) -> None:
    more: dict[str, Any] = {}
    if row.metrics and row.golden is not None:
        known = {name: value for name, value in row.metrics.items() if math.isfinite(value)}
        more[MEASURED_KEY] = {"golden": row.golden.name, **known}
    if row.said:
        more["table"] = row.said
    target.add(row.target, more)
    if row.stack:
        target.stacks.setdefault(_place(row.target.name)[0], row.stack)
    if row.golden is not None:
        golden.add(row.golden, {})


def _place(name: str) -> tuple[str, str, str]:
    """Node, key of its body ("" where items stand in the body itself), and path of an item in it."""
    found = naming.split_item(name)
    if found is None:
        ptdbg = naming.split_ptdbg_item(name)
        if ptdbg is not None:
            found = (naming.canonical(ptdbg[0]), ptdbg[1], ptdbg[2])
    if found is None:
        return _flat_place(name)
    node, category, path = found
    node = naming.canonical(node)
    if category == "input" and not path.partition(".")[0].isdigit() and path:
        return node, "input_kwargs", path
    parts = naming.parse(node)
    bodies = _BACKWARD_BODIES if parts.direction == "backward" else _BODIES
    return node, bodies.get(category, "input_kwargs"), path


def _flat_place(name: str) -> tuple[str, str, str]:
    """Of a gradient of a parameter or an item of `save`: the longest node name that the item's begins with."""
    node = name
    while node:
        if naming.parse(node).kind in ("gradient", "debug"):
            return node, "", name[len(node) + 1 :]
        node = node.rpartition(".")[0]
    return name, "", ""


def _put(args: list[Any], path: str, record: Any) -> None:
    """Store a record at `1.0.key` of nested lists and objects."""
    parts: list[int | str] = [int(part) if part.isdigit() else part for part in (path or "0").split(".")]
    held: Any = args
    for part, below in pairwise(parts):
        inner = _get(held, part)
        if not isinstance(inner, list | dict) or "type" in inner:
            inner = [] if isinstance(below, int) else {}
            _set(held, part, inner)
        held = inner
    _set(held, parts[-1], record)


def _get(held: Any, part: int | str) -> Any:
    if isinstance(held, list):
        return held[part] if isinstance(part, int) and part < len(held) else None
    return held.get(str(part))


def _set(held: Any, part: int | str, value: Any) -> None:
    if isinstance(held, dict):
        held[str(part)] = value
        return
    place = part if isinstance(part, int) else len(held)
    if place < 10_000:
        held.extend([None] * (place + 1 - len(held)))
        held[place] = value


def _record(cell: Cell, more: dict[str, Any]) -> Any:
    if not cell.dtype:
        return None
    plain = _PLAIN.get(cell.dtype)
    if plain is not None:
        return {"type": plain, "value": cell.stats[0] if cell.hash is None else cell.hash}
    if cell.dtype == _SIZE:
        return {"type": _SIZE, "value": list(cell.shape or ())}
    if "." not in cell.dtype and cell.shape is None:
        return {"type": cell.dtype, "value": cell.stats[0]}
    record: dict[str, Any] = {"type": TENSOR_TYPE, "dtype": cell.dtype, "shape": list(cell.shape or ())}
    if cell.hash is None:
        record.update(zip(STATISTIC_KEYS, cell.stats, strict=True))
    record["requires_grad"] = bool(cell.requires_grad)
    if cell.hash is not None:
        record["md5"] = cell.hash
    return {**record, **more}


def _write(folder: Path, side: _Side, table: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    modules = any(naming.parse(name).kind == "module" for name in side.data)
    calls = any(naming.parse(name).kind == "api" for name in side.data)
    document = {
        "task": "statistics",
        "level": "mix" if modules and calls else "L0" if modules else "L1",
        "framework": "pytorch",
        "dump_data_dir": None,
        "data": side.data,
    }
    stacks = {str(place): [[node], list(frames)] for place, (node, frames) in enumerate(side.stacks.items())}
    debug = bool(side.data) and all(naming.parse(name).kind == "debug" for name in side.data)
    if debug:
        document["level"] = "debug"
    files = {
        DEBUG_JSON if debug else DUMP_JSON: document,
        STACK_JSON: stacks,
        CONSTRUCT_JSON: {},
        RUN_JSON: {NOTES: {TABLE_NOTE: [table]}},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1), encoding="utf-8")
