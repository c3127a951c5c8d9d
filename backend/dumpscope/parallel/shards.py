"""What an item of one rank is to the whole, as far as shapes tell: a part along a dimension, or all of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dumpscope.domain.facts import ItemPairs
from dumpscope.domain.records import Int32, Kind, RankDump, Role

WHOLE: Final = -1
"""Not cut: the shape is that of the whole."""
UNLIKE: Final = -2
"""The shape is no part of the other side's: nothing can be joined."""
_WEIGHTS: Final = (Role.PARAMETER, Role.GRADIENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many shards and replicas a side has."""

    shards: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Of every item of one side. dimension: the one it is cut along, or WHOLE or UNLIKE
    partner: item of the other side that it corresponds to, -1 where there is none
    scaled: item -> the value of a size that counts what is cut, as the whole has it (JSON)
    """

    dimension: Int32
    partner: Int32
    scaled: dict[int, str] = field(default_factory=dict)


def find_cuts(
    one: RankDump, other: RankDump, pairs: ItemPairs, own: Counts, rival: Counts, *, replicas: bool, golden: bool
) -> Cuts:
    """Cuts of the items of `one`, a member of a side of `own` shards and replicas, told from the member `other` of the rival.

    pairs: items of target and golden; golden: `one` is the golden's; replicas: look for what replicas cut, not shards
    A dimension is cut where it is as much shorter than the other side's as there are more parts of it.
    """
    here, there = (pairs.golden, pairs.target) if golden else (pairs.target, pairs.golden)
    both = (here >= 0) & (there >= 0)
    dimension = np.full(len(one.items), WHOLE, np.int32)
    partner = np.full(len(one.items), -1, np.int32)
    partner[here[both]] = there[both]
    known: dict[tuple[int, int, bool], int] = {}
    tensors = np.flatnonzero((one.items.kind == Kind.TENSOR) & (one.items.shape >= 0) & (partner >= 0))
    for item in tensors.tolist():
        match = int(partner[item])
        if other.items.kind[match] != Kind.TENSOR or other.items.shape[match] < 0:
            continue
        key = int(one.items.shape[item]), int(other.items.shape[match]), one.items.role[item] in _WEIGHTS
        if key not in known:
            shapes = one.items.shapes[key[0]], other.items.shapes[key[1]]
            known[key] = _cut(*shapes, own, rival, replicas=replicas, weight=key[2])
        dimension[item] = known[key]
    scaled = _scaled(one, other, dimension, partner, own, rival, replicas=replicas)
    return Cuts(dimension=dimension, partner=partner, scaled=scaled)


def _cut(
    shape: tuple[int, ...], rival_shape: tuple[int, ...], own: Counts, rival: Counts, *, replicas: bool, weight: bool
) -> int:
    if shape == rival_shape:
        return WHOLE
    if len(shape) != len(rival_shape):
        return UNLIKE
    apart = [place for place, sizes in enumerate(zip(shape, rival_shape, strict=True)) if sizes[0] != sizes[1]]
    of_shards, of_replicas = [], []
    for place in apart:
        size, rival_size = shape[place], rival_shape[place]
        if size * own.shards == rival_size * rival.shards:
            of_shards.append(place)
        if size * own.replicas == rival_size * rival.replicas:
            of_replicas.append(place)
        if size * own.shards * own.replicas == rival_size * rival.shards * rival.replicas:
            if place not in of_shards:
                of_shards.append(place)
            if place not in of_replicas:
                of_replicas.append(place)
        if place not in of_shards and place not in of_replicas:
            return UNLIKE
    if of_shards == of_replicas and len(apart) <= 2 and own.shards * rival.replicas == own.replicas * rival.shards:
        # both could be: replicas cut every activation, and its first dimension that is cut; no weight
        of_replicas = [] if weight else apart[:1]
        of_shards = apart if weight else apart[1:]
    found = of_replicas if replicas else of_shards
    if len(found) > 1:
        return UNLIKE
    return found[0] if found else WHOLE


def _scaled(
    one: RankDump, other: RankDump, dimension: Int32, partner: Int32, own: Counts, rival: Counts, *, replicas: bool
) -> dict[int, str]:
    """Arguments such as the sizes given to `view`: counted on the whole, in calls that have a part to do with."""
    factors = (own.replicas, rival.replicas) if replicas else (own.shards, rival.shards)
    if factors[0] == factors[1]:
        return {}
    cut = set(one.items.node[dimension >= 0].tolist())
    found = {}
    for item in np.flatnonzero((one.items.kind == Kind.SCALAR) & (partner >= 0)).tolist():
        match = int(partner[item])
        if int(one.items.node[item]) not in cut or other.items.kind[match] != Kind.SCALAR:
            continue
        values = [
            dump.items.values[dump.items.value[number]] if dump.items.value[number] >= 0 else "null"
            for dump, number in ((one, item), (other, match))
        ]
        if values[0] == values[1]:
            continue
        mine, theirs = (json.loads(value) for value in values)
        sizes = _counted(mine, theirs, *factors)
        if sizes is not None:
            found[item] = json.dumps(sizes, separators=(",", ":"))
    return found


def _counted(mine: object, theirs: object, factor: int, rival: int) -> object:
    """The size, or list of sizes, as the whole has it; None where the two do not go together."""
    if type(mine) is int and type(theirs) is int:
        return mine if mine == theirs else mine * factor if mine * factor == theirs * rival else None
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        sizes = [_counted(a, b, factor, rival) for a, b in zip(mine, theirs, strict=True)]
        return None if None in sizes else sizes
    return None
