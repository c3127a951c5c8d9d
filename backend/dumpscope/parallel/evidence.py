"""Evidence about the split in one rank: its modules, its layers, its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dumpscope.domain.records import Direction, Kind, NodeKind, RankDump, Role, State

WEIGHTED: Final = frozenset({"linear", "matmul", "conv1d", "conv2d", "conv3d", "embedding", "layer_norm"})
"""APIs whose second input is a weight."""

COMMUNICATION: Final = "Distributed."
"""Beginning of the labels of communications."""

Print = tuple[float, ...] | str
"""The stored statistics or the hash of a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """modules: labels of the modules, without a class; numbers: path of a module list -> the layer numbers in it
    weights: name -> shape and print; by module where modules hold parameters, else by call
    first: shape of the first tensor that meets a weight, else of the first that a call took: a program may begin with tables
        that are no data; took: shape and print of the first that a call took
    communication: number of calls of each communication, by label; peers: ranks that their groups name
    """

    rank: int
    modules: frozenset[str]
    numbers: dict[str, tuple[int, ...]]
    weights: dict[str, tuple[tuple[int, ...], Print]]
    first: tuple[int, ...] | None
    took: tuple[tuple[int, ...], Print] | None = None
    communication: Mapping[str, int] = field(default_factory=dict)
    peers: frozenset[int] = frozenset()


def evidence(dump: RankDump, rank: int) -> Evidence:
    paths = module_paths(dump)
    taken = _first(dump)
    numbers: dict[str, set[int]] = {}
    indexed = has_model_index(paths)
    for path in paths:
        words = path.split(".")
        place = layer_place(words, indexed=indexed)
        if place is not None:
            numbers.setdefault(".".join(words[:place]), set()).add(int(words[place]))
    return Evidence(
        rank=rank,
        modules=frozenset(paths),
        numbers={path: tuple(sorted(found)) for path, found in numbers.items()},
        weights=_weights(dump),
        first=_weighed(dump) or (None if taken is None else taken[0]),
        took=taken,
        communication=_communication(dump),
        peers=_peers(dump),
    )


def module_paths(dump: RankDump) -> set[str]:
    """Paths of the modules, without their class."""
    nodes = dump.nodes
    codes = {
        code for code, kind in zip(nodes.label.tolist(), nodes.kind.tolist(), strict=True) if kind == NodeKind.MODULE
    }
    return {nodes.labels[code].rpartition(".")[0] for code in codes if code >= 0}


def has_model_index(paths: set[str]) -> bool:
    """Whether the paths begin with the index of a model in a list of models."""
    heads = {path.split(".", 1)[0] for path in paths}
    return bool(paths) and all(head.isdigit() for head in heads) and not heads & paths


def layer_place(words: list[str], *, indexed: bool) -> int | None:
    """Position of the layer number in a module's path. indexed: the first word is the number of a model"""
    first = 1 if indexed else 0
    return next((place for place in range(first, len(words)) if words[place].isdigit()), None)


def _first(dump: RankDump) -> tuple[tuple[int, ...], Print] | None:
    items = dump.items
    taken = ((items.kind == Kind.TENSOR) & (items.role == Role.INPUT) & (items.shape >= 0)).nonzero()[0]
    return (items.shapes[items.shape[taken[0]]], fingerprint(dump, int(taken[0]))) if len(taken) else None


def _weighed(dump: RankDump) -> tuple[int, ...] | None:
    """Shape of the first tensor that a call with a weight took."""
    items, nodes = dump.items, dump.nodes
    weighted = np.array([label.rpartition(".")[2] in WEIGHTED for label in nodes.labels] + [False])[nodes.label]
    weighted &= (nodes.kind == NodeKind.API) & (nodes.direction == Direction.FORWARD)
    place = np.array([path == "0" for path in items.paths] + [False])[items.path]
    taken = (items.kind == Kind.TENSOR) & (items.role == Role.INPUT) & (items.shape >= 0) & place
    found = np.flatnonzero(taken & weighted[items.node])
    return items.shapes[items.shape[found[0]]] if len(found) else None


def _communication(dump: RankDump) -> dict[str, int]:
    nodes = dump.nodes
    codes = nodes.label[(nodes.label >= 0) & (nodes.direction == Direction.FORWARD)]
    counts = np.bincount(codes, minlength=len(nodes.labels)).tolist()
    return {
        label: count
        for label, count in zip(nodes.labels, counts, strict=True)
        if count and label.startswith(COMMUNICATION)
    }


def _peers(dump: RankDump) -> frozenset[int]:
    """Ranks that the groups of the communications name."""
    items = dump.items
    named: set[int] = set()
    for text in {items.values[code] for code in np.unique(items.value).tolist() if code >= 0}:
        if '"group_ranks"' in text:
            told = json.loads(text)
            ranks = told.get("group_ranks") if isinstance(told, dict) else None
            named |= {rank for rank in ranks if type(rank) is int} if isinstance(ranks, list) else set()
    return frozenset(named)


def _weights(dump: RankDump) -> dict[str, tuple[tuple[int, ...], Print]]:
    nodes, items = dump.nodes, dump.items
    tensors = (items.kind == Kind.TENSOR) & (items.shape >= 0) & (nodes.direction[items.node] == Direction.FORWARD)
    found: dict[str, tuple[tuple[int, ...], Print]] = {}
    for item in (tensors & (items.role == Role.PARAMETER)).nonzero()[0].tolist():
        node = int(items.node[item])
        label = nodes.labels[nodes.label[node]] if nodes.label[node] >= 0 else ""
        name = f"{label.rpartition('.')[0]}.{items.paths[items.path[item]]}"
        if name not in found:
            found[name] = items.shapes[items.shape[item]], fingerprint(dump, item)
    if found:
        return found
    weighted = np.array([label.rpartition(".")[2] in WEIGHTED for label in nodes.labels] + [False])[nodes.label]
    second = np.array([path == "1" for path in items.paths] + [False])[items.path]
    for item in (tensors & (items.role == Role.INPUT) & second & weighted[items.node]).nonzero()[0].tolist():
        found[nodes.names[items.node[item]]] = items.shapes[items.shape[item]], fingerprint(dump, item)
    return found


def fingerprint(dump: RankDump, item: int) -> Print:
    """The stored content of a tensor: its statistics, else its hash, else nothing."""
    items = dump.items
    stored: tuple[float, ...] = tuple(
        value if state == State.FINITE else -float(state)
        for value, state in zip(items.stats[item].tolist(), items.stat_state[item].tolist(), strict=True)
        if state != State.ABSENT
    )
    code = int(items.hash[item])
    return items.hashes[code] if code >= 0 and not stored else stored
