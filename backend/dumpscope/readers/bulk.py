"""Many small tensor files of one folder, read and recognised outside the interpreter by a few calls of machine code.

One by one, a file takes five system calls and a comparison of bytes, and Python takes and gives away its lock around each: two
threads that do so hinder each other. What is out of the ordinary in any way (a link, a folder in the name, a layout not seen
before) is left to `tensorfile.load`, which also says what is wrong.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType, TracebackType
from typing import Any, Final, Self

import numpy as np

from dumpscope.domain.records import Int64
from dumpscope.readers import twins
from dumpscope.readers.mapped_file import MAPPED_FROM
from dumpscope.readers.twins import Layout

LARGEST: Final = MAPPED_FROM - 1
"""Bytes of the largest file that is read: `read_bytes` maps larger ones."""

WHOLE: Final = 1 << 16
"""Bytes of the largest file that is read as a whole. Of larger ones the ends are read, and the file stays open for the rest: the
tensor, which is then measured while it lies in the nearest cache that holds it."""

CLOSED: Final = -1
"""Descriptor of a file that is not open."""

FAILED: Final = -1
"""Size of a file that is not read."""

LINE: Final = 64
"""Slots should start on a multiple of this, the bytes of a cache line: what is aligned in a file is then aligned in memory."""


@cache
def file_calls() -> ModuleType | None:
    """The machine code, None where there is none: another system, no numba. Imports numba."""
    try:
        module = importlib.import_module("dumpscope.readers.file_calls")
        if not module.available():
            return None
        none = np.zeros(0, np.int64)
        module.measure(-1, 0, none, none)  # compiled, or taken from disk, before threads want it
        module.read(-1, 0, none, none, none, none, none)
        module.close(none)
        module.agree(none, np.zeros((0, 2), np.int64), 0, none)
    except Exception:  # whatever keeps a compiler from working, files are read one by one then
        return None
    return module


class Folder:
    """A folder whose files are read many at a time. Raises OSError if it cannot be opened; close it by `with`."""

    def __init__(self, root: str, calls: ModuleType) -> None:
        self._calls = calls
        self._directory = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._directory)

    def files(self, names: list[str]) -> Files:
        """Regular files of these names, measured but not read yet."""
        text = _encoded(names)
        starts = np.flatnonzero(np.frombuffer(b"\0" + text[:-1], np.uint8) == 0)
        sizes = np.empty(len(names), np.int64)
        self._calls.measure(self._directory, _address(text), starts, sizes)
        sizes[sizes > LARGEST] = FAILED
        return Files(self._calls, self._directory, text, starts, sizes)


class Files:
    """Some files of one folder.

    sizes: their bytes, FAILED where one is not to be read; slots: addresses where they were read to; descriptors: those of files
        of which only the ends were read, else CLOSED; shapes (n,)
    """

    def __init__(self, calls: ModuleType, directory: int, names: bytes, starts: Int64, sizes: Int64) -> None:
        self._calls = calls
        self._directory = directory
        self._names = names
        self._starts = starts
        self.slots = np.zeros(len(starts), np.int64)
        self.descriptors = np.full(len(starts), CLOSED, np.int64)
        self._stems = np.zeros(len(starts), np.int64)
        self.sizes = sizes

    def rooms(self) -> Int64:
        """Bytes that each file needs to be read to, shape (n,)."""
        return 1 + np.where(self.sizes > WHOLE, 2 * twins.END, self.sizes.clip(0))

    def read(self, start: int, stop: int, slots: Int64) -> None:
        """Read files start..stop, each to the address slots[i], where the caller has room for it; to be followed by `close`.

        Those of another size by now become FAILED.
        """
        some = slice(start, stop)
        self.slots[some] = slots
        self._calls.read(
            self._directory, _address(self._names), self._starts[some], slots, self.sizes[some], self._stems[some],
            self.descriptors[some],
        )  # fmt: skip

    def close(self) -> None:
        self._calls.close(self.descriptors)

    def places(self, wanted: list[int], starts: Int64) -> tuple[Int64, Int64]:
        """Descriptors of the wanted files and the byte `starts` of each there, or where that lies in memory."""
        descriptors = self.descriptors[wanted]
        return descriptors, np.where(descriptors == CLOSED, self.slots[wanted] + starts, starts)

    def layouts(self, wanted: list[int]) -> list[Layout | None]:
        """How each of the wanted files is laid out, None where it is not known or the file could not be read."""
        files = np.array(wanted, np.int64)
        slots = self.slots[files]
        keys = list(zip(self.sizes[files].tolist(), self._stems[files].tolist(), strict=True))
        found: list[Layout | None] = [None] * len(wanted)
        for key in set(keys):
            places = np.array([place for place, other in enumerate(keys) if other == key], np.int64)
            for layout in twins.known(*key):
                parts = layout.parts if key[0] <= WHOLE else layout.end_parts
                if parts is None:
                    continue
                answers = np.empty(len(places), np.int64)
                self._calls.agree(slots[places], parts, layout.fixed_address, answers)
                for place in places[answers == 1].tolist():
                    found[place] = layout
                places = places[answers == 0]
                if not places.size:
                    twins.expect(*key, layout)
                    break
        return found


def _encoded(names: list[str]) -> bytes:
    """The names, each ended by a zero; nothing for one that is not of a file in the folder itself or one of numpy's: nothing
    fails to open."""
    joined = "\0".join([*names, ""])
    if joined.isascii() and "/" not in joined and ".npy" not in joined and joined.count("\0") == len(names):
        return joined.encode()
    return b"\0".join([*(_encoded_alone(name) for name in names), b""])


def _encoded_alone(name: str) -> bytes:
    if "/" in name or "\0" in name or name.endswith(".npy"):
        return b""
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:
        return b""


def _address(data: bytes) -> int:
    view: Any = np.frombuffer(data, np.uint8).__array_interface__
    return int(view["data"][0])
