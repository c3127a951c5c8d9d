"""Store one rank of a dump: header, tree entries with their nodes, leaf records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.analysis.unit.dataflow import trace_rank
from dumpscope.domain.records import Int32, Int64, RankDump, derived_name
from dumpscope.errors import LimitError, NotFoundError
from dumpscope.index.store import tables
from dumpscope.index.store.codec import (
    DERIVED_SUFFIXES,
    calls_digest,
    nullable,
    number_columns,
    pack_producers,
    pack_states,
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
        _store_items(new, dump)
        new.append(tables.producers, [[tables.key(new.id)], [pack_producers(dump.items.producer, trace_rank(dump))]])
        with database.write() as connection:
            _serial(connection, dump_id)
            same = tables.rank_dump.c
            old = hide(connection, RANKS, serial, same.step == dump.ref.step, same.rank == rank, same.id != new.id)
            show(connection, RANKS, [new.id], serial)
            old = unused_ranks(connection, old)
    remove(database, RANKS, old)
    return new.id


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


def _store_items(new: Draft, dump: RankDump) -> None:
    items, database = dump.items, new.database
    base = tables.key(new.id)
    shapes = [to_json(list(shape)) for shape in items.shapes]
    hashes = [*storable(items.hashes), None]
    new.append(
        tables.item,
        [
            range(base, base + len(items)),
            items.node.tolist(),
            items.role.tolist(),
            items.kind.tolist(),
            nullable(take(intern_texts(database, items.paths), items.path)),
            nullable(take(intern_texts(database, items.types), items.type)),
            nullable(take(intern_texts(database, items.dtypes), items.dtype)),
            nullable(take(intern_texts(database, shapes), items.shape)),
            *number_columns(items.stats, items.stat_state),
            pack_states(items.stat_state).tolist(),
            nullable(items.requires_grad.astype(np.int32)),
            [hashes[code] for code in items.hash.tolist()],
            nullable(take(intern_texts(database, items.values), items.value)),
            _data_names(database, dump),
        ],
    )


def _data_names(database: Database, dump: RankDump) -> list[int | None]:
    """Text ids of the data names; the usual ones, which follow from the item's own name, as small negative numbers."""
    items = dump.items
    known = items.data_name.tolist()
    stored: list[int | None] = [None] * len(known)
    if not (items.data_name >= 0).any():
        return stored
    odd: dict[int, list[int]] = {}
    for item, (code, derived) in enumerate(zip(known, derived_names(dump), strict=True)):
        if code < 0:
            continue
        name = items.data_names[code]
        for place, suffix in enumerate(DERIVED_SUFFIXES):
            if name == derived + suffix:
                stored[item] = -1 - place
                break
        else:
            odd.setdefault(code, []).append(item)
    ids = intern_texts(database, [items.data_names[code] for code in odd])
    for number, rows in zip(ids.tolist(), odd.values(), strict=True):
        for item in rows:
            stored[item] = number
    return stored


def derived_names(dump: RankDump) -> Iterator[str]:
    """The name each item has by its place: node, role and path (see domain.records.item_name)."""
    items, names, paths = dump.items, dump.nodes.names, dump.items.paths
    for node, role, path in zip(items.node.tolist(), items.role.tolist(), items.path.tolist(), strict=True):
        yield derived_name(names[node], role, paths[path] if path >= 0 else "")


def take(ids: Int64, codes: Int32) -> Int64:
    """ids[codes], with -1 kept."""
    if not len(ids):
        return np.full(len(codes), -1, dtype=np.int64)
    return np.where(codes < 0, -1, ids[codes])


def parent_keys(owner: int, parent: Int32) -> list[int]:
    """Stored form of parent numbers: the parent's key, -owner at the top."""
    keys: list[int] = np.where(parent < 0, -owner, parent.astype(np.int64) | owner << tables.KEY_BITS).tolist()
    return keys
