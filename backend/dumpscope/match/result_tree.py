"""Node pairs in order of execution, and one module tree over both sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dumpscope.domain.facts import Method, NodePairs
from dumpscope.domain.records import Bool, Float64, Int32, Int64
from dumpscope.domain.result import ResultTree
from dumpscope.match.matching import Matching
from dumpscope.match.unmatched import explain


def node_pairs(matching: Matching) -> NodePairs:
    """All dumped nodes of both sides: target's file order, a golden-only node after its golden predecessor."""
    target, golden = matching.target, matching.golden
    nt, ng = target.dumped, golden.dumped
    partner = np.full(nt, -1, np.int64)
    method = np.full(nt, int(Method.NONE), np.int8)
    for t, g in matching.partner.items():
        if t < nt and g < ng:
            partner[t] = g
            method[t] = matching.method[t]
    method[[t for t in matching.inside_target if t < nt]] = int(Method.FUSED)
    met = np.zeros(ng, bool)
    met[partner[partner >= 0]] = True
    lonely = np.flatnonzero(~met)
    place = _places(partner, ng)
    key = np.concatenate([np.arange(nt), place[lonely]])
    late = np.concatenate([np.zeros(nt, np.int64), np.ones(len(lonely), np.int64)])
    t_column = np.concatenate([np.arange(nt), np.full(len(lonely), -1)])
    g_column = np.concatenate([partner, lonely])
    inside = np.isin(lonely, list(matching.inside_golden))
    methods = np.concatenate([method, np.where(inside, int(Method.FUSED), int(Method.NONE)).astype(np.int8)])
    order = np.lexsort((g_column, late, key))
    t_column, g_column, methods = t_column[order], g_column[order], methods[order]
    confidence, surely = _confidence(matching, t_column, g_column, methods)
    pairs = NodePairs(
        target=t_column.astype(np.int32),
        golden=g_column.astype(np.int32),
        method=methods.astype(np.int8),
        confidence=confidence,
        leftover=np.zeros(len(order), np.int8),
        beside=np.full(len(order), -1, np.int32),
    )
    leftover, beside = explain(matching, pairs, surely.tolist())
    return replace(pairs, leftover=leftover, beside=beside)


def _places(partner: Int64, ng: int) -> Int64:
    """Target position after which each golden node is inserted: that of the nearest matched golden node before it."""
    place = np.full(ng, -1, np.int64)
    matched = np.flatnonzero(partner >= 0)
    place[partner[matched]] = matched
    known = np.where(place >= 0, np.arange(ng), -1)
    last = np.maximum.accumulate(known) if ng else known
    return np.where(last >= 0, place[last], -1)


_BASE = {Method.EXACT: 1.0, Method.RENAMED: 0.9, Method.MAPPED: 0.95, Method.FUZZY: 0.6, Method.ALIGNED: 0.85}


def _confidence(matching: Matching, t: Int64, g: Int64, method: Int64) -> tuple[Float64, Bool]:
    """Confidence per pair: 1 for an exact name, less for other methods or if the input shapes differ; fusions have their own.

    Also returns for each call without a partner whether the other side surely made it and did not dump it.
    """
    base = np.array([_BASE.get(Method(code), 0.0) for code in range(len(Method))])
    confidence = base[method]
    surely = np.zeros(len(method), bool)
    back = {g: t for t, g in matching.partner.items()}
    for k in np.flatnonzero(method == Method.NONE).tolist():
        surely[k] = int(t[k]) in matching.partner if t[k] >= 0 else int(g[k]) in back
        confidence[k] = float(surely[k])
    found = (method != Method.NONE) & (method != Method.EXACT) & (method != Method.FUSED)
    for k in np.flatnonzero(found).tolist():
        if matching.target.signature(int(t[k]))[0] != matching.golden.signature(int(g[k]))[0]:
            confidence[k] *= 0.8
    of_target = matching.inside_target | {fusion.target: fusion for fusion in matching.fusions}
    for k in np.flatnonzero(method == Method.FUSED).tolist():
        fusion = of_target[int(t[k])] if t[k] >= 0 else matching.inside_golden[int(g[k])]
        confidence[k] = fusion.confidence
    return confidence, surely


