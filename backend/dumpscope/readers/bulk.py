"""Many small tensor files of one folder, measured and opened outside the interpreter by a few calls of machine code.

One by one, each takes several system calls, and Python takes and gives away its lock around each: two threads that do so hinder
each other. What is out of the ordinary in any way (a link, a folder in the name) is left to `tensorfile.load`, which also says
what is wrong.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType, TracebackType
from typing import Any, Final, Self

import numpy as np

from dumpscope.domain.records import Int64
from dumpscope.readers.mapped_file import MAPPED_FROM

LARGEST: Final = MAPPED_FROM - 1
"""Bytes of the largest file that is opened: `read_bytes` maps larger ones."""

CLOSED: Final = -1
"""Descriptor of a file that is not open."""

FAILED: Final = -1
"""Size of a file that is not to be opened."""


@cache
def file_calls() -> ModuleType | None:
    """The machine code, None where there is none: another system, no numba. Imports numba."""
    try:
        module = importlib.import_module("dumpscope.readers.file_calls")
        if not module.available():
            return None
        none = np.zeros(0, np.int64)
        module.measure(-1, 0, none, none)  # compiled, or taken from disk, before threads want it
        module.open_some(-1, 0, none, none, none)
        module.close(none)
    except Exception:  # whatever keeps a compiler from working, files are read one by one then
        return None
    return module


class Folder:
    """A folder whose files are opened many at a time. Raises OSError if it cannot be opened; close it by `with`."""

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
        """Regular files of these names, measured but not open yet."""
        text = _encoded(names)
        starts = np.flatnonzero(np.frombuffer(b"\0" + text[:-1], np.uint8) == 0)
        sizes = np.empty(len(names), np.int64)
        self._calls.measure(self._directory, _address(text), starts, sizes)
        sizes[sizes > LARGEST] = FAILED
        return Files(self._calls, self._directory, text, starts, sizes)


class Files:
    """Some files of one folder; what was opened is closed by `with`.

    sizes: their bytes, FAILED where one is not to be opened, shape (n,)
    """

    def __init__(self, calls: ModuleType, directory: int, names: bytes, starts: Int64, sizes: Int64) -> None:
        self._calls = calls
        self._directory = directory
        self._names = names
        self._starts = starts
        self._descriptors = np.full(len(starts), CLOSED, np.int64)
        self.sizes = sizes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.close(self._descriptors)

    def open(self, wanted: Int64) -> Int64:
        """Descriptors of the wanted files, places among those of a size; reading one that has changed into no regular file
        fails, as reading at a place does there, and so does CLOSED: what is no longer there or a link by now."""
        self._calls.open_some(self._directory, _address(self._names), self._starts, wanted, self._descriptors)
        return self._descriptors[wanted]


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
