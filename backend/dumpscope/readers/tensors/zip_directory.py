"""The table of contents of a zip file held in memory or mapped, zip64 included.

Written out instead of `zipfile` for speed (a dump has thousands of files and `zipfile` takes ten times as long as all the rest of
a load) and for strictness: entries that overlap, repeat a name or leave the file are refused, nothing is ever extracted.
"""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass
from typing import Final, NamedTuple

from dumpscope.errors import TensorError
from dumpscope.readers.tensors.arrays import Bytes
from dumpscope.readers.zip_records import END, END64, END64_LOCATOR, LOCAL, find_end, read_record

MAX_ENTRIES: Final = 200_000
MAX_DIRECTORY: Final = 64 << 20  # bytes
STORED: Final = 0
DEFLATED: Final = 8
BOMB_BYTES: Final = 64 << 20
BOMB_RATIO: Final = 200
"""A member that inflates to more than both, in bytes and against its packed size, is taken for a bomb."""

_ENCRYPTED: Final = 0x2041  # traditional, strong, masked headers


class Entry(NamedTuple):
    """One member: where its local header starts, sizes in bytes, compression method."""

    header: int
    packed: int
    size: int
    method: int
    name: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """entries: by name, in file order; end: byte where member data must have ended"""

    entries: dict[str, Entry]
    end: int


def damaged(what: str) -> TensorError:
    return TensorError(f"the zip container is damaged: {what}", kind="damaged", hint="copy or dump the file again")


def read_directory(buffer: Bytes) -> Directory:
    """Parse the central directory. Raises TensorError: truncated (no directory), damaged, refused."""
    count, size, start = _end_record(buffer)
    if count > MAX_ENTRIES or size > MAX_DIRECTORY:
        raise TensorError(
            f"the zip container claims {count:,} members", kind="refused", hint="a tensor file has a handful"
        )
    if start + size > len(buffer):
        raise damaged("its directory lies outside the file")
    table = buffer[start : start + size]
    entries: dict[str, Entry] = {}
    extents: list[tuple[int, int]] = []
    at = 0
    for _ in range(count):
        record = read_record(table, at)
        if record is None:
            raise damaged("its directory is too short, or a record in it does not start as one")
        if record.flags & _ENCRYPTED:
            raise TensorError(
                "the zip container is encrypted", kind="refused", hint="save the tensor without a password"
            )
        if not record.whole:
            raise damaged("a zip64 size is missing")
        at += record.length
        end = record.header + 30 + len(record.name) + record.packed
        if at > size or end > start:
            raise damaged("a member lies outside the file")
        name = _member_name(record.name)
        if name in entries:
            raise TensorError(f"the zip container has two members named {name[:80]!r}", kind="refused")
        entries[name] = Entry(record.header, record.packed, record.size, record.method, record.name)
        extents.append((record.header, end))
    extents.sort()
    for before, after in itertools.pairwise(extents):
        if after[0] < before[1]:
            raise TensorError("members of the zip container overlap", kind="refused", hint="dump the tensor again")
    return Directory(entries=entries, end=start)


def locate(buffer: Bytes, directory: Directory, entry: Entry) -> int:
    """Byte where the packed data of a member starts, after checking its local header against the directory."""
    if entry.header + 30 > directory.end:
        raise damaged("a member lies outside the file")
    fields = LOCAL.unpack_from(buffer, entry.header)
    name_end = entry.header + 30 + fields[9]
    if fields[0] != b"PK\x03\x04" or fields[3] != entry.method or buffer[entry.header + 30 : name_end] != entry.name:
        raise damaged("a member's header differs from the directory")
    start: int = name_end + fields[10]
    if start + entry.packed > directory.end:
        raise damaged("a member lies outside the file")
    if entry.method == STORED and entry.packed != entry.size:
        raise damaged("a stored member has two sizes")
    return start


