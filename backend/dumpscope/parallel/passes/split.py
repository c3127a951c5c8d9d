"""Finds the passes of a model in a dump: which call belongs to which pass, and what data each pass took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import numpy as np

from dumpscope.domain.records import Bool, Direction, Int32, Items, Kind, NodeKind, RankDump, Role, State
from dumpscope.parallel.aligned import Aligned
from dumpscope.parallel.columns import split_entries
from dumpscope.parallel.evidence import WEIGHTED, fingerprint
from dumpscope_format import naming

ONCE: Final = -1
"""Pass of an entry that belongs to none: an optimizer, what runs when all passes have ended."""
MOST: Final = 4096
"""Passes that are put together at most."""
_FEW: Final = 4
_AGAIN: Final = 0.25
"""Share of the modules that run in every pass at least where one that runs once precedes them."""
_SHARE: Final = 0.05
"""Calls, and share of the calls of a pass, that the last pass lacks at least where it ended early."""
_OPTIMIZER: Final = "optimizer"
_OUTSIDE: Final = (_OPTIMIZER, "clip_grad")
"""Entries of the tree that are no modules; calls below them belong to no pass."""
_TAKEN: Final = (Role.INPUT, Role.KWARG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """of: pass of every entry of the tree, ONCE for what is made once
    data: of every pass, the item that holds its data; made: what its first call made of that, -1: none
    turns: of every parameters_grad node, which firing of its parameter it is, from 0; -1 for other nodes"""

    count: int
    of: Int32
    data: tuple[int, ...]
    made: tuple[int, ...]
    turns: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    kind: str
    direction: str
    label: str
    index: int


def glance(dump: RankDump) -> list[tuple[int, ...]]:
    """Shapes of the data of every pass, as far as the first module tells, or the first call with a weight in a dump without
    modules. Cheap: it decides whether anything else is looked at."""
    nodes = dump.nodes
    ran = (nodes.kind == NodeKind.MODULE) & (nodes.direction == Direction.FORWARD) & (nodes.index < naming.AGAIN)
    modules = np.flatnonzero(ran)
    if len(modules):
        modules = modules[np.argsort(dump.tree.order[modules], kind="stable")]
        anchors = _anchors(dump, modules.tolist(), nodes.label[modules].tolist())
    else:
        anchors = _first_calls(dump)
    data = _find_data(dump, anchors[:MOST], _TAKEN)
    data = data if min(data, default=-1) >= 0 else _find_data(dump, anchors[:MOST], (Role.OUTPUT,))
    return shapes_of(dump, [item for item in data if item >= 0])


def find_passes(dump: RankDump) -> Passes | None:
    """The passes of a dump, one if its model ran once. None where modules ran another number of times than the first one, or
    nothing tells where a pass begins, or what data it took."""
    entries = [
        _Entry(kind=kind, direction=direction, label=label, index=index)
        for kind, direction, label, index, _prefix in map(naming.split, dump.tree.names)
    ]
    in_time = np.argsort(dump.tree.order, kind="stable").tolist()
    ran = [entry for entry in in_time if _is_module(entries[entry])]
    if ran:
        labels = [entries[entry].label for entry in ran]
        anchors = _anchors(dump, ran, labels)
        later = anchors[0] != ran[0]
        times = [count for count in Counter(labels).values() if count > 1 or not later]
        if Counter(times).most_common(1)[0][0] != len(anchors):
            return None
    else:
        weighted = _weighted_calls(dump)
        anchors = _first_calls(dump)
        later = bool(anchors) and anchors[0] != weighted[0]
    if not 0 < len(anchors) <= MOST:
        return None
    data, made = _find_data(dump, anchors, _TAKEN), _find_data(dump, anchors, (Role.OUTPUT,))
    of = _assign(dump, entries, in_time, anchors, later=later)
    return Passes(count=len(anchors), of=of, data=tuple(data), made=tuple(made), turns=_turns(dump, entries))


def _anchors(dump: RankDump, ran: Sequence[int], labels: Sequence[Hashable]) -> list[int]:
    """Those of these entries, in the order of time, with which passes begin. labels: of each entry"""
    found = [ran[place] for place in _begins(labels)]
    if found[0] != ran[0] and not _are_words(dump, _find_data(dump, found[:MOST], _TAKEN)):
        return [entry for entry, label in zip(ran, labels, strict=True) if label == labels[0]]
    return found


def _begins(labels: Sequence[Hashable]) -> list[int]:
    """Places, among labels in the order in which modules ran, of the module with which every pass begins: the first one. Where an
    encoder ran once before all passes, the first of those that ran again, all as often as most of them; if the encoder shares it
    with the passes, its first runs are the encoder's."""
    times = Counter(labels)
    again = Counter(count for count in times.values() if count > 1)
    chosen, runs = labels[0], times[labels[0]]
    if again and sum(again.values()) >= _AGAIN * len(times):
        usual = again.most_common(1)[0][0]
        if runs == 1:
            chosen, runs = next(label for label in labels if times[label] == usual), usual
        elif usual < runs < 2 * usual:
            runs = usual
    return [place for place, label in enumerate(labels) if label == chosen][-runs:]


