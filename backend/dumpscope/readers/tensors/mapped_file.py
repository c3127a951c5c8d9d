"""The bytes of one regular file, opened so that a hostile path can neither block, escape the dump nor change meaning.

Small files are read, large ones mapped: reading is faster up to some hundred KB and cannot fault when another process cuts
the file; a map costs the same for a terabyte as for a megabyte. Whoever goes through a large tensor from end to end reads it
by `MappedFile.read_into`: that is safe against cut files too, and faster than touching the map page by page.
"""

from __future__ import annotations

import mmap
import os
import stat
import weakref
from pathlib import Path
from typing import Any, Final

from dumpscope.errors import TensorError
from dumpscope.readers.tensors.arrays import Bytes
from dumpscope.texts import say

MAPPED_FROM: Final = 1 << 20
"""File size in bytes from which a file is mapped instead of read."""

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WORDS: Final = (
    (stat.S_ISDIR, say("readers.directory")),
    (stat.S_ISFIFO, say("readers.fifo")),
    (stat.S_ISCHR, say("readers.device")),
    (stat.S_ISBLK, say("readers.device")),
    (stat.S_ISSOCK, say("readers.socket")),
)


class MappedFile(mmap.mmap):
    """A read-only map of a file, which can also be read. Slices are read: the first touch of a page of the map can take 0.2 ms,
    as the system may map two megabytes around it, and ends the process where the file was cut."""

    _descriptor: int

    def __new__(cls, descriptor: int, size: int) -> MappedFile:
        made = super().__new__(cls, descriptor, size, access=mmap.ACCESS_READ)
        made._descriptor = os.dup(descriptor)
        weakref.finalize(made, os.close, made._descriptor)
        return made

    @property
    def descriptor(self) -> int:
        """The open file, as long as the map lives."""
        return self._descriptor

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, slice):
            return super().__getitem__(place)
        start, stop, step = place.indices(len(self))
        if step != 1:
            return super().__getitem__(place)
        size = max(0, stop - start)
        data = os.pread(self._descriptor, size, start)
        if len(data) == size:
            return data
        whole = bytearray(size)
        self.read_into(memoryview(whole), start)
        return bytes(whole)

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill `target` with the bytes of the file from `start` on. Raises TensorError if the file no longer has them."""
        done = 0
        try:
            while done < len(target):
                count = os.preadv(self._descriptor, [target[done:]], start + done)
                if count == 0:
                    raise TensorError(
                        say("readers.file_cut_off_while_read"),
                        kind="truncated",
                        hint=say("readers.something_still_writing"),
                    )
                done += count
        except OSError as error:
            raise TensorError(
                say("readers.tensor_file_cannot_read", reason=error.strerror),
                kind="unreadable",
                hint=say("readers.check_disk"),
            ) from error


def read_bytes(path: Path | str, *, root: Path | str | None = None) -> Bytes:
    """Whole content of a regular file: `bytes` when small, a read-only map when large.

    root: folder the file must lie in after every symlink is resolved; without it the file itself must not be a symlink.
    Raises TensorError: missing, refused (not a regular file, outside the root), unreadable. Nothing but a regular file is opened.
    """
    name = os.fspath(path)
    try:
        real, mode = _contained(name, os.fspath(root)) if root is not None else (name, os.lstat(name).st_mode)
        _require_regular(mode)
        descriptor = os.open(real, _FLAGS)
        try:
            status = os.fstat(descriptor)
            _require_regular(status.st_mode)
            return _content(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise TensorError(
            say("readers.tensor_file_missing"), kind="missing", hint=say("readers.copy_whole_dump_folder")
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or say("readers.name_not_valid")
        raise TensorError(
            say("readers.tensor_file_cannot_opened", reason=reason),
            kind="unreadable",
            hint=say("readers.check_permissions_disk"),
        ) from error


def _content(descriptor: int, size: int) -> Bytes:
    if size >= MAPPED_FROM:
        return MappedFile(descriptor, size)
    data = os.read(descriptor, size)
    if len(data) == size:
        return data
    parts = [data]  # a signal or a network file system may hand out less than asked
    while part := os.read(descriptor, size):
        parts.append(part)
    return b"".join(parts)


def _require_regular(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        raise TensorError(
            say("readers.tensor_file_symbolic_link"),
            kind="refused",
            hint=say("readers.put_file_itself_into_dump_folder"),
        )
    word = next((word for test, word in _WORDS if test(mode)), "no regular file")
    raise TensorError(
        say("readers.tensor_file", word=word), kind="refused", hint=say("readers.dump_holds_regular_files_only")
    )


def _contained(name: str, root: str) -> tuple[str, int]:
    """The path to open for `name`, with no symlink left in it below the root, and its mode; raises TensorError when it leads
    outside."""
    prefix = root if root.endswith(os.sep) else root + os.sep
    if name.startswith(prefix):
        parts = name[len(prefix) :].split(os.sep)
        mode = None if ".." in parts else _mode(prefix, parts)
        if mode is not None:
            return name, mode
    real, base = os.path.realpath(name), os.path.realpath(root)
    if not real.startswith(base if base.endswith(os.sep) else base + os.sep):
        raise TensorError(
            say("readers.tensor_file_leads_outside_dump_folder"),
            kind="refused",
            hint=say("readers.put_file_itself_into_dump_folder"),
        )
    return real, os.lstat(real).st_mode


def _mode(prefix: str, parts: list[str]) -> int | None:
    """Mode of the file at the end of a path, None if a symlink is on the way or at its end."""
    path = prefix
    mode: int | None = None
    for part in parts:
        path = os.path.join(path, part)
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return None
    return mode