def result_tree(matching: Matching, pairs: NodePairs) -> ResultTree:
    """The target's tree, with golden-only nodes below the partner of their golden parent; empty virtual entries are dropped."""
    t_tree, g_tree = matching.target.dump.tree, matching.golden.dump.tree
    nt, ng = len(t_tree), len(g_tree)
    pair_of_t = np.full(nt, -1, np.int64)
    has_t = pairs.target >= 0
    pair_of_t[pairs.target[has_t]] = np.flatnonzero(has_t)
    only_g = (pairs.target < 0) & (pairs.golden >= 0)
    pair_of_g = np.full(ng, -1, np.int64)
    pair_of_g[pairs.golden[only_g]] = np.flatnonzero(only_g)
    back = np.full(ng, -1, np.int64)
    for t, g in matching.partner.items():
        back[g] = t
    # Golden-only entries with data, and their golden-only ancestors.
    wanted = pair_of_g >= 0
    for g in np.flatnonzero(wanted).tolist():
        up = int(g_tree.parent[g])
        while up >= 0 and back[up] < 0 and not wanted[up]:
            wanted[up] = True
            up = int(g_tree.parent[up])
    extra = np.flatnonzero(wanted)
    number = np.where(back >= 0, back, -1)
    number[extra] = nt + np.arange(len(extra))
    g_parent = g_tree.parent[extra]
    parent = np.concatenate([t_tree.parent, np.where(g_parent >= 0, number[g_parent], -1)])
    pair = np.concatenate([pair_of_t, pair_of_g[extra]])
    order = _merge_order(t_tree.order, g_tree.order, back, extra, parent[nt:], nt)
    names = [*t_tree.names, *(g_tree.names[g] for g in extra.tolist())]
    keep = _kept(parent, pair)
    fresh = np.cumsum(keep) - 1
    rank = np.empty(len(order), np.int64)
    rank[np.argsort(order, kind="stable")] = np.arange(len(order))
    kept = np.flatnonzero(keep)
    dense = np.empty(len(kept), np.int64)
    dense[np.argsort(rank[kept])] = np.arange(len(kept))
    kept_parent = parent[kept]
    return ResultTree(
        names=[names[i] for i in kept.tolist()],
        parent=np.where(kept_parent >= 0, fresh[kept_parent], -1).astype(np.int32),
        order=dense.astype(np.int32),
        pair=pair[kept].astype(np.int32),
        inferred=t_tree.inferred,
    )


def _merge_order(t_order: Int32, g_order: Int32, back: Int64, extra: Int64, parents: Int64, nt: int) -> Int64:
    """Sort key per entry: a golden-only entry follows the last matched golden entry before it, not its parent."""
    scale = len(extra) + 1
    keys = np.concatenate([t_order.astype(np.int64) * scale, np.zeros(len(extra), np.int64)])
    if not len(extra):
        return keys
    in_time = np.argsort(g_order, kind="stable")
    matched = back[in_time] >= 0
    seen = np.full(len(in_time), -1, np.int64)
    seen[matched] = t_order[back[in_time[matched]]]
    last = np.maximum.accumulate(np.where(matched, np.arange(len(in_time)), -1))
    before = np.where(last >= 0, seen[last], -1)
    at = np.empty(len(in_time), np.int64)
    at[in_time] = before
    by_time = extra[np.argsort(g_order[extra], kind="stable")]
    slot = {int(g): nt + i for i, g in enumerate(extra.tolist())}
    for serial, g in enumerate(by_time.tolist(), start=1):
        up = int(parents[slot[g] - nt])
        floor = int(keys[up]) // scale if up >= 0 else -1
        keys[slot[g]] = max(int(at[g]), floor) * scale + serial
    return keys


def _kept(parent: Int64, pair: Int64) -> Bool:
    keep = pair >= 0
    frontier = np.flatnonzero(keep)
    while len(frontier):
        up = np.unique(parent[frontier])
        up = up[up >= 0]
        frontier = up[~keep[up]]
        keep[frontier] = True
    return keep
