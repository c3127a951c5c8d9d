"""CRC-32 (as in zip and gzip) of received data: data that do not match are not kept, and are sent again."""

from __future__ import annotations

import re
from typing import Final

from dumpscope.errors import ConflictError, UsageError
from dumpscope.texts import say

_SUM: Final = re.compile("[0-9a-f]{8}")


def parse_sum(text: str) -> int:
    """Read a checksum. Raises UsageError for anything but eight hexadecimal digits."""
    if not _SUM.fullmatch(text.lower()):
        raise UsageError(say("api.no_crc_32", text=f"{text[:40]!r}"), hint=say("api.write_eight_hexadecimal_digits"))
    return int(text, 16)


def compare_sums(wanted: int, found: int, where: str) -> None:
    """Raise ConflictError if they differ."""
    if wanted != found:
        raise ConflictError(
            say("api.arrived_damaged_crc_32_announced", found=f"{found:08x}", wanted=f"{wanted:08x}"),
            where=where,
            hint=say("api.send_again"),
        )
