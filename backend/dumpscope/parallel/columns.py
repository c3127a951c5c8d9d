"""Concatenates dumps into one set of columns, and takes parts from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Int32, Int64, Items, Nodes, RankDump

_CODED: Final = {
    "path": "paths", "type": "types", "dtype": "dtypes", "shape": "shapes", "hash": "hashes", "value": "values",
    "data_name": "data_names",
}  # fmt: skip
_PLAIN: Final = ("role", "kind", "stats", "stat_state", "requires_grad")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """nodes and items of all dumps, one dump after the other; an item's `node` counts over all of them.

    first_node, first_item: index of each dump's first node and item
    """

    nodes: Nodes
    items: Items
    first_node: tuple[int, ...]
    first_item: tuple[int, ...]


def pool(dumps: Sequence[RankDump]) -> Pool:
    first_node = np.cumsum([0, *(len(dump.nodes) for dump in dumps)])
    first_item = np.cumsum([0, *(len(dump.items) for dump in dumps)])
    labels, label = merged_codes([dump.nodes.labels for dump in dumps], [dump.nodes.label for dump in dumps])
    stacks, stack = merged_codes([dump.nodes.stacks for dump in dumps], [dump.nodes.stack for dump in dumps])
    nodes = Nodes(
        names=[name for dump in dumps for name in dump.nodes.names],
        kind=np.concatenate([dump.nodes.kind for dump in dumps]),
        direction=np.concatenate([dump.nodes.direction for dump in dumps]),
        label=label,
        labels=labels,
        index=np.concatenate([dump.nodes.index for dump in dumps]),
        stack=stack,
        stacks=stacks,
        micro=np.concatenate([dump.nodes.micro for dump in dumps]),
    )
    columns: dict[str, Any] = {name: np.concatenate([getattr(dump.items, name) for dump in dumps]) for name in _PLAIN}
    for code, table in _CODED.items():
        columns[table], columns[code] = merged_codes(
            [getattr(dump.items, table) for dump in dumps], [getattr(dump.items, code) for dump in dumps]
        )
    starts = zip(first_node.tolist(), first_item.tolist(), dumps, strict=False)
    wide = {
        (item + first, statistic): value
        for _, first, dump in starts
        for (item, statistic), value in dump.items.wide.items()
    }
    owner = np.concatenate([dump.items.node + first for first, dump in zip(first_node.tolist(), dumps, strict=False)])
    return Pool(
        nodes=nodes,
        items=Items(node=owner.astype(np.int32), wide=wide, producer=_producers(dumps, first_item), **columns),
        first_node=tuple(first_node[:-1].tolist()),
        first_item=tuple(first_item[:-1].tolist()),
    )


def _producers(dumps: Sequence[RankDump], first_item: Int64) -> Int32:
    columns = [dump.items.producer for dump in dumps]
    moved = [np.where(own < 0, -1, own + first) for own, first in zip(columns, first_item.tolist(), strict=False)]
    return np.concatenate(moved).astype(np.int32)


def take_nodes(nodes: Nodes, rows: Int64) -> Nodes:
    """The nodes `rows`, in that order."""
    return replace(
        nodes,
        names=[nodes.names[row] for row in rows.tolist()],
        **{name: getattr(nodes, name)[rows] for name in ("kind", "direction", "label", "index", "stack", "micro")},
    )


def take_items(items: Items, rows: Int64, node: Int32, *, number: Int32 | None = None) -> Items:
    """The items `rows`, in that order; node: the new number of the node of each
    number: new number of every item, -1 where it is not taken, and -1 behind the last; None: found here"""
    wide = items.wide
    if wide:
        places = {row: place for place, row in enumerate(rows.tolist())}
        held = (
            wide
            if len(wide) < len(places)
            else {(row, at): wide[row, at] for row in places for at in range(4) if (row, at) in wide}
        )
        wide = {(places[item], column): value for (item, column), value in held.items() if item in places}
    columns = {name: getattr(items, name)[rows] for name in (*_PLAIN, *_CODED)}
    if number is None:
        number = np.full(len(items) + 1, -1, np.int32)  # the extra last entry is for -1
        number[rows] = np.arange(len(rows))
    return replace(items, node=node, wide=wide, producer=number[items.producer[rows]], **columns)


def lean(dump: RankDump, pattern: RankDump | None) -> RankDump:
    """The dump, sharing the names, tables and columns that are equal in another dump, so that they are held once."""
    if pattern is None or dump is pattern:
        return dump
    parts = {}
    for part in ("nodes", "items", "tree"):
        own, other = getattr(dump, part), getattr(pattern, part)
        same = {
            name: getattr(other, name)
            for name in own.__dataclass_fields__
            if _equal(getattr(own, name), getattr(other, name))
        }
        parts[part] = replace(own, **same)
    return replace(dump, **parts)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    return isinstance(one, list) and one == other


def keep_nodes(dump: RankDump, keep: np.ndarray[Any, np.dtype[np.bool_]]) -> RankDump:
    """The dump without the nodes that are not kept; their children move to their parent. keep: (nodes,)"""
    return keep_entries(dump, np.append(keep, np.ones(len(dump.tree) - len(dump.nodes), bool)))


def keep_entries(dump: RankDump, stays: np.ndarray[Any, np.dtype[np.bool_]]) -> RankDump:
    """The dump without the entries of its tree that do not stay; their children move to their parent. stays: (entries,)"""
    if stays.all():
        return dump
    rows = np.flatnonzero(stays)
    number = np.full(len(stays) + 1, -1, np.int64)  # the extra last entry is for -1
    number[rows] = np.arange(len(rows))
    parent = dump.tree.parent.astype(np.int64)
    above = parent[rows]
    while (lost := (above >= 0) & ~stays[above]).any():
        above[lost] = parent[above[lost]]
    keep = stays[: len(dump.nodes)]
    kept = np.flatnonzero(keep)
    items = np.flatnonzero(keep[dump.items.node])
    tree = replace(
        dump.tree,
        names=[dump.tree.names[row] for row in rows.tolist()],
        parent=number[above].astype(np.int32),
        order=_ranked(dump.tree.order[rows]),
    )
    return replace(
        dump,
        nodes=take_nodes(dump.nodes, kept),
        items=take_items(dump.items, items, number[dump.items.node[items]].astype(np.int32)),
        tree=tree,
    )


def split_entries(dump: RankDump, part: Int32, count: int) -> list[RankDump]:
    """Dumps of `count` parts of a dump, each with the entries of no part too. part: of every entry of the tree, -1 for none

    The cost is that of the dump, whatever the number of its parts.
    """
    nodes = len(dump.nodes)
    shared = np.flatnonzero(part < 0)
    by_part = np.argsort(part, kind="stable")
    begins = np.searchsorted(part[by_part], np.arange(count + 1))
    first_item = np.searchsorted(dump.items.node, np.arange(nodes + 1))
    parent = dump.tree.parent.astype(np.int64)
    number = np.full(len(part) + 1, -1, np.int64)  # the extra last entry is for -1
    item_number = np.full(len(dump.items) + 1, -1, np.int32)
    found = []
    for place in range(count):
        rows = np.sort(np.concatenate([shared, by_part[begins[place] : begins[place + 1]]]))
        number[rows] = np.arange(len(rows))
        above = parent[rows]
        while (lost := (above >= 0) & (number[above] < 0)).any():
            above[lost] = parent[above[lost]]
        kept = rows[rows < nodes]
        lengths = first_item[kept + 1] - first_item[kept]
        items = np.repeat(first_item[kept] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        item_number[items] = np.arange(len(items))
        names = [dump.tree.names[row] for row in rows.tolist()]
        tree = replace(
            dump.tree, names=names, parent=number[above].astype(np.int32), order=_ranked(dump.tree.order[rows])
        )
        owner = np.repeat(np.arange(len(kept)), lengths).astype(np.int32)
        found.append(
            replace(
                dump,
                nodes=take_nodes(dump.nodes, kept),
                items=take_items(dump.items, items, owner, number=item_number),
                tree=tree,
            )
        )
        number[rows], item_number[items] = -1, -1
    return found


def _ranked(order: Int32) -> Int32:
    out = np.empty(len(order), np.int32)
    out[np.argsort(order, kind="stable")] = np.arange(len(order))
    return out


def merged_codes(tables: Sequence[list[Any]], codes: Sequence[Int32]) -> tuple[list[Any], Int32]:
    """One table of all entries, and the codes into it."""
    known: dict[Any, int] = {}
    merged = []
    for table, column in zip(tables, codes, strict=True):
        recode = np.array([known.setdefault(entry, len(known)) for entry in table] + [-1], np.int32)
        merged.append(recode[column])
    return list(known), np.concatenate(merged)
