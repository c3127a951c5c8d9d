"""Pairs of leaf records inside matched nodes: same role, same path. Shape and dtype are judged later, never matched on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dumpscope.domain.facts import ItemPairs
from dumpscope.domain.records import Int32, Int64, Items, RankDump, item_name
from dumpscope.match.item_places import Places, by_name, by_shape, common_places, places_differ
from dumpscope.match.operators.operands import swap_operands


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """Item pairs that are not found by role and path; these items have no other partner.

    target, golden: item numbers; row: number of the node pair of each
    split: node pairs whose other items are not paired
    """

    target: list[int] = field(default_factory=list)
    golden: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)


def pair_items(target: RankDump, golden: RankDump, t_nodes: Int32, g_nodes: Int32, assigned: Assigned) -> ItemPairs:
    """Item pairs of node pairs (t_nodes[k], g_nodes[k]), -1 where a side has no node."""
    if assigned.target or assigned.split:
        return _with_assigned(target, golden, t_nodes, g_nodes, assigned)
    t_first, t_count = _bounds(target)
    g_first, g_count = _bounds(golden)
    across = places_differ(target, golden)
    places = (common_places(target), common_places(golden)) if across else (target.items, golden.items)
    t_keys, g_keys = _keys(*places)
    nt = np.where(t_nodes >= 0, t_count[t_nodes], 0)
    ng = np.where(g_nodes >= 0, g_count[g_nodes], 0)
    same = (t_nodes >= 0) & (g_nodes >= 0) & (nt == ng)
    t_flat, owner = _spread(t_first[t_nodes], np.where(same, nt, 0))
    g_flat, _ = _spread(g_first[g_nodes], np.where(same, nt, 0))
    same[owner[t_keys[t_flat] != g_keys[g_flat]]] = False
    keep = same[owner]
    pair, t_item, g_item = [owner[keep]], [t_flat[keep]], [g_flat[keep]]
    alone_t = (t_nodes >= 0) & (g_nodes < 0)
    flat, owner = _spread(t_first[t_nodes], np.where(alone_t, nt, 0))
    pair.append(owner)
    t_item.append(flat)
    g_item.append(np.full(len(flat), -1, np.int64))
    alone_g = (g_nodes >= 0) & (t_nodes < 0)
    flat, owner = _spread(g_first[g_nodes], np.where(alone_g, ng, 0))
    pair.append(owner)
    t_item.append(np.full(len(flat), -1, np.int64))
    g_item.append(flat)
    rest = np.flatnonzero((t_nodes >= 0) & (g_nodes >= 0) & ~same)
    if len(rest):
        columns = _one_by_one(rest, t_nodes, g_nodes, (t_first, nt, t_keys), (g_first, ng, g_keys))
        for column, more in zip((pair, t_item, g_item), columns, strict=True):
            column.append(more)
    found = np.concatenate(pair), np.concatenate(t_item), np.concatenate(g_item)
    if len(rest) and not across:
        found = by_name(target, golden, *found)
    if across:
        found = by_shape(target, golden, *found)
    found = swap_operands(target, golden, t_nodes, g_nodes, found)
    return _sorted(target.items, golden.items, *found)


def find_items(dump: RankDump, names: set[str]) -> dict[str, int]:
    """Item numbers of full item names, for a data_mapping."""
    return {name: item for item in range(len(dump.items)) if (name := item_name(dump, item)) in names}


def _bounds(dump: RankDump) -> tuple[Int64, Int64]:
    edges = np.searchsorted(dump.items.node, np.arange(len(dump.nodes) + 1))
    # one entry more than nodes: node -1, "no node", then has an empty range even if there is no node at all
    return np.append(edges[:-1], 0).astype(np.int64), np.append(np.diff(edges), 0).astype(np.int64)


def _keys(target: Items | Places, golden: Items | Places) -> tuple[Int64, Int64]:
    """Role and path as one number that means the same on both sides."""
    codes = {path: code for code, path in enumerate(target.paths)}
    for path in golden.paths:
        codes.setdefault(path, len(codes))
    table = np.array([codes[path] for path in golden.paths], dtype=np.int64) if golden.paths else np.zeros(0, np.int64)
    t_keys = target.path.astype(np.int64) * 16 + target.role
    g_keys = (table[golden.path] if len(table) else golden.path.astype(np.int64)) * 16 + golden.role
    return t_keys, g_keys


def _spread(first: Int64, count: Int64) -> tuple[Int64, Int64]:
    """Item numbers of many segments one after the other, and the segment of each."""
    owner = np.repeat(np.arange(len(count)), count)
    starts = np.cumsum(count) - count
    return first[owner] + np.arange(len(owner)) - starts[owner], owner


def _one_by_one(
    rest: Int64, t_nodes: Int32, g_nodes: Int32, t_side: tuple[Int64, Int64, Int64], g_side: tuple[Int64, Int64, Int64]
) -> tuple[Int64, Int64, Int64]:
    """Pair items by (role, path) for nodes whose items differ in number or path; keep items without a partner."""
    out: tuple[list[int], list[int], list[int]] = ([], [], [])
    for k in rest.tolist():
        t0, g0 = int(t_side[0][t_nodes[k]]), int(g_side[0][g_nodes[k]])
        waiting = {key: g0 + i for i, key in enumerate(g_side[2][g0 : g0 + int(g_side[1][k])].tolist())}
        for i, key in enumerate(t_side[2][t0 : t0 + int(t_side[1][k])].tolist()):
            _append(out, k, t0 + i, waiting.pop(key, -1))
        for g in waiting.values():
            _append(out, k, -1, g)
    return np.array(out[0], np.int64), np.array(out[1], np.int64), np.array(out[2], np.int64)


def _append(out: tuple[list[int], list[int], list[int]], pair: int, t: int, g: int) -> None:
    for column, value in zip(out, (pair, t, g), strict=True):
        column.append(value)


def _with_assigned(target: RankDump, golden: RankDump, t_nodes: Int32, g_nodes: Int32, assigned: Assigned) -> ItemPairs:
    plain = pair_items(target, golden, t_nodes, g_nodes, Assigned())
    lost_t, lost_g = np.isin(plain.target, assigned.target), np.isin(plain.golden, assigned.golden)
    apart = lost_t | lost_g | np.isin(plain.pair, assigned.split)
    columns = [(plain.pair[~apart], plain.target[~apart], plain.golden[~apart])]
    left = apart & ~lost_t & (plain.target >= 0)
    columns.append((plain.pair[left], plain.target[left], np.full(int(left.sum()), -1)))
    left = apart & ~lost_g & (plain.golden >= 0)
    columns.append((plain.pair[left], np.full(int(left.sum()), -1), plain.golden[left]))
    columns.append((np.array(assigned.row), np.array(assigned.target), np.array(assigned.golden)))
    pair, t, g = (np.concatenate(column).astype(np.int64) for column in zip(*columns, strict=True))
    return _sorted(target.items, golden.items, pair, t, g)


def _sorted(target: Items, golden: Items, pair: Int64, t: Int64, g: Int64) -> ItemPairs:
    """Order inside a pair: inputs, keyword inputs, parameters, outputs; golden-only items after the target's."""
    role = np.where(t >= 0, target.role[t] if len(target) else 0, golden.role[g] if len(golden) else 0)
    place = np.where(t >= 0, t, np.iinfo(np.int64).max)
    order = np.lexsort((g, place, role, pair))
    return ItemPairs(
        pair=pair[order].astype(np.int32), target=t[order].astype(np.int32), golden=g[order].astype(np.int32)
    )
