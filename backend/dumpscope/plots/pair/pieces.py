"""Gives two tensors of one shape piece by piece: views of arrays in memory, reads from mapped files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Bool, Float64
from dumpscope.errors import UsageError
from dumpscope.metrics.stretches import READ, Pair
from dumpscope.texts import say

Array = NDArray[Any]

BLOCK: Final = READ // 16
"""Most elements of a piece: as many of the widest type as one read holds; both sides and their difference stay in a cache."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive elements. target, golden: raw, shape (n,); start: flat index of the first, in C order."""

    start: int
    target: Array
    golden: Array

    def values(self) -> tuple[Float64, Float64]:
        """Both sides as float64; complex numbers as magnitudes."""
        return wide(self.target), wide(self.golden)

    def change(self) -> Float64:
        """target - golden, exact if float64 can hold it; for complex numbers the magnitude of the difference.

        If a side is not finite: 0 if both are the same (two nan, two infinities of one sign), else nan.
        """
        return difference(self.target, self.golden)


def pieces(target: Array, golden: Array) -> Iterator[Piece]:
    """All elements in C order; a piece is valid until the next one is requested. Raises UsageError if shapes differ."""
    flat = target.flags.c_contiguous and golden.flags.c_contiguous
    sides = (target.reshape(-1), golden.reshape(-1)) if flat else (target, golden)
    for _row, _column, piece in row_pieces(*sides):
        yield piece


def row_pieces(target: Array, golden: Array) -> Iterator[tuple[int, int, Piece]]:
    """Like `pieces`, but each piece has whole rows of the last axis, or a part of one row: (first row, first column, piece)."""
    if target.size != golden.size:
        raise UsageError(
            say("plots.shapes_differ_there_nothing_compare", shape=list(target.shape), shape2=list(golden.shape))
        )
    width = target.shape[-1] if target.ndim else 1
    rows = prod(target.shape[:-1])
    if not width or not rows:
        return
    source = _source(target, golden)
    if width <= BLOCK:
        step = BLOCK // width
        for row in range(0, rows, step):
            stop = min(row + step, rows)
            for start, one, other in source(row * width, stop * width):
                yield row, 0, Piece(start, one, other)
        return
    for row in range(rows):
        for column in range(0, width, BLOCK):
            first = row * width + column
            for start, one, other in source(first, first + min(BLOCK, width - column)):
                yield row, column, Piece(start, one, other)


def _source(target: Array, golden: Array) -> Any:
    """(start, stop) -> one (start, target, golden) of at most BLOCK elements."""
    if target.flags.c_contiguous and golden.flags.c_contiguous:
        return Pair(target.reshape(-1), golden.reshape(-1)).parts
    if target.flags.c_contiguous and not any(golden.strides):  # one number everywhere, see `zeros`
        return Pair(target.reshape(-1), np.broadcast_to(golden.flat[:1], target.size)).parts
    # flat copies a slice of any strides in C order; reshape would copy everything
    one, other = target.flat, golden.flat
    return lambda start, stop: iter([(start, one[start:stop], other[start:stop])])


def zeros(shape: tuple[int, ...]) -> Array:
    """Zeros without their memory: what one tensor alone is read against."""
    return np.broadcast_to(np.float64(0), shape)


def wide(values: Array) -> Float64:
    """The array as float64; complex numbers as magnitudes."""
    if np.iscomplexobj(values):
        return np.abs(values).astype(np.float64)
    return values.astype(np.float64)


def difference(target: Array, golden: Array) -> Float64:
    """See Piece.change; shapes are equal."""
    with np.errstate(all="ignore"):
        if np.iscomplexobj(target) or np.iscomplexobj(golden):
            pair = target.astype(np.complex128), golden.astype(np.complex128)
            same = _same(pair[0].real, pair[1].real) & _same(pair[0].imag, pair[1].imag)
            gap = np.abs(pair[0] - pair[1])
            finite = np.isfinite(pair[0]) & np.isfinite(pair[1])
        elif target.dtype.kind in "iu" and golden.dtype.kind in "iu" and 8 in (target.itemsize, golden.itemsize):
            return _whole_difference(target, golden)
        else:
            one, other = target.astype(np.float64), golden.astype(np.float64)
            same = _same(one, other)
            gap = one - other
            finite = np.isfinite(one) & np.isfinite(other)
    return np.where(same, 0.0, np.where(finite, gap, np.nan))


def _same(one: Array, other: Array) -> Bool:
    same: Bool = (one == other) | (np.isnan(one) & np.isnan(other))
    return same


def _whole_difference(target: Array, golden: Array) -> Float64:
    """Difference of 64-bit integers: in float64 alone, neighbours past 2**53 would be equal."""
    rough = target.astype(np.float64) - golden.astype(np.float64)
    wrapped = (target.astype(np.uint64) - golden.astype(np.uint64)).view(np.int64)  # just below 2**63
    return np.where(np.abs(rough) < 2.0**62, wrapped.astype(np.float64), rough)
