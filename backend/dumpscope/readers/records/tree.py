"""The module tree of one rank: who contains whom, and the order of the run in time.

Parents come from construct.json; where it is silent, from the same call in the other direction, from dotted paths, and from
neighbours. Without it the tree is inferred (`inferred.py`). File order is completion order, so the intervals of siblings do not
overlap: any moment inside an entry sorts it among them, and a module comes before its children by walking down.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dumpscope.domain.records import Direction, NodeKind, Nodes, Tree
from dumpscope.readers.records.inferred_tree import infer
from dumpscope.readers.records.tree_builder import UNPLACED, Outline
from dumpscope_format.naming import twin

TOP: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """construct.json. parents: node -> parent node or None, in file order; micro: node -> Megatron micro step"""

    parents: dict[str, str | None] = field(default_factory=dict)
    micro: dict[str, int] = field(default_factory=dict)


def build_tree(nodes: Nodes, links: Links | None) -> tuple[Tree, list[tuple[str, str]]]:
    """Build the tree; also answers (kind, message) of what was wrong with the links. Pure."""
    outline = Outline(nodes.names)
    problems: list[tuple[str, str]] = []
    if links is not None and links.parents:
        known = _from_links(outline, nodes, links)
        _complete(outline, nodes, known)
        inferred = False
    else:
        infer(outline, nodes)
        inferred = bool(len(nodes)) and any(kind != NodeKind.DEBUG for kind in nodes.kind.tolist())
    _hang_gradients(outline, nodes)
    cut = _cut_cycles(outline.parent)
    if cut:
        some = ", ".join(repr(outline.names[entry]) for entry in cut[:3])
        problems.append(("cycle", f"{len(cut)} entries are their own ancestors ({some}); they were put at the top."))
    tree = Tree(
        names=outline.names,
        parent=np.array(outline.parent, np.int32),
        order=_walk(outline),
        inferred=inferred,
    )
    return tree, problems


def _from_links(outline: Outline, nodes: Nodes, links: Links) -> bytearray:
    """Set parents as construct.json has them; entries that were not dumped become virtual ones."""
    count = len(nodes)
    known = bytearray(count)
    outline.scale = len(links.parents) + 2
    kinds = nodes.kind.tolist()
    table, parent, position = outline.table, outline.parent, outline.position
    last = -1
    for place, (name, above) in enumerate(links.parents.items()):
        entry = table.get(name)
        if entry is None:
            entry = outline.add(name)
        if entry < count:
            known[entry] = 1
            if kinds[entry] == NodeKind.API:
                last = entry  # construct.json holds calls in the order of their start
        else:
            position[entry] = last * outline.scale + place + 1
        if above is not None:
            up = table.get(above)
            parent[entry] = outline.add(above) if up is None else up
    return known


def _complete(outline: Outline, nodes: Nodes, known: bytearray) -> None:
    """Find a parent for nodes that construct.json does not know (gradients apart)."""
    missing = [
        node
        for node, kind in enumerate(nodes.kind.tolist())
        if not known[node] and kind in (NodeKind.API, NodeKind.MODULE)
    ]
    if not missing:
        return
    paths = Paths(nodes)
    for node in missing:
        found = _from_twin(outline, node)
        if found is None and nodes.kind[node] == NodeKind.MODULE:
            found = paths.enclosing(node)
        if found is None:
            found = _from_neighbours(outline, nodes, known, node)
        outline.parent[node] = TOP if found is None else found
        known[node] = 1


def _from_twin(outline: Outline, node: int) -> int | None:
    """The parent of the same call in the other direction, turned into this direction."""
    other = twin(outline.names[node])
    entry = outline.table.get(other) if other else None
    if entry is None or outline.parent[entry] == TOP:
        return None
    above = twin(outline.names[outline.parent[entry]])
    return outline.table.get(above) if above else None


def _from_neighbours(outline: Outline, nodes: Nodes, known: bytearray, node: int) -> int | None:
    """The parent of the nearest node before, else after, of the same direction."""
    way = int(nodes.direction[node])
    for near in (*range(node - 1, max(node - 50, -1), -1), *range(node + 1, min(node + 50, len(nodes)))):
        if known[near] and int(nodes.direction[near]) == way:
            above: int = outline.parent[near]
            if not _lies_below(outline.parent, above, node):  # what a module completes after lies in it, not beside it
                return above
    return None


def _lies_below(parent: list[int], entry: int, above: int) -> bool:
    """Whether `entry` is `above` or lies below it; a cycle ends the walk."""
    for _ in range(1000):
        if entry in (TOP, above):
            break
        entry = parent[entry]
    return entry == above


class Paths:
    """Modules by dotted path, to find the one that encloses another."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._by_path: dict[tuple[int, str], list[int]] = {}
        for node in np.flatnonzero(nodes.kind == NodeKind.MODULE).tolist():
            path = nodes.labels[nodes.label[node]].rpartition(".")[0]
            self._by_path.setdefault((int(nodes.direction[node]), path), []).append(node)

    def enclosing(self, node: int) -> int | None:
        """The next module to complete whose path is the longest proper prefix; the last one before where none does."""
        path = self._nodes.labels[self._nodes.label[node]].rpartition(".")[0]
        way = int(self._nodes.direction[node])
        while "." in path:
            path = path.rpartition(".")[0]
            calls = self._by_path.get((way, path))
            if calls:
                return calls[min(bisect_left(calls, node), len(calls) - 1)]
        return None


