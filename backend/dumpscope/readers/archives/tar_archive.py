"""Unpack a .tar, plain or compressed, in one pass. Every byte of the stream is counted, those of headers too."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, Final

from dumpscope.errors import LimitError
from dumpscope.readers.archives.target_folder import BLOCK, Target
from dumpscope.readers.regular_file import open_regular
from dumpscope.texts import say

HEADER_BYTES: Final = 1 << 20
COMPRESSED: Final[dict[bytes, Callable[[BinaryIO], Any]]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
"""First bytes of a compressed stream, and what opens it."""


class _Budget:
    """Reads the unpacked tar stream; between bodies only `HEADER_BYTES` may pass, or a forged header would fill memory."""

    def __init__(self, stream: IO[bytes], target: Target) -> None:
        self._stream = stream
        self._target = target
        self.left: int | None = HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._target.count(len(data))
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                raise LimitError(say("readers.has_header_more_than_1_mb"), where=self._target.name)
        return data


def unpack_tar(path: str, target: Target) -> None:
    with open_regular(path) as raw:
        head = raw.read(6)
        raw.seek(0)
        opener = next((opener for magic, opener in COMPRESSED.items() if head.startswith(magic)), None)
        with raw if opener is None else opener(raw) as plain:
            budget = _Budget(plain, target)
            with tarfile.open(fileobj=budget, mode="r|", bufsize=10240) as archive:  # type: ignore[call-overload]
                for info in _entries(archive, budget):
                    if info.islnk():
                        _link_entry(info, target)
                        continue
                    reason = _refusal(info)
                    body = reason is None and info.isreg()
                    target.count_entry(filled=body and info.size > 0)
                    if reason:
                        target.refuse(info.name, "refused", say("readers.entry_not_unpacked", reason=reason))
                    if body:
                        if opener is not None:  # a plain one holds no more than its size
                            target.foresee(info.size)
                        _unpack_entry(archive, info, target)


def _entries(archive: tarfile.TarFile, budget: _Budget) -> Iterator[tarfile.TarInfo]:
    """Entries one at a time, without the list of all that tarfile keeps."""
    while True:
        budget.left = HEADER_BYTES
        info = archive.next()
        if info is None:
            return
        archive.members = []  # type: ignore[attr-defined]
        budget.left = None
        yield info
        _skip(archive)


def _skip(archive: tarfile.TarFile) -> None:
    """Go on to the next header, whatever was read of the body; a size past the end is damage, not a loop over nothing."""
    stream: Any = archive.fileobj
    while (left := archive.offset - stream.tell()) > 0:
        if not stream.read(min(left, BLOCK)):
            raise tarfile.ReadError("unexpected end of data")


def _link_entry(info: tarfile.TarInfo, target: Target) -> None:
    """A second name of a file: `tar` writes it so where two names of a folder were one file on the disk."""
    size = target.size_of(info.linkname)
    target.count_entry(filled=bool(size))
    if size is None:
        target.refuse(info.name, "refused", say("readers.entry_not_unpacked", reason=say("readers.link_to_no_entry")))
    else:
        target.take_link(info.name, info.linkname)


def _refusal(info: tarfile.TarInfo) -> str | None:
    if info.isdir():
        return None
    if info.issym():
        return say("readers.link")
    if info.issparse():
        return say("readers.sparse_file")
    return None if info.isreg() else say("readers.device_pipe")


def _unpack_entry(archive: tarfile.TarFile, info: tarfile.TarInfo, target: Target) -> None:
    stream = archive.extractfile(info)
    if stream is not None:
        with stream:
            target.take(info.name, stream, float(info.mtime))
