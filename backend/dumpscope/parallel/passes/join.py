"""Puts the passes of one side together into one dump, as if its model had run once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
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
    JoinedPasses,
    Kind,
    RankDump,
    Role,
    State,
    UInt8,
)
from dumpscope.domain.stored_counts import COUNTS, Counts, counts_of
from dumpscope.parallel.aligned import Aligned
from dumpscope.parallel.join_members import join_statistics
from dumpscope.parallel.orders import ORDER, Order
from dumpscope.parallel.passes.relation import Place, Relation, Shape, find_place

_SIZES: Final = (Kind.SCALAR, Kind.NONE)
_MAX: Final = 0
_NORM: Final = 3
_CACHE: Final = "cache"
"""In the names of arguments that turn a cache on."""
_ROUNDING: Final = 1e-6
"""Relative difference that putting statistics together may make."""
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


WAY_WORDS: Final = ("copy", "join", "cache", "paste", "sum", "number", "skip", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """One side. dump: its first pass, or the whole where it made one; aligned: of all its passes, None where it made one
    partner: for each item of `dump` the one of the other side's, -1 where there is none
    sizes: rows or positions of its passes"""

    dump: RankDump
    aligned: Aligned | None
    partner: Int64
    sizes: Shape

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

    def norms(self) -> Float64:
        """By item: the norm of all parts together; nan where one is not known."""
        items = self.dump.items
        if self.aligned is None:
            return np.where(items.stat_state[:, _NORM] == State.FINITE, items.stats[:, _NORM], np.nan)
        known = (self.aligned.states[:, :, _NORM] == State.FINITE).all(axis=0)
        return np.where(known, np.sqrt((self.aligned.stats[:, :, _NORM] ** 2).sum(axis=0)), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """orders: how its tensors are made, by data name; other data names are paths
    arguments: items that say how much a pass took, or where it stands: not those of a single pass, by right"""

    dump: RankDump
    orders: dict[str, Order]
    arguments: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    relation: Relation
    golden: bool
    factor: float
    backward: Bool


def join_passes(own: Pieces, rival: Pieces, relation: Relation, *, golden: bool) -> Whole:
    """The passes of `own` as one dump. golden: `own` is the golden's"""
    aligned = own.aligned
    assert aligned is not None
    way, places = _find_ways(own, rival)
    arguments = _find_arguments(own, rival, way)
    factor = _find_factor(own, rival, way)
    _find_totals(own, rival, way, factor)
    items = own.dump.items
    count = len(items)
    stats, states, hashes = items.stats.copy(), items.stat_state.copy(), items.hash.copy()
    shape, table = items.shape.copy(), list(items.shapes)
    value, values = items.value.copy(), list(items.values)
    data_name, names = np.full(count, -1, np.int32), list[str]()
    backward = _in_backward(own.dump)
    terms = _Terms(relation=relation, golden=golden, factor=factor, backward=backward)
    orders: dict[str, Order] = {}
    joined = np.flatnonzero(way == Way.JOIN)
    if len(joined):
        parts = aligned.stats[:, joined], aligned.states[:, joined], aligned.sizes[:, joined]
        stats[joined], states[joined] = join_statistics(*parts)
        stats[joined[backward[joined]]] *= factor
        exact = np.array(["float" not in name and "complex" not in name for name in items.dtypes] + [False])
        chosen = relation.orders[golden]
        if chosen is not None and len(chosen) < sum(own.sizes):  # of a part of what these tell of
            states[joined] = State.ABSENT
        whole_numbers = joined[exact[items.dtype[joined]]]
        _take_close(stats, states, whole_numbers, own, rival)
    last = np.flatnonzero(np.isin(way, (Way.LAST, Way.TOTAL)))
    stats[last], states[last], hashes[last] = aligned.stats[-1, last], aligned.states[-1, last], -1
    stats[np.flatnonzero(way == Way.TOTAL)] *= factor
    nothing = np.isin(way, (Way.SUM, Way.SKIP, Way.PASTE))
    stats[nothing], states[nothing] = np.nan, State.ABSENT
    hashes[np.isin(way, (Way.JOIN, Way.NUMBER)) | nothing] = -1
    for item in np.flatnonzero(way == Way.NUMBER).tolist():
        number = _find_number(own, rival, item, backward=bool(backward[item]))
        if number is None:
            way[item], states[item] = Way.SKIP, State.ABSENT
        else:
            stats[item], states[item] = [number, number, number, abs(number)], State.FINITE
    calls = _calls(aligned)
    for item in np.flatnonzero(items.kind == Kind.TENSOR).tolist():
        place = places.get(item, Place())
        shapes, partner = own.shapes(item), int(own.partner[item])
        whole = _whole_shape(shapes, rival, partner, place, Way(int(way[item])), relation.orders[golden])
        if whole is not None:
            shape[item] = len(table)
            table.append(whole)
        order = _order(own, rival, item, Way(int(way[item])), place, terms)
        if way[item] != Way.COPY:
            value[item] = len(values)
            counts = _count(own, rival, item, Way(int(way[item])))
            values.append(_describe(own, item, Way(int(way[item])), place, calls, order, counts))
        if order is None:
            continue
        name = order if isinstance(order, str) else f"{ORDER}{item}"
        if not isinstance(order, str):
            orders[name] = order
        data_name[item] = len(names)
        names.append(name)
    made = replace(
        items, stats=stats, stat_state=states, hash=hashes, shape=shape, shapes=table, value=value, values=values,
        data_name=data_name, data_names=names,
        wide={key: number for key, number in items.wide.items() if way[key[0]] == Way.COPY},
    )  # fmt: skip
    passes = JoinedPasses(word=relation.word, sizes=own.sizes, gradients=factor, compared=_compared(relation))
    dump = replace(own.dump, ref=replace(own.dump.ref, passes=passes), items=made)
    return Whole(dump=dump, orders=orders, arguments=arguments)


