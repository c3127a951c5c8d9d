"""Joins shards or replicas into one dump; orders say how to make its tensors from theirs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from dumpscope.parallel.aligned import BLOCK, Aligned
from dumpscope.parallel.orders import ORDER, WAY_WORDS, Order, Way, order_tensors
from dumpscope.parallel.replicas import Odd, odd_members, tolerance
from dumpscope.parallel.shards import UNLIKE, Cuts

_TAKEN: Final = (Role.INPUT, Role.KWARG, Role.PARAMETER)
_TIMES: Final = 1e-6
"""Relative difference that printing the statistics of a number may make."""
_LOOKUPS: Final = frozenset({"embedding", "gather", "index_select", "take", "take_along_dim", "__getitem__"})
"""APIs whose result holds the elements that an index selects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """dump: data names are paths, or names of `orders`
    way, dimension: per item; odd: in the order of the run, members by number
    alone: nodes that not all members have, with their member; padded: items that were cut to the length of the other side
    """

    dump: RankDump
    orders: dict[str, Order] = field(default_factory=dict)
    way: Int8
    dimension: Int32
    odd: list[Odd] = field(default_factory=list)
    alone: list[tuple[int, str]] = field(default_factory=list)
    padded: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """ranks: of every member; word: "shards", "context" or "replicas"
    factor: for gradients and sums, if the whole is the mean of the members; patterns: the user's `dimensions`
    sequence: the order in which the members share a sequence, if known; rivals: members of the other side, not joined yet
    """

    ranks: tuple[tuple[int, ...], ...]
    word: str
    factor: float = 1.0
    patterns: dict[str, int | str] = field(default_factory=dict)
    sequence: str | None = None
    rivals: int = 1


def alone(dump: RankDump) -> Joint:
    """The Joint of a single member."""
    count = len(dump.items)
    return Joint(dump=dump, way=np.zeros(count, np.int8), dimension=np.full(count, -1, np.int32))


def join_members(members: Sequence[Joint], aligned: Aligned, cuts: Cuts, rival: RankDump, terms: Terms) -> Joint:
    """Join the members into one dump with the nodes and items of the first. cuts: of its items, with partners in `rival`."""
    base = aligned.base
    partner = cuts.partner[aligned.kept]
    dimension = cuts.dimension[aligned.kept]
    place = np.full(len(cuts.partner), -1, np.int64)
    place[aligned.kept] = np.arange(len(aligned.kept))
    scaled = {int(place[item]): value for item, value in cuts.scaled.items() if place[item] >= 0}
    way = _find_ways(aligned, dimension)
    equal_sums = _find_equal_sums(aligned, way, partner, rival, terms.rivals)
    way[equal_sums] = Way.SUM
    odd = _find_sums(aligned, way, partner, rival, shards=terms.word == "shards")
    way[(way == Way.SUM) & _takes_more(base, rival, partner)] = Way.SKIP
    _override(base, way, dimension, terms.patterns)
    way[(way == Way.JOIN) & ~_joinable(aligned, dimension)] = Way.SKIP
    gradient = np.isin(base.items.node, np.flatnonzero(base.nodes.direction == Direction.BACKWARD)) | (
        base.items.role == Role.GRADIENT
    )
    factor = np.where(gradient | (way == Way.SUM), terms.factor, 1.0)
    factor[(way != Way.JOIN) & (way != Way.SUM)] = 1.0
    factor[equal_sums] = 1.0
    orders: dict[str, Order] = {}
    items = _statistics(aligned, way, dimension, factor, {one.item: one.members for one in odd})
    items = _shapes(items, aligned, way, dimension, partner, rival)
    items = _values(items, aligned, way, dimension, terms, scaled)
    known = [member.orders for member in members]
    items = order_tensors(items, aligned, known, way, dimension, factor, partner, rival, odd, terms.sequence, orders)
    padded = {int(place[item]): short for item, short in cuts.padded.items() if place[item] >= 0}
    joint = Joint(
        dump=replace(base, items=items),
        orders=orders,
        way=way,
        dimension=np.where(way == Way.JOIN, dimension, -1).astype(np.int32),
        odd=odd,
        alone=[(member, aligned.members[member].nodes.names[node]) for member, node in aligned.lost],
    )
    whole = (Way.JOIN, Way.COPY, Way.ODD)
    return without_padding(joint, {item: short for item, short in padded.items() if way[item] in whole})


