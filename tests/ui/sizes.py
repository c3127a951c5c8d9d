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

import numpy as np
from sqlalchemy import Connection, func, select, text

from dumpscope.domain.facts import Spread
from dumpscope.domain.options import Options
from dumpscope.index.comparisons.catalogue import create_comparison, find_unit, get_comparison, store_answer
from dumpscope.index.comparisons.store_results import comparison_serial
from dumpscope.index.store import tables
from dumpscope.index.store.codec import pack_spread, unpack_spread
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
            items, flow = (
                [
                    list(row)
                    for row in connection.execute(select(table).where(table.c.id.between(*tables.key_range(unit.id))))
                ]
                for table in (tables.item_pair, tables.flow)
            )
            values = dict(
                connection.execute(select(tables.unit).where(tables.unit.c.id == unit.id)).one()._mapping.items()
            )
        values["pairs"] = pairs
        values.pop("id")
        values.pop("comparison")
        with draft(database, UNITS, serial, values) as made:
            base = tables.key(made.id)
            made.append(tables.item_pair, _columns([[base + place, *row[1:]] for place, row in enumerate(items)]))
            made.append(tables.flow, _columns([[base, row[1], _repeated(row[2], pairs)] for row in flow]))
            with database.write() as connection:
                _repeat(connection, unit.id, made.id, pairs)
        counts = replace(old.answer.counts, nodes=pairs)
        store_answer(database, new, replace(old.answer, counts=counts), units=[made.id])
        return new
    finally:
        database.close()


def _repeated(packed: bytes | None, pairs: int) -> bytes | None:
    """How differences went on, again and again until there are `pairs` calls."""
    if packed is None:
        return None
    one = unpack_spread(packed)
    count = len(one.differs)
    times = -(-pairs // count)
    shift = np.repeat(np.arange(times, dtype=np.int32) * count, len(one.reader))
    reader, maker = np.tile(one.reader, times) + shift, np.tile(one.maker, times) + shift
    kept = reader < pairs
    return pack_spread(Spread(reader=reader[kept], maker=maker[kept], differs=np.tile(one.differs, times)[:pairs]))


def _columns(rows: list[list[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _repeat(connection: Connection, unit: int, new: int, pairs: int) -> None:
    """Store the calls and places of a unit below another one, again and again until it has `pairs` calls.

    The database does it: the rows are a million, and none of them need come here.
    """
    old, base = tables.key(unit), tables.key(new)
    nodes = connection.execute(
        select(tables.node_pair.c.id, tables.node_pair.c.name, tables.node_pair.c.golden_name)
        .where(tables.node_pair.c.id.between(*tables.key_range(unit)))
        .order_by(tables.node_pair.c.id)
    ).all()
    count = len(nodes)
    assert [row.id for row in nodes] == list(range(old, old + count))
    places = connection.execute(
        select(func.count()).select_from(tables.place).where(tables.place.c.id.between(*tables.key_range(unit)))
    ).scalar_one()
    connection.exec_driver_sql(
        "CREATE TEMP TABLE parts (id INTEGER PRIMARY KEY, b, n, a, golden_b, golden_n, golden_a)"
    )
    connection.exec_driver_sql(
        "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(row.id, *_parts(row.name), *_parts(row.golden_name)) for row in nodes],
    )
    further = f":round * {count}"
    further_place = f":round * {places}"
    node_pair = {
        "id": f"id - {old} + {base} + {further}",
        "name": _renamed("name", ""),
        "golden_name": _renamed("golden_name", "golden_"),
        "entry": f"entry + {further_place}",
        "beside": f"beside + {further}",
    }
    place = {
        "id": f"id - {old} + {base} + {further_place}",
        "seq": f"seq + {further_place}",
        "pair": f"pair + {further}",
    }
    for number in range(-(-pairs // count)):
        wanted = min(count, pairs - number * count)
        lost = (
            f"(SELECT up.pair FROM place AS up WHERE up.id = place.parent) >= {wanted}" if wanted < count else "FALSE"
        )
        place["parent"] = (
            f"CASE WHEN parent < 0 OR {lost} THEN -{new} ELSE parent - {old} + {base} + {further_place} END"
        )
        for table, changed, source, kept in (
            (tables.node_pair, node_pair, "node_pair JOIN parts USING (id)", f"id < {old + wanted}"),
            (tables.place, place, "place", f"(pair IS NULL OR pair < {wanted})"),
        ):
            names = [column.name for column in table.c]
            chosen = ", ".join(changed.get(name, name) for name in names)
            first, last = tables.key_range(unit)
            connection.execute(
                text(
                    f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {chosen} FROM {source}"
                    f" WHERE id BETWEEN {first} AND {last} AND {kept} ORDER BY id"
                ),
                {"round": number},
            )
    connection.exec_driver_sql("DROP TABLE parts")


def _parts(name: str | None) -> tuple[str | None, int | None, str | None]:
    """What stands before a call's number, the number, and what stands after it; of a module what stands after `Module.`."""
    if name is None:
        return None, None, None
    if name.startswith("Module."):
        return None, None, name.removeprefix("Module.")
    found = re.fullmatch(r"(.*\.)(\d+)(\.(?:forward|backward))", name, re.DOTALL)
    return (found[1], int(found[2]), found[3]) if found else (name, None, None)


def _renamed(name: str, side: str) -> str:
    """The same in another repetition, in SQL: a call further on, a module below another one."""
    return (
        f"CASE WHEN :round = 0 OR {name} IS NULL OR {side}a IS NULL THEN {name}"
        f" WHEN {side}b IS NULL THEN 'Module.again' || :round || '.' || {side}a"
        f" ELSE {side}b || ({side}n + :round * {ROUND}) || {side}a END"
    )


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
