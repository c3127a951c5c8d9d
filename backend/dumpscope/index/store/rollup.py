"""Sums over the subtrees of a forest given by parent numbers, and its number of children."""

from __future__ import annotations

import numpy as np

from dumpscope.domain.records import Int32, Int64


def sound_parents(parent: Int32, order: Int32) -> tuple[Int32, Int32]:
    """(parent, depth), both (n,): a parent that does not stand before its child in `order`, or does not exist, becomes -1."""
    sound: list[int] = parent.tolist()
    size = len(sound)
    depth = [-1] * size
    for entry in np.argsort(order, kind="stable").tolist():
        above = sound[entry]
        if 0 <= above < size and depth[above] >= 0:
            depth[entry] = depth[above] + 1
        else:
            sound[entry] = -1
            depth[entry] = 0
    return np.array(sound, dtype=np.int32), np.array(depth, dtype=np.int32)


def subtree_sums(parent: Int32, depth: Int32, values: Int64) -> Int64:
    """Per entry the sum of `values` (n, k) over its subtree, itself included; parents must be sound."""
    sums = values.astype(np.int64, copy=True)
    if not len(parent):
        return sums
    by_depth = np.argsort(depth, kind="stable")
    edges = np.searchsorted(depth[by_depth], np.arange(int(depth.max()) + 2))
    for level in range(int(depth.max()), 0, -1):
        entries = by_depth[edges[level] : edges[level + 1]]
        np.add.at(sums, parent[entries], sums[entries])
    return sums


def children_counts(parent: Int32) -> Int64:
    return np.bincount(parent[parent >= 0], minlength=len(parent)).astype(np.int64)
