"""The records of a zip's table of contents, zip64 included: read alike from a tensor file in memory and from an archive.

Nothing is trusted here: who reads the records checks that sizes and places fit the file.
"""

from __future__ import annotations

import mmap
import struct
from typing import Final, NamedTuple

END: Final = struct.Struct("<4s4H2LH")
END64_LOCATOR: Final = struct.Struct("<4sLQL")
END64: Final = struct.Struct("<4sQ2H2L4Q")
LOCAL: Final = struct.Struct("<4s5H3L2H")
MAX_COMMENT: Final = 65_535
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_WIDE: Final = 0xFFFFFFFF
"""Stands for a size or place past 4 GiB, which is in the extra field."""


Bytes = bytes | mmap.mmap


class Record(NamedTuple):
    """One member's record in the directory. header: byte of its local header; name, in bytes; length: of the record

    whole: whether sizes and place past 4 GiB were found; where not, they are 0xFFFFFFFF
    """

    flags: int
    method: int
    packed: int
    size: int
    header: int
    name: bytes
    length: int
    whole: bool


def find_end(tail: Bytes) -> int:
    """Where the last record begins in the end of a zip file, -1 where there is none that is whole."""
    at = len(tail) - END.size
    if at >= 0 and tail[at : at + 4] != b"PK\x05\x06":
        at = tail.rfind(b"PK\x05\x06", max(0, at - MAX_COMMENT))
    return at if at + END.size <= len(tail) else -1


def read_record(table: Bytes, at: int) -> Record | None:
    """The record that begins at a byte of the directory, None where none does."""
    if len(table) - at < _CENTRAL.size:
        return None
    fields = _CENTRAL.unpack_from(table, at)
    if fields[0] != b"PK\x01\x02":
        return None
    packed, size, name, extra, comment, header = *fields[8:13], fields[16]
    named = at + _CENTRAL.size
    behind = named + name
    whole = True
    if _WIDE in (packed, size, header):
        (size, packed, header), whole = _widen(table[behind : behind + extra], [size, packed, header])
    length = _CENTRAL.size + name + extra + comment
    return Record(fields[3], fields[4], packed, size, header, table[named:behind], length, whole)


def _widen(extra: bytes, numbers: list[int]) -> tuple[list[int], bool]:
    """Size, packed size and place, each from the extra field where the directory has the mark, and whether all were there."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            field = extra[at + 4 : at + 4 + length]
            wide = iter(struct.unpack(f"<{len(field) // 8}Q", field[: len(field) // 8 * 8]))
            found = [next(wide, None) if number == _WIDE else number for number in numbers]
            kept = [_WIDE if number is None else number for number in found]
            return kept, None not in found
        at += 4 + length
    return numbers, False
