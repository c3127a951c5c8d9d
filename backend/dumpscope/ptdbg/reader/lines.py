"""Lines of a ptdbg `.pkl`: text, one JSON array a line. What is broken costs only itself.

    [name, flag, md5 slot, dtype, shape, statistics]    a tensor or a Python number
    [name, 101, [], dtype, shape]                        a tensor of an overflow file of ptdbg 2.3
    [name, frames]                                       a call stack; frame: [path, line, function, source line or null]

Two processes that wrote into one file leave lines inside lines, and a killed one leaves half a line. Where a line is not one
record, every place that may begin one is tried, and the rest is reported with its line and column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from dumpscope.readers.text_lines import Note, raw_lines
from dumpscope.texts import say

EFFORT: Final = 1 << 20, 16
"""Letters of a broken line that are looked at in vain before the rest of it is given up: so many, and as often as it is long."""

_BLANK: Final = b" \t\r\n\0"
_BOM: Final = b"\xef\xbb\xbf"
_BEGIN: Final = re.compile(r'\[\s*"')
_OPENS: Final = re.compile(rb'(?m)^[ \t]*\[\s*"[^"\r\n]{1,2000}(?:forward|backward)[^"\r\n]{0,200}"\s*,')
_FRAMES: Final = "stack_info"
_DECODER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Data:
    """One value. shape: None where it is unknown; stats: as written, empty where there are none"""

    name: str
    flag: int
    check: str | None
    dtype: str
    shape: tuple[int, ...] | None
    stats: tuple[Any, ...]

    @property
    def overflow(self) -> bool:
        return self.flag > 100


@dataclass(frozen=True, slots=True)
class Stack:
    """Call stack of a node, innermost frame first, as text."""

    name: str
    frames: tuple[str, ...]


def looks_like_lines(head: bytes) -> bool:
    """Whether a file that begins so holds ptdbg's lines: a real pickle, and any other JSON, does not."""
    return _OPENS.search(head.removeprefix(_BOM)) is not None


def read_lines(stream: BinaryIO, note: Note) -> Iterator[Data | Stack]:
    """Every whole record of a file, in order; what is not one is noted."""
    for number, raw in raw_lines(stream, note):
        text = raw.strip(_BLANK)
        if not text:
            continue
        record = _whole(text)
        if record is not None:
            yield record
        else:
            yield from _recover(text.decode("utf-8", "replace"), number, not raw.endswith(b"\n"), note)


def _whole(text: bytes) -> Data | Stack | None:
    try:
        return _record(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _recover(text: str, number: int, last: bool, note: Note) -> list[Data | Stack]:
    """The records inside a line that is not one, and a note about it. last: it has no line end"""
    found: list[Data | Stack] = []
    lost: list[int] = []  # where text begins that belongs to no record
    end, place = 0, 0
    effort = EFFORT[0] + EFFORT[1] * len(text)
    while effort > 0 and (begin := _BEGIN.search(text, place)):
        value, stop = _value(text, begin.start())
        record = _record(value)
        if record is None:
            effort -= stop  # an error of the decoder counts lines from the text's beginning
            place = begin.start() + 1
            continue
        if text[end : begin.start()].strip(" \t\0,"):
            lost.append(end)
        found.append(record)
        place = end = stop
    if text[end:].strip(" \t\0,"):
        lost.append(end)
    kept = say("readers.kept", count=len(found))
    if not lost:
        note(f"line {number}", "lines", say("readers.line_holds_records_all_read", count=len(found)))
    elif last and lost == [end]:
        note(f"line {number} column {end + 1}", "truncated", say("readers.file_ends_middle_line", kept=kept))
    else:
        column = lost[0] + _wrong(text[lost[0] :])
        note(
            f"line {number} column {column + 1}",
            "unreadable",
            say("readers.line_not_one_record_two_processes", kept=kept),
        )
    return found


def _value(text: str, start: int) -> tuple[Any, int]:
    """The JSON value at a place, None where there is none, and how far was looked for it."""
    try:
        value, stop = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, len(text) if error.msg.startswith("Unterminated") else error.pos + 1
    except (ValueError, RecursionError):
        return None, len(text)
    return value, int(stop)


def _wrong(text: str) -> int:
    """Where the text stops to be JSON."""
    try:
        _DECODER.raw_decode(text.lstrip())
    except ValueError as error:
        return int(getattr(error, "pos", 0)) + len(text) - len(text.lstrip())
    except RecursionError:
        pass
    return 0


def _record(value: Any) -> Data | Stack | None:
    """A record from a line's value, None where it has none of the three forms."""
    if type(value) is not list or not value or type(value[0]) is not str or not value[0]:
        return None
    if len(value) == 2:
        name, frames = value
        if not name.endswith(_FRAMES) or type(frames) is not list:
            return None
        return Stack(clean(name), tuple(text for frame in frames if (text := frame_text(frame))))
    if len(value) not in (5, 6):
        return None
    name, flag, check, dtype, shape, *rest = value
    stats = rest[0] if rest else []
    if type(flag) is not int or type(dtype) is not str or type(stats) is not list or type(check) not in (list, str):
        return None
    sizes = _shape(shape)
    if sizes is None and shape is not None:
        return None
    digest = clean(check) if type(check) is str and check else None
    return Data(clean(name), flag, digest, clean(dtype), sizes, tuple(stats))


def clean(text: str) -> str:
    """Text without lone surrogates, which no database takes."""
    return text.encode("utf-8", "replace").decode()


def _shape(value: Any) -> tuple[int, ...] | None:
    if value == "[]":
        return ()
    if type(value) is list and all(type(size) is int and 0 <= size < 2**63 for size in value):
        return tuple(value)
    return None


def frame_text(frame: Any) -> str:
    """A frame as msprobe writes it, `File path, line 3, in forward, \\n source`; "" where it was not collected."""
    if type(frame) is str:
        return clean(frame)
    if type(frame) is not list or len(frame) < 3:
        return ""
    path, line, function = frame[:3]
    source = frame[3] if len(frame) > 3 and type(frame[3]) is str else None
    text = f"File {path}, line {line}, in {function}"
    return clean(text if source is None else f"{text}, \n {source.strip()}")
