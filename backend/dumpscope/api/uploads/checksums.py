"""CRC-32 of what arrives, as zip and gzip have it: what does not agree is not kept, and is sent again."""

from __future__ import annotations

import re
from typing import Final

from dumpscope.errors import ConflictError, UsageError

_SUM: Final = re.compile("[0-9a-f]{8}")


def parse_sum(text: str) -> int:
    """Raises UsageError for anything but eight hexadecimal digits."""
    if not _SUM.fullmatch(text.lower()):
        raise UsageError(f"{text[:40]!r} is no CRC-32", hint="write it as eight hexadecimal digits")
    return int(text, 16)


def compare_sums(wanted: int, found: int, where: str) -> None:
    """Raises ConflictError where they differ."""
    if wanted != found:
        raise ConflictError(
            f"it arrived damaged: the CRC-32 is {found:08x}, and {wanted:08x} was announced",
            where=where,
            hint="send it again",
        )
