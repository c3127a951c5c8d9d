"""The items of stored ranks: written as blocks, read from blocks or, of a rank that an older version stored, from rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection

from dumpscope.domain.records import STATISTICS, RankDump, derived_name
from dumpscope.errors import NotFoundError
from dumpscope.index.store import tables
from dumpscope.index.store.codec import DERIVED_SUFFIXES, codes, distinct, numbers, storable, to_json, unpack_states
from dumpscope.index.store.database import fetch_among, fetch_columns
from dumpscope.index.store.item_blocks import (
    BLOCK,
    TEXTS,
    Coded,
    ItemColumns,
    finite_only,
    join_columns,
    pack_block,
    unpack_block,
)
from dumpscope.index.store.owners import Draft
from dumpscope.index.store.texts import texts_by_id
from dumpscope.texts import say

BLOCKS: Final = 256
"""Blocks of one transaction: some 2 MB."""

_ROW: Final = (
    "id", "node", "role", "kind", "path", "type", "dtype", "shape", "max", "min", "mean", "norm", "states",
    "requires_grad", "hash", "value", "data_name",
)  # fmt: skip


def store_items(new: Draft, dump: RankDump) -> None:
    """Add the items of a rank to a draft of it."""
    columns = item_columns(dump)
    starts = range(0, len(columns), BLOCK)
    for some in (starts[at : at + BLOCKS] for at in range(0, len(starts), BLOCKS)):
        blocks = [pack_block(columns, slice(start, min(start + BLOCK, len(columns)))) for start in some]
        new.append(tables.item_block, [[tables.key(new.id, start) for start in some], blocks])


def item_columns(dump: RankDump) -> ItemColumns:
    """The items of a rank as they are stored."""
    items = dump.items
    return ItemColumns(
        number=np.arange(len(items), dtype=np.int64),
        node=items.node,
        role=items.role,
        kind=items.kind,
        path=Coded(codes=items.path, texts=storable(items.paths)),
        type=Coded(codes=items.type, texts=storable(items.types)),
        dtype=Coded(codes=items.dtype, texts=storable(items.dtypes)),
        shape=Coded(codes=items.shape, texts=[to_json(list(shape)) for shape in items.shapes]),
        stats=finite_only(items.stats, items.stat_state),
        states=items.stat_state,
        requires_grad=items.requires_grad,
        hash=Coded(codes=items.hash, texts=storable(items.hashes)),
        value=Coded(codes=items.value, texts=storable(items.values)),
        data_name=_data_names(dump),
    )


def all_items(connection: Connection, rank: int) -> ItemColumns:
    """Every item of rank_dump `rank`, by number."""
    first, last = tables.key_range(rank)
    found = fetch_columns(connection, f"SELECT columns FROM item_block WHERE id BETWEEN {first} AND {last} ORDER BY id")
    if found:
        return join_columns([unpack_block(bytes(block)) for block in found[0]])
    names = ", ".join(_ROW)
    where = f"id BETWEEN {first} AND {last} ORDER BY id"
    return _from_rows(connection, fetch_columns(connection, f"SELECT {names} FROM item WHERE {where}"))


def some_items(connection: Connection, rank: int, wanted: Iterable[int]) -> ItemColumns:
    """Those of these numbers that there are, by number."""
    asked = np.unique(np.fromiter(wanted, np.int64))
    if not len(asked):
        return _no_items()
    keys = [tables.key(rank, start) for start in np.unique(asked - asked % BLOCK).tolist()]
    blocks = sorted(fetch_among(connection, tables.item_block, ("id", "columns"), "id", keys))
    if blocks:
        return join_columns([unpack_block(bytes(content), asked) for _, content in blocks])
    keys = [tables.key(rank, number) for number in asked.tolist()]
    rows = sorted(fetch_among(connection, tables.item, _ROW, "id", keys))
    return _from_rows(connection, list(zip(*rows, strict=True)))


@cache
def _no_items() -> ItemColumns:
    none = np.empty(0, np.int8)
    coded = {name: Coded(codes=none.astype(np.int32), texts=[]) for name in TEXTS}
    return ItemColumns(
        number=none.astype(np.int64),
        node=none.astype(np.int32),
        role=none,
        kind=none,
        stats=np.empty((0, len(STATISTICS))),
        states=np.empty((0, len(STATISTICS)), np.uint8),
        requires_grad=none,
        **coded,
    )


def gone_rank() -> NotFoundError:
    """What to raise where a rank lacks rows that it had: it is removed in batches, and who holds its number reads on."""
    return NotFoundError(say("index.rank_dump_gone"), hint=say("index.register_dump_again"))


def _from_rows(connection: Connection, columns: Sequence[Sequence[Any]]) -> ItemColumns:
    """Items from columns of the table `item`, by `_ROW`; none where there are no rows."""
    row = dict(zip(_ROW, columns or [[] for _ in _ROW], strict=True))
    states = unpack_states(np.array(row["states"], dtype=np.int64), 4)
    hashed, hashes = distinct(row["hash"])
    stats = numbers([row[name] for name in ("max", "min", "mean", "norm")], states)
    return ItemColumns(
        number=np.array(row["id"], dtype=np.int64) & tables.NUMBER_MASK,
        node=np.array(row["node"], dtype=np.int32),
        role=np.array(row["role"], dtype=np.int8),
        kind=np.array(row["kind"], dtype=np.int8),
        stats=finite_only(stats, states),
        states=states,
        requires_grad=codes(row["requires_grad"], np.int8),
        hash=Coded(codes=hashed, texts=hashes),
        data_name=_stored_names(connection, row["data_name"]),
        **{name: _texts(connection, row[name]) for name in ("path", "type", "dtype", "shape", "value")},
    )


def _texts(connection: Connection, ids: Sequence[int | None]) -> Coded:
    found, used = distinct(ids)
    known = texts_by_id(connection, used)
    return Coded(codes=found, texts=[known[number] for number in used])


def _stored_names(connection: Connection, stored: Sequence[int | None]) -> Coded:
    """Column `data_name` of rows: negative where the name follows from the item's own."""
    found = _texts(connection, [number if number is not None and number > 0 else None for number in stored])
    own = np.array([number - 1 if number is not None and number < 0 else -1 for number in stored], dtype=np.int32)
    return Coded(codes=np.where(found.codes < 0, own, found.codes), texts=found.texts)


def _data_names(dump: RankDump) -> Coded:
    """Data names; the usual ones, which follow from the item's own name, as numbers below -1."""
    items = dump.items
    if not (items.data_name >= 0).any():
        return Coded(codes=items.data_name, texts=[])
    texts = storable(items.data_names)
    found = items.data_name.copy()
    for item, own in enumerate(_derived_names(dump)):
        code = int(found[item])
        if code < 0:
            continue
        for place, suffix in enumerate(DERIVED_SUFFIXES):
            if items.data_names[code] == own + suffix:
                found[item] = -2 - place
    return Coded(codes=found, texts=texts)


def _derived_names(dump: RankDump) -> Iterable[str]:
    """The name each item has by its place: node, role and path (see domain.records.item_name)."""
    items, names, paths = dump.items, dump.nodes.names, dump.items.paths
    for node, role, path in zip(items.node.tolist(), items.role.tolist(), items.path.tolist(), strict=True):
        yield derived_name(names[node], role, paths[path] if path >= 0 else "")