def _compared(relation: Relation) -> int:
    order = relation.orders[0]
    return -1 if order is None or relation.word == "rows" else len(order)


def _find_ways(own: Pieces, rival: Pieces) -> tuple[Int8, dict[int, Place]]:
    aligned = own.aligned
    assert aligned is not None
    items, theirs = own.dump.items, rival.dump.items
    way = np.full(len(items), int(Way.COPY), np.int8)
    places: dict[int, Place] = {}
    backward = _in_backward(own.dump)
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
            known[shapes] = find_place(own.shapes(item), rival.shapes(partner), sizes)
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
        elif int(aligned.sizes[0, item]) == 1 and (not same[item] or backward[item]):
            way[item] = Way.NUMBER
        elif not same[item]:
            way[item] = Way.SUM if backward[item] else Way.SKIP
    _skip_relative(own, way)
    return way, places


def _skip_relative(own: Pieces, way: Int8) -> None:
    """Whole numbers that a call takes beside an argument of its own in every pass, such as where the pass begins: they are
    counted from there, and only what the call makes of both is the same as on the other side."""
    aligned, items = own.aligned, own.dump.items
    assert aligned is not None
    placed = np.unique(items.node[(items.kind == Kind.SCALAR) & (items.role != Role.OUTPUT) & ~aligned.same])
    whole = np.array(["int" in name for name in items.dtypes] + [False])[items.dtype]
    counted = whole & np.isin(items.node, placed) & (items.role != Role.OUTPUT) & (way == Way.JOIN)
    way[counted] = Way.SKIP


def _find_arguments(own: Pieces, rival: Pieces, way: Int8) -> Int64:
    """Of a call that took what a cache holds, whatever differs: its mask follows from that."""
    aligned = own.aligned
    assert aligned is not None
    items, theirs = own.dump.items, rival.dump.items
    cached = set(items.node[np.isin(way, (Way.LAST, Way.PASTE))].tolist())
    cut = set(items.node[way == Way.JOIN].tolist())
    counts = len(own.sizes), len(rival.sizes)
    cached_at = np.array([_CACHE in path for path in items.paths] + [False])
    found = []
    for item in np.flatnonzero((own.partner >= 0) & (items.role != Role.OUTPUT)).tolist():
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