def without_padding(joint: Joint, lengths: Mapping[int, tuple[int, int]]) -> Joint:
    """The joint without the padding of some items. lengths: item -> dimension, and the remaining length along it

    Statistics without the padding cannot be derived from the stored ones: they are computed from tensors, else absent.
    """
    items = joint.dump.items
    stats, states, hashes, shape = items.stats.copy(), items.stat_state.copy(), items.hash.copy(), items.shape.copy()
    data_name, names, shapes = items.data_name.copy(), list(items.data_names), list(items.shapes)
    orders = dict(joint.orders)
    done = set(joint.padded)
    for item, (dimension, length) in lengths.items():
        whole = list(shapes[shape[item]])
        if whole[dimension] == length:
            continue
        whole[dimension] = length
        shape[item] = len(shapes)
        shapes.append(tuple(whole))
        stats[item], states[item], hashes[item] = np.nan, State.ABSENT, -1
        done.add(item)
        if data_name[item] >= 0:
            name = names[data_name[item]]
            made = orders.pop(name, Order(parts=(name,), dimension=dimension))
            data_name[item] = len(names)
            names.append(f"{ORDER}{item}")
            orders[names[-1]] = replace(made, length=length)
    items = replace(
        items, stats=stats, stat_state=states, hash=hashes, shape=shape, shapes=shapes, data_name=data_name,
        data_names=names,
    )  # fmt: skip
    return replace(joint, dump=replace(joint.dump, items=items), orders=orders, padded=frozenset(done))


def _find_ways(aligned: Aligned, dimension: Int32) -> Int8:
    """Find ways from shapes and equality. Items that differ and are not cut are ODD until `_find_sums` finds the sums."""
    items = aligned.base.items
    way = np.full(len(items), int(Way.COPY), np.int8)
    tensor = items.kind == Kind.TENSOR
    way[tensor & ~aligned.same] = Way.ODD
    way[tensor & (dimension >= 0)] = Way.JOIN
    way[tensor & ((dimension == UNLIKE) | (aligned.rows < 0).any(axis=0))] = Way.SKIP
    return way


def _find_equal_sums(aligned: Aligned, way: Int8, partner: Int32, rival: RankDump, rivals: int) -> Bool:
    """Numbers that are the same in all members and yet parts of a sum, as the count of each member's tokens: a forward call made
    them of parts, and all members together have as much as the other side. rivals: members of that side"""
    base = aligned.base
    items = base.items
    found = np.zeros(len(items), bool)
    single = (way == Way.COPY) & (items.kind == Kind.TENSOR) & (aligned.sizes == 1).all(axis=0) & (partner >= 0)
    single &= base.nodes.direction[items.node] == Direction.FORWARD
    if not single.any():
        return found
    own, theirs = items.stats, rival.items.stats[partner]
    finite = (items.stat_state == State.FINITE) & (rival.items.stat_state[partner] == State.FINITE)
    with np.errstate(invalid="ignore"):
        count = len(aligned.members)
        times = np.isclose(rivals * theirs, count * own, rtol=_TIMES, atol=0) & (own != 0) & (rivals != count)
    single &= (times | ~finite).all(axis=1) & finite.any(axis=1)
    parts = np.zeros(len(base.nodes), bool)
    parts[items.node[way == Way.JOIN]] = True
    made = single & (items.role == Role.OUTPUT) & parts[items.node]
    contents = {aligned.prints(item) for item in np.flatnonzero(made).tolist()}
    again = [item for item in np.flatnonzero(single & ~made).tolist() if aligned.prints(item) in contents]
    found[made] = True
    found[again] = True
    return found


