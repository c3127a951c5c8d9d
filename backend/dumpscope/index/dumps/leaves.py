"""Single leaf records of a stored rank, decoded for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from dumpscope.domain.records import ROLE_WORDS, Number, as_stored, derived_name, names_item
from dumpscope.index.dumps.items import gone_rank, some_items
from dumpscope.index.store import tables
from dumpscope.index.store.codec import DERIVED_SUFFIXES, with_states
from dumpscope.index.store.item_blocks import ItemColumns
from dumpscope.index.store.prepared import Prepared, number_named, some_keys

_ENTRY: Final = tables.entry.c
_NAMES: Final = Prepared(select(_ENTRY.id, _ENTRY.name).where(_ENTRY.id.in_(some_keys())))
_WIDE: Final = Prepared(select(tables.rank_dump.c.wide).where(tables.rank_dump.c.id == number_named("rank")))


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
    """The records with these item numbers of rank_dump `rank`. Raises NotFoundError where one of them is missing."""
    wanted = set(numbers)
    if not wanted:
        return {}
    items = some_items(connection, rank, wanted)
    if len(items) < len(wanted):
        raise gone_rank()
    return leaves_of(connection, rank, items)


def leaves_of(connection: Connection, rank: int, items: ItemColumns) -> dict[int, Leaf]:
    """The records that these items of rank_dump `rank` are, by number and in their order.

    Raises NotFoundError where the rank is being removed.
    """
    if not len(items):
        return {}
    names = _node_names(connection, rank, set(items.node.tolist()))
    wide = _wide(connection, rank)
    stats = with_states(items.stats, items.states).tolist()
    states, nodes = items.states.tolist(), items.node.tolist()
    return {
        number: _leaf(items, row, names[nodes[row]], stats[row], states[row], wide.get(number, _NO_DIGITS))
        for row, number in enumerate(items.number.tolist())
    }


_NO_DIGITS: Final[dict[int, int]] = {}


def _leaf(
    items: ItemColumns, row: int, node: str, numbers: list[float], states: list[int], wide: dict[int, int]
) -> Leaf:
    path = items.path.at(row) or ""
    dtype, shape, data_name = items.dtype.at(row), items.shape.at(row), items.data_name.at(row)
    role, grad, named = int(items.role[row]), int(items.requires_grad[row]), int(items.data_name.codes[row])
    name = derived_name(node, role, path)
    if named < -1:
        data_name = name + DERIVED_SUFFIXES[-2 - named]
    stats = [
        as_stored(value, states[place], dtype, wide.get(place) if wide else None) for place, value in enumerate(numbers)
    ]
    return Leaf(
        node=node,
        name=data_name.rsplit(".", 1)[0] if data_name and names_item(data_name, node) else name,
        role=ROLE_WORDS[role],
        path=path,
        type=items.type.at(row),
        dtype=dtype,
        shape=None if shape is None else json.loads(shape),
        stats=(stats[0], stats[1], stats[2], stats[3]),
        requires_grad=None if grad < 0 else bool(grad),
        hash=items.hash.at(row),
        value=items.value.at(row),
        data_name=data_name,
    )


def _node_names(connection: Connection, rank: int, nodes: set[int]) -> dict[int, str]:
    keys = [tables.key(rank, node) for node in sorted(nodes)]
    found = {row.id & tables.NUMBER_MASK: row.name for row in _NAMES.among(connection, keys)}
    if len(found) < len(keys):
        raise gone_rank()
    return found


def _wide(connection: Connection, rank: int) -> dict[int, dict[int, int]]:
    text = _WIDE.value(connection, rank=rank)
    found: dict[int, dict[int, int]] = {}
    for item, statistic, digits in json.loads(text or "[]"):
        found.setdefault(item, {})[statistic] = int(digits, 16)
    return found
