"""Puts the passes of one side together into one dump, as if its model had run once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

import numpy as np

from dumpscope.domain.records import (
    Bool,
    Float64,
    Int8,
    Int64,
    JoinedPasses,
    Kind,
    RankDump,
    Role,
    State,
    UInt8,
)
from dumpscope.domain.stored_counts import COUNTS, Counts, counts_of
from dumpscope.parallel.join_members import join_statistics
from dumpscope.parallel.orders import ORDER, Order
from dumpscope.parallel.passes.mixing import Mixed, find_mixed
from dumpscope.parallel.passes.parts import common_widths, ends_along, find_worst, own_parts
from dumpscope.parallel.passes.relation import Place, Relation, Shape
from dumpscope.parallel.passes.ways import (
    Pieces,
    Way,
    calls_of,
    find_arguments,
    find_factor,
    find_totals,
    find_ways,
    in_backward,
    made_once,
)

_ROUNDING: Final = 1e-6
"""Relative difference that putting statistics together may make."""


WAY_WORDS: Final = ("copy", "join", "cache", "paste", "sum", "number", "skip", "total", "ends")


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
    moved: Collection[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the passes of a side become one. way: by item; places: of tensors that are cut; arguments: see `Whole`
    mixed: what is made of all rows, by this plan; factor: of gradients"""

    way: Int8
    places: dict[int, Place]
    arguments: Int64
    mixed: Mixed
    factor: float


def plan_passes(own: Pieces, rival: Pieces) -> Plan:
    items = own.dump.items
    way, places = find_ways(own, rival)
    arguments = find_arguments(own, rival, way)
    mixed = find_mixed(own, rival, way, places)
    if mixed.weighted or mixed.call:
        made = in_backward(own.dump) | made_once(own)
        way[made & (items.kind == Kind.TENSOR) & (own.partner >= 0)] = Way.SKIP
    mixed.numbers = {item: number for item, number in mixed.numbers.items() if way[item] == Way.NUMBER}
    factor = find_factor(own, rival, way)
    find_totals(own, rival, way, factor)
    return Plan(way=way, places=places, arguments=arguments, mixed=mixed, factor=factor)


def agree_on(plan: Plan, rival: Plan, own: Pieces) -> None:
    """What either side cannot put together is compared on neither."""
    both = np.flatnonzero(own.partner >= 0)
    there = own.partner[both]
    lost = (plan.way[both] == Way.SKIP) | (rival.way[there] == Way.SKIP)
    for side, rows in ((plan, both[lost]), (rival, there[lost])):
        side.way[rows] = Way.SKIP
        for item in rows.tolist():
            side.mixed.numbers.pop(item, None)


def join_passes(
    own: Pieces, rival: Pieces, plan: Plan, relation: Relation, *, golden: bool, by_statistics: bool
) -> Whole:
    """The passes of `own` as one dump. golden: `own` is the golden's; by_statistics: no tensors will be compared"""
    aligned = own.aligned
    assert aligned is not None
    items = own.dump.items
    way, places, numbers, factor = plan.way, plan.places, plan.mixed.numbers, plan.factor
    count = len(items)
    stats, states, hashes = items.stats.copy(), items.stat_state.copy(), items.hash.copy()
    shape, table = items.shape.copy(), list(items.shapes)
    value, values = items.value.copy(), list(items.values)
    data_name, names = np.full(count, -1, np.int32), list[str]()
    backward = in_backward(own.dump)
    terms = _Terms(relation=relation, golden=golden, factor=factor, backward=backward, moved=plan.mixed.moved)
    orders: dict[str, Order] = {}
    joined = np.flatnonzero(way == Way.JOIN)
    if len(joined):
        parts = aligned.stats[:, joined], aligned.states[:, joined], aligned.sizes[:, joined]
        if by_statistics and (own.anew or rival.anew):
            stats[joined], states[joined] = find_worst(own, rival, joined)
        elif own.anew:  # the last pass made all of it
            stats[joined], states[joined] = aligned.stats[-1, joined], aligned.states[-1, joined]
        else:
            stats[joined], states[joined] = join_statistics(*parts)
        stats[joined[backward[joined]]] *= factor
        exact = np.array(["float" not in name and "complex" not in name for name in items.dtypes] + [False])
        chosen = relation.orders[golden]
        if chosen is not None and len(chosen) < sum(own.sizes):  # of a part of what these tell of
            states[joined] = State.ABSENT
        whole_numbers = joined[exact[items.dtype[joined]]]
        _take_close(stats, states, whole_numbers, own, rival)
    ends = np.flatnonzero(way == Way.ENDS)
    if len(ends):
        at = np.ix_(np.array(own.shared), ends)
        stats[ends], states[ends] = join_statistics(aligned.stats[at], aligned.states[at], aligned.sizes[at])
    last = np.flatnonzero(np.isin(way, (Way.LAST, Way.TOTAL)))
    stats[last], states[last], hashes[last] = aligned.stats[-1, last], aligned.states[-1, last], -1
    stats[np.flatnonzero(way == Way.TOTAL)] *= factor
    nothing = np.isin(way, (Way.SUM, Way.SKIP, Way.PASTE))
    nothing |= (way == Way.LAST) & np.isin(np.arange(count), [item for item, place in places.items() if place.kept])
    stats[nothing], states[nothing] = np.nan, State.ABSENT
    hashes[np.isin(way, (Way.JOIN, Way.NUMBER, Way.ENDS)) | nothing] = -1
    for item, number in numbers.items():
        signed = (aligned.stats[:, item, 3] < 0).any()  # some tools call a number its own norm
        stats[item], states[item] = [number, number, number, number if signed else abs(number)], State.FINITE
    calls = calls_of(aligned)
    for item in np.flatnonzero(items.kind == Kind.TENSOR).tolist():
        place = places.get(item, Place())
        whole = _whole_shape(own, rival, item, place, Way(int(way[item])), terms)
        if whole is not None:
            shape[item] = len(table)
            table.append(whole)
        order = _order(own, rival, item, Way(int(way[item])), place, terms)
        if by_statistics and own.anew and way[item] == Way.JOIN:  # those up to the worst pass are compared
            order = None
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
    whole_items = replace(
        items, stats=stats, stat_state=states, hash=hashes, shape=shape, shapes=table, value=value, values=values,
        data_name=data_name, data_names=names,
        wide={key: number for key, number in items.wide.items() if way[key[0]] == Way.COPY},
    )  # fmt: skip
    passes = JoinedPasses(
        word=relation.word,
        sizes=own.sizes,
        gradients=factor,
        compared=_compared(relation),
        weighted=plan.mixed.weighted,
        mixed=plan.mixed.call,
        anew=own.anew,
    )
    dump = replace(own.dump, ref=replace(own.dump.ref, passes=passes), items=whole_items)
    return Whole(dump=dump, orders=orders, arguments=plan.arguments)


