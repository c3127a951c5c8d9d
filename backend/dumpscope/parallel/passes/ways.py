"""How an item of the passes of one side becomes one: told from its shapes in all passes, and from what the other side has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import accumulate
from math import log
from typing import Final

import numpy as np

from dumpscope.domain.records import (
    Bool,
    Direction,
    Float64,
    Int8,
    Int32,
    Int64,
    Kind,
    RankDump,
    Role,
    State,
    UInt8,
)
from dumpscope.parallel.aligned import Aligned
from dumpscope.parallel.join_members import join_statistics
from dumpscope.parallel.passes.relation import Place, Shape, find_place

_SIZES: Final = (Kind.SCALAR, Kind.NONE)
_MAX: Final = 0
_NORM: Final = 3
_CACHE: Final = "cache"
"""In the names of arguments that turn a cache on."""
_CLOSE: Final = 1e-6
"""Relative difference of the same number that rounding may make."""
_ALIKE: Final = 1.15
"""Ratio of the norms of the last gradient and the whole one up to which the last is the sum of all."""


class Way(IntEnum):
    """How the values of an item in all passes become one."""

    COPY = 0  # equal in all passes, or made once
    JOIN = 1  # each pass made a part
    LAST = 2  # the last pass holds what all made
    PASTE = 3  # each pass made a part, as wide as what was made so far, or its last position only
    SUM = 4  # each pass made a part of a sum
    NUMBER = 5  # one number that is a sum or a mean
    SKIP = 6  # nothing can be compared
    TOTAL = 7  # the last pass holds the sum of all
    ENDS = 8  # each pass made its last position only: those at which a pass of either side ended


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """One side. dump: its first pass, or the whole where it made one; aligned: of all its passes, None where it made one
    partner: for each item of `dump` the one of the other side's, -1 where there is none
    sizes, rival_sizes: rows or positions of its passes, and of the other side's; rows: whether it is rows
    anew: see `Relation`"""

    dump: RankDump
    aligned: Aligned | None
    partner: Int64
    sizes: Shape
    rival_sizes: Shape
    rows: bool
    anew: bool = False

    @cached_property
    def shared(self) -> list[int]:
        """The passes that end at a position at which a pass of the other side ends."""
        ends = set(accumulate(self.rival_sizes))
        return [number for number, end in enumerate(accumulate(self.sizes)) if end in ends]

    def codes(self, item: int) -> Int32:
        """Code of the shape of an item in every pass."""
        return self.dump.items.shape[item : item + 1] if self.aligned is None else self.aligned.shapes[:, item]

    def shapes(self, item: int) -> list[Shape | None]:
        """Shape of an item in every pass."""
        table = self.dump.items.shapes if self.aligned is None else self.aligned.shape_table
        return [table[code] if code >= 0 else None for code in self.codes(item).tolist()]

    def numbers(self, item: int) -> list[float] | None:
        """The value of a single element in every pass; None where a pass does not tell."""
        items = self.dump.items
        if self.aligned is None:
            values, states = items.stats[item : item + 1, _MAX], items.stat_state[item : item + 1, _MAX]
        else:
            values, states = self.aligned.stats[:, item, _MAX], self.aligned.states[:, item, _MAX]
        return values.tolist() if (states == State.FINITE).all() else None

    def told(self, item: int, way: Way) -> tuple[Float64, UInt8]:
        """Statistics of the whole, as far as those of the parts tell: (4,). way: COPY, ENDS, or another where each pass holds a
        part"""
        items = self.dump.items
        if self.aligned is None:
            return items.stats[item], items.stat_state[item]
        aligned, one = self.aligned, slice(item, item + 1)
        if way == Way.COPY:
            return aligned.stats[0, item], aligned.states[0, item]
        if self.anew and way != Way.ENDS:
            return aligned.stats[-1, item], aligned.states[-1, item]
        at = self.shared if way == Way.ENDS else slice(None)
        stats, states = join_statistics(aligned.stats[at, one], aligned.states[at, one], aligned.sizes[at, one])
        return stats[0], states[0]

    def norms(self) -> Float64:
        """By item: the norm of all parts together; nan where one is not known."""
        items = self.dump.items
        if self.aligned is None:
            return np.where(items.stat_state[:, _NORM] == State.FINITE, items.stats[:, _NORM], np.nan)
        known = (self.aligned.states[:, :, _NORM] == State.FINITE).all(axis=0)
        return np.where(known, np.sqrt((self.aligned.stats[:, :, _NORM] ** 2).sum(axis=0)), np.nan)


def find_ways(own: Pieces, rival: Pieces) -> tuple[Int8, dict[int, Place]]:
    aligned = own.aligned
    assert aligned is not None
    items, theirs = own.dump.items, rival.dump.items
    way = np.full(len(items), int(Way.COPY), np.int8)
    places: dict[int, Place] = {}
    backward = in_backward(own.dump)
    nothing = (aligned.states == State.ABSENT).all(axis=(0, 2)) & (aligned.hashes < 0).all(axis=0)
    same = aligned.same & ~((items.kind == Kind.TENSOR) & nothing)  # of what tensors alone would tell
    missing = np.asarray((aligned.rows < 0).any(axis=0))
    sizes = own.sizes, rival.sizes
    known: dict[tuple[bytes, bytes], Place | None] = {}
    for item in np.flatnonzero(items.kind == Kind.TENSOR).tolist():
        partner = int(own.partner[item])
        if missing[item]:
            way[item] = Way.SKIP
            continue
        if partner < 0 or theirs.kind[partner] != Kind.TENSOR:
            way[item] = Way.COPY if same[item] else Way.SKIP
            continue
        shapes = own.codes(item).tobytes(), rival.codes(partner).tobytes()
        if shapes not in known:
            known[shapes] = find_place(own.shapes(item), rival.shapes(partner), sizes, (own.anew, rival.anew))
        place = known[shapes]
        if place is None:
            way[item] = Way.SKIP
            continue
        places[item] = place
        if place.ends >= 0:
            way[item] = Way.PASTE
        elif place.grown >= 0:
            way[item] = Way.PASTE if place.cut >= 0 else Way.LAST
        elif place.cut >= 0:
            way[item] = Way.JOIN
        elif items.role[item] == Role.PARAMETER:
            continue
        elif not same[item] and not backward[item] and _made_at_ends(own, rival, item):
            way[item] = Way.ENDS
        elif int(aligned.sizes[0, item]) == 1 and (not same[item] or backward[item] or _differs(own, rival, item)):
            way[item] = Way.NUMBER
        elif not same[item]:
            way[item] = Way.SUM if backward[item] else Way.SKIP
    _skip_relative(own, way)
    return way, places


def _differs(own: Pieces, rival: Pieces, item: int) -> bool:
    """Whether a number that all passes have is another one on the other side: a count is the sum of theirs."""
    mine, theirs = own.numbers(item), rival.numbers(int(own.partner[item]))
    return mine is not None and theirs is not None and len({*mine, *theirs}) > 1


def _made_at_ends(own: Pieces, rival: Pieces, item: int) -> bool:
    """Whether each pass may have made the last position only, and both sides end passes at one position. A number of each pass is
    one of that position where it is the same on both sides."""
    assert own.aligned is not None
    if own.rows or not own.shared:
        return False
    if int(own.aligned.sizes[0, item]) > 1:
        return True
    mine, theirs = own.told(item, Way.ENDS), rival.told(int(own.partner[item]), Way.ENDS)
    known = (mine[1] == State.FINITE) & (theirs[1] == State.FINITE)
    return bool(known.any() and np.isclose(mine[0], theirs[0], rtol=_CLOSE)[known].all())


def _skip_relative(own: Pieces, way: Int8) -> None:
    """Whole numbers that a call takes beside an argument of its own in every pass, such as where the pass begins: they are
    counted from there, and only what the call makes of both is the same as on the other side."""
    aligned, items = own.aligned, own.dump.items
    assert aligned is not None
    placed = np.unique(items.node[(items.kind == Kind.SCALAR) & (items.role != Role.OUTPUT) & ~aligned.same])
    whole = np.array(["int" in name for name in items.dtypes] + [False])[items.dtype]
    counted = whole & np.isin(items.node, placed) & (items.role != Role.OUTPUT) & (way == Way.JOIN)
    way[counted] = Way.SKIP


def find_arguments(own: Pieces, rival: Pieces, way: Int8) -> Int64:
    """Of a call that took what a cache holds, whatever differs: its mask follows from that."""
    aligned = own.aligned
    assert aligned is not None
    items, theirs = own.dump.items, rival.dump.items
    cached = set(items.node[np.isin(way, (Way.LAST, Way.PASTE))].tolist())
    cut = set(items.node[way == Way.JOIN].tolist())
    counts = len(own.sizes), len(rival.sizes)
    cached_at = np.array([_CACHE in path for path in items.paths] + [False])
    found = []
    received = items.role != Role.OUTPUT
    for item in np.flatnonzero((own.partner >= 0) & (received | ~aligned.same)).tolist():
        partner, node = int(own.partner[item]), int(items.node[item])
        kinds = int(items.kind[item]), int(theirs.kind[partner])
        if kinds == (Kind.TENSOR, Kind.TENSOR):
            continue
        mine, other = _value(own.dump, item), _value(rival.dump, partner)
        if kinds[0] == kinds[1] and mine == other and aligned.same[item]:
            continue
        own_argument = kinds[0] in _SIZES and not aligned.same[item]
        sized = node in cut and _is_size(mine, other)
        given = (
            int(Kind.TENSOR) in kinds and not aligned.same[item]
        )  # a table of positions, which one pass need not be given
        kept = cached_at[items.path[item]]
        if node in cached or own_argument or sized or given or kept or _counts_passes(mine, other, counts):
            found.append(item)
    return np.array(found, np.int64)


def _value(dump: RankDump, item: int) -> str:
    code = int(dump.items.value[item])
    return dump.items.values[code] if code >= 0 else "null"


def _is_size(mine: str, other: str) -> bool:
    """Whole numbers on both sides, as many."""
    found = []
    for text in (mine, other):
        held = json.loads(text)
        held = held if isinstance(held, list) else [held]
        if not held or any(type(one) is not int for one in held):
            return False
        found.append(len(held))
    return found[0] == found[1]


def _counts_passes(mine: str, other: str, counts: tuple[int, int]) -> bool:
    """By what each side divides, or multiplies, what its passes add up to."""
    held = json.loads(mine), json.loads(other)
    if any(type(one) not in (int, float) for one in held):
        return False
    (one, two), (n, m) = held, counts
    return bool(np.isclose(one * m, two * n) or np.isclose(one * n, two * m))


def find_factor(own: Pieces, rival: Pieces, way: Int8) -> float:
    """By what a gradient of the passes is multiplied to be that of the other side: 1, or the ratio of the numbers of passes where
    every pass has a loss of its own that is a mean. Told by the norms of gradients of activations."""
    counts = len(own.sizes), len(rival.sizes)
    rows = np.flatnonzero((way == Way.JOIN) & in_backward(own.dump))
    if counts[0] < counts[1] or not len(rows):
        return 1.0
    mine, theirs = own.norms()[rows], rival.norms()[own.partner[rows]]
    known = (mine > 0) & (theirs > 0)
    if not known.any():
        return 1.0
    ratio = float(np.median(mine[known] / theirs[known]))
    scale = counts[0] / counts[1]
    return 1.0 / scale if abs(log(ratio / scale)) < abs(log(ratio)) else 1.0


def find_totals(own: Pieces, rival: Pieces, way: Int8, factor: float) -> None:
    """Gradients of parameters, of which the last pass holds what all have added up; others are added up here. Told by their
    norms: that of one pass alone is smaller."""
    aligned, items = own.aligned, own.dump.items
    assert aligned is not None
    rows = np.flatnonzero((items.role == Role.GRADIENT) & (way == Way.SUM))
    if not len(rows):
        return
    partner = own.partner[rows]
    theirs, states = rival.dump.items.stats[partner, _NORM], rival.dump.items.stat_state[partner, _NORM]
    if rival.aligned is not None:
        theirs, states = rival.aligned.stats[-1, partner, _NORM], rival.aligned.states[-1, partner, _NORM]
    mine = aligned.stats[-1, rows, _NORM] * factor
    known = (aligned.states[-1, rows, _NORM] == State.FINITE) & (states == State.FINITE) & (mine > 0) & (theirs > 0)
    if known.any() and abs(log(float(np.median(mine[known] / theirs[known])))) < log(_ALIKE):
        way[rows] = Way.TOTAL


def made_once(own: Pieces) -> Bool:
    """By item: of a call that no pass made, as those of an optimizer."""
    assert own.aligned is not None
    once = np.array([len(set(calls)) == 1 for calls in calls_of(own.aligned)] + [False])
    found: Bool = once[own.dump.items.node]
    return found


def in_backward(dump: RankDump) -> Bool:
    items = dump.items
    found: Bool = (dump.nodes.direction[items.node] == Direction.BACKWARD) | (items.role == Role.GRADIENT)
    return found


def calls_of(aligned: Aligned) -> list[list[int]]:
    """By node: the number of its call in every pass."""
    base = aligned.base
    first = np.searchsorted(base.items.node, np.arange(len(base.nodes)))
    first = np.minimum(first, max(len(base.items) - 1, 0))
    found = np.full((len(aligned.members), len(base.nodes)), -1, np.int64)
    for place, member in enumerate(aligned.members):
        rows = aligned.rows[place, first]
        found[place] = np.where(rows >= 0, member.nodes.index[member.items.node[rows]], -1)
    return [list(map(int, column)) for column in found.T]
