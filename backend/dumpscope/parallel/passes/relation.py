"""How the passes of two runs make up one batch or one sequence, and where the tensors of one pass lie in the whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]
Word = Literal["rows", "positions"]

COMMON: Final = 0.5
"""Share of the data of both sides that is equal where they took the same data, whatever went wrong with the rest. Padding does
not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """word: what the passes divide: the rows of a batch, or the positions of a sequence; rows: how many of these there are
    sizes: how many rows or positions every pass took, of the target and of the golden
    dimension: that one of the data
    orders: which rows, or positions, of the target and of the golden are compared, None where all as they are
    """

    word: Word
    rows: int
    sizes: tuple[Shape, Shape]
    dimension: int
    orders: tuple[Shape | None, Shape | None] = (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the parts of a tensor lie in the whole. cut: dimension along which they follow each other, grown: one that holds what
    all passes so far have made, as of keys and values from a cache, ends: one along which each made its last position only, as of
    the scores of the next word; -1: none. times: elements of one row or position along `cut`
    """

    cut: int = -1
    grown: int = -1
    ends: int = -1
    times: int = 1


def relate(target: Sequence[Shape], golden: Sequence[Shape], *, words: bool = False) -> Relation | None:
    """The relation of two runs, by the shapes of the data of all their passes; None where each pass of one is one of the other,
    or the shapes tell of none. words: the first dimension counts words of texts, whatever follows it"""
    if list(target) == list(golden) or (len(target) == 1 and len(golden) == 1):
        return None
    shapes = [*target, *golden]
    if len({len(shape) for shape in shapes}) != 1 or not shapes[0]:
        return None
    differs = [place for place in range(len(shapes[0])) if len({shape[place] for shape in shapes}) > 1]
    if len(differs) != 1:
        return None
    (cut,) = differs
    sizes = tuple(shape[cut] for shape in target), tuple(shape[cut] for shape in golden)
    if min(*sizes[0], *sizes[1]) < 1:
        return None
    word: Word = "rows" if cut == 0 and len(shapes[0]) > 1 and not words else "positions"
    if word == "rows" and sum(sizes[0]) != sum(sizes[1]):
        return None
    rows = sum(sizes[0]) if word == "rows" else shapes[0][0] if cut else 1
    return Relation(word=word, rows=rows, sizes=sizes, dimension=cut)


def begin_alike(relation: Relation) -> bool:
    """Whether the first passes of both sides took as much each, and one side went on: then each may be that of the other."""
    one, other = relation.sizes
    shared = min(len(one), len(other))
    return sum(one) != sum(other) and one[:shared] == other[:shared]


def begins_anew(parts: Sequence[Array], dimension: int) -> bool:
    """Whether each pass took what the one before it had taken, and more: a loop without a cache."""
    lengths = [part.shape[dimension] for part in parts]
    if len(parts) < 2 or any(one >= other for one, other in pairwise(lengths)):
        return False
    pairs = zip(parts, parts[1:], lengths, strict=False)
    return all(np.array_equal(one, np.take(other, range(length), dimension)) for one, other, length in pairs)


def check_data(
    relation: Relation,
    target: Sequence[Array],
    golden: Sequence[Array],
    orders: tuple[Sequence[int], Sequence[int]] | None,
) -> Relation | None:
    """The relation with the order of the rows, by the content of the data of all passes; None where it is not the same data.
    orders: which positions of both sides belong together, where the record tells"""
    one, other = (np.concatenate(list(parts), relation.dimension) for parts in (target, golden))
    if orders is not None and max(orders[0]) < one.shape[relation.dimension]:
        one, other = (np.take(side, own, relation.dimension) for side, own in zip((one, other), orders, strict=True))
        relation = replace(relation, orders=(tuple(orders[0]), tuple(orders[1])))
    shared = min(one.shape[relation.dimension], other.shape[relation.dimension])
    cut = (slice(None),) * relation.dimension + (slice(shared),)
    near, share = _compare(one[cut], other[cut])
    if near or relation.word != "rows":
        return relation if share >= COMMON else None
    free: dict[bytes, deque[int]] = {}
    for at, row in enumerate(one):
        free.setdefault(row.tobytes(), deque()).append(at)
    order = []
    for row in other:
        places = free.get(row.tobytes())
        if not places:
            return relation if share >= COMMON else None
        order.append(places.popleft())
    if len(relation.sizes[0]) > 1:  # one side is put into the order of the other
        return replace(relation, orders=(tuple(order), None))
    return replace(relation, orders=(None, tuple(np.argsort(order).tolist())))


def _compare(one: Array, other: Array) -> tuple[bool, float]:
    """Whether all elements are equal, and the share of equal ones among those that say something: where both sides hold the most
    frequent number, as of padding, nothing is told."""
    floats = one.dtype.kind in "fc"
    near = np.isclose(one, other, rtol=1e-2, equal_nan=True) if floats else one == other
    if near.all():
        return True, 1.0
    values, counts = np.unique(other, return_counts=True)
    usual = values[int(counts.argmax())]
    told = ~((one == usual) & (other == usual))
    return False, float(near[told].mean())


def find_place(own: Sequence[Shape | None], rival: Sequence[Shape | None], sizes: tuple[Shape, Shape]) -> Place | None:
    """Where the parts `own` of a tensor lie in the whole; None where they cannot be put together to what the other side has.
    sizes: rows or positions of every pass of this side and of the other. A Place without dimensions: nothing is cut."""
    mine = [shape for shape in own if shape is not None]
    theirs = [shape for shape in rival if shape is not None]
    if len(mine) < len(own) or len(theirs) < len(rival) or len({len(shape) for shape in (*mine, *theirs)}) != 1:
        return None
    cuts, grown, ends, times = [], [], [], 1
    for place in range(len(mine[0])):
        here, there = [shape[place] for shape in mine], [shape[place] for shape in theirs]
        if len({*here, *there}) == 1:
            continue
        found = _times(here, sizes[0])
        if found is not None and _is_part(there, sizes[1], found):
            cuts.append(place)
            times = found
        elif here == list(accumulate(sizes[0])) and there == list(accumulate(sizes[1])):
            grown.append(place)
        elif set(here) == {1} and len(theirs) == 1 and there[0] == sum(sizes[1]):
            ends.append(place)
        else:
            return None
    if max(len(cuts), len(grown), len(ends)) > 1 or (ends and (cuts or grown)):
        return None
    cut, held, last = (found[0] if found else -1 for found in (cuts, grown, ends))
    return Place(cut=cut, grown=held, ends=last, times=times)


def _times(lengths: Sequence[int], sizes: Shape) -> int | None:
    """By how much the lengths are larger than the sizes, all by the same; None where they are not."""
    times, rest = divmod(lengths[0], sizes[0])
    if rest or not times:
        return None
    return times if all(length == times * size for length, size in zip(lengths, sizes, strict=True)) else None


def _is_part(lengths: Sequence[int], sizes: Shape, times: int) -> bool:
    return all(length == times * size for length, size in zip(lengths, sizes, strict=True))
