"""At which indices of each dimension a tensor pair differs: "only rows 1 and 5"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Bool, Float64, Int64
from dumpscope.plots.pair.pieces import row_pieces

STANDS_OUT: Final = 10.0
"""An index stands out if its largest difference is this many times the median of all indices."""
_LARGEST: Final = 1e308
"""Larger differences are set to this: rounded up for a figure they would be infinite."""
_RUNS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One dimension. worst: largest difference at each index, shape (size,); bad: has an element finite on one side only

    only: the indices that differ, if others do not; empty if all or none differ
    outstanding: indices far worse than most, if all or most differ; typical: the median that they are compared with
    """

    axis: int
    worst: Float64
    bad: Bool
    only: Int64
    outstanding: Int64
    typical: float

    @property
    def size(self) -> int:
        return len(self.worst)

    @property
    def marked(self) -> Int64:
        return self.only if self.only.size else self.outstanding

    @property
    def share(self) -> float:
        """Share of the indices to which the difference is confined, or at which it stands out; 1 if neither."""
        return self.marked.size / self.size if self.marked.size else 1.0


def sized(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape; a single number gets one dimension."""
    return shape or (1,)


def magnitudes(change: Float64) -> tuple[Float64, Bool]:
    """(size of each difference, 0 where it is not finite; where it is not)"""
    bad = np.isnan(change)
    return np.minimum(np.where(bad, 0.0, np.abs(change)), _LARGEST), bad


def profiles(target: NDArray[Any], golden: NDArray[Any]) -> tuple[Profile, ...]:
    """One profile per dimension of two arrays of one shape, in one pass over small pieces."""
    shape = sized(target.shape)
    worst = [np.zeros(size) for size in shape]
    bad = [np.zeros(size, dtype=np.bool_) for size in shape]
    for row, column, piece in row_pieces(target, golden):
        width = min(shape[-1] - column, len(piece.target))
        size, lost = (part.reshape(-1, width) for part in magnitudes(piece.change()))
        stop = column + width
        np.maximum(worst[-1][column:stop], size.max(axis=0), out=worst[-1][column:stop])
        bad[-1][column:stop] |= lost.any(axis=0)
        rows, rows_lost = size.max(axis=1), lost.any(axis=1)
        for axis, places in enumerate(leading(shape, row, len(size))):
            np.maximum.at(worst[axis], places, rows)
            bad[axis][places[rows_lost]] = True
    return tuple(_profile(axis, *parts) for axis, parts in enumerate(zip(worst, bad, strict=True)))


def leading(shape: tuple[int, ...], row: int, count: int) -> tuple[Int64, ...]:
    """Index of each of `count` rows of the last dimension in every dimension before it."""
    if len(shape) == 1:
        return ()
    return np.unravel_index(np.arange(row, row + count), shape[:-1])


def _profile(axis: int, worst: Float64, bad: Bool) -> Profile:
    differs = (worst > 0) | bad
    count = int(np.count_nonzero(differs))
    only = np.flatnonzero(differs) if 0 < count < len(worst) else np.zeros(0, dtype=np.int64)
    with np.errstate(over="ignore"):
        typical = float(np.median(worst)) if worst.size else 0.0
    outstanding = np.flatnonzero(bad | (worst > STANDS_OUT * typical)) if typical > 0 else np.zeros(0, dtype=np.int64)
    if 2 * outstanding.size >= len(worst):
        outstanding = outstanding[:0]
    return Profile(axis=axis, worst=worst, bad=bad, only=only, outstanding=outstanding, typical=typical)


def telling_axes(found: tuple[Profile, ...]) -> tuple[int, ...]:
    """The two dimensions (one for a vector) that confine the difference most; else those in which it stands out at the fewest
    indices; else the last ones."""
    ranked = sorted(found, key=lambda one: (one.size == 1, not one.only.size, one.share, -one.axis))
    return tuple(sorted(one.axis for one in ranked[:2]))


def runs(indices: Int64) -> str:
    """Indices in words: `1, 5, 8–12`; only the first few runs if there are many."""
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    parts = np.split(indices, breaks)
    words = [str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts[:_RUNS]]
    return ", ".join(words) + (", …" if len(parts) > _RUNS else "")
