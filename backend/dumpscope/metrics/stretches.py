"""Large tensors taken a stretch at a time: views of arrays in memory, copies of those that lie in a mapped file.

Reading a mapped file stretch by stretch into one small buffer keeps memory small whatever the tensor's size, takes half the
time of touching every page of the map where the system keeps the file in small pages, and cannot fault when the file is cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from dumpscope.metrics.ulps import Raw

STRETCH: Final = 1 << 20
"""Elements that a thread takes at a time."""

READ: Final = 1 << 20
"""Bytes of a mapped file that a thread reads at a time: both sides stay in cache until they are measured."""

Parts = Iterable[tuple[int, Raw, Raw]]
"""Consecutive pieces of a pair: flat index of the first element, elements of target and golden, shape (n,)."""

_LINE: Final = 64  # bytes of a cache line


class Readable(Protocol):
    """A mapped file that can also be read."""

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill target with the bytes from `start` on. Raises TensorError when the file no longer has them."""


class Pair:
    """Two flat contiguous arrays of one size."""

    __slots__ = ("_golden", "_step", "_target", "size")

    def __init__(self, target: Raw, golden: Raw) -> None:
        self._target = _Side(target, _file_of(target))
        self._golden = _Side(golden, _file_of(golden))
        self.size = target.size
        mapped = self._target.file is not None or self._golden.file is not None
        self._step = READ // max(target.itemsize, golden.itemsize) if mapped else 0

    def parts(self, start: int, stop: int) -> Parts:
        """Elements start..stop; a piece from a file lies in a buffer until the next one is asked for."""
        if not self._step:
            yield start, self._target.array[start:stop], self._golden.array[start:stop]
            return
        buffers = _buffers()
        for first in range(start, stop, self._step):
            last = min(first + self._step, stop)
            yield first, self._target.elements(first, last, buffers[0]), self._golden.elements(first, last, buffers[1])
        _idle.append(buffers)


@dataclass(frozen=True, slots=True)
class _Side:
    array: Raw
    file: tuple[Readable, int] | None

    def elements(self, first: int, last: int, buffer: Raw) -> Raw:
        if self.file is None:
            return self.array[first:last]
        readable, start = self.file
        size = self.array.itemsize
        copied = buffer[: (last - first) * size]
        readable.read_into(copied.data, start + first * size)
        return copied.view(self.array.dtype)


def _file_of(array: Raw) -> tuple[Readable, int] | None:
    """The mapped file an array lies in, and the byte its first element has there."""
    base: Any = array.base
    while base is not None and not hasattr(base, "read_into"):  # isinstance of a protocol takes 8 us
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    if base is None:
        return None
    whole = np.frombuffer(base, dtype=np.uint8)
    return base, array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def _buffers() -> tuple[Raw, Raw]:
    """Two buffers of READ bytes, each on a cache line of its own; some that were used before if there are any."""
    try:
        return _idle.pop()
    except IndexError:
        whole = np.empty(2 * READ + _LINE, np.uint8)
        start = -whole.__array_interface__["data"][0] % _LINE
        return whole[start : start + READ], whole[start + READ : start + 2 * READ]


_idle: Final[list[tuple[Raw, Raw]]] = []
