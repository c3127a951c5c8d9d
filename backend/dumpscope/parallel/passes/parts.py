"""Which part of what each pass holds is taken: what it made more than those before, its last position, what both sides made."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from dumpscope.domain.records import Float64, Int64, State, UInt8
from dumpscope.parallel.orders import Order
from dumpscope.parallel.passes.relation import Place, Relation, Shape
from dumpscope.parallel.passes.ways import Pieces

_MEAN = 2


def own_parts(own: Pieces, names: tuple[str, ...], place: Place, blocks: int) -> tuple[str | Order, ...]:
    """What each pass made, without what those before it had made already, and without what none has made yet."""
    parts: list[str | Order] = list(names)
    if own.anew and place.cut >= 0:
        tails = [size * place.times // blocks for size in own.sizes]
        parts = [
            Order(parts=(part,), dimension=place.cut, blocks=blocks, tail=tail)
            for part, tail in zip(parts, tails, strict=True)
        ]
    if place.kept:
        lengths = accumulate(own.sizes)
        parts = [
            Order(parts=(part,), dimension=place.grown, length=length)
            for part, length in zip(parts, lengths, strict=True)
        ]
    return tuple(parts)


def common_widths(own: Pieces) -> tuple[int, ...]:
    """By position, how many positions both sides had made when the pass of either ended that made it."""
    held = [
        [end for size, end in zip(sizes, accumulate(sizes), strict=True) for _ in range(size)]
        for sizes in (own.sizes, own.rival_sizes)
    ]
    return tuple(map(min, *held))


def ends_along(shape: Shape, relation: Relation) -> int:
    """Along which dimension last positions follow each other: that of positions, where each made one, else the first."""
    cut = relation.dimension
    return cut if cut < len(shape) and shape[cut] == 1 else 0


def find_worst(own: Pieces, rival: Pieces, rows: Int64) -> tuple[Float64, UInt8]:
    """Statistics of these items of `own`, which each pass made a part or all of: up to that common end at which the two sides are
    farthest apart, the last where they agree everywhere. A loop without a cache makes all again in every pass, so what was wrong
    in one pass alone does not show in the last. (rows, 4) and their states, absent where a pass holds none"""
    mine, theirs = _up_to(own, rows), _up_to(rival, own.partner[rows])
    with np.errstate(invalid="ignore", divide="ignore"):
        extremes = np.fmax(np.abs(mine[..., :2]).max(axis=2), np.abs(theirs[..., :2]).max(axis=2))
        norms = np.fmax(np.abs(mine[..., 3]), np.abs(theirs[..., 3]))
        scale = np.stack([extremes, extremes, extremes, norms], axis=2)
        apart = np.nan_to_num(np.abs(mine - theirs) / scale, nan=0.0, posinf=0.0).max(axis=2)
    last = len(apart) - 1
    worst = np.where(apart.max(axis=0) > 0, last - apart[::-1].argmax(axis=0), last)
    found = mine[worst, np.arange(len(rows))]
    states = np.where(np.isnan(found), int(State.ABSENT), int(State.FINITE)).astype(np.uint8)
    return found, states


def _up_to(side: Pieces, items: Int64) -> Float64:
    """Max, Min, Mean and Norm of all up to the end of each of the passes `shared`: (passes, items, 4), nan where not known"""
    if side.aligned is None:
        held = side.dump.items
        return np.where(held.stat_state[items] == State.FINITE, held.stats[items], np.nan)[None]
    aligned = side.aligned
    stats = np.where(aligned.states[:, items] == State.FINITE, aligned.stats[:, items], np.nan)
    if not side.anew:
        sizes = aligned.sizes[:, items].astype(np.float64)
        total = np.cumsum(sizes, axis=0)
        stats = np.stack(
            [
                np.maximum.accumulate(stats[..., 0], axis=0),
                np.minimum.accumulate(stats[..., 1], axis=0),
                np.cumsum(stats[..., _MEAN] * sizes, axis=0) / total,
                np.sqrt(np.cumsum(stats[..., 3] ** 2, axis=0)),
            ],
            axis=2,
        )
    found: Float64 = stats[side.shared]
    return found
