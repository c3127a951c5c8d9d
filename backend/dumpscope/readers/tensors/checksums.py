"""The checksums inside a file of torch.save: whether its bytes are still those that were written."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import zip_directory
from dumpscope.readers.tensors.arrays import DEFAULT_BUDGET, Bytes
from dumpscope.readers.tensors.mapped_file import read_bytes
from dumpscope.readers.tensors.zip_directory import STORED, Directory, Entry
from dumpscope.readers.zip_records import read_record

_CHECKSUM: Final = struct.Struct("<I")
_CHUNK: Final = 16 << 20
_DESCRIPTION: Final = "data.pkl"


def find_broken_member(path: Path | str, *, root: Path | str | None = None) -> str | None:
    """Name of the first member whose CRC-32 is not that of its bytes. None where all are right, or where there are none to trust:
    in another format, and in a file that was written without them (`torch.serialization.set_crc32_options(False)`), in which not
    even the description of the tensor has a right one."""
    try:
        buffer = read_bytes(path, root=root)
        if buffer[:4] != b"PK\x03\x04":
            return None
        directory = zip_directory.read_directory(buffer)
        broken = [
            name for name, entry, checksum in _members(buffer, directory) if _crc(buffer, directory, entry) != checksum
        ]
    except TensorError:
        return None
    if not broken or any(name.endswith(f"/{_DESCRIPTION}") for name in broken):
        return None
    return broken[0].partition("/")[2]


def _members(buffer: Bytes, directory: Directory) -> list[tuple[str, Entry, int]]:
    """Every member with the CRC-32 that the directory holds of it."""
    found = []
    at = directory.end
    for name, entry in directory.entries.items():
        record = read_record(buffer, at)
        assert record is not None  # the directory was read before
        (checksum,) = _CHECKSUM.unpack_from(buffer, at + 16)
        found.append((name, entry, checksum))
        at += record.length
    return found


def _crc(buffer: Bytes, directory: Directory, entry: Entry) -> int:
    """CRC-32 of a member's content. Raises TensorError where it cannot be read."""
    if entry.method != STORED:
        return zlib.crc32(zip_directory.member_bytes(buffer, directory, entry, DEFAULT_BUDGET))
    start = zip_directory.locate(buffer, directory, entry)
    found = 0
    for first in range(start, start + entry.packed, _CHUNK):
        found = zlib.crc32(buffer[first : min(first + _CHUNK, start + entry.packed)], found)
    return found
