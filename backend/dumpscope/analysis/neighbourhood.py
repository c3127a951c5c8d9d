"""The calls around one call along the data flow, and the shortest way of a difference from its origin.

A link leads from the call that made something to the call that received it. Where nothing tells who made what differs, a link
stands for what is assumed, as `p` on the page does: the forward call of a backward call, else the last differing call before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np

from dumpscope.domain.facts import Class, Verdict
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int32, Int64, NodeKind
from dumpscope_format.naming import twin

EXAMINED: Final = 5000
"""Links of one call that are looked at."""


class Link(IntEnum):
    """What joins two calls: a tensor; values that the forward call saved; nothing known, but the maker differs and is the last
    that does."""

    RECEIVED = 0
    SAVED = 1
    BEFORE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Columns of node pairs, one entry per pair. leaf: no other pair lies below it in the tree; paired: both sides make it

    above: per place of the tree the place above it, -1 at the top; entry: the pair's place
    """

    names: Sequence[str]
    verdict: Int8
    cls: Int8
    direction: Int8
    kind: Int8
    leaf: Bool
    paired: Bool
    entry: Int32
    above: Int32

    @property
    def differs(self) -> Bool:
        found: Bool = (self.verdict >= Verdict.WARNING) | (self.cls >= Class.PROPAGATED)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """One entry per received tensor whose maker is known, and per assumed link; in the order of the readers.

    item: number of the item pair, -1 of an assumed link; by_maker: the same links in the order of the makers, `ordered`
    """

    reader: Int32
    maker: Int32
    item: Int32
    kind: Int8
    differs: Bool
    severity: Float64
    by_maker: Int64 = field(repr=False)
    ordered: Int32 = field(repr=False)

    def into(self, pair: int) -> Int64:
        """Links that end at this call."""
        first, beyond = np.searchsorted(self.reader, (pair, pair + 1))
        return np.arange(first, beyond)[:EXAMINED]

    def out_of(self, makers: Collection[int]) -> Int64:
        """Links that begin at any of these calls."""
        parts = [np.arange(*np.searchsorted(self.ordered, (maker, maker + 1))) for maker in sorted(set(makers))]
        found: Int64 = self.by_maker[np.concatenate(parts)] if parts else np.zeros(0, np.int64)
        return found[:EXAMINED]


def find_links(calls: Calls, pair: Int32, maker: Int32, verdict: Int8, severity: Float64) -> Links:
    """pair, maker, verdict, severity: one entry per item pair; maker: node pair that made what was received, -1: not known"""
    rows = np.flatnonzero(maker >= 0)
    reader, differs = pair[rows], verdict[rows] >= Verdict.WARNING
    assumed = _assume(calls, pair, verdict, reader[differs & calls.differs[maker[rows]]])
    ends = np.array([link[:2] for link in assumed], np.int32).reshape(-1, 2)
    reader = np.concatenate([reader, ends[:, 0]])
    order = np.argsort(reader, kind="stable")
    makers = np.concatenate([maker[rows], ends[:, 1]])[order].astype(np.int32)
    none = len(assumed)
    by_maker = np.argsort(makers, kind="stable")
    return Links(
        reader=reader[order].astype(np.int32),
        maker=makers,
        item=np.concatenate([rows, np.full(none, -1)])[order].astype(np.int32),
        kind=np.concatenate([np.zeros(len(rows)), [link[2] for link in assumed]])[order].astype(np.int8),
        differs=np.concatenate([differs, np.ones(none, bool)])[order],
        severity=np.concatenate([severity[rows], np.full(none, -1.0)])[order],
        by_maker=by_maker,
        ordered=makers[by_maker],
    )


def _assume(calls: Calls, pair: Int32, verdict: Int8, traced: Int32) -> list[tuple[int, int, Link]]:
    """(reader, maker, kind) for calls that differ, are no cause themselves, and received nothing different from a known call."""
    size = len(calls.names)
    known = np.zeros(size, bool)
    known[traced] = True
    unlike = np.zeros(size, bool)
    unlike[pair[verdict >= Verdict.WARNING]] = True
    gradient = calls.kind == NodeKind.GRADIENT
    cause = (calls.cls == Class.ORIGIN) | (calls.cls == Class.NONFINITE)
    readers = np.flatnonzero(calls.differs & ~known & ~cause & calls.leaf & (calls.cls != Class.CONTAINS))
    makers = np.flatnonzero(calls.differs & calls.leaf & calls.paired & ~gradient)
    backward = readers[calls.direction[readers] == Direction.BACKWARD].tolist()
    wanted = {name for one in backward if (name := twin(calls.names[one])) is not None}
    forward = {calls.names[one]: one for one in makers.tolist() if calls.names[one] in wanted} if wanted else {}
    found = []
    for reader, place in zip(readers.tolist(), (np.searchsorted(makers, readers) - 1).tolist(), strict=True):
        name = twin(calls.names[reader]) if calls.direction[reader] == Direction.BACKWARD else None
        saved = forward.get(name, -1) if name is not None else -1
        if 0 <= saved < reader:
            found.append((reader, saved, Link.SAVED))
        elif place >= 0 and (unlike[reader] or gradient[reader]):
            found.append((reader, int(makers[place]), Link.BEFORE))
    return found


