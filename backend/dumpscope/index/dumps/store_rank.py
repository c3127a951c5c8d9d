"""Store one rank of a dump: header, tree entries with their nodes, leaf records."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.analysis.unit.dataflow import trace_rank
from dumpscope.domain.records import Int32, Int64, RankDump
from dumpscope.errors import LimitError, NotFoundError
from dumpscope.index.dumps.items import store_items
from dumpscope.index.store import tables
from dumpscope.index.store.codec import (
    calls_digest,
    nullable,
    pack_producers,
    storable,
    to_json,
)
from dumpscope.index.store.database import Database
from dumpscope.index.store.owners import RANKS, Draft, draft, hide, remove, show, unused_ranks
from dumpscope.index.store.rollup import children_counts, sound_parents, subtree_sums
from dumpscope.index.store.texts import intern_stacks, intern_texts
from dumpscope.texts import say


def store_dump_rank(
    database: Database, dump_id: str, dump: RankDump, *, stamp: str | None = None, size: int = 0
) -> int:
    """Store (or store again) one rank of the dump `dump_id`; returns its rank_dump id.

    stamp: state of its files (readers.glance) before they were read; size: of its JSON files in bytes
    A rank without a number counts as rank 0. Nobody sees it before it is whole. What it replaces stays, unseen, while a result
    was compared from it. Raises LimitError past 2**28 records, NotFoundError where the dump goes meanwhile.
    """
    if max(len(dump.items), len(dump.tree)) > tables.NUMBER_MASK:
        raise LimitError(
            say("index.more_than_records_one_rank", number_mask=tables.NUMBER_MASK), where=dump.ref.dump_json
        )
    rank = dump.ref.number
    with database.read() as connection:
        serial = _serial(connection, dump_id)
    wide = [[item, statistic, hex(value)] for (item, statistic), value in dump.items.wide.items()]
    values = {
        "step": dump.ref.step,
        "rank": rank,
        "place": to_json(asdict(dump.ref)),
        "header": to_json(asdict(dump.header)),
        "inferred": int(dump.tree.inferred),
        "nodes": len(dump.nodes),
        "entries": len(dump.tree),
        "items": len(dump.items),
        "wide": to_json(wide),
        "problems": to_json([asdict(problem) for problem in dump.problems]),
        "stamp": stamp if stamp is None else storable([stamp])[0],
        "bytes": size,
        "calls": _calls(dump),
    }
    with draft(database, RANKS, serial, values) as new:
        _store_entries(new, dump)
        store_items(new, dump)
        new.append(tables.producers, [[tables.key(new.id)], [pack_producers(dump.items.producer, trace_rank(dump))]])
        with database.write() as connection:
            _serial(connection, dump_id)
            same = tables.rank_dump.c
            old = hide(connection, RANKS, serial, same.step == dump.ref.step, same.rank == rank, same.id != new.id)
            show(connection, RANKS, [new.id], serial)
            old = unused_ranks(connection, old)
    remove(database, RANKS, old)
    return new.id


def is_stored_as_it_is(dump: RankDump) -> bool:
    """Whether its texts come back from a database as they are; a few letters do not (see `codec.storable`)."""
    nodes, items = dump.nodes, dump.items
    texts = [
        nodes.names,
        dump.tree.names,
        nodes.labels,
        items.paths,
        items.types,
        items.dtypes,
        items.hashes,
        items.values,
    ]
    return all(storable(one) == list(one) for one in (*texts, items.data_names, *nodes.stacks))


def _calls(dump: RankDump) -> int:
    order = np.argsort(dump.tree.order, kind="stable")
    order = order[order < len(dump.nodes)]
    return calls_digest((dump.nodes.names[node] for node in order.tolist()), dump.nodes.kind[order])


def _serial(connection: Connection, dump_id: str) -> int:
    serial = connection.execute(select(tables.dump.c.serial).where(tables.dump.c.id == dump_id)).scalar()
    if serial is None:
        raise NotFoundError(say("index.dump_removed_while_being_read"), hint=say("api.register_again"))
    return int(serial)


def _store_entries(new: Draft, dump: RankDump) -> None:
    nodes, tree = dump.nodes, dump.tree
    owner, database = new.id, new.database
    size, dumped = len(tree), len(nodes)
    parent, depth = sound_parents(tree.parent, tree.order)
    is_node = (np.arange(size) < dumped).astype(np.int64)[:, None]
    labels = take(intern_texts(database, nodes.labels), nodes.label)
    stacks = take(intern_stacks(database, nodes.stacks), nodes.stack)
    counts = np.bincount(dump.items.node, minlength=dumped)[:dumped].astype(np.int64)
    virtual: list[Any] = [None] * (size - dumped)
    base = tables.key(owner)
    new.append(
        tables.entry,
        [
            range(base, base + size),
            parent_keys(owner, parent),
            tree.order.tolist(),
            storable(tree.names),
            nodes.kind.tolist() + virtual,
            nodes.direction.tolist() + virtual,
            nullable(labels) + virtual,
            nodes.index.tolist() + virtual,
            nullable(stacks) + virtual,
            nullable(nodes.micro) + virtual,
            children_counts(parent).tolist(),
            subtree_sums(parent, depth, is_node)[:, 0].tolist(),
            (np.cumsum(counts) - counts).tolist() + virtual,
            counts.tolist() + virtual,
        ],
    )


def take(ids: Int64, codes: Int32) -> Int64:
    """ids[codes], with -1 kept."""
    if not len(ids):
        return np.full(len(codes), -1, dtype=np.int64)
    return np.where(codes < 0, -1, ids[codes])


def parent_keys(owner: int, parent: Int32) -> list[int]:
    """Stored form of parent numbers: the parent's key, -owner at the top."""
    keys: list[int] = np.where(parent < 0, -owner, parent.astype(np.int64) | owner << tables.KEY_BITS).tolist()
    return keys