def member_bytes(buffer: Bytes, directory: Directory, entry: Entry, limit: int) -> bytes:
    """Content of a member, inflated if need be; never makes more than `limit` bytes, whatever the file declares.

    Raises TensorError: over_budget, refused (a bomb), damaged, unsupported (a compression other than deflate).
    """
    start = locate(buffer, directory, entry)
    if entry.size > limit:
        raise TensorError(
            f"a member of {entry.size:,} bytes is more than the {limit:,} allowed",
            kind="over_budget",
            hint="raise the tensor budget, or compare this item by its statistics",
        )
    packed = buffer[start : start + entry.packed]
    if entry.method == STORED:
        return packed
    if entry.method != DEFLATED:
        raise TensorError(
            f"compression method {entry.method} is not known",
            kind="unsupported",
            hint="save with torch.save, which stores",
        )
    if entry.size > max(BOMB_BYTES, BOMB_RATIO * entry.packed):
        raise TensorError(
            f"a member of {entry.packed:,} bytes would inflate to {entry.size:,}",
            kind="refused",
            hint="save with torch.save, which stores without compression",
        )
    machine = zlib.decompressobj(-15)
    try:
        data = machine.decompress(packed, entry.size + 1)
    except zlib.error as error:
        raise damaged("a compressed member cannot be inflated") from error
    if len(data) != entry.size or not machine.eof:
        raise damaged("a compressed member is not as long as it claims")
    return data


def variable_bytes(buffer: Bytes, directory: Directory, prefix: str) -> list[tuple[int, int]] | None:
    """Sorted byte ranges that differ between two files of torch.save for tensors of one kind: the archive's name wherever it
    stands, and the content and check-sums of all members but those that describe (data.pkl, byteorder).

    None where a member is outside the archive's folder.
    """
    stem = len(prefix.encode()) - 1
    ranges: list[tuple[int, int]] = []
    at = directory.end
    for name, entry in directory.entries.items():
        if not name.startswith(prefix) or entry.name[:stem] != prefix[:-1].encode():
            return None
        record = read_record(buffer, at)
        assert record is not None  # the directory was read before
        start = locate(buffer, directory, entry)
        end = start + entry.packed
        ranges += [(entry.header + 30, entry.header + 30 + stem), (at + 46, at + 46 + stem)]
        if name[len(prefix) :] not in ("data.pkl", "byteorder"):
            ranges += [(entry.header + 14, entry.header + 18), (start, end), (at + 16, at + 20)]
            if buffer[end : end + 4] == b"PK\x07\x08":
                ranges.append((end + 4, end + 8))
        at += record.length
    return sorted(part for part in ranges if part[1] > part[0])


def _end_record(buffer: Bytes) -> tuple[int, int, int]:
    """(members, directory size, directory start) from the end record or its zip64 form."""
    at = find_end(buffer)
    if at < 0:
        raise TensorError("the zip container has no directory: the file was cut off", kind="truncated",
                          hint="copy the file again, or dump it again if the run was killed")  # fmt: skip
    _, disk, directory_disk, _, count, size, start, _ = END.unpack_from(buffer, at)
    locator = at - 20
    if locator >= 0 and buffer[locator : locator + 4] == b"PK\x06\x07":
        _, _, wide_at, _ = END64_LOCATOR.unpack_from(buffer, locator)
        if wide_at + 56 > locator:
            raise damaged("its zip64 record lies outside the file")
        signature, _, _, _, disk, directory_disk, _, count, size, start = END64.unpack_from(buffer, wide_at)
        if signature != b"PK\x06\x06":
            raise damaged("its zip64 record does not start as one")
    if disk or directory_disk:
        raise TensorError("the zip container is split over several disks", kind="unsupported")
    return count, size, start


def _member_name(raw: bytes) -> str:
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        name = raw.decode("cp437")
    if name[:1] == "/" or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise TensorError(f"the zip container has an unsafe member name {name[:80]!r}", kind="refused")
    return name