def find_way(calls: Calls, links: Links, start: int, *, backward: int | None) -> list[int]:
    """The calls from `start` to the end of its difference, over as few links as possible, both included; [] if it goes nowhere.

    The end is the last call before the backward pass that it reaches, of a model in training the loss; of a difference that
    begins in the backward pass the last backward call, of one that begins after it the last call. Modules around calls are left
    out. backward: the first backward call
    """
    rows = np.flatnonzero(links.differs & calls.leaf[links.reader] & calls.differs[links.maker])
    came_from, depth = {start: -1}, {start: 0}
    for reader, maker in zip(links.reader[rows].tolist(), links.maker[rows].tolist(), strict=True):
        step = depth.get(maker, -2) + 1  # a maker stands before its readers, so it is final before they come
        if step > 0 and reader != start and step < depth.get(reader, step + 1):
            came_from[reader], depth[reader] = maker, step
    turn = len(calls.names) if backward is None else backward
    if calls.direction[start] == Direction.BACKWARD:
        gradient = calls.kind == NodeKind.GRADIENT
        at = max(one for one in came_from if calls.direction[one] == Direction.BACKWARD and not gradient[one])
    else:
        at = max(one for one in came_from if one < turn or start >= turn)
    if at == start:
        return []
    way = []
    while at >= 0:
        way.append(at)
        at = came_from[at]
    return way[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Calls that found no room, so many steps before (negative) or after the middle; beside: the shown calls that they belong to,
    those with the most of them first"""

    hop: int
    calls: frozenset[int]
    beside: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """hop: node pair -> steps before (negative) or after the middle"""

    hop: dict[int, int]
    hidden: tuple[Hidden, ...]


def surround(
    calls: Calls, links: Links, middle: int, *, inside: Collection[int], hops: int, room: int, way: Collection[int]
) -> Neighbourhood:
    """The calls around `middle`, at most `room` in each step: first those on the way, then by what they passed on, the worst
    first, then the nearest.

    inside: calls that made what `middle` put out, where it is a module
    """
    hop = {middle: 0}
    hidden: list[Hidden] = []
    on_way = set(way)
    for side in (-1, 1):
        frontier = [middle]
        for step in range(1, hops + 1):
            found: dict[int, tuple[bool, bool, float, int]] = {}
            nexts: dict[int, set[int]] = {}
            for call in frontier:
                if side < 0:
                    rows = links.into(call)
                    others = links.maker[rows]
                else:
                    rows = links.out_of([call, *(inside if call == middle else ())])
                    others = links.reader[rows]
                    others, rows = _without_modules(calls, others, rows, call)
                for other, row in zip(others.tolist(), rows.tolist(), strict=True):
                    if other in hop:
                        continue
                    near = -abs(other - middle)
                    rank = (other in on_way, bool(links.differs[row]), float(links.severity[row]), near)
                    found[other] = max(found.get(other, rank), rank)
                    nexts.setdefault(call, set()).add(other)
            ordered = sorted(found, key=lambda other: found[other], reverse=True)
            frontier = ordered[:room]
            hop.update((other, side * step) for other in frontier)
            rest = frozenset(ordered[room:])
            if rest:
                beside = sorted((one for one in nexts if nexts[one] & rest), key=lambda one: -len(nexts[one] & rest))
                hidden.append(Hidden(hop=side * step, calls=rest, beside=tuple(beside)))
    return Neighbourhood(hop=hop, hidden=tuple(hidden))


def _without_modules(calls: Calls, readers: Int32, rows: Int64, maker: int) -> tuple[Int32, Int64]:
    """Without modules around another reader: what they received went to the call inside them; nor those around the maker."""
    modules = ~calls.leaf[readers]
    if not modules.any():
        return readers, rows
    around: set[int] = set()
    for entry in (*calls.entry[readers].tolist(), int(calls.entry[maker])):
        place = int(calls.above[entry])
        while place >= 0 and place not in around:
            around.add(place)
            place = int(calls.above[place])
    kept = np.array([entry not in around for entry in calls.entry[readers].tolist()], bool)
    return readers[kept], rows[kept]