def _are_words(dump: RankDump, items: Sequence[int]) -> bool:
    """Whether these items hold whole numbers: what a decoder takes; layers that run several times take others."""
    return min(items) >= 0 and all("int" in dump.items.dtypes[code] for code in dump.items.dtype[list(items)].tolist())


def _weighted_calls(dump: RankDump) -> list[int]:
    """The nodes of functions that take a weight, in the order of time."""
    nodes = dump.nodes
    weighted = np.array([label.rpartition(".")[2] in WEIGHTED for label in nodes.labels] + [False])[nodes.label]
    weighted &= (nodes.kind == NodeKind.API) & (nodes.direction == Direction.FORWARD) & (nodes.index < naming.AGAIN)
    calls = np.flatnonzero(weighted)
    found: list[int] = calls[np.argsort(dump.tree.order[calls], kind="stable")].tolist()
    return found


def _first_calls(dump: RankDump) -> list[int]:
    """The nodes of the function with which every pass begins: the first one that takes a weight, by the same weight as in its
    first call; of an encoder, see `_begins`. In the order of time."""
    items, calls = dump.items, _weighted_calls(dump)
    second = np.array([path == "1" for path in items.paths] + [False])[items.path]
    held = np.flatnonzero(second & (items.kind == Kind.TENSOR) & (items.role == Role.INPUT) & (items.shape >= 0))
    weights = dict(zip(items.node[held].tolist(), held.tolist(), strict=True))
    known = [call for call in calls if call in weights]
    if not known or known[0] != calls[0]:
        return []
    keys = [(int(dump.nodes.label[call]), fingerprint(dump, weights[call])) for call in known]
    return _anchors(dump, known, keys)


def _is_module(entry: _Entry) -> bool:
    """Whether a module ran forward, for the first time: activation checkpointing runs some again."""
    return entry.kind == "module" and entry.direction == "forward" and entry.index < naming.AGAIN


def members(dump: RankDump, passes: Passes) -> list[RankDump]:
    """A dump of every pass, each with what is made once."""
    of = passes.of.copy()
    fired = np.flatnonzero(passes.turns >= 0)
    of[fired] = np.minimum(passes.turns[fired], passes.count - 1)
    return split_entries(dump, of, passes.count)


def find_unfinished(aligned: Aligned) -> int:
    """How many calls of the first pass all passes made but the last, which ended early; 0 where it did not. Told by modules: each
    has a label of its own."""
    last = len(aligned.members) - 1
    if not last:
        return 0
    labels: list[set[str]] = [set() for _ in aligned.members]
    for place, node in aligned.lost:
        nodes = aligned.members[place].nodes
        if nodes.direction[node] == Direction.FORWARD:
            labels[place].add(nodes.labels[nodes.label[node]])
    gone = set.intersection(*labels[:last]) - labels[last]
    first = aligned.members[0]
    lost = [node for place, node in aligned.lost if place == 0 and _label(first, node) in gone]
    if not (first.nodes.kind[lost] == NodeKind.MODULE).any():
        return 0
    return len(lost) if len(lost) >= max(_FEW, _SHARE * len(aligned.members[0].nodes)) else 0


def _label(dump: RankDump, node: int) -> str:
    label: str = dump.nodes.labels[dump.nodes.label[node]]
    return label


def changes_weights(dump: RankDump, passes: Passes) -> bool:
    """Whether weights changed between two passes: then these are training steps, each with weights of its own."""
    if passes.count < 2:
        return False
    nodes, items, tree = dump.nodes, dump.items, dump.tree
    ran = np.flatnonzero((passes.of[: len(nodes)] == passes.count - 1) & (nodes.direction == Direction.FORWARD))
    in_time = np.argsort(tree.order, kind="stable").tolist()
    updates = np.array(_below(dump, in_time, tree.parent.tolist(), (_OPTIMIZER,)))[: len(nodes)]
    if len(ran) and (tree.order[: len(nodes)][updates] < tree.order[ran].min()).any():
        return True
    held = (items.role == Role.PARAMETER) & (items.kind == Kind.TENSOR) & (items.requires_grad == 1)
    held &= (nodes.direction[items.node] == Direction.FORWARD) & (nodes.index[items.node] < naming.AGAIN)
    rows = np.flatnonzero(held)
    keys = nodes.label[items.node[rows]].astype(np.int64) * (len(items.paths) + 1) + items.path[rows]
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    before = rows[first][group]
    known = (items.stat_state[rows] != State.ABSENT) & (items.stat_state[before] != State.ABSENT)
    other = (items.stats[rows] != items.stats[before]) | (items.stat_state[rows] != items.stat_state[before])
    other &= ~(np.isnan(items.stats[rows]) & np.isnan(items.stats[before]))
    hashed = (items.hash[rows] >= 0) & (items.hash[before] >= 0) & (items.hash[rows] != items.hash[before])
    return bool((known & other).any() or hashed.any())