def _compared(relation: Relation) -> int:
    order = relation.orders[0]
    return -1 if order is None or relation.word == "rows" else len(order)


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


def _whole_shape(own: Pieces, rival: Pieces, item: int, place: Place, way: Way, terms: _Terms) -> Shape | None:
    """The shape of the whole; None where it is that of the first pass. An item that cannot be put together gets its partner's
    shape, so that no difference is told."""
    if way == Way.SKIP:
        partner = int(own.partner[item])
        if partner < 0 or (rival.aligned is not None and terms.golden):  # the target has taken this one's
            return None
        return rival.shapes(partner)[0]
    shapes, order = own.shapes(item), terms.relation.orders[terms.golden]
    first = shapes[0]
    if way == Way.ENDS and first:
        shape = list(first)
        shape[ends_along(first, terms.relation)] *= len(own.shared)
        return tuple(shape)
    if way not in (Way.JOIN, Way.LAST, Way.PASTE) or first is None:
        return None
    shape = list(first)
    if place.ends >= 0:
        shape[place.ends] = sum(rival.sizes) if way == Way.PASTE else 1
    if place.cut >= 0:
        length = sum(own.sizes) * place.times
        shape[place.cut] = length if order is None or way != Way.JOIN else len(order) * place.times
    last = shapes[-1]
    if place.grown >= 0 and last is not None:
        shape[place.grown] = sum(own.sizes) if place.kept else last[place.grown]
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
    if way == Way.ENDS:
        names, shape = [names[number] for number in own.shared], own.shapes(item)[0]
        parts = tuple(name for name in names if name is not None)
        whole = len(parts) == len(names) and shape
        return Order(parts=parts, dimension=ends_along(shape, terms.relation)) if whole and shape else None
    parts = tuple(name for name in names if name is not None)
    like = _name(rival.dump, int(own.partner[item])) if rival.aligned is None else None
    over = way == Way.PASTE and place.grown >= 0 and place.times == 1 and rival.aligned is not None
    if len(parts) < len(names) or (way == Way.PASTE and like is None and not over):
        return None
    relation, moved = terms.relation, way == Way.JOIN and item in terms.moved
    if moved and like is None:
        return None
    blocks = relation.rows if relation.word == "positions" else place.times if like is not None else 1
    return Order(
        parts=own_parts(own, parts, place, blocks if place.times % blocks == 0 else 1),
        dimension=max(place.cut, place.ends) if max(place.cut, place.ends) >= 0 else None,
        factor=terms.factor if terms.backward[item] and way in (Way.JOIN, Way.SUM) else 1.0,
        like=like if way == Way.PASTE or blocks > 1 or moved else None,
        moved=moved,
        grown=None if place.grown < 0 else place.grown,
        ends=tuple(end - 1 for end in accumulate(own.sizes)) if place.ends >= 0 else None,
        blocks=blocks if way == Way.JOIN and place.times % blocks == 0 else 1,
        order=relation.orders[terms.golden] if way == Way.JOIN else None,
        times=place.times,
        widths=common_widths(own) if over else None,
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
        said["sizes"] = [size * place.times for size in own.sizes]
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
    if way in (Way.LAST, Way.TOTAL) or (way == Way.JOIN and own.anew):
        return held[-1]
    if way != Way.JOIN:
        return counts_of(rival.dump.items, int(own.partner[item]))
    total: Counter[str] = Counter()
    for one in held:
        total.update(one)
    return dict(total)


def _name(dump: RankDump, item: int) -> str | None:
    code = int(dump.items.data_name[item]) if item >= 0 else -1
    return dump.items.data_names[code] if code >= 0 else None
