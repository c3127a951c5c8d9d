"""Shards or replicas become one dump, and orders say how their tensors become its tensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from dumpscope.domain.records import (
    Bool,
    Direction,
    Float64,
    Int8,
    Int32,
    Int64,
    Items,
    Kind,
    RankDump,
    Role,
    State,
    UInt8,
    item_name,
)  # fmt: skip
from dumpscope.parallel.aligned import Aligned, align_members
from dumpscope.parallel.replicas import Odd, straying, tolerance
from dumpscope.parallel.shards import UNLIKE, Cuts

_TAKEN: Final = (Role.INPUT, Role.KWARG, Role.PARAMETER)


class Way(IntEnum):
    """How the members' copies of an item become one."""

    COPY = 0  # all are equal: taken once
    JOIN = 1  # each is a part: laid end to end along a dimension
    SUM = 2  # each is a part of a sum
    ODD = 3  # they should be equal and are not: the one that strays is taken
    SKIP = 4  # they do not go together: nothing is compared


WAY_WORDS: Final = ("copy", "join", "sum", "odd", "skip")
ORDER: Final = "joined:"
"""Beginning of the data name of a tensor that is yet to be made by its order; no path begins so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A tensor to be made of the members' (paths, or orders): joined along `dimension`, or summed where that is None.

    factor: what the result is multiplied by; like: tensor of the other side that tells in which blocks the parts lie
    """

    parts: tuple[str | Order, ...]
    dimension: int | None
    factor: float = 1.0
    like: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """dump: data names are paths, or names of `orders`
    way, dimension: per item; odd: in the order in which the run met them, members by number
    alone: members and their nodes that not all of them have
    """

    dump: RankDump
    orders: dict[str, Order] = field(default_factory=dict)
    way: Int8
    dimension: Int32
    odd: list[Odd] = field(default_factory=list)
    alone: list[tuple[int, str]] = field(default_factory=list)

    def order(self, name: str) -> str | Order:
        return self.orders.get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """ranks: of every member; word: "shards" or "replicas"
    factor: of gradients and of sums, where the whole is the mean of the members; patterns: the user's `dimensions`
    """

    ranks: tuple[tuple[int, ...], ...]
    word: str
    factor: float = 1.0
    patterns: dict[str, int | str] = field(default_factory=dict)


def alone(dump: RankDump) -> Joint:
    """A side of one member."""
    count = len(dump.items)
    return Joint(dump=dump, way=np.zeros(count, np.int8), dimension=np.full(count, -1, np.int32))


def join_members(members: Sequence[Joint], cuts: Cuts, rival: RankDump, terms: Terms) -> Joint:
    """One dump of the members, whose nodes and items are the first one's; cuts: of its items, whose partners are `rival`'s."""
    aligned = align_members([member.dump for member in members])
    base = aligned.base
    partner = cuts.partner[aligned.kept]
    dimension = cuts.dimension[aligned.kept]
    place = np.full(len(cuts.partner), -1, np.int64)
    place[aligned.kept] = np.arange(len(aligned.kept))
    scaled = {int(place[item]): value for item, value in cuts.scaled.items() if place[item] >= 0}
    way = _ways(aligned, dimension)
    odd = _tell_sums(aligned, way, partner, rival)
    way[(way == Way.SUM) & _takes_more(base, rival, partner)] = Way.SKIP
    _override(base, way, dimension, terms.patterns)
    way[(way == Way.JOIN) & ~_joinable(aligned, dimension)] = Way.SKIP
    gradient = np.isin(base.items.node, np.flatnonzero(base.nodes.direction == Direction.BACKWARD)) | (
        base.items.role == Role.GRADIENT
    )
    factor = np.where(gradient | (way == Way.SUM), terms.factor, 1.0)
    factor[(way != Way.JOIN) & (way != Way.SUM)] = 1.0
    orders: dict[str, Order] = {}
    items = _statistics(aligned, way, dimension, factor, {one.item: one.members for one in odd})
    items = _shapes(items, aligned, way, dimension, partner, rival)
    items = _values(items, aligned, way, dimension, terms, scaled)
    items = _tensors(items, aligned, members, way, dimension, factor, partner, rival, odd, orders)
    return Joint(
        dump=replace(base, items=items),
        orders=orders,
        way=way,
        dimension=np.where(way == Way.JOIN, dimension, -1).astype(np.int32),
        odd=odd,
        alone=[(member, aligned.members[member].nodes.names[node]) for member, node in aligned.lost],
    )


