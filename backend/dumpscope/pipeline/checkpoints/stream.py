"""Two tensors as blocks of equal shape, so that memory stays small whatever their size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Shape
from dumpscope.metrics.stretches import file_of

BLOCK: Final = 16 << 20
"""Bytes of a block that has to be put together from pieces."""
STRETCH: Final = 1 << 26
"""Elements measured between two looks at whether somebody cancelled, where both sides lie whole in their files."""

Box = tuple[slice, ...]


class Whole:
    """One tensor whose pieces are placed. The arrays of its pieces are views of files, and are opened when they are needed."""

    def __init__(self, tensor: CheckpointTensor, turned: bool = False) -> None:
        self.tensor = tensor
        self.turned = turned
        self._arrays: dict[int, Raw] = {}
        self.dtype: np.dtype[Any] = self._array(0).dtype
        self.shape: Shape = tensor.shape[::-1] if turned else tensor.shape

    def flat(self) -> Raw | None:
        """All elements one after the other, if they lie so in one file."""
        if self.turned or len(self.tensor.pieces) != 1:
            return None
        array = self._array(0)
        return array.reshape(-1) if array.flags.c_contiguous else None

    def block(self, box: Box) -> Raw:
        """The elements of a box; a copy unless they lie together in memory."""
        if self.turned:
            return np.ascontiguousarray(self._box(box[::-1]).T)
        return self._box(box)

    def _box(self, box: Box) -> Raw:
        shape = tuple(part.stop - part.start for part in box)
        out = np.empty(shape, self.dtype)
        for number, piece in enumerate(self.tensor.pieces):
            common = _common(piece, box)
            if common is not None:
                here, there = common
                _copy(self._array(number)[here], out[there])
        return out

    def _array(self, number: int) -> Raw:
        found = self._arrays.get(number)
        if found is None:
            if len(self._arrays) > 64:  # the files of thousands of pieces are not all kept open
                self._arrays.clear()
            found = self._arrays[number] = self.tensor.pieces[number].read()
        return found


def _common(piece: Piece, box: Box) -> tuple[Box, Box] | None:
    """What a piece and a box have in common, as seen from each."""
    here: list[slice] = []
    there: list[slice] = []
    for begin, size, part in zip(piece.place or (), piece.shape, box, strict=True):
        first, last = max(begin, part.start), min(begin + size, part.stop)
        if first >= last:
            return None
        here.append(slice(first - begin, last - begin))
        there.append(slice(first - part.start, last - part.start))
    return tuple(here), tuple(there)


def _copy(source: Raw, out: Raw) -> None:
    """Copy elements; those that lie together in a mapped file are read from it, which keeps its pages out of our memory."""
    place = file_of(source) if source.flags.c_contiguous and source.size else None
    if place is None:
        out[...] = source
        return
    readable, start = place
    if out.flags.c_contiguous:
        readable.read_into(out.reshape(-1).view(np.uint8).data, start)
        return
    buffer = np.empty(source.shape, source.dtype)
    readable.read_into(buffer.reshape(-1).view(np.uint8).data, start)
    out[...] = buffer


def boxes(shape: Shape, itemsize: int, limit: int = BLOCK) -> Iterator[Box]:
    """Consecutive boxes, in C order, that cover a shape and hold at most `limit` bytes each (one element at least)."""
    full = tuple(slice(0, size) for size in shape)
    if math.prod(shape) * itemsize <= limit or not shape:
        yield full
        return
    inner = math.prod(shape[1:]) * itemsize
    if inner <= limit:
        rows = max(1, limit // max(inner, 1))
        for first in range(0, shape[0], rows):
            yield slice(first, min(first + rows, shape[0])), *full[1:]
        return
    for row in range(shape[0]):
        for rest in boxes(shape[1:], itemsize, limit):
            yield slice(row, row + 1), *rest


def blocks(target: Whole, golden: Whole) -> Iterator[tuple[Raw, Raw]]:
    """Both tensors in C order: stretches of the files themselves where both lie whole in one, else blocks put together."""
    first, second = target.flat(), golden.flat()
    if first is not None and second is not None:
        for start in range(0, max(first.size, 1), STRETCH):
            yield first[start : start + STRETCH], second[start : start + STRETCH]
        return
    for box in boxes(target.shape, max(target.dtype.itemsize, golden.dtype.itemsize)):
        yield target.block(box), golden.block(box)
