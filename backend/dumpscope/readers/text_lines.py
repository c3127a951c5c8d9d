"""Lines of a text file that another tool wrote, with a bound on the length of one."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from dumpscope.texts import say

LINE_LIMIT: Final = 16 << 20
"""Longest line that is read, in bytes."""
_BOM: Final = b"\xef\xbb\xbf"

Note = Callable[[str, str, str], None]
"""Called with a place ("line 7"), a problem kind and a message."""


def raw_lines(stream: BinaryIO, note: Note) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line, line end included, without a byte order mark; a line beyond LINE_LIMIT is noted and left
    out."""
    number = 0
    with io.BufferedReader(stream, 1 << 20) as lines:  # type: ignore[type-var]
        while raw := lines.readline(LINE_LIMIT + 1):
            number += 1
            if len(raw) > LINE_LIMIT:
                note(
                    f"line {number}", "limit", say("readers.line_longer_than_mib_skipped", line_limit=LINE_LIMIT >> 20)
                )
                while raw and not raw.endswith(b"\n"):
                    raw = lines.readline(LINE_LIMIT)
                continue
            if number == 1 and raw.startswith(_BOM):
                note("line 1", "bom", say("readers.file_begins_byte_order_mark_skipped"))
                raw = raw.removeprefix(_BOM)
            yield number, raw
