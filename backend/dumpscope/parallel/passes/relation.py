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
    anew: whether each pass of the target, of the golden took what the one before had taken, and more (a loop without a cache);
        its size is then what it took more
    """

    word: Word
    rows: int
    sizes: tuple[Shape, Shape]
    dimension: int
    orders: tuple[Shape | None, Shape | None] = (None, None)
    anew: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the parts of a tensor lie in the whole. cut: dimension along which they follow each other, grown: one that holds what
    all passes so far have made, as of keys and values from a cache, ends: one along which each made its last position only, as of
    the scores of the next word; -1: none. times: elements of one row or position along `cut`
    kept: `grown` has the length of the whole, or more, in every pass: what no pass so far has made is hidden
    """

    cut: int = -1
    grown: int = -1
    ends: int = -1
    times: int = 1
    kept: bool = False


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


def may_begin_anew(sizes: Shape) -> bool:
    """Whether each pass took more than the one before."""
    return len(sizes) > 1 and all(one < other for one, other in pairwise(sizes))


def with_new_parts(relation: Relation, anew: tuple[bool, bool]) -> Relation:
    """The relation with what each pass took more as its size, where a side began anew in every pass."""
    sizes = tuple(
        tuple(size - before for before, size in pairwise((0, *own))) if again else own
        for own, again in zip(relation.sizes, anew, strict=True)
    )
    return replace(relation, sizes=(sizes[0], sizes[1]), anew=anew)


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


def find_place(
    own: Sequence[Shape | None],
    rival: Sequence[Shape | None],
    sizes: tuple[Shape, Shape],
    anew: tuple[bool, bool] = (False, False),
) -> Place | None:
    """Where the parts `own` of a tensor lie in the whole; None where they cannot be put together to what the other side has.
    sizes: rows or positions of every pass of this side and of the other. A Place without dimensions: nothing is cut.
    anew: whether passes of this side, of the other, hold what those before had, see `Relation`"""
    mine = [shape for shape in own if shape is not None]
    theirs = [shape for shape in rival if shape is not None]
    if len(mine) < len(own) or len(theirs) < len(rival) or len({len(shape) for shape in (*mine, *theirs)}) != 1:
        return None
    cuts, grown, ends = list[int](), list[int](), list[int]()
    times, kept = 1, False
    for place in range(len(mine[0])):
        here, there = [shape[place] for shape in mine], [shape[place] for shape in theirs]
        if len({*here, *there}) == 1:
            continue
        found = _times(here, sizes[0], anew=anew[0])
        both = found is not None and found == _times(there, sizes[1], anew=anew[1])
        holds = _holds_all(here, sizes[0]), _holds_all(there, sizes[1])
        if both and not (cuts and all(holds)):
            cuts.append(place)
            times = found or 1
        elif all(holds):
            grown.append(place)
            kept = len(here) > 1 and len(set(here)) == 1
        elif set(here) == {1} and len(theirs) == 1 and there[0] == sum(sizes[1]):
            ends.append(place)
        else:
            return None
    if max(len(cuts), len(grown), len(ends)) > 1 or (ends and (cuts or grown)):
        return None
    cut, held, last = (found[0] if found else -1 for found in (cuts, grown, ends))
    return Place(cut=cut, grown=held, ends=last, times=times, kept=kept)


def _times(lengths: Sequence[int], sizes: Shape, *, anew: bool) -> int | None:
    """By how much the lengths are larger than what each pass took, all by the same; None where they are not."""
    taken = list(accumulate(sizes)) if anew else list(sizes)
    times, rest = divmod(lengths[0], taken[0])
    if rest or not times:
        return None
    return times if all(length == times * size for length, size in zip(lengths, taken, strict=True)) else None


def _holds_all(lengths: Sequence[int], sizes: Shape) -> bool:
    """Whether the lengths are those of what all passes so far took, or always as long as all of them need."""
    if list(lengths) == list(accumulate(sizes)):
        return True
    return len(lengths) > 1 and len(set(lengths)) == 1 and lengths[0] >= sum(sizes)
