"""Comparisons of any size for the browser: a real one, and larger ones whose rows are those of the real one again and again.

Reading and comparing a million calls takes minutes, and what is tested here is what the screen does with them. So the rows of a
unit that was compared are stored anew, through the index's own drafts, under other names, until there are enough. The item
pairs are stored once: each call shows those, and the data flow, of the call that it was made from.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from sqlalchemy import select

from dumpscope.domain.options import Options
from dumpscope.index.comparisons.catalogue import create_comparison, find_unit, get_comparison, store_answer
from dumpscope.index.comparisons.store_results import comparison_serial
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.index.store.owners import UNITS, draft

ROUND: Final = 10**6
"""Calls are numbered on by this from one repetition to the next."""


def synthetic(root: Path) -> ModuleType:
    """bench/synthetic.py, which writes dumps of any length."""
    if "synthetic" in sys.modules:
        return sys.modules["synthetic"]
    spec = importlib.util.spec_from_file_location("synthetic", root / "bench" / "synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["synthetic"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def repeated(data: Path, comparison: str, pairs: int) -> str:
    """Id of a new comparison with `pairs` node pairs, in the database of the server whose data folder this is."""
    database = Database.open(sqlite_url(data / "dumpscope.db"))
    try:
        old = get_comparison(database, comparison)
        unit = find_unit(database, comparison, None, None)
        assert old.answer is not None
        new = create_comparison(
            database, name=f"{pairs} calls", target=old.target, golden=old.golden, options=Options()
        )
        with database.read() as connection:
            serial = comparison_serial(connection, new)
            first, last = tables.key_range(unit.id)
            nodes, places, items, flow = (
                [list(row) for row in connection.execute(select(table).where(table.c.id.between(first, last)))]
                for table in (tables.node_pair, tables.place, tables.item_pair, tables.flow)
            )
            values = dict(
                connection.execute(select(tables.unit).where(tables.unit.c.id == unit.id)).one()._mapping.items()
            )
        rounds = -(-pairs // len(nodes))
        values["pairs"] = pairs
        values.pop("id")
        values.pop("comparison")
        with draft(database, UNITS, serial, values) as made:
            base = tables.key(made.id)
            made.append(tables.item_pair, _columns([[base + place, *row[1:]] for place, row in enumerate(items)]))
            made.append(tables.flow, _columns([[base, *row[1:]] for row in flow]))
            for number in range(rounds):
                wanted = min(len(nodes), pairs - number * len(nodes))
                made.append(tables.node_pair, _columns(_nodes(nodes[:wanted], base, number, len(nodes), len(places))))
                kept = [row for row in places if row[_PAIR] is None or row[_PAIR] < wanted]
                made.append(tables.place, _columns(_places(kept, base, made.id, number, len(nodes), len(places))))
        counts = replace(old.answer.counts, nodes=pairs)
        store_answer(database, new, replace(old.answer, counts=counts), units=[made.id])
        return new
    finally:
        database.close()


_PAIR: Final = list(tables.place.c).index(tables.place.c.pair)


def _columns(rows: list[list[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _nodes(rows: list[list[Any]], base: int, number: int, count: int, places: int) -> list[list[Any]]:
    names = [column.name for column in tables.node_pair.c]
    own, golden, entry = names.index("name"), names.index("golden_name"), names.index("entry")
    beside = names.index("beside")
    made = []
    for place, old in enumerate(rows):
        row = old.copy()
        row[0] = base + number * count + place
        row[own] = _name(row[own], number)
        row[golden] = row[golden] and _name(row[golden], number)
        row[entry] += number * places
        row[beside] = None if row[beside] is None else row[beside] + number * count
        made.append(row)
    return made


def _places(rows: list[list[Any]], base: int, unit: int, number: int, count: int, places: int) -> list[list[Any]]:
    made = []
    for old in rows:
        row = old.copy()
        entry = (old[0] & tables.NUMBER_MASK) + number * places
        row[0] = base + entry
        row[1] = -unit if old[1] < 0 else base + (old[1] & tables.NUMBER_MASK) + number * places
        row[2] += number * places
        row[_PAIR] = None if old[_PAIR] is None else old[_PAIR] + number * count
        made.append(row)
    return made


def _name(name: str, number: int) -> str:
    """The same in another repetition: a call further on, a module below another one."""
    if number == 0:
        return name
    if name.startswith("Module."):
        return f"Module.again{number}.{name.removeprefix('Module.')}"
    return re.sub(r"\.(\d+)\.(forward|backward)$", lambda found: f".{int(found[1]) + number * ROUND}.{found[2]}", name)


def write_forest(root: Path, *, wide: int, deep: int, wrong: bool) -> Path:
    """A dump with a module of `wide` children and a chain of `deep` modules, each below the one before.

    wrong: the last but ten child and the call at the end of the chain give other numbers
    """
    folder = root / "step0" / "rank0"
    folder.mkdir(parents=True)
    nodes: dict[str, Any] = {}
    construct: dict[str, str | None] = {}

    def add(name: str, parent: str | None, differs: bool = False) -> None:
        construct[name] = parent
        nodes[name] = {"input_args": [_leaf(1.0)], "input_kwargs": {}, "output": [_leaf(2.0 if differs else 1.0)]}

    for number in range(wide):
        add(f"Module.wide.{number}.Linear.forward.0", WIDE, wrong and number == wide - 10)
    add(WIDE, None)
    chain = [f"Module.deep{level}.Block.forward.0" for level in range(deep)]
    add(END_OF_CHAIN, chain[-1], wrong)
    for level in range(deep - 1, -1, -1):
        add(chain[level], chain[level - 1] if level else None)
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": nodes}
    (folder / "dump.json").write_text(json.dumps(head))
    (folder / "construct.json").write_text(json.dumps(construct))
    (folder / "stack.json").write_text("{}")
    return root


WIDE: Final = "Module.wide.List.forward.0"
END_OF_CHAIN: Final = "Functional.gelu.0.forward"


def _leaf(scale: float) -> dict[str, Any]:
    return {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": [8, 8],
        "Max": 3.0 * scale,
        "Min": -2.0 * scale,
        "Mean": 0.25 * scale,
        "Norm": 9.5 * scale,
        "requires_grad": False,
    }
