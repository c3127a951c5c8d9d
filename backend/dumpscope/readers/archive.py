"""Unpack a .zip or .tar of a dump, trusting nothing in it.

Entries are streamed and counted as they are written, so a false size in a header changes nothing. A refused entry is a problem
and the others are unpacked; a passed limit is a LimitError and leaves nothing behind.
"""

from __future__ import annotations

import bz2
import calendar
import errno
import gzip
import lzma
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final

from dumpscope.errors import LimitError, Problem, UnreadableError
from dumpscope.readers.segments import open_regular

BLOCK: Final = 1 << 20
HEADER_BYTES: Final = 1 << 20
PROBLEM_LIMIT: Final = 200
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_COMPRESSED: Final[dict[bytes, Callable[[BinaryIO], Any]]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """bytes: unpacked in all; entries: files and folders; depth: folders above a file
    ratio: unpacked / packed bytes of the whole archive, judged once `free` bytes are unpacked
    """

    bytes: int = 256 << 30
    entries: int = 2_000_000
    depth: int = 16
    ratio: int = 200
    free: int = 64 << 20


DEFAULT: Final = Limits()


def kind_of(path: str) -> str | None:
    """Say "zip" or "tar" (plain, gzip, bzip2, xz) from the first bytes; None for anything else."""
    with open_regular(path) as stream:
        head = stream.read(512)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return "zip"
        if head.startswith(tuple(_COMPRESSED)):
            return "tar"
        return "tar" if head[257:262] == b"ustar" or _old_tar(head) else None


def unpack(path: str, workdir: str, limits: Limits = DEFAULT) -> tuple[str, list[Problem]]:
    """Unpack into a new folder below `workdir`; answers the folder and what was refused.

    Raises LimitError for an archive past `limits`, UnreadableError where it is damaged from the start or holds no file.
    """
    kind = kind_of(path)
    if kind is None:
        raise UnreadableError("is no archive that can be opened", where=path, hint="use .zip, .tar, .tar.gz, .tar.xz")
    os.makedirs(workdir, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="dump-", dir=workdir)
    target = _Target(folder, os.path.basename(path), os.stat(path).st_size, limits)
    try:
        try:
            (_zip if kind == "zip" else _tar)(path, target)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            target.refuse("", "truncated", f"The archive is damaged ({error}); what came before was unpacked.")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise LimitError(
                    "does not fit on the disk", where=path, hint="free space or name another data folder"
                ) from error
            target.refuse("", "truncated", f"The archive is damaged ({error}); what came before was unpacked.")
        if not target.files:
            why = f": {target.problems[0].message}" if target.problems else ""
            raise UnreadableError(f"nothing could be unpacked{why}", where=path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, target.problems


class _Target:
    """The folder being filled, with its counters."""

    def __init__(self, folder: str, name: str, packed: int, limits: Limits) -> None:
        self.folder = folder
        self.name = name
        self.limits = limits
        self.problems: list[Problem] = []
        self.files = 0
        self._refused = 0
        self._entries = 0
        self._bytes = 0
        self._allowed = min(limits.bytes, max(limits.free, packed * limits.ratio))
        self._taken: dict[tuple[str, ...], bool] = {}  # parts -> whether it is a folder

    def count_entry(self) -> None:
        self._entries += 1
        if self._entries > self.limits.entries:
            raise LimitError(f"holds more than {self.limits.entries} entries", where=self.name)

    def count(self, size: int) -> None:
        """Count unpacked bytes, written or not."""
        self._bytes += size
        if self._bytes > self._allowed:
            if self._allowed < self.limits.bytes:
                detail = f"unpacks to more than {self.limits.ratio} times its size"
            else:
                detail = f"unpacks to more than {self.limits.bytes} bytes"
            raise LimitError(detail, where=self.name, hint="unpack it yourself and name the folder")

    def refuse(self, entry: str, kind: str, message: str) -> None:
        self._refused += 1
        if self._refused <= PROBLEM_LIMIT:
            shown = entry if len(entry) <= 200 else f"{entry[:197]}..."
            loc = f"{self.name}:{shown}" if entry else self.name
            self.problems.append(Problem(loc=loc.encode(errors="replace").decode(), kind=kind, message=message))
        elif self._refused == PROBLEM_LIMIT + 1:
            self.problems.append(
                Problem(loc=self.name, kind="more", message="More entries were refused than are listed.")
            )

    def take(self, name: str, stream: IO[bytes], changed: float | None) -> None:
        """Write one file, or refuse it."""
        parts = self._parts(name)
        if parts is None:
            return
        path = os.path.join(self.folder, *parts)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            self.refuse(name, "refused", f"The entry cannot be written ({error.strerror}).")
            return
        with os.fdopen(handle, "wb") as out:
            while block := stream.read(BLOCK):
                self.count(len(block))
                out.write(block)
        if changed is not None and 0 <= changed < 2**33:
            os.utime(path, (changed, changed))
        self.files += 1

    def _parts(self, name: str) -> tuple[str, ...] | None:
        plain = name.replace("\\", "/")
        reason = None
        if plain.startswith("/") or _DRIVE.match(plain):
            reason = "has an absolute path"
        elif ".." in plain.split("/"):
            reason = "climbs out of the archive"
        elif _CONTROL.search(plain):
            reason = "has control characters in its name"
        parts = tuple(part for part in plain.split("/") if part not in ("", "."))
        if reason is None:
            if not parts:
                reason = "has no name"
            elif len(parts) > self.limits.depth + 1:
                reason = f"lies deeper than {self.limits.depth} folders"
            elif any(len(part.encode(errors="surrogateescape")) > 255 for part in parts):
                reason = "has a name of more than 255 bytes"
            elif parts in self._taken or any(self._taken.get(parts[:size]) is False for size in range(1, len(parts))):
                reason = "clashes with an entry before it"
        if reason is not None:
            self.refuse(name, "refused", f"The entry {reason}; it was not unpacked.")
            return None
        self._taken[parts] = False
        for size in range(1, len(parts)):
            self._taken[parts[:size]] = True
        return parts


# -- zip -----------------------------------------------------------------------------------------------------------------


def _zip(path: str, target: _Target) -> None:
    with open_regular(path) as raw:
        _check_directory(raw, target)
        raw.seek(0)
        with zipfile.ZipFile(raw) as archive:
            for info in archive.infolist():
                target.count_entry()
                reason = _zip_refusal(info)
                if reason:
                    target.refuse(info.filename, "refused", f"The entry {reason}; it was not unpacked.")
                elif not info.is_dir():
                    _zip_entry(archive, info, target)


def _check_directory(raw: BinaryIO, target: _Target) -> None:
    """Refuse a huge central directory before it is loaded as a whole."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - (1 << 16) - 22))
    tail = raw.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        raise zipfile.BadZipFile("it has no directory")
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if length == 0xFFFFFFFF or length > 1 << 28:
        raise LimitError("has a directory of more than 256 MB", where=target.name)


def _zip_refusal(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    form = stat.S_IFMT(mode) if info.create_system == 3 else 0
    if form == stat.S_IFLNK:
        return "is a link"
    if form not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a device or pipe"
    if info.flag_bits & 1:
        return "is encrypted"
    return None


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: _Target) -> None:
    try:
        with archive.open(info) as stream:
            target.take(info.orig_filename, stream, _zip_time(info))
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError) as error:
        target.refuse(info.filename, "unreadable", f"The entry is damaged ({error}); what could be read was kept.")


def _zip_time(info: zipfile.ZipInfo) -> float | None:
    try:
        return float(calendar.timegm((*info.date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        return None


# -- tar -----------------------------------------------------------------------------------------------------------------


class _Budget:
    """Reads the unpacked tar stream; between bodies only `HEADER_BYTES` may pass, or a forged header would fill memory."""

    def __init__(self, stream: IO[bytes], target: _Target) -> None:
        self._stream = stream
        self._target = target
        self.left: int | None = HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                raise LimitError("has a header of more than 1 MB", where=self._target.name)
        return data


def _tar(path: str, target: _Target) -> None:
    with open_regular(path) as raw:
        head = raw.read(6)
        raw.seek(0)
        with _unpacked(head, raw) as plain:
            budget = _Budget(plain, target)
            with tarfile.open(fileobj=budget, mode="r|", bufsize=10240) as archive:  # type: ignore[call-overload]
                for info in _tar_entries(archive, budget):
                    target.count_entry()
                    reason = _tar_refusal(info)
                    if reason:
                        target.refuse(info.name, "refused", f"The entry {reason}; it was not unpacked.")
                    if info.isreg() and not info.issparse():
                        _tar_entry(archive, info, target, refused=reason is not None)


def _tar_entries(archive: tarfile.TarFile, budget: _Budget) -> Iterator[tarfile.TarInfo]:
    """Entries one at a time, without the list of all that tarfile keeps."""
    while True:
        budget.left = HEADER_BYTES
        info = archive.next()
        if info is None:
            return
        archive.members = []  # type: ignore[attr-defined]
        budget.left = None
        yield info


def _tar_refusal(info: tarfile.TarInfo) -> str | None:
    if info.isdir():
        return None
    if info.issym() or info.islnk():
        return "is a link"
    if info.issparse():
        return "is a sparse file"
    return None if info.isreg() else "is a device or pipe"


def _tar_entry(archive: tarfile.TarFile, info: tarfile.TarInfo, target: _Target, *, refused: bool) -> None:
    stream = archive.extractfile(info)
    if stream is None:
        return
    with stream:
        before = target.files
        if not refused:
            target.take(info.name, stream, float(info.mtime))
        if refused or target.files == before:
            while block := stream.read(BLOCK):  # so that the next header starts with a full budget
                target.count(len(block))


def _unpacked(head: bytes, raw: BinaryIO) -> IO[Any]:
    """The stream of tar blocks; `raw` is closed by its owner."""
    opener = next((opener for magic, opener in _COMPRESSED.items() if head.startswith(magic)), None)
    if opener is None:
        return raw
    opened: IO[Any] = opener(raw)
    return opened


def _old_tar(head: bytes) -> bool:
    """Whether 512 bytes are a tar header without the ustar mark: its checksum is right."""
    if len(head) < 512 or not head[:1].strip(b"\0"):
        return False
    try:
        wanted = int(head[148:156].strip(b"\0 ") or b"x", 8)
    except ValueError:
        return False
    return sum(head[:148]) + 8 * 32 + sum(head[156:]) == wanted
