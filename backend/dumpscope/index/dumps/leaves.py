"""Single leaf records of a stored rank, decoded for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from dumpscope.domain.records import ROLE_WORDS, STATISTICS, Number, as_stored, derived_name, names_item
from dumpscope.index.store import tables
from dumpscope.index.store.codec import DERIVED_SUFFIXES, STATE_BITS
from dumpscope.index.store.texts import texts_by_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One record of a dump. node: name of its node; stats: Max, Min, Mean, Norm as they were (None absent); value: JSON text of
    a non-tensor's value"""

    node: str
    name: str
    role: str
    path: str
    type: str | None
    dtype: str | None
    shape: list[int] | None
    stats: tuple[Number, Number, Number, Number]
    requires_grad: bool | None
    hash: str | None
    value: str | None
    data_name: str | None


def leaves(connection: Connection, rank: int, numbers: Iterable[int]) -> dict[int, Leaf]:
    """The records with these item numbers of rank_dump `rank`."""
    keys = [tables.key(rank, number) for number in sorted(set(numbers))]
    if not keys:
        return {}
    item = tables.item.c
    rows = [
        row
        for start in range(0, len(keys), 900)
        for row in connection.execute(select(tables.item).where(item.id.in_(keys[start : start + 900])))
    ]
    names = _node_names(connection, rank, {row.node for row in rows})
    ids = {number for row in rows for number in (row.path, row.type, row.dtype, row.shape, row.value, row.data_name)}
    texts = texts_by_id(connection, ids)
    wide = _wide(connection, rank)
    return {
        row.id & tables.NUMBER_MASK: _leaf(row, names[row.node], texts, wide.get(row.id & tables.NUMBER_MASK, {}))
        for row in rows
    }


def _leaf(row: Any, node: str, texts: dict[int, str], wide: dict[int, int]) -> Leaf:
    path = texts.get(row.path, "")
    name = derived_name(node, row.role, path)
    dtype = texts.get(row.dtype)
    data_name = None
    if row.data_name is not None:
        data_name = name + DERIVED_SUFFIXES[-1 - row.data_name] if row.data_name < 0 else texts[row.data_name]
    numbers = (row.max, row.min, row.mean, row.norm)
    stats = [
        as_stored(numbers[place], row.states >> place * STATE_BITS & 7, dtype, wide.get(place))
        for place in range(len(STATISTICS))
    ]
    shape = texts.get(row.shape)
    return Leaf(
        node=node,
        name=data_name.rsplit(".", 1)[0] if data_name and names_item(data_name, node) else name,
        role=ROLE_WORDS[row.role],
        path=path,
        type=texts.get(row.type),
        dtype=dtype,
        shape=None if shape is None else json.loads(shape),
        stats=(stats[0], stats[1], stats[2], stats[3]),
        requires_grad=None if row.requires_grad is None else bool(row.requires_grad),
        hash=row.hash,
        value=texts.get(row.value),
        data_name=data_name,
    )


def _node_names(connection: Connection, rank: int, nodes: set[int]) -> dict[int, str]:
    entry = tables.entry.c
    keys = [tables.key(rank, node) for node in sorted(nodes)]
    found: dict[int, str] = {}
    for start in range(0, len(keys), 900):
        rows = connection.execute(select(entry.id, entry.name).where(entry.id.in_(keys[start : start + 900])))
        found.update((row.id & tables.NUMBER_MASK, row.name) for row in rows)
    return found


def _wide(connection: Connection, rank: int) -> dict[int, dict[int, int]]:
    text = connection.execute(select(tables.rank_dump.c.wide).where(tables.rank_dump.c.id == rank)).scalar()
    found: dict[int, dict[int, int]] = {}
    for item, statistic, digits in json.loads(text or "[]"):
        found.setdefault(item, {})[statistic] = int(digits, 16)
    return found
