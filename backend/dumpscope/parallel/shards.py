"""Finds from shapes how an item of one rank belongs to the whole: a part along a dimension, or all of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import ItemPairs
from dumpscope.domain.records import Int32, Kind, RankDump, Role
from dumpscope.parallel.aligned import Aligned

WHOLE: Final = -1
"""Not cut: the shape is the shape of the whole."""
UNLIKE: Final = -2
"""The shape is not a part of the other side's shape: the item cannot be joined."""
LEVELS: Final = ("shards", "context", "replicas")
"""Levels that may cut a dimension: parts of the model, of the sequence, of the batch."""
_WEIGHTS: Final = (Role.PARAMETER, Role.GRADIENT)

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of shards, of parts of the sequence and of parts of the batch of a side."""

    shards: int
    replicas: int
    context: int = 1

    def of(self, level: str) -> int:
        return int(getattr(self, level))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Of every item of one side. dimension: the one it is cut along, or WHOLE or UNLIKE
    partner: the corresponding item of the other side, -1 if there is none
    scaled: item -> the value (JSON) of a size that counts cut elements, converted to the whole
    padded: item -> (dimension, length without padding), if one side is padded
    """

    dimension: Int32
    partner: Int32
    scaled: dict[int, str] = field(default_factory=dict)
    padded: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One member of a side and the others of its level. aligned: None if it is the only one"""

    dump: RankDump
    counts: Counts
    aligned: Aligned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extents:
    """Per item: code into the table of (shape, total length of all members along each dimension), -1 without a shape."""

    codes: Int32
    table: list[tuple[Shape, Shape]]


def find_cuts(own: Part, rival: Part, pairs: ItemPairs, level: str, *, golden: bool) -> Cuts:
    """Find how the items of `own` are cut at a level, by comparison with a member of the other side.

    pairs: items of target and golden; golden: `own` is the golden's
    A dimension is cut if the lengths of all members add up to the other side's length, or if it is shorter than the other
    side's by the ratio of the numbers of parts. Tables of embeddings may be longer than the other side's by their padding.
    """
    one, other = own.dump, rival.dump
    here, there = (pairs.golden, pairs.target) if golden else (pairs.target, pairs.golden)
    both = (here >= 0) & (there >= 0)
    dimension = np.full(len(one.items), WHOLE, np.int32)
    partner = np.full(len(one.items), -1, np.int32)
    partner[here[both]] = there[both]
    extents = _extents(own), _extents(rival)
    tensors = np.flatnonzero((one.items.kind == Kind.TENSOR) & (extents[0].codes >= 0) & (partner >= 0))
    matched = partner[tensors]
    tensors = tensors[(other.items.kind[matched] == Kind.TENSOR) & (extents[1].codes[matched] >= 0)]
    codes = list(zip(extents[0].codes[tensors].tolist(), extents[1].codes[partner[tensors]].tolist(), strict=True))
    pads = _pads(one, tensors.tolist(), codes, extents) if level == "shards" else frozenset[tuple[int, int]]()
    known: dict[tuple[int, int, bool], tuple[int, tuple[int, int] | None]] = {}
    padded: dict[int, tuple[int, int]] = {}
    weights = np.isin(one.items.role[tensors], _WEIGHTS).tolist()
    for item, (mine, theirs), weight in zip(tensors.tolist(), codes, weights, strict=True):
        key = mine, theirs, weight
        if key not in known:
            terms = _Terms(own=own.counts, rival=rival.counts, level=level, weight=weight, pads=pads)
            known[key] = _cut(extents[0].table[mine], extents[1].table[theirs], terms)
        dimension[item], short = known[key]
        if short is not None:
            padded[item] = short
    scaled = _scaled(own, other, dimension, partner, (own.counts.of(level), rival.counts.of(level)))
    return Cuts(dimension=dimension, partner=partner, scaled=scaled, padded=padded)


def _extents(part: Part) -> _Extents:
    items = part.dump.items
    aligned = part.aligned
    if aligned is None:
        return _Extents(codes=items.shape, table=[(shape, shape) for shape in items.shapes])
    count = len(aligned.members)
    table = [(shape, tuple(length * count for length in shape)) for shape in items.shapes]
    codes = items.shape.copy()
    columns, place = np.unique(aligned.shapes, axis=1, return_inverse=True)
    fresh = np.full(columns.shape[1], -1, np.int32)
    for column, held in enumerate(columns.T.tolist()):
        shapes = [aligned.shape_table[code] for code in held if code >= 0]
        if len(shapes) == count and len({len(shape) for shape in shapes}) == 1 and len(set(shapes)) > 1:
            fresh[column] = len(table)
            table.append((shapes[0], tuple(map(sum, zip(*shapes, strict=True)))))
    uneven = fresh[place.ravel()]
    codes[aligned.kept[uneven >= 0]] = uneven[uneven >= 0]
    return _Extents(codes=codes, table=table)


def _pads(
    one: RankDump, tensors: Sequence[int], codes: Sequence[tuple[int, int]], extents: tuple[_Extents, _Extents]
) -> frozenset[tuple[int, int]]:
    """Lengths (own whole, rival whole) of vocabularies with padding on a side, from tables of embeddings."""
    nodes, items = one.nodes, one.items
    table = np.array(["embed" in label.lower() for label in nodes.labels] + [False])[nodes.label]
    module = np.array([label.rpartition(".")[2].lower() != "embedding" for label in nodes.labels] + [False])[
        nodes.label
    ]
    second = np.array([path == "1" for path in items.paths] + [False])[items.path] & (items.role == Role.INPUT)
    weight = table[items.node] & ((items.role == Role.PARAMETER) | (second & ~module[items.node]))
    found = set()
    for item, (mine, theirs) in zip(tensors, codes, strict=True):
        if not weight[item]:
            continue
        shape, whole = extents[0].table[mine]
        rival_shape, rival_whole = extents[1].table[theirs]
        if len(shape) != len(rival_shape) or not shape:
            continue
        if shape[1:] == rival_shape[1:] and shape[0] != rival_shape[0] and whole[0] != rival_whole[0]:
            found.add((whole[0], rival_whole[0]))
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    own: Counts
    rival: Counts
    level: str
    weight: bool
    pads: frozenset[tuple[int, int]]


def _cut(mine: tuple[Shape, Shape], theirs: tuple[Shape, Shape], terms: _Terms) -> tuple[int, tuple[int, int] | None]:
    """The dimension that the level cuts, WHOLE or UNLIKE; and the padded dimension, with the length without padding."""
    shape, whole = mine
    rival_shape, rival_whole = theirs
    if len(shape) != len(rival_shape):
        return UNLIKE, None
    uneven = _uneven(mine, terms.own.of(terms.level)) | _uneven(theirs, terms.rival.of(terms.level))
    apart = [place for place in range(len(shape)) if shape[place] != rival_shape[place] or place in uneven]
    if not apart:
        return WHOLE, None
    if len(apart) == 1 and not uneven and (shape[apart[0]], rival_shape[apart[0]]) in terms.pads:
        return WHOLE, (apart[0], min(shape[apart[0]], rival_shape[apart[0]]))  # gathered, with its padding
    causes = [
        [
            levels
            for levels in _subsets(terms)
            if _explain_lengths(mine, theirs, place, levels, terms) and (terms.level in levels or place not in uneven)
        ]
        for place in apart
    ]
    ways: list[tuple[tuple[str, ...], ...]] = [
        way for way in product(*causes) if len(set(chain(*way))) == sum(map(len, way))
    ]
    if not ways:
        return UNLIKE, None
    chosen = dict(
        zip(apart, min(ways, key=lambda way: _preference(apart, list(way), weight=terms.weight)), strict=True)
    )
    dimension = next((place for place, levels in chosen.items() if terms.level in levels), WHOLE)
    lengths = whole[dimension], rival_whole[dimension]
    return dimension, (dimension, min(lengths)) if dimension >= 0 and lengths in terms.pads else None


def _uneven(extent: tuple[Shape, Shape], count: int) -> set[int]:
    """Dimensions along which the members may have different lengths, judged by their sum."""
    return {place for place, (length, whole) in enumerate(zip(*extent, strict=True)) if whole != length * count}


def _subsets(terms: _Terms) -> Iterator[tuple[str, ...]]:
    levels = [level for level in LEVELS if terms.own.of(level) != terms.rival.of(level)]
    for size in range(1, len(levels) + 1):
        yield from combinations(levels, size)


def _explain_lengths(
    mine: tuple[Shape, Shape], theirs: tuple[Shape, Shape], place: int, levels: tuple[str, ...], terms: _Terms
) -> bool:
    """Whether these levels together explain both lengths as parts of one whole."""
    if levels == (terms.level,) and (mine[1][place], theirs[1][place]) in terms.pads:
        return True
    lengths = []
    for (shape, whole), counts in ((mine, terms.own), (theirs, terms.rival)):
        length = whole[place] if terms.level in levels else shape[place]
        for level in levels:
            length *= 1 if level == terms.level else counts.of(level)
        lengths.append(length)
    return lengths[0] == lengths[1]


def _preference(apart: Sequence[int], way: Sequence[tuple[str, ...]], *, weight: bool) -> tuple[Any, ...]:
    """Sort key of dimensions. Batch and sequence cut activations (batch, then sequence, then features), but no weight."""
    place = {level: where for where, levels in zip(apart, way, strict=True) for level in levels}
    data = ("replicas" in place) + ("context" in place)
    return data if weight else -data, *(place.get(level, -1) for level in ("replicas", "context", "shards"))


def _scaled(own: Part, other: RankDump, dimension: Int32, partner: Int32, factors: tuple[int, int]) -> dict[int, str]:
    """Arguments that are sizes, such as those of `view`, converted to the whole in calls that work on a part."""
    if factors[0] == factors[1]:
        return {}
    one = own.dump
    cut = set(one.items.node[dimension >= 0].tolist())
    places = {} if own.aligned is None else {item: row for row, item in enumerate(own.aligned.kept.tolist())}
    found = {}
    for item in np.flatnonzero((one.items.kind == Kind.SCALAR) & (partner >= 0)).tolist():
        match = int(partner[item])
        if int(one.items.node[item]) not in cut or other.items.kind[match] != Kind.SCALAR:
            continue
        mine, theirs = _value(one, item), _value(other, match)
        if mine == theirs:
            continue
        sizes = _scale_size(json.loads(mine), json.loads(theirs), *factors)
        if sizes is None and own.aligned is not None and item in places:
            held = [
                json.loads(_value(member, row)) if row >= 0 else None
                for member, row in zip(own.aligned.members, own.aligned.rows[:, places[item]].tolist(), strict=True)
            ]
            sizes = _sum_sizes(held, json.loads(theirs))
        if sizes is not None:
            found[item] = json.dumps(sizes, separators=(",", ":"))
    return found


def _value(dump: RankDump, item: int) -> str:
    code = dump.items.value[item]
    return dump.items.values[code] if code >= 0 else "null"


def _scale_size(mine: object, theirs: object, factor: int, rival: int) -> object:
    """The size, or list of sizes, of the whole; None if the two sides do not match."""
    if type(mine) is int and type(theirs) is int:
        return mine if mine == theirs else mine * factor if mine * factor == theirs * rival else None
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        sizes = [_scale_size(a, b, factor, rival) for a, b in zip(mine, theirs, strict=True)]
        return None if None in sizes else sizes
    return None


def _sum_sizes(held: Iterable[object], theirs: object) -> object:
    """The size of the whole from uneven members; None if they do not add up to it."""
    members = list(held)
    if type(theirs) is int and all(type(one) is int for one in members):
        numbers = [one for one in members if isinstance(one, int)]
        return theirs if sum(numbers) == theirs or set(numbers) == {theirs} else None
    if isinstance(theirs, list):
        lists = [one for one in members if isinstance(one, list) and len(one) == len(theirs)]
        if len(lists) == len(members):
            sizes = [_sum_sizes(column, whole) for column, whole in zip(zip(*lists, strict=True), theirs, strict=True)]
            return None if None in sizes else sizes
    return None