def _find_data(dump: RankDump, entries: Sequence[int], roles: Collection[int]) -> list[int]:
    """Of each call the first tensor that it received, or made: of its own record, else of the first call in it; -1 where there
    is none."""
    items, nodes = dump.items, len(dump.nodes)
    parent = dump.tree.parent[:nodes]
    inner = np.argsort(parent, kind="stable") if max(entries, default=-1) >= nodes else np.empty(0, np.int64)
    ordered = parent[inner]
    held = (items.kind == Kind.TENSOR) & np.isin(items.role, list(roles)) & (items.shape >= 0)
    found = []
    for entry in entries:
        inside = [entry] if entry < nodes else inner[slice(*np.searchsorted(ordered, [entry, entry + 1]))].tolist()
        found.append(next((item for node in inside if (item := _first_of(items, held, node)) >= 0), -1))
    return found


def _first_of(items: Items, held: Bool, node: int) -> int:
    first, end = np.searchsorted(items.node, [node, node + 1]).tolist()
    some = np.flatnonzero(held[first:end])
    return first + int(some[0]) if len(some) else -1


def _assign(
    dump: RankDump, entries: Sequence[_Entry], in_time: Sequence[int], anchors: Sequence[int], *, later: bool
) -> Int32:
    """The pass of every entry. A forward call belongs to the pass whose module ran before it; what precedes that module in the
    first pass precedes it in the others as well. A backward call follows its forward call. later: what else precedes it is made
    once"""
    place = {entry: number for number, entry in enumerate(in_time)}
    begins = [place[anchor] for anchor in anchors]
    words = [(entries[entry].direction, entries[entry].label) for entry in in_time]
    before = words[: begins[0]][::-1]
    first = [0]
    for begin, floor in zip(begins[1:], begins, strict=False):
        pairs = zip(before, words[floor + 1 : begin][::-1], strict=False)
        first.append(begin - len(list(takewhile(lambda pair: pair[0] == pair[1], pairs))))
    if later:
        first[0] = begins[0] - max(
            (begin - start for begin, start in zip(begins[1:], first[1:], strict=True)), default=0
        )
    of = np.full(len(entries), ONCE, np.int32)
    parents = dump.tree.parent.tolist()
    outside = _below(dump, in_time, parents, _OUTSIDE)
    calls: dict[tuple[str, str, int], int] = {}
    backward = (place[entry] for entry in in_time if entries[entry].direction == "backward")
    last_backward = max(backward, default=len(in_time))
    number, latest = 0, 0
    for moment, entry in enumerate(in_time):
        while number + 1 < len(first) and moment >= first[number + 1]:
            number += 1
        one = entries[entry]
        if outside[entry] or one.kind == "gradient":
            continue
        known = calls.get((one.kind, one.label, naming.first_index(one.index)))
        if one.direction == "backward":
            above = parents[entry]
            latest = known if known is not None else int(of[above]) if above >= 0 and of[above] != ONCE else latest
            of[entry] = latest
        elif one.index >= naming.AGAIN and known is not None:
            of[entry] = known
        elif first[0] <= moment <= last_backward:
            of[entry] = number
            calls[one.kind, one.label, one.index] = number
    return of


def _below(dump: RankDump, in_time: Sequence[int], parents: Sequence[int], names: Collection[str]) -> list[bool]:
    """By entry: whether it is one of these names, or lies below one."""
    found = [name in names for name in dump.tree.names]
    for entry in in_time:  # parents before children
        found[entry] = found[entry] or (parents[entry] >= 0 and found[parents[entry]])
    return found


def _turns(dump: RankDump, entries: Sequence[_Entry]) -> Int32:
    """A parameter whose gradient was recorded once holds the sum of all passes."""
    fired: dict[str, list[int]] = {}
    for node in range(len(dump.nodes)):
        if entries[node].kind == "gradient":
            fired.setdefault(entries[node].label, []).append(node)
    turns = np.full(len(dump.nodes), -1, np.int32)
    for nodes in fired.values():
        if len(nodes) > 1:
            turns[nodes] = np.arange(len(nodes))
    return turns


def find_named(dump: RankDump, passes: Passes, names: Collection[str]) -> list[int]:
    """Of every pass, the first tensor that was recorded under one of these names; [] where a pass lacks it."""
    items, nodes = dump.items, dump.nodes
    words = [(label.rpartition(".")[0] or label).rpartition(".")[2] for label in nodes.labels]
    named = np.array([word in names for word in words] + [False])[nodes.label]
    found: dict[int, int] = {}
    for item in np.flatnonzero(named[items.node] & (items.kind == Kind.TENSOR)).tolist():
        found.setdefault(int(passes.of[items.node[item]]), item)
    return [found[number] for number in range(passes.count)] if found.keys() >= set(range(passes.count)) else []


def shapes_of(dump: RankDump, items: Sequence[int]) -> list[tuple[int, ...]]:
    return [dump.items.shapes[code] for code in dump.items.shape[list(items)].tolist()]
