"""Load a stored rank back as the columns that a reader would return."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from sqlalchemy import Column, Connection, select

from dumpscope.domain.records import (
    Header,
    Int32,
    Items,
    Nodes,
    RankDump,
    RankRef,
    Tree,
    derived_name,
)
from dumpscope.domain.run import Run
from dumpscope.errors import Problem
from dumpscope.index.dumps.items import all_items, gone_rank
from dumpscope.index.store import tables
from dumpscope.index.store.codec import DERIVED_SUFFIXES, codes, distinct, unpack_producers, with_states
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.item_blocks import ItemColumns
from dumpscope.index.store.prepared import Prepared, number_named
from dumpscope.index.store.texts import stacks_by_id, texts_by_id


def load_rank(database: Database, rank_id: int) -> RankDump:
    """The rank_dump `rank_id` as columns; codes may differ from the reader's, what they mean does not.

    Raises NotFoundError where it is gone or being removed.
    """
    with database.read() as connection:
        row = connection.execute(select(tables.rank_dump).where(tables.rank_dump.c.id == rank_id)).one_or_none()
        if row is None:
            raise gone_rank()
        nodes, tree = _load_entries(connection, row)
        items = _load_items(connection, row, nodes.names)
    return RankDump(
        ref=RankRef.from_json(json.loads(row.place)),
        header=Header.from_json(json.loads(row.header)),
        nodes=nodes,
        items=items,
        tree=tree,
        problems=[Problem(**problem) for problem in json.loads(row.problems)],
    )


def rank_places(database: Database, dump_id: str) -> dict[int, RankRef]:
    """rank_dump id -> where that rank lies, for all ranks of a dump by step and rank."""
    rank = tables.rank_dump.c
    statement = (
        select(rank.id, rank.place)
        .join(tables.dump, tables.dump.c.serial == rank.dump)
        .where(tables.dump.c.id == dump_id)
        .order_by(rank.step, rank.rank)
    )
    with database.read() as connection:
        return {row.id: RankRef.from_json(json.loads(row.place)) for row in connection.execute(statement)}


def rank_place(database: Database, rank_id: int) -> RankRef | None:
    """Where the rank_dump `rank_id` lies, None where it is gone."""
    place = _column(database, tables.rank_dump.c.place, rank_id)
    return None if place is None else RankRef.from_json(json.loads(place))


def rank_headers(database: Database, dump_id: str) -> list[Header]:
    """Headers of all ranks of a dump by step and rank."""
    rank = tables.rank_dump.c
    statement = (
        select(rank.header)
        .join(tables.dump, tables.dump.c.serial == rank.dump)
        .where(tables.dump.c.id == dump_id)
        .order_by(rank.step, rank.rank)
    )
    with database.read() as connection:
        return [Header.from_json(json.loads(header)) for header in connection.execute(statement).scalars()]


def empty_ranks(database: Database, dump_ids: Sequence[str]) -> dict[int, str]:
    """rank_dump id -> why ("" where nothing tells), for the ranks of these dumps in which no node was recorded."""
    rank = tables.rank_dump.c
    statement = (
        select(rank.id, rank.problems)
        .join(tables.dump, tables.dump.c.serial == rank.dump)
        .where(tables.dump.c.id.in_(dump_ids), rank.nodes == 0)
    )
    with database.read() as connection:
        found = {row.id: json.loads(row.problems) for row in connection.execute(statement)}
    return {number: Problem(**problems[0]).message if problems else "" for number, problems in found.items()}


def tensor_folder(database: Database, rank_id: int) -> str | None:
    """Where the tensor files of the rank_dump `rank_id` lie, None where it has none. Raises NotFoundError."""
    header = _column(database, tables.rank_dump.c.header, rank_id)
    if header is None:
        raise gone_rank()
    folder: str | None = json.loads(header)["data_dir"]
    return folder


def has_stacks(database: Database, rank_id: int) -> bool:
    """Whether the rank_dump `rank_id` came with call stacks."""
    place = rank_place(database, rank_id)
    return place is not None and place.has_stacks


def stored_run(database: Database, rank_id: int) -> Run | None:
    """How the rank_dump `rank_id` was run, None where it does not tell."""
    header = _column(database, tables.rank_dump.c.header, rank_id)
    return None if header is None else Header.from_json(json.loads(header)).run


def _column(database: Database, column: Column[Any], rank_id: int) -> str | None:
    with database.read() as connection:
        found: str | None = _COLUMNS[column.name].value(connection, rank=rank_id)
    return found


_RANK: Final = tables.rank_dump.c
_COLUMNS: Final = {
    column.name: Prepared(select(column).where(_RANK.id == number_named("rank")))
    for column in (_RANK.header, _RANK.place)
}


def _load_entries(connection: Connection, row: Any) -> tuple[Nodes, Tree]:
    columns = _rows(
        connection, "entry", "parent, seq, name, kind, direction, label, call, stack, micro", row.id, width=9
    )
    parent, seq, names, kind, direction, label, call, stack, micro = columns
    if len(names) != row.entries:
        raise gone_rank()
    parents = np.array(parent, dtype=np.int64)
    dumped = row.nodes
    label_codes, labels = _texts(connection, label[:dumped])
    stack_codes, stack_ids = distinct(stack[:dumped])
    stacks = stacks_by_id(connection, stack_ids)
    nodes = Nodes(
        names=list(names[:dumped]),
        kind=codes(kind[:dumped], np.int8),
        direction=codes(direction[:dumped], np.int8),
        label=label_codes,
        labels=labels,
        index=codes(call[:dumped]),
        stack=stack_codes,
        stacks=[stacks[number] for number in stack_ids],
        micro=codes(micro[:dumped]),
    )
    tree = Tree(
        names=list(names),
        parent=np.where(parents < 0, -1, parents & tables.NUMBER_MASK).astype(np.int32),
        order=np.array(seq, dtype=np.int32),
        inferred=bool(row.inferred),
    )
    return nodes, tree


def _load_items(connection: Connection, row: Any, names: list[str]) -> Items:
    found = all_items(connection, row.id)
    if len(found) != row.items:
        raise gone_rank()
    made = stored_producers(connection, row.id)
    data_codes, data_names = _data_names(found, names)
    return Items(
        node=found.node,
        role=found.role,
        path=found.path.codes,
        paths=found.path.texts,
        kind=found.kind,
        type=found.type.codes,
        types=found.type.texts,
        dtype=found.dtype.codes,
        dtypes=found.dtype.texts,
        shape=found.shape.codes,
        shapes=[tuple(json.loads(text)) for text in found.shape.texts],
        stats=with_states(found.stats, found.states),
        stat_state=found.states,
        wide={(item, statistic): int(text, 16) for item, statistic, text in json.loads(row.wide)},
        requires_grad=found.requires_grad,
        hash=found.hash.codes,
        hashes=found.hash.texts,
        value=found.value.codes,
        values=found.value.texts,
        data_name=data_codes,
        data_names=data_names,
        producer=np.full(len(found), -1, np.int32) if made is None else made[0],
    )


_MADE: Final = Prepared(select(tables.producers.c.made).where(tables.producers.c.id == number_named("rank")))


def stored_producers(connection: Connection, rank: int) -> tuple[Int32, Int32] | None:
    """Per item of rank_dump `rank` the record that the dump names as its producer, and that or the one told by values; None
    where the rank was stored by a version that kept none."""
    made = _MADE.value(connection, rank=tables.key(rank))
    return None if made is None else unpack_producers(bytes(made))


def _data_names(items: ItemColumns, names: list[str]) -> tuple[Int32, list[str]]:
    """Codes and names of files, those that follow from the items' own names written out."""
    found = items.data_name.codes.copy()
    table = {name: code for code, name in enumerate(items.data_name.texts)}
    for item in np.flatnonzero(found < -1).tolist():
        own = derived_name(names[items.node[item]], int(items.role[item]), items.path.at(item) or "")
        found[item] = table.setdefault(own + DERIVED_SUFFIXES[-2 - found[item]], len(table))
    return found, list(table)


def _rows(connection: Connection, table: str, columns: str, owner: int, *, width: int) -> list[Sequence[Any]]:
    first, last = tables.key_range(owner)
    found = fetch_columns(connection, f"SELECT {columns} FROM {table} WHERE id BETWEEN {first} AND {last} ORDER BY id")
    return list(found) if found else [() for _ in range(width)]


def _texts(connection: Connection, ids: Sequence[int | None]) -> tuple[Int32, list[str]]:
    found, used = distinct(ids)
    texts = texts_by_id(connection, used)
    return found, [texts[number] for number in used]
