"""Whether two sides computed the same data in other passes: by the shapes and the content of what each pass took."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import RankDump, State
from dumpscope.errors import TensorError
from dumpscope.parallel.join_members import join_statistics
from dumpscope.parallel.passes.relation import (
    Relation,
    begin_alike,
    begins_anew,
    check_data,
    may_begin_anew,
    relate,
    with_new_parts,
)
from dumpscope.parallel.passes.split import Passes, changes_weights, find_named, find_passes, shapes_of
from dumpscope.parallel.passes.tokens import POSITIONS, REQUESTS, WORDS, Tokens, find_order
from dumpscope.readers.tensors import tensor_file

Sides = tuple[RankDump, RankDump]
_EXTREMES: Final = 1e-2
"""Relative difference of the largest and the smallest number of the same data."""
_SUMS: Final = 1e-3
"""Relative difference of the mean and of the norm of the same whole numbers."""
_BATCH_NORMS: Final = ("batch_norm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
"""What makes every row of a batch depend on all others."""


def find_relation(target: RankDump, golden: RankDump) -> tuple[Relation, tuple[Passes, Passes]] | None:
    """How the passes of both sides make up the same data; None where each pass of one is one of the other, or nothing tells."""
    found = find_passes(target), find_passes(golden)
    if found[0] is None or found[1] is None:
        return None
    passes, sides = (found[0], found[1]), (target, golden)
    taken = all(min(one.data) >= 0 for one in passes)
    items = [one.data if taken else one.made for one in passes]
    if min(map(min, items)) < 0:
        return None
    shapes = [shapes_of(side, rows) for side, rows in zip(sides, items, strict=True)]
    relation = relate(shapes[0], shapes[1], words=not taken)
    if relation is not None:
        relation = _checked(relation, sides, passes, items)
    if relation is None or (relation.word == "rows" and (_mixes_rows(target) or _mixes_rows(golden))):
        return None
    if any(changes_weights(side, one) for side, one in zip(sides, passes, strict=True)):
        return None
    return relation, passes


def _mixes_rows(dump: RankDump) -> bool:
    return any(label.rpartition(".")[2] in _BATCH_NORMS for label in dump.nodes.labels)


def _checked(
    relation: Relation, sides: Sides, passes: tuple[Passes, Passes], items: Sequence[Sequence[int]]
) -> Relation | None:
    """The relation, where the data of both sides do not contradict it; with the order of the rows where tensors are stored."""
    held = [[_read(side, item) for item in rows] for side, rows in zip(sides, items, strict=True)]
    arrays = [[array for array in side if array is not None] for side in held]
    if all(len(side) == len(rows) for side, rows in zip(arrays, items, strict=True)):
        if begin_alike(relation) and np.array_equal(arrays[0][0], arrays[1][0]):
            return None  # each pass is compared with its namesake
        if relation.word == "positions":
            anew = begins_anew(arrays[0], relation.dimension), begins_anew(arrays[1], relation.dimension)
            relation = with_new_parts(relation, anew)
            arrays = [_new_parts(side, relation, number) for number, side in enumerate(arrays)]
        orders = None
        if relation.word == "positions" and relation.rows == 1:
            orders = find_order(*(_tokens(side, one) for side, one in zip(sides, passes, strict=True)))
        return check_data(relation, arrays[0], arrays[1], orders)
    if relation.word == "positions" and sum(relation.sizes[0]) != sum(relation.sizes[1]):
        anew = may_begin_anew(relation.sizes[0]), may_begin_anew(relation.sizes[1])
        relation = with_new_parts(relation, anew)
    if sum(relation.sizes[0]) != sum(relation.sizes[1]):
        return None  # statistics of other amounts do not tell whether it is the same data
    told = []
    for side, taken, again in zip(sides, map(np.array, items), relation.anew, strict=True):
        own = side.items
        rows = taken[-1:] if again else taken  # the last pass took all
        sizes = np.array([[math.prod(own.shapes[code])] for code in own.shape[rows].tolist()])
        told.append(join_statistics(own.stats[rows][:, None], own.stat_state[rows][:, None], sizes))
    (one, here), (other, there) = told
    if ((here != State.FINITE) | (there != State.FINITE))[:, :2].any():
        return relation
    whole = all("int" in side.items.dtypes[side.items.dtype[rows[0]]] for side, rows in zip(sides, items, strict=True))
    if not np.allclose(one[:, :2], other[:, :2], rtol=_EXTREMES):
        return None
    known = (here == State.FINITE) & (there == State.FINITE) & whole
    return relation if np.isclose(one, other, rtol=_SUMS)[known].all() else None


def _new_parts(parts: Sequence[NDArray[Any]], relation: Relation, side: int) -> list[NDArray[Any]]:
    """What each pass took more than the one before."""
    if not relation.anew[side]:
        return list(parts)
    return [
        np.take(part, range(part.shape[relation.dimension] - size, part.shape[relation.dimension]), relation.dimension)
        for part, size in zip(parts, relation.sizes[side], strict=True)
    ]


def _tokens(dump: RankDump, passes: Passes) -> Tokens:
    """What the dump tells of its tokens, under the names that engines give to it."""
    found: dict[tuple[str, ...], list[NDArray[Any]]] = {}
    for names in (POSITIONS, WORDS, REQUESTS):
        items = find_named(dump, passes, names)
        arrays = [_read(dump, item) for item in items]
        flat = [array.reshape(-1) for array in arrays if array is not None]
        found[names] = flat if len(flat) == passes.count else []
    return Tokens(positions=found[POSITIONS], words=found[WORDS], requests=found[REQUESTS])


def _read(dump: RankDump, item: int) -> NDArray[Any] | None:
    code, root = int(dump.items.data_name[item]), dump.header.data_dir
    if code < 0 or root is None:
        return None
    try:
        return tensor_file.load(os.path.join(root, dump.items.data_names[code]), root=root).array
    except TensorError:
        return None
