"""What an archive may hold at most; of its own, since opening a folder needs no archive to be understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """bytes: unpacked in all; entries: files and folders, also folders that only occur in a path; depth: folders above a file
    ratio: unpacked / packed bytes of the whole archive, judged once `free` bytes are unpacked
    idle: entries that bring no byte (empty, folders, refused); each file with content allows four more
    """

    bytes: int = 256 << 30
    entries: int = 2_000_000
    depth: int = 16
    ratio: int = 200
    free: int = 64 << 20
    idle: int = 20_000


DEFAULT: Final = Limits()