def _ways(aligned: Aligned, dimension: Int32) -> Int8:
    """Ways as far as shapes and equality tell; what differs and is not cut counts as ODD until it is told to be a sum."""
    items = aligned.base.items
    way = np.full(len(items), int(Way.COPY), np.int8)
    tensor = items.kind == Kind.TENSOR
    way[tensor & ~aligned.same] = Way.ODD
    way[tensor & (dimension >= 0)] = Way.JOIN
    way[tensor & ((dimension == UNLIKE) | (aligned.rows < 0).any(axis=0))] = Way.SKIP
    return way


def _tell_sums(aligned: Aligned, way: Int8, partner: Int32, rival: RankDump) -> list[Odd]:
    """Tell parts of sums from copies that stray, call by call in the order in which they ran.

    A result that differs between the members is a part of a sum where its call took something that differs by right: a part,
    a part of a sum, an argument of its own. It strays where all that its call took is equal.
    """
    base = aligned.base
    items, nodes = base.items, base.nodes
    sums: set[tuple[object, ...]] = set()
    odd: list[Odd] = []
    edges = np.searchsorted(items.node, np.arange(len(nodes) + 1)).tolist()
    own_argument = (items.kind == Kind.SCALAR) & ~aligned.same
    touched = np.unique(items.node[way == Way.ODD]).tolist()
    for node in touched:
        span = range(edges[node], edges[node + 1])
        by_right = False
        for item in sorted(span, key=lambda item: items.role[item] not in _TAKEN):
            taken = items.role[item] in _TAKEN
            if way[item] == Way.ODD:
                content = aligned.prints(item)
                if content in sums or items.role[item] == Role.GRADIENT or (not taken and by_right):
                    way[item] = Way.SUM
                    sums.add(content)
                else:
                    odd.append(_odd(aligned, item, int(partner[item]), rival))
            if taken and (way[item] in (Way.JOIN, Way.SUM, Way.SKIP) or own_argument[item]):
                by_right = True
    return odd


def _takes_more(base: RankDump, rival: RankDump, partner: Int32) -> Bool:
    """Items whose partner's call takes more tensors: a bias, say, that the split call leaves to a later one."""
    taken = []
    for dump in (base, rival):
        tensors = (dump.items.kind == Kind.TENSOR) & np.isin(dump.items.role, [int(role) for role in _TAKEN])
        taken.append(np.bincount(dump.items.node[tensors], minlength=len(dump.nodes) + 1))
    theirs = np.append(rival.items.node, len(rival.nodes))[partner]
    found: Bool = (partner >= 0) & (taken[1][theirs] > taken[0][base.items.node])
    return found


def _odd(aligned: Aligned, item: int, partner: int, rival: RankDump) -> Odd:
    items = aligned.base.items
    other = None
    if partner >= 0 and rival.items.kind[partner] == Kind.TENSOR:
        other = rival.items.stats[partner], rival.items.stat_state[partner]
    dtype = items.dtypes[items.dtype[item]] if items.dtype[item] >= 0 else ""
    members = straying(
        aligned.stats[:, item], aligned.states[:, item], aligned.hashes[:, item], tolerance(dtype), other
    )
    return Odd(item=item, members=members)


def _override(base: RankDump, way: Int8, dimension: Int32, patterns: dict[str, int | str]) -> None:
    if not patterns:
        return
    words = {"copy": Way.COPY, "sum": Way.SUM, "skip": Way.SKIP}
    for item in np.flatnonzero(base.items.kind == Kind.TENSOR).tolist():
        name = item_name(base, item)
        found = next((said for pattern, said in patterns.items() if fnmatchcase(name, pattern)), None)
        if found is None:
            continue
        if isinstance(found, int):
            way[item], dimension[item] = Way.JOIN, found
        else:
            way[item] = words[found]


