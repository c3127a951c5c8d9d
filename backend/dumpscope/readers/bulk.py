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
        module.read(-1, 0, none, none, none, none, none)  # compiled, or taken from disk, before threads want it
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

    def read(self, names: list[str], slots: Int64, room: Int64) -> Read:
        """Read each file to the address slots[i], where room[i] bytes are the caller's."""
        encoded = [_encoded(name) for name in names]
        text = b"\0".join(encoded) + b"\0"
        starts = np.zeros(len(names), np.int64)
        np.cumsum([len(name) + 1 for name in encoded[:-1]], out=starts[1:])
        sizes, stems = np.empty(len(names), np.int64), np.empty(len(names), np.int64)
        self._calls.read(self._directory, _address(text), starts, slots, room, sizes, stems)
        return Read(self._calls, slots, list(zip(sizes.tolist(), stems.tolist(), strict=True)))


class Read:
    """Files in memory, as long as the caller keeps them there."""

    def __init__(self, calls: ModuleType, slots: Int64, keys: list[tuple[int, int]]) -> None:
        self._calls = calls
        self._slots = slots
        self._keys = keys

    def layouts(self, wanted: list[int]) -> list[Layout | None]:
        """How each of the wanted files is laid out, None where it is not known or the file could not be read."""
        groups: dict[tuple[int, int], list[int]] = {}
        for place, file in enumerate(wanted):
            groups.setdefault(self._keys[file], []).append(place)
        found: list[Layout | None] = [None] * len(wanted)
        for key, places in groups.items():
            for layout in twins.known(*key):
                addresses = self._slots[[wanted[place] for place in places]]
                answers = np.empty(len(places), np.int64)
                self._calls.agree(addresses, layout.parts, _address(layout.fixed), answers)
                for place, same in zip(places, answers.tolist(), strict=True):
                    if same and found[place] is None:
                        found[place] = layout
        return found


def _encoded(name: str) -> bytes:
    """The name of a file that lies in the folder itself and is none of numpy's; nothing for any other, which fails to open."""
    if "/" in name or "\0" in name or name.endswith(".npy"):
        return b""
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:
        return b""


def _address(data: bytes) -> int:
    view: Any = np.frombuffer(data, np.uint8).__array_interface__
    return int(view["data"][0])