def _take_close(stats: Float64, states: UInt8, rows: Int64, own: Pieces, rival: Pieces) -> None:
    """Mean and Norm of whole numbers, which are compared exactly: those that rounding explains are the other side's, others that
    cannot be told exactly are left out."""
    partner = own.partner[rows]
    theirs, there = rival.dump.items.stats[partner], rival.dump.items.stat_state[partner]
    for column in (2, 3):
        near = np.isclose(stats[rows, column], theirs[:, column], rtol=_ROUNDING, atol=0)
        near &= (there[:, column] == State.FINITE) & (states[rows, column] == State.FINITE)
        if rival.aligned is None:
            stats[rows[near], column] = theirs[near, column]
        else:
            stats[rows, column], states[rows, column] = np.nan, State.ABSENT


def _counts_passes(mine: str, other: str, counts: tuple[int, int]) -> bool:
    """By what each side divides, or multiplies, what its passes add up to."""
    held = json.loads(mine), json.loads(other)
    if any(type(one) not in (int, float) for one in held):
        return False
    (one, two), (n, m) = held, counts
    return bool(np.isclose(one * m, two * n) or np.isclose(one * n, two * m))


def _in_backward(dump: RankDump) -> Bool:
    items = dump.items
    found: Bool = (dump.nodes.direction[items.node] == Direction.BACKWARD) | (items.role == Role.GRADIENT)
    return found


def _find_factor(own: Pieces, rival: Pieces, way: Int8) -> float:
    """By what a gradient of the passes is multiplied to be that of the other side: 1, or the ratio of the numbers of passes where
    every pass has a loss of its own that is a mean. Told by the norms of gradients of activations."""
    counts = len(own.sizes), len(rival.sizes)
    rows = np.flatnonzero((way == Way.JOIN) & _in_backward(own.dump))
    if counts[0] < counts[1] or not len(rows):
        return 1.0
    mine, theirs = own.norms()[rows], rival.norms()[own.partner[rows]]
    known = (mine > 0) & (theirs > 0)
    if not known.any():
        return 1.0
    ratio = float(np.median(mine[known] / theirs[known]))
    scale = counts[0] / counts[1]
    return 1.0 / scale if abs(log(ratio / scale)) < abs(log(ratio)) else 1.0


def _find_totals(own: Pieces, rival: Pieces, way: Int8, factor: float) -> None:
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


def _find_number(own: Pieces, rival: Pieces, item: int, *, backward: bool) -> float | None:
    """One number of all passes: the sum, the mean or, of a gradient, the one that all have, whichever the other side has."""
    sides = own.numbers(item), rival.numbers(int(own.partner[item]))
    if sides[0] is None or sides[1] is None:
        return None
    held = [np.array(side) for side in sides if side is not None]
    weights = [np.array(one.sizes) / sum(one.sizes) for one in (own, rival)]
    pairs = [
        (float(held[0].sum()), float(held[1].sum())),
        (float(held[0] @ weights[0]), float(held[1] @ weights[1])),
    ]
    if backward and len(set(held[0].tolist())) == 1:
        pairs.append((float(held[0][0]), float(held[1][0])))
    return min(pairs, key=lambda pair: abs(pair[0] - pair[1]))[0]


def _whole_shape(
    own: Sequence[Shape | None], rival: Pieces, partner: int, place: Place, way: Way, order: Shape | None
) -> Shape | None:
    """The shape of the whole; None where it is that of the first pass. An item that cannot be put together gets its partner's
    shape, so that no difference is told."""
    if way == Way.SKIP:
        return rival.shapes(partner)[0] if partner >= 0 else None
    first = own[0]
    if way not in (Way.JOIN, Way.LAST, Way.PASTE) or first is None:
        return None
    shape = list(first)
    if place.ends >= 0:
        shape[place.ends] = sum(rival.sizes) if way == Way.PASTE else 1
    if place.cut >= 0:
        length = sum(one[place.cut] for one in own if one is not None)
        shape[place.cut] = length if order is None or way != Way.JOIN else len(order) * place.times
    if place.grown >= 0 and own[-1] is not None:
        shape[place.grown] = own[-1][place.grown]
    return tuple(shape)


