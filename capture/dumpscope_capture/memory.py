"""Numbers of host memory without gaps, by numpy in blocks that stay in the cache: each byte is fetched once.

On one thread on purpose: as fast as torch's threads for what fits a cache, and nobody is waited for where the machine is busy.
"""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import torch

BLOCK_BYTES: Final = 1 << 20

_ROW: Final = 1 << 13  # bytes of a row of a checksum
_LINE: Final = 1024  # elements whose squares are summed in their own precision
_WORD: Final = (1 << 64) - 1
_scratch: Final = threading.local()

Array = np.ndarray[Any, np.dtype[Any]]


class Checksum:
    """Of bytes, piece by piece: pieces but the last are multiples of `BLOCK_BYTES`. Any change of one word changes it.

    thorough: words that change places change it too (sums of rows and of columns); else only a change of what is there
    """

    def __init__(self, *, thorough: bool) -> None:
        self._thorough = thorough
        self._total = 0
        self._tail = 0
        self._order = 0
        self._columns = np.zeros(_ROW // 8, np.uint64) if thorough else None

    def add(self, data: Array) -> None:
        """data: of bytes, starting at a multiple of their element's size."""
        whole = len(data) - len(data) % _ROW
        if whole < len(data):
            self._tail = crc32(data[whole:].data, self._tail)
        if not whole:
            return
        words = data[:whole].view(np.uint64)
        if self._columns is None:
            self._total += int(np.add.reduce(words))
        else:
            table = words.reshape(-1, _ROW // 8)
            rows = np.add.reduce(table, axis=1)
            self._total += int(np.add.reduce(rows))
            self._order = crc32(rows.data, self._order)
            self._columns += np.add.reduce(table, axis=0)

    def value(self) -> tuple[int, ...]:
        total = self._total & _WORD  # numpy's sums wrap, the sum of them does not
        return (
            (total, self._tail, self._order, crc32(self._columns.data))
            if self._columns is not None
            else (total, self._tail)
        )


def checksum(data: Array, *, thorough: bool) -> tuple[int, ...]:
    """Of an array of bytes: what `survey` adds up for the same bytes."""
    found = Checksum(thorough=thorough)
    for start in range(0, len(data), BLOCK_BYTES) if thorough else (0,):
        found.add(data[start : start + BLOCK_BYTES] if thorough else data)
    return found.value()


class Survey(NamedTuple):
    """What numbers are like.

    low, top: least and greatest, NaN where one is; zeros: how many are 0
    squares: sum of the squares of floats, of rows in their own precision and of the rows in float64
    """

    low: float | int
    top: float | int
    zeros: int
    squares: float | None


def survey(array: Array, found: Checksum | None = None) -> Survey:
    """Of numbers in one dimension. found: adds up their bytes on the way."""
    size = BLOCK_BYTES // array.itemsize
    low, top, zeros = array[0], array[0], 0
    squares = 0.0 if array.dtype.kind == "f" else None
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(array), size):
            block = array[start : start + size]
            least, greatest = np.minimum.reduce(block), np.maximum.reduce(block)
            low, top = np.minimum(low, least), np.maximum(top, greatest)
            if not (least > 0 or greatest < 0):
                zeros += _zeros(block)
            if squares is not None:
                squares += _squares(block)
            if found is not None:
                found.add(block.view(np.uint8))
    return Survey(low.item(), top.item(), zeros, squares)


def _squares(block: Array) -> float:
    """Rows are short enough for float32 to be exact to 1e-7, and for a BLAS to stay on this thread."""
    whole = len(block) - len(block) % _LINE
    lines, rest = block[:whole].reshape(-1, _LINE), block[whole:]
    return float(np.vecdot(lines, lines).sum(dtype=np.float64)) + float(np.vecdot(rest, rest))


def _zeros(block: Array) -> int:
    equal = getattr(_scratch, "equal", None)
    if equal is None:
        equal = _scratch.equal = np.empty(BLOCK_BYTES, np.bool_)
    return int(np.count_nonzero(np.equal(block, block.dtype.type(0), out=equal[: len(block)])))


def flat(value: torch.Tensor) -> torch.Tensor | None:
    """All elements in the order of memory where they lie there without gaps, else None."""
    if value.is_contiguous():
        return value.view(-1)
    step = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size > 1 and stride != step:
            return None
        step *= size
    return value.as_strided((value.numel(),), (1,))