def _find_sums(aligned: Aligned, way: Int8, partner: Int32, rival: RankDump, *, shards: bool) -> list[Odd]:
    """Distinguish parts of sums from copies that deviate, call by call in the order in which they ran.

    A result that differs between the members is a part of a sum if an input of its call differs for a good reason (a part,
    a part of a sum, an argument of its own), or, in backward, an input of its forward call. It deviates if all inputs of its
    call are equal. Integers of shards are no parts of sums (an index or a mask of their own), nor are values selected by them.
    """
    base = aligned.base
    items, nodes = base.items, base.nodes
    sums: set[tuple[object, ...]] = set()
    own: set[tuple[object, ...]] = set()
    odd: list[Odd] = []
    edges = np.searchsorted(items.node, np.arange(len(nodes) + 1)).tolist()
    own_argument = (items.kind == Kind.SCALAR) & ~aligned.same
    exact = np.array([shards and tolerance(dtype) == 0 for dtype in items.dtypes] + [False])[items.dtype]
    lookup = np.array([label.rpartition(".")[2] in _LOOKUPS for label in nodes.labels] + [False])[nodes.label]
    touched = np.unique(items.node[way == Way.ODD]).tolist()
    forward = _forward_nodes(base, touched)
    differing = (Way.JOIN, Way.SUM, Way.SKIP)
    for node in touched:
        span = range(edges[node], edges[node + 1])
        before = forward.get(node)
        by_right = before is not None and any(
            items.role[item] in _TAKEN and (way[item] in differing or own_argument[item])
            for item in range(edges[before], edges[before + 1])
        )
        looked_up = False
        for item in sorted(span, key=lambda item: items.role[item] not in _TAKEN):
            taken = items.role[item] in _TAKEN
            if way[item] == Way.ODD:
                content = aligned.prints(item)
                rightful = content in sums or content in own or (not taken and by_right)
                if content in own or (exact[item] and rightful) or (not taken and looked_up):
                    way[item] = Way.SKIP
                    own.add(content)
                elif rightful or items.role[item] == Role.GRADIENT:
                    way[item] = Way.SUM
                    sums.add(content)
                else:
                    odd.append(_odd(aligned, item, int(partner[item]), rival))
            if taken and (way[item] in differing or own_argument[item]):
                by_right = True
                looked_up = looked_up or bool(lookup[node] and exact[item] and way[item] == Way.SKIP)
    return odd


def _forward_nodes(dump: RankDump, wanted: Collection[int]) -> dict[int, int]:
    """The forward node of each of the given backward nodes."""
    nodes = dump.nodes
    going = nodes.direction == Direction.FORWARD
    calls = zip(nodes.label.tolist(), nodes.index.tolist(), nodes.kind.tolist(), strict=True)
    places = {call: node for node, (call, forward) in enumerate(zip(calls, going.tolist(), strict=True)) if forward}
    found = {}
    for node in wanted:
        call = int(nodes.label[node]), int(nodes.index[node]), int(nodes.kind[node])
        if nodes.direction[node] == Direction.BACKWARD and call in places:
            found[node] = places[call]
    return found


def _takes_more(base: RankDump, rival: RankDump, partner: Int32) -> Bool:
    """Items whose partner's call takes more tensors, for example a bias that the split run adds in a later call."""
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
    members = odd_members(
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
    """Whether every member has a shape, and the shapes differ only along the dimension."""
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
        for first in range(0, len(rows), BLOCK):
            block = rows[first : first + BLOCK]
            parts = aligned.stats[:, block], aligned.states[:, block], aligned.sizes[:, block]
            stats[block], states[block] = join_statistics(*parts)
        stats[rows] *= factor[rows, None]
        exact = np.array([tolerance(dtype) == 0 for dtype in items.dtypes] + [False])[items.dtype[rows]]
        stats[rows[exact], 2:], states[rows[exact], 2:] = np.nan, State.ABSENT  # a sum would add a rounding error
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


def join_statistics(stats: Float64, states: UInt8, sizes: Int64) -> tuple[Float64, UInt8]:
    """Statistics of the whole from those of its parts (members, items, 4): largest, smallest, weighted mean, root of squares."""
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
    """Shapes of the whole. An item that cannot be joined gets its partner's shape, so that no difference is reported."""
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
    """The `value` of each joined tensor: its old value and how it was joined; and the sizes converted to the whole."""
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
        if len(terms.ranks) < len(ranks):
            said["members"] = len(terms.ranks)
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


def share(joint: Joint) -> dict[str, int]:
    """Number of tensors per way; joined ones by dimension."""
    tensor = joint.dump.items.kind == Kind.TENSOR
    counts: dict[str, int] = {}
    for way, dimension in zip(joint.way[tensor].tolist(), joint.dimension[tensor].tolist(), strict=True):
        key = f"dimension {dimension}" if way == Way.JOIN else WAY_WORDS[way]
        counts[key] = counts.get(key, 0) + 1
    if joint.padded:
        counts["padded"] = len(joint.padded)
    return counts
