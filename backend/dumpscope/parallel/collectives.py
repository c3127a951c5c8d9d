"""Removes communication between ranks that are joined: the joined dump has no such calls."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from dumpscope.domain.records import Kind, RankDump
from dumpscope.parallel.columns import keep_nodes

_PREFIX = "Distributed."
_PEERS = frozenset({"src", "dst", "peer", "group_src", "group_dst"})


def without_collectives(dump: RankDump, joined: Collection[int], world: Collection[int]) -> tuple[RankDump, int]:
    """The dump without calls between the ranks `joined` only, and the number of removed calls. A call without a recorded
    group belongs to all ranks of `world`; a call that names another rank belongs to that rank too."""
    labels = [label.startswith(_PREFIX) for label in dump.nodes.labels]
    if not any(labels):
        return dump, 0
    ours = set(joined)
    calls = np.flatnonzero(np.array([*labels, False])[dump.nodes.label])
    keep = np.ones(len(dump.nodes), bool)
    for node, ranks in zip(calls.tolist(), _partners(dump, calls.tolist()), strict=True):
        keep[node] = not (ranks if ranks else set(world)) <= ours
    return keep_nodes(dump, keep), int((~keep).sum())


def without_peers(dump: RankDump) -> RankDump:
    """The dump with groups and peers of calls shown but not judged: with another split, ranks have other numbers."""
    items = dump.items
    groups = np.array([text == "torch.ProcessGroup" for text in items.types] + [False])[items.type]
    paths = np.array([path.rpartition(".")[2] in _PEERS for path in items.paths] + [False])[items.path]
    calls = np.array([label.startswith(_PREFIX) for label in dump.nodes.labels] + [False])[dump.nodes.label]
    unjudged = (items.kind == Kind.SCALAR) & (groups | (paths & calls[items.node]))
    if not unjudged.any():
        return dump
    return replace(dump, items=replace(items, kind=np.where(unjudged, Kind.OPAQUE, items.kind).astype(np.int8)))


def _partners(dump: RankDump, calls: list[int]) -> list[set[int]]:
    """The ranks that each call names, in a group or as its peer."""
    items = dump.items
    edges = np.searchsorted(items.node, np.arange(len(dump.nodes) + 1))
    found = []
    for node in calls:
        ranks: set[int] = set()
        for item in range(int(edges[node]), int(edges[node + 1])):
            text = items.values[items.value[item]] if items.value[item] >= 0 else ""
            path = items.paths[items.path[item]] if items.path[item] >= 0 else ""
            if "group_ranks" in text:
                named = json.loads(text).get("group_ranks")
                if isinstance(named, list):
                    ranks.update(rank for rank in named if isinstance(rank, int))
            elif path.rpartition(".")[2] in _PEERS and text.isdigit():
                ranks.add(int(text))
        found.append(ranks)
    return found