def _joinable(aligned: Aligned, dimension: Int32) -> Bool:
    """Every member has a shape, and they differ along the dimension at most."""
    out = np.zeros(len(dimension), bool)
    known: dict[tuple[int, ...], bool] = {}
    for item in np.flatnonzero(dimension >= 0).tolist():
        key = *aligned.shapes[:, item].tolist(), int(dimension[item])
        if key not in known:
            known[key] = _fit([aligned.shape_table[code] if code >= 0 else None for code in key[:-1]], key[-1])
        out[item] = known[key]
    return out


def _fit(shapes: Sequence[tuple[int, ...] | None], dimension: int) -> bool:
    rests = {
        None if shape is None or dimension >= len(shape) else shape[:dimension] + shape[dimension + 1 :]
        for shape in shapes
    }
    return len(rests) == 1 and None not in rests


def _statistics(
    aligned: Aligned, way: Int8, dimension: Int32, factor: Float64, odd: dict[int, tuple[int, ...]]
) -> Items:
    items = aligned.base.items
    stats, states = items.stats.copy(), items.stat_state.copy()
    hashes = items.hash.copy()
    rows = np.flatnonzero(way == Way.JOIN)
    if len(rows):
        weights = aligned.sizes[:, rows]
        stats[rows], states[rows] = _together(aligned.stats[:, rows], aligned.states[:, rows], weights)
        stats[rows] *= factor[rows, None]
        exact = np.array([tolerance(dtype) == 0 for dtype in items.dtypes] + [False])[items.dtype[rows]]
        stats[rows[exact], 2:], states[rows[exact], 2:] = np.nan, State.ABSENT  # sums would be off by a rounding
    nothing = (way == Way.SUM) | (way == Way.SKIP)
    stats[nothing], states[nothing] = np.nan, State.ABSENT
    for item in np.flatnonzero(way == Way.ODD).tolist():
        member = next(iter(odd.get(item, ())), 0)
        stats[item], states[item] = aligned.stats[member, item], aligned.states[member, item]
    hashes[(way == Way.JOIN) | nothing | (way == Way.ODD)] = -1
    wide = {key: value for key, value in items.wide.items() if way[key[0]] == Way.COPY}
    for item, column in {key for key in aligned.wide if way[key[0]] == Way.JOIN and key[1] < 2}:
        held = aligned.wide[item, column]
        wide[item, column] = max(held) if column == 0 else min(held)
    return replace(items, stats=stats, stat_state=states, hash=hashes, wide=wide)


def _together(stats: Float64, states: UInt8, sizes: Int64) -> tuple[Float64, UInt8]:
    """Statistics of the whole of those of its parts (members, items, 4): largest, smallest, weighted mean, root of squares."""
    values = stats.copy()
    values[states == State.NAN] = np.nan
    values[states == State.POS_INF] = np.inf
    values[states == State.NEG_INF] = -np.inf
    weight = sizes / np.maximum(sizes.sum(axis=0), 1)
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.stack(
            [
                values[:, :, 0].max(axis=0),
                values[:, :, 1].min(axis=0),
                (values[:, :, 2] * weight).sum(axis=0),
                np.sqrt((values[:, :, 3] ** 2).sum(axis=0)),
            ],
            axis=1,
        )
    found = np.full(out.shape, int(State.FINITE), np.uint8)
    found[np.isnan(out)] = State.NAN
    found[np.isposinf(out)] = State.POS_INF
    found[np.isneginf(out)] = State.NEG_INF
    absent = (states == State.ABSENT).any(axis=0)
    found[absent] = State.ABSENT
    out[absent] = np.nan
    return out, found


