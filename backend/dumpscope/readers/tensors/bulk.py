"""Many small tensor files of two folders, measured and opened outside the interpreter by one call of machine code.

One by one, each takes several system calls, and Python takes and gives away its lock around each: two threads that do so hinder
each other. What is out of the ordinary in any way (a link, a folder in the name) is left to `tensorfile.load`, which also says
what is wrong.
"""

from __future__ import annotations

import importlib
import os
from contextlib import ExitStack
from functools import cache
from types import ModuleType, TracebackType
from typing import Any, Final, Self

import numpy as np

from dumpscope.domain.records import Int64
from dumpscope.readers.tensors.mapped_file import MAPPED_FROM

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
        module = importlib.import_module("dumpscope.readers.tensors.file_calls")
        if not module.available():
            return None
        none = np.zeros(0, np.int64)
        module.open_regular(none, 0, none, LARGEST, none, none)  # compiled, or taken from disk, before threads want it
        module.close(none)
    except Exception:  # whatever keeps a compiler from working, files are read one by one then
        return None
    return module


class Folders:
    """The folders of target and golden, whose files are opened many at a time. Raises OSError if one cannot be opened; close them
    by `with`."""

    def __init__(self, roots: tuple[str, str], calls: ModuleType) -> None:
        self._calls = calls
        with ExitStack() as stack:
            self._directories = [_directory(root, stack) for root in roots]
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def files(self, targets: list[str], goldens: list[str]) -> Files:
        """The regular files of these names, open; as many of one side as of the other."""
        text = _encoded([*targets, *goldens])
        starts = np.flatnonzero(np.frombuffer(b"\0" + text[:-1], np.uint8) == 0)
        directories = np.repeat(np.array(self._directories, np.int64), len(targets))
        sizes, descriptors = np.empty(len(starts), np.int64), np.full(len(starts), CLOSED, np.int64)
        files = Files(self._calls, sizes.reshape(2, -1), descriptors)
        self._calls.open_regular(directories, _address(text), starts, LARGEST, sizes, descriptors)
        return files


class Files:
    """Some files of each folder; close them by `with`.

    sizes: their bytes, FAILED where one is not to be read, shape (2, n)
    descriptors: CLOSED where there is none; reading at a place fails there, as of what has become no regular file, shape (2, n)
    """

    def __init__(self, calls: ModuleType, sizes: Int64, descriptors: Int64) -> None:
        self._calls = calls
        self._descriptors = descriptors
        self.sizes = sizes
        self.descriptors = descriptors.reshape(2, -1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.close(self._descriptors)


def _directory(root: str, stack: ExitStack) -> int:
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor


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