def _hang_gradients(outline: Outline, nodes: Nodes) -> None:
    """parameters_grad hangs under the backward call of its module that is nearest in the file, else its forward call."""
    gradients = np.flatnonzero(nodes.kind == NodeKind.GRADIENT).tolist()
    if not gradients:
        return
    calls: dict[tuple[int, int], list[int]] = {}
    directions, labels = nodes.direction.tolist(), nodes.label.tolist()
    for node in np.flatnonzero(nodes.kind == NodeKind.MODULE).tolist():
        calls.setdefault((directions[node], labels[node]), []).append(node)
    for node in gradients:
        if outline.parent[node] != TOP:
            continue
        for way in (Direction.BACKWARD, Direction.FORWARD):
            near = calls.get((way, labels[node]))
            if near:
                place = bisect_left(near, node)
                outline.parent[node] = min(near[max(place - 1, 0) : place + 1], key=lambda call: abs(call - node))
                break


def _cut_cycles(parent: list[int]) -> list[int]:
    """Put one entry of each cycle at the top, in place; returns those entries."""
    cut: list[int] = []
    seen = [0] * len(parent)
    for start in range(len(parent)):
        entry = start
        while entry != TOP and not seen[entry]:
            seen[entry] = start + 1
            above = parent[entry]
            if above != TOP and seen[above] == start + 1:
                parent[entry] = TOP
                cut.append(entry)
                break
            entry = above
    return cut


def _walk(outline: Outline) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Place of every entry when the tree is walked in time."""
    parent = outline.parent
    position = _positions(outline)
    below: dict[int, list[int]] = {}
    for entry in np.argsort(np.array(position, np.int64), kind="stable").tolist():
        below.setdefault(parent[entry], []).append(entry)
    order = np.empty(len(parent), np.int32)
    stack = below.get(TOP, [])[::-1]
    place = 0
    while stack:
        entry = stack.pop()
        order[entry] = place
        place += 1
        children = below.get(entry)
        if children:
            stack.extend(reversed(children))
    return order


def _positions(outline: Outline) -> list[int]:
    """When each entry first appears: its own place in the file, or the first thing below it."""
    scale, parent, count = outline.scale, outline.parent, outline.count
    position = [node * scale for node in range(count)] + outline.position[count:]
    first = [UNPLACED] * len(position)
    for entry in _deepest_first(parent, range(len(parent))):
        moment = first[entry]
        if entry < count:
            moment = min(moment, position[entry])
        elif moment == UNPLACED:
            moment = position[entry]
        position[entry] = moment
        above = parent[entry]
        if above != TOP and moment < first[above]:
            first[above] = moment
    return position


def _deepest_first(parent: list[int], entries: Iterable[int]) -> list[int]:
    depth = [-1] * len(parent)
    for start in entries:
        chain = []
        entry = start
        while entry != TOP and depth[entry] < 0:
            chain.append(entry)
            entry = parent[entry]
        level = depth[entry] if entry != TOP else -1
        for entry in reversed(chain):
            level += 1
            depth[entry] = level
    ranks: list[int] = np.argsort(-np.array(depth, np.int64), kind="stable").tolist()
    return ranks