def _order(own: Pieces, rival: Pieces, item: int, way: Way, place: Place, terms: _Terms) -> Order | str | None:
    """How the tensor of the whole is made: of one file as it is, or by an order; None where it is not."""
    aligned = own.aligned
    if aligned is None or way in (Way.SKIP, Way.NUMBER):
        return None
    names = aligned.data_names(item)
    if way == Way.COPY:
        return names[0]
    if way == Way.TOTAL:
        last = names[-1]
        return (
            last if last is None or terms.factor == 1.0 else Order(parts=(last,), dimension=None, factor=terms.factor)
        )
    parts = tuple(name for name in names if name is not None)
    like = _name(rival.dump, int(own.partner[item])) if rival.aligned is None else None
    if len(parts) < len(names) or (way == Way.PASTE and like is None):
        return None
    relation = terms.relation
    blocks = relation.rows if relation.word == "positions" else place.times if like is not None else 1
    return Order(
        parts=parts,
        dimension=max(place.cut, place.ends) if max(place.cut, place.ends) >= 0 else None,
        factor=terms.factor if terms.backward[item] and way in (Way.JOIN, Way.SUM) else 1.0,
        like=like if way == Way.PASTE or blocks > 1 else None,
        grown=None if place.grown < 0 else place.grown,
        ends=tuple(end - 1 for end in accumulate(own.sizes)) if place.ends >= 0 else None,
        blocks=blocks if way == Way.JOIN and place.times % blocks == 0 else 1,
        order=relation.orders[terms.golden] if way == Way.JOIN else None,
        times=place.times,
    )


def _describe(
    own: Pieces,
    item: int,
    way: Way,
    place: Place,
    calls: Sequence[Sequence[int]],
    order: Order | str | None,
    counts: Counts,
) -> str:
    """The `value` of a tensor: how it was put together, and which call of every pass made it."""
    items = own.dump.items
    said: dict[str, object] = {"way": WAY_WORDS[way]}
    if place.cut >= 0 and way in (Way.JOIN, Way.PASTE):
        said["dimension"] = place.cut
        said["sizes"] = [shape[place.cut] for shape in own.shapes(item) if shape is not None]
    if items.role[item] == Role.OUTPUT and way == Way.JOIN and isinstance(order, Order) and order.blocks == 1:
        said["calls"] = calls[int(items.node[item])]  # which pass made an element follows from its place
    if isinstance(order, Order) and order.order is not None:
        said["order"], said["times"] = order.order, order.times
    code = int(items.value[item])
    known = json.loads(items.values[code]) if code >= 0 else {}
    kept = {key: value for key, value in known.items() if key != COUNTS} if isinstance(known, dict) else {}
    return json.dumps({**kept, **({COUNTS: counts} if counts else {}), "passes": said}, separators=(",", ":"))


def _count(own: Pieces, rival: Pieces, item: int, way: Way) -> Counts:
    """How many zeros and numbers that are not finite the whole holds; where that cannot be told, as many as the other side's."""
    aligned = own.aligned
    assert aligned is not None
    rows = aligned.rows[:, item].tolist()
    held = [counts_of(member.items, row) for member, row in zip(aligned.members, rows, strict=True)]
    if way in (Way.LAST, Way.TOTAL):
        return held[-1]
    if way != Way.JOIN:
        return counts_of(rival.dump.items, int(own.partner[item]))
    total: Counter[str] = Counter()
    for one in held:
        total.update(one)
    return dict(total)


def _calls(aligned: Aligned) -> list[list[int]]:
    """By node: the number of its call in every pass."""
    base = aligned.base
    first = np.searchsorted(base.items.node, np.arange(len(base.nodes)))
    first = np.minimum(first, max(len(base.items) - 1, 0))
    found = np.full((len(aligned.members), len(base.nodes)), -1, np.int64)
    for place, member in enumerate(aligned.members):
        rows = aligned.rows[place, first]
        found[place] = np.where(rows >= 0, member.nodes.index[member.items.node[rows]], -1)
    return [list(map(int, column)) for column in found.T]


def _name(dump: RankDump, item: int) -> str | None:
    code = int(dump.items.data_name[item]) if item >= 0 else -1
    return dump.items.data_names[code] if code >= 0 else None