def _shapes(items: Items, aligned: Aligned, way: Int8, dimension: Int32, partner: Int32, rival: RankDump) -> Items:
    """Shapes of the whole; of what cannot be joined that of the partner, so that nothing is said of it."""
    table = list(items.shapes)
    codes = {shape: code for code, shape in enumerate(table)}
    shape = items.shape.copy()
    for item in np.flatnonzero((way == Way.JOIN) | (way == Way.SKIP)).tolist():
        if way[item] == Way.JOIN:
            held = [list(aligned.shape_table[code]) for code in aligned.shapes[:, item].tolist()]
            whole = held[0]
            whole[dimension[item]] = sum(one[dimension[item]] for one in held)
        elif partner[item] >= 0 and rival.items.shape[partner[item]] >= 0:
            whole = list(rival.items.shapes[rival.items.shape[partner[item]]])
        else:
            continue
        code = codes.setdefault(tuple(whole), len(table))
        if code == len(table):
            table.append(tuple(whole))
        shape[item] = code
    return replace(items, shape=shape, shapes=table)


def _values(items: Items, aligned: Aligned, way: Int8, dimension: Int32, terms: Terms, scaled: dict[int, str]) -> Items:
    """What each joined tensor was made from, beside what was already said of it, and the sizes counted on the whole."""
    table = list(items.values)
    codes = {text: code for code, text in enumerate(table)}
    value = items.value.copy()

    def put(item: int, text: str) -> None:
        code = codes.setdefault(text, len(table))
        if code == len(table):
            table.append(text)
        value[item] = code

    ranks = sorted(rank for member in terms.ranks for rank in member)
    for item in np.flatnonzero((items.kind == Kind.TENSOR) & (way != Way.COPY)).tolist():
        known = json.loads(table[value[item]]) if value[item] >= 0 else {}
        said: dict[str, object] = {"way": WAY_WORDS[way[item]], "by": terms.word, "ranks": ranks}
        if way[item] == Way.JOIN:
            said["dimension"] = int(dimension[item])
            sizes = [aligned.shape_table[code][dimension[item]] for code in aligned.shapes[:, item].tolist()]
            if len(set(sizes)) > 1:
                said["sizes"] = sizes
        before = known.get("joined", []) if isinstance(known, dict) else []
        put(item, json.dumps({"joined": [*before, said]}, separators=(",", ":")))
    for item, text in scaled.items():
        put(item, text)
    return replace(items, value=value, values=table)


def _tensors(
    items: Items,
    aligned: Aligned,
    members: Sequence[Joint],
    way: Int8,
    dimension: Int32,
    factor: Float64,
    partner: Int32,
    rival: RankDump,
    odd: Sequence[Odd],
    orders: dict[str, Order],
) -> Items:
    """Data names of the whole: a member's where that is taken, an order's where it is to be made."""
    table: list[str] = []
    codes: dict[str, int] = {}
    found = np.full(len(items), -1, np.int32)
    taken = {one.item: next(iter(one.members), 0) for one in odd}
    for item in np.flatnonzero(aligned.named).tolist():
        if way[item] == Way.SKIP:
            continue
        names = aligned.data_names(item)
        if way[item] in (Way.JOIN, Way.SUM):
            if None in names:
                continue
            like = None
            if partner[item] >= 0 and (code := int(rival.items.data_name[partner[item]])) >= 0:
                like = rival.items.data_names[code]
            name = f"{ORDER}{item}"
            orders[name] = Order(
                parts=tuple(
                    member.order(part) for member, part in zip(members, names, strict=True) if part is not None
                ),
                dimension=int(dimension[item]) if way[item] == Way.JOIN else None,
                factor=float(factor[item]),
                like=like if like is not None and not like.startswith(ORDER) else None,
            )
        else:
            member = taken.get(item, 0)
            chosen = names[member]
            if chosen is None:
                continue
            made = members[member].order(chosen)
            name = chosen
            if isinstance(made, Order):
                name = f"{ORDER}{item}"
                orders[name] = made
        code = codes.setdefault(name, len(table))
        if code == len(table):
            table.append(name)
        found[item] = code
    return replace(items, data_name=found, data_names=table)


def share(joint: Joint) -> dict[str, int]:
    """How many tensors were made in each way; joined ones by dimension."""
    tensor = joint.dump.items.kind == Kind.TENSOR
    counts: dict[str, int] = {}
    for way, dimension in zip(joint.way[tensor].tolist(), joint.dimension[tensor].tolist(), strict=True):
        key = f"dimension {dimension}" if way == Way.JOIN else WAY_WORDS[way]
        counts[key] = counts.get(key, 0) + 1
    return counts
