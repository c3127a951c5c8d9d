"""Keeps memory-mapped tensors from piling up in memory: pages come in just before a stretch is read and leave after it.

Without this a pass over two mapped files of 1 GiB peaks at 2 GiB of resident memory although nothing needs it.
"""

from __future__ import annotations

import mmap
import sys
from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.metrics.ulps import Raw

_POPULATE_READ: Final = 22  # MADV_POPULATE_READ of Linux 5.14: one call fills the page table of a range


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Where the data of a contiguous array lies in a read-only memory map. offset: bytes from the map's start."""

    pages: mmap.mmap
    offset: int
    itemsize: int

    def fill(self, start: int, stop: int) -> None:
        """Bring in the pages of elements start..stop."""
        self._advise(_POPULATE_READ, start, stop)

    def drop(self, start: int, stop: int) -> None:
        """Forget the pages of elements start..stop; the file still has them."""
        self._advise(mmap.MADV_DONTNEED, start, stop)

    def _advise(self, advice: int, start: int, stop: int) -> None:
        first = (self.offset + start * self.itemsize) // mmap.PAGESIZE * mmap.PAGESIZE
        length = self.offset + stop * self.itemsize - first
        try:
            self.pages.madvise(advice, first, length)
        except (
            OSError,
            ValueError,
        ):  # a kernel without this advice, or a map closed meanwhile: nothing is lost but speed
            return


def find_mapping(array: Raw) -> Mapping | None:
    """The read-only map under a contiguous array; None for ordinary memory and for maps that can be written.

    A writable private map must not be dropped: its changes exist nowhere else.
    """
    if not sys.platform.startswith("linux") or array.flags.writeable:
        return None
    base: object = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    if base is None:
        return None
    whole = np.frombuffer(base, dtype=np.uint8)
    if whole.flags.writeable:
        return None
    offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return Mapping(pages=base, offset=offset, itemsize=array.itemsize)
