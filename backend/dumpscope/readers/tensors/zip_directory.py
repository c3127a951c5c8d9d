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
from dumpscope.texts import say

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
    return TensorError(
        say("readers.zip_container_damaged", what=what), kind="damaged", hint=say("readers.copy_dump_file_again")
    )


def read_directory(buffer: Bytes) -> Directory:
    """Parse the central directory. Raises TensorError: truncated (no directory), damaged, refused."""
    count, size, start = _end_record(buffer)
    if count > MAX_ENTRIES or size > MAX_DIRECTORY:
        raise TensorError(
            say("readers.zip_container_claims_members", count=f"{count:,}"),
            kind="refused",
            hint=say("readers.tensor_file_has_handful"),
        )
    if start + size > len(buffer):
        raise damaged(say("readers.directory_lies_outside_file"))
    table = buffer[start : start + size]
    entries: dict[str, Entry] = {}
    extents: list[tuple[int, int]] = []
    at = 0
    for _ in range(count):
        record = read_record(table, at)
        if record is None:
            raise damaged(say("readers.directory_record_missing"))
        if record.flags & _ENCRYPTED:
            raise TensorError(
                say("readers.zip_container_encrypted"), kind="refused", hint=say("readers.save_tensor_without_password")
            )
        if not record.whole:
            raise damaged(say("readers.zip64_size_missing"))
        at += record.length
        end = record.header + 30 + len(record.name) + record.packed
        if at > size or end > start:
            raise damaged(say("readers.member_lies_outside_file"))
        name = _member_name(record.name)
        if name in entries:
            raise TensorError(say("readers.zip_container_has_two_members_named", name=f"{name[:80]!r}"), kind="refused")
        entries[name] = Entry(record.header, record.packed, record.size, record.method, record.name)
        extents.append((record.header, end))
    extents.sort()
    for before, after in itertools.pairwise(extents):
        if after[0] < before[1]:
            raise TensorError(
                say("readers.members_zip_container_overlap"), kind="refused", hint=say("readers.dump_tensor_again")
            )
    return Directory(entries=entries, end=start)


def locate(buffer: Bytes, directory: Directory, entry: Entry) -> int:
    """Byte where the packed data of a member starts, after checking its local header against the directory."""
    if entry.header + 30 > directory.end:
        raise damaged(say("readers.member_lies_outside_file"))
    fields = LOCAL.unpack_from(buffer, entry.header)
    name_end = entry.header + 30 + fields[9]
    if fields[0] != b"PK\x03\x04" or fields[3] != entry.method or buffer[entry.header + 30 : name_end] != entry.name:
        raise damaged(say("readers.members_header_differs_from_directory"))
    start: int = name_end + fields[10]
    if start + entry.packed > directory.end:
        raise damaged(say("readers.member_lies_outside_file"))
    if entry.method == STORED and entry.packed != entry.size:
        raise damaged(say("readers.stored_member_has_two_sizes"))
    return start


def member_bytes(buffer: Bytes, directory: Directory, entry: Entry, limit: int) -> bytes:
    """Content of a member, inflated if need be; never makes more than `limit` bytes, whatever the file declares.

    Raises TensorError: over_budget, refused (a bomb), damaged, unsupported (a compression other than deflate).
    """
    start = locate(buffer, directory, entry)
    if entry.size > limit:
        raise TensorError(
            say("readers.member_bytes_more_than_allowed", size=f"{entry.size:,}", limit=f"{limit:,}"),
            kind="over_budget",
            hint=say("readers.raise_tensor_budget_compare_item_by"),
        )
    packed = buffer[start : start + entry.packed]
    if entry.method == STORED:
        return packed
    if entry.method != DEFLATED:
        raise TensorError(
            say("readers.compression_method_not_known", method=entry.method),
            kind="unsupported",
            hint=say("readers.save_torch_save_which_stores"),
        )
    if entry.size > max(BOMB_BYTES, BOMB_RATIO * entry.packed):
        raise TensorError(
            say("readers.member_bytes_would_inflate", packed=f"{entry.packed:,}", size=f"{entry.size:,}"),
            kind="refused",
            hint=say("readers.save_torch_save_which_stores_without"),
        )
    machine = zlib.decompressobj(-15)
    try:
        data = machine.decompress(packed, entry.size + 1)
    except zlib.error as error:
        raise damaged(say("readers.compressed_member_cannot_inflated")) from error
    if len(data) != entry.size or not machine.eof:
        raise damaged(say("readers.compressed_member_not_long_claims"))
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
        raise TensorError(say("readers.zip_container_has_no_directory_file"), kind="truncated",
                          hint=say("readers.copy_file_again_dump_again_if"))  # fmt: skip
    _, disk, directory_disk, _, count, size, start, _ = END.unpack_from(buffer, at)
    locator = at - 20
    if locator >= 0 and buffer[locator : locator + 4] == b"PK\x06\x07":
        _, _, wide_at, _ = END64_LOCATOR.unpack_from(buffer, locator)
        if wide_at + 56 > locator:
            raise damaged(say("readers.zip64_record_lies_outside_file"))
        signature, _, _, _, disk, directory_disk, _, count, size, start = END64.unpack_from(buffer, wide_at)
        if signature != b"PK\x06\x06":
            raise damaged(say("readers.zip64_record_does_not_start_one"))
    if disk or directory_disk:
        raise TensorError(say("readers.zip_container_split_over_several_disks"), kind="unsupported")
    return count, size, start


def _member_name(raw: bytes) -> str:
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        name = raw.decode("cp437")
    if name[:1] == "/" or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise TensorError(say("readers.zip_container_has_unsafe_member_name", name=f"{name[:80]!r}"), kind="refused")
    return name
