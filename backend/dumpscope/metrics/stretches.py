"""Gives large tensors stretch by stretch: views of arrays in memory, copies of arrays in a mapped file.

Reading a mapped file stretch by stretch into one small buffer keeps memory small for any tensor size. If the system keeps the
file in small pages, it takes half the time of touching every page of the map. And it cannot crash when the file is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from dumpscope.metrics.ulps import Raw

STRETCH: Final = 1 << 20
"""Elements that a thread processes at a time."""

LONGEST: Final = 1 << 31
"""Elements that machine code processes at a time if there is only one thread."""

READ: Final = 1 << 18
"""Bytes of a mapped file that a thread reads at a time: both sides stay in its second-level cache until they are measured."""

Place = tuple[int, int]
"""Descriptor of an open file and a byte in it, or IN_MEMORY and an address."""

IN_MEMORY: Final = -1

Parts = Iterable[tuple[int, Raw, Raw]]
"""Consecutive pieces of a pair: flat index of the first element, elements of target and golden, shape (n,)."""

_PAGE: Final = 4096  # bytes


class Readable(Protocol):
    """A mapped file that can also be read."""

    @property
    def descriptor(self) -> int:
        """Descriptor of the open file, for machine code."""

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill target with the bytes from `start` on. Raises TensorError when the file no longer has them."""


class Pair:
    """Two flat contiguous arrays of one size.

    readable: a side is in a file, and arrays in memory are aligned
    """

    __slots__ = ("_golden", "_step", "_target", "readable", "size")

    def __init__(self, target: Raw, golden: Raw) -> None:
        self._target = _Side(target, file_of(target))
        self._golden = _Side(golden, file_of(golden))
        self.size = target.size
        sides = self._target, self._golden
        mapped = any(side.file is not None for side in sides)
        self._step = READ // max(target.itemsize, golden.itemsize) if mapped else 0
        self.readable = mapped and all(side.file is not None or side.array.flags.aligned for side in sides)

    def parts(self, start: int, stop: int) -> Parts:
        """Elements start..stop, piece by piece; a piece from a file is valid until the next one is requested."""
        if not self._step:
            yield start, self._target.array[start:stop], self._golden.array[start:stop]
            return
        with borrow_buffers() as buffers:
            for first in range(start, stop, self._step):
                last = min(first + self._step, stop)
                sides = self._target.elements(first, last, buffers[0]), self._golden.elements(first, last, buffers[1])
                yield first, *sides

    @contextmanager
    def places(self, start: int) -> Iterator[tuple[Place, Place, int]]:
        """Location of element `start` of target and golden, and the address of 2 * READ bytes to read files into."""
        with borrow_buffers() as (buffer, _):
            yield self._target.place(start), self._golden.place(start), address(buffer)


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

    def place(self, first: int) -> Place:
        size = self.array.itemsize
        if self.file is None:
            return IN_MEMORY, address(self.array) + first * size
        readable, start = self.file
        return readable.descriptor, start + first * size


def address(values: Raw) -> int:
    """Address of the first element in memory."""
    return int(values.__array_interface__["data"][0])


def file_of(array: Raw) -> tuple[Readable, int] | None:
    """The mapped file of an array, and the position of its first element in bytes."""
    base: Any = array.base
    while base is not None and not hasattr(base, "read_into"):  # isinstance of a protocol takes 8 us
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    if base is None:
        return None
    whole = np.frombuffer(base, dtype=np.uint8)
    return base, address(array) - address(whole)


@contextmanager
def borrow_buffers() -> Iterator[tuple[Raw, Raw]]:
    """Two consecutive buffers of READ bytes, each starting on a page."""
    try:
        buffers = _idle.pop()
    except IndexError:
        whole = np.empty(2 * READ + _PAGE, np.uint8)
        start = -address(whole) % _PAGE
        buffers = whole[start : start + READ], whole[start + READ : start + 2 * READ]
    try:
        yield buffers
    finally:
        _idle.append(buffers)


_idle: Final[list[tuple[Raw, Raw]]] = []
