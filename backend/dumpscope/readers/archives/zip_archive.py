"""Unpack a .zip. Its directory is counted before it is loaded, so what it promises is judged before anything is written."""

from __future__ import annotations

import calendar
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO, Final

from dumpscope.errors import LimitError
from dumpscope.readers.archives.target_folder import Target
from dumpscope.readers.regular_file import open_regular
from dumpscope.readers.zip_records import END, END64, END64_LOCATOR, MAX_COMMENT, find_end, read_record
from dumpscope.texts import say

DIRECTORY_BYTES: Final = 1 << 28
_WINDOW: Final = 1 << 20
_RECORD: Final = 46 + 3 * 0xFFFF
"""Bytes of the longest record of a directory."""
_DEFLATE_RATIO: Final = 1032
"""More than this, deflate cannot shrink."""


def unpack_zip(path: str, target: Target) -> None:
    with open_regular(path) as raw:
        start, size = _directory(raw, target)
        _judge(_promised(raw, start, size), target, os.fstat(raw.fileno()).st_size)
        raw.seek(0)
        with zipfile.ZipFile(raw) as archive:
            for info in archive.infolist():
                reason = _refusal(info)
                target.count_entry(filled=reason is None and info.file_size > 0)
                if reason:
                    target.refuse(info.filename, "refused", say("readers.entry_not_unpacked", reason=reason))
                elif not info.is_dir():
                    _unpack_entry(archive, info, target)


class _Counted:
    """The bytes of an entry, counted as they come out."""

    def __init__(self, stream: IO[bytes], target: Target) -> None:
        self._stream = stream
        self._target = target

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._target.count(len(data))
        return data


def _unpack_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Target) -> None:
    try:
        with archive.open(info) as stream:
            target.take(info.orig_filename, _Counted(stream, target), _time(info))  # type: ignore[arg-type]
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError) as error:
        target.refuse(info.filename, "unreadable", say("readers.entry_damaged_what_could_read_kept", error=error))


def _directory(raw: BinaryIO, target: Target) -> tuple[int, int]:
    """Where the directory begins, and its bytes; LimitError for one that would fill memory."""
    whole = raw.seek(0, os.SEEK_END)
    first = raw.seek(max(0, whole - MAX_COMMENT - END.size - END64_LOCATOR.size - END64.size))
    tail = raw.read()
    at = find_end(tail)
    if at < 0:
        raise zipfile.BadZipFile(say("readers.zip_has_no_directory"))
    size = END.unpack_from(tail, at)[5]
    end = first + at
    wide = at - END64_LOCATOR.size - END64.size  # where `zipfile` looks for it, whatever place the locator names
    if wide >= 0 and tail.startswith(b"PK\x06\x07", at - END64_LOCATOR.size) and tail.startswith(b"PK\x06\x06", wide):
        size = END64.unpack_from(tail, wide)[8]
        end = first + wide
    if size > DIRECTORY_BYTES:
        raise LimitError(
            say("readers.has_directory_more_than_mb", directory_bytes=DIRECTORY_BYTES >> 20), where=target.name
        )
    if size > end:
        raise zipfile.BadZipFile(say("readers.zip_directory_too_large"))
    return end - size, size


def _promised(raw: BinaryIO, start: int, size: int) -> Iterator[tuple[int, int, int]]:
    """(method, packed, size) of every entry, read in windows; ends where the directory is damaged."""
    raw.seek(start)
    buffer, at, left = b"", 0, size
    while True:
        if len(buffer) - at < _RECORD and left:
            piece = raw.read(min(_WINDOW, left))
            left = left - len(piece) if piece else 0
            buffer, at = buffer[at:] + piece, 0
        record = read_record(buffer, at)
        if record is None:
            return
        yield record.method, record.packed, record.size
        at += record.length


def _judge(promised: Iterator[tuple[int, int, int]], target: Target, whole: int) -> None:
    """LimitError for what would be too much. A size that its packed bytes cannot give is a lie, and not believed."""
    entries = idle = total = 0
    for method, packed, size in promised:
        entries += 1
        idle += size == 0
        if method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            total += min(size, min(packed, whole) * (_DEFLATE_RATIO if method else 1))
        if not entries & 0xFFF:
            _check(entries, idle, total, target)
    _check(entries, idle, total, target)


def _check(entries: int, idle: int, total: int, target: Target) -> None:
    target.check_entries(entries)
    target.check_idle(idle, entries - idle)
    target.foresee(total)


def _refusal(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    form = stat.S_IFMT(mode) if info.create_system == 3 else 0
    if form == stat.S_IFLNK:
        return say("readers.link")
    if form not in (0, stat.S_IFREG, stat.S_IFDIR):
        return say("readers.device_pipe")
    if info.flag_bits & 1:
        return say("readers.encrypted")
    return None


def _time(info: zipfile.ZipInfo) -> float | None:
    try:
        return float(calendar.timegm((*info.date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        return None
