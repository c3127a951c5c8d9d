"""Sides that computed the same data in another number of passes: each becomes a dump of one pass, and its tensors are made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.options import Options
from dumpscope.domain.records import Int64, RankDump, State
from dumpscope.errors import TensorError, UnreadableError
from dumpscope.match import match
from dumpscope.parallel.aligned import Aligned, align_members
from dumpscope.parallel.members import with_full_paths
from dumpscope.parallel.passes.join import Pieces, join_passes
from dumpscope.parallel.passes.relation import Relation, check_data, relate
from dumpscope.parallel.passes.split import Passes, count_passes, data_shapes, find_passes, members
from dumpscope.pipeline.compare.joined_tensors import make_tensors
from dumpscope.readers.tensors import tensor_file

Sides = tuple[RankDump, RankDump]
Arguments = tuple[Int64, Int64]
"""Items of the target and of the golden that say how much a pass took."""
_NOTHING: Final = np.empty(0, np.int64)
_BATCH_NORMS: Final = ("batch_norm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
"""What makes every row of a batch depend on all others."""


def with_joined_passes(
    target: RankDump, golden: RankDump, options: Options, folder: Path | None
) -> tuple[Sides, Arguments]:
    """Both sides, each with its passes put together where one of them computed in other passes what the other did; and the
    arguments that differ for that reason.

    folder: their tensors are made in it, None: none are
    """
    as_they_are = (target, golden), (_NOTHING, _NOTHING)
    if count_passes(target) == count_passes(golden) == 1:
        return as_they_are
    found = find_passes(target), find_passes(golden)
    if found[0] is None or found[1] is None:
        return as_they_are
    passes = found[0], found[1]
    relation = relate(data_shapes(target, passes[0]), data_shapes(golden, passes[1]))
    if relation is not None:
        relation = _checked(relation, (target, golden), passes)
    if relation is None or (relation.word == "rows" and (_mixes_rows(target) or _mixes_rows(golden))):
        return as_they_are
    try:
        return _join((target, golden), passes, relation, options, folder)
    except UnreadableError:  # the passes did not run the same calls
        return as_they_are


def _join(
    sides: Sides, passes: tuple[Passes, Passes], relation: Relation, options: Options, folder: Path | None
) -> tuple[Sides, Arguments]:
    """Raises UnreadableError where the passes of a side did not run the same calls."""
    many = [one.count > 1 for one in passes]
    full = [with_full_paths(side) for side in sides]
    aligned: list[Aligned | None] = [
        align_members(members(side, one)) if several else None
        for side, one, several in zip(full, passes, many, strict=True)
    ]
    firsts = [side if one is None else one.base for side, one in zip(full, aligned, strict=True)]
    pairs = match(firsts[0], firsts[1], options).items
    both = (pairs.target >= 0) & (pairs.golden >= 0)
    pieces = []
    for number, (own, there) in enumerate(((pairs.target, pairs.golden), (pairs.golden, pairs.target))):
        partner = np.full(len(firsts[number].items), -1, np.int64)
        partner[own[both]] = there[both]
        pieces.append(
            Pieces(dump=firsts[number], aligned=aligned[number], partner=partner, sizes=relation.sizes[number])
        )
    tensors = folder is not None and options.tensors and all(len(side.items.data_names) for side in sides)
    made, arguments = list(sides), [_NOTHING, _NOTHING]
    for number, word in enumerate(("target", "golden")):
        if many[number]:
            whole = join_passes(pieces[number], pieces[1 - number], relation, golden=number == 1)
            place = folder / word if folder is not None and tensors else None
            made[number] = make_tensors(whole.dump, whole.orders, place)
            arguments[number] = whole.arguments
    return (made[0], made[1]), (arguments[0], arguments[1])


def _mixes_rows(dump: RankDump) -> bool:
    return any(label.rpartition(".")[2] in _BATCH_NORMS for label in dump.nodes.labels)


def _checked(relation: Relation, sides: Sides, passes: tuple[Passes, Passes]) -> Relation | None:
    """The relation, where the data of both sides do not contradict it; with the order of the rows where tensors are stored."""
    held = [[_read(side, item) for item in one.data] for side, one in zip(sides, passes, strict=True)]
    arrays = [[array for array in side if array is not None] for side in held]
    if all(len(side) == one.count for side, one in zip(arrays, passes, strict=True)):
        return check_data(relation, *arrays)
    if sum(relation.sizes[0]) != sum(relation.sizes[1]):
        return relation
    extremes = []
    for side, one in zip(sides, passes, strict=True):
        rows = list(one.data)
        if (side.items.stat_state[rows, :2] != State.FINITE).any():
            return relation
        extremes.append((side.items.stats[rows, 0].max(), side.items.stats[rows, 1].min()))
    return relation if np.allclose(extremes[0], extremes[1], rtol=1e-2) else None


def _read(dump: RankDump, item: int) -> NDArray[Any] | None:
    code, root = int(dump.items.data_name[item]), dump.header.data_dir
    if code < 0 or root is None:
        return None
    try:
        return tensor_file.load(os.path.join(root, dump.items.data_names[code]), root=root).array
    except TensorError:
        return None
