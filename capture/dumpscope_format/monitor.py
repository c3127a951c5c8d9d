"""Files of a monitored training (docs/monitor.md): a line that names the format, then frames that are only ever appended.

    frame    mark (4 bytes), kind (1), 3 zero bytes, size of the payload, its CRC-32 (uint32 each), step (int64), payload
    header   kind H: JSON with facts of the run
    layout   kind L: JSON with the names of the numbers of the value frames that carry its number
    values   kind V: number of the layout (uint32), 4 zero bytes, scalars (float64), statistics (float32)

Everything is little-endian. A frame that a kill cut off, or that was damaged, is skipped: reading goes on at the next mark.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

FIRST_LINE: Final = b"dumpscope monitor 1\n"
SUFFIX: Final = ".monitor"
HEADER: Final = b"H"
LAYOUT: Final = b"L"
VALUES: Final = b"V"

STATISTICS: Final = ("norm", "min", "max", "mean", "zeros", "nans")
"""Statistics of a tensor. zeros: share of numbers that are smaller than `eps`; nans: how many are NaN."""
METRICS: Final = (
    "grad_unreduced", "grad_unclipped", "grad_reduced", "exp_avg", "exp_avg_sq", "param_origin", "param_updated",
    "update", "actv", "actv_grad",
)  # fmt: skip
"""What statistics are of; the words that msprobe has too mean the same here (docs/monitor.md)."""
UPDATE: Final = ("norm", "ratio")
"""Statistics of `update`: the norm of what a step added to a parameter, and that norm over the norm of the parameter."""

_MARK: Final = b"\xd5MON"
_FRAME: Final = struct.Struct("<4sc3xIIq")
_NUMBER: Final = struct.Struct("<I4x")
_NAME: Final = re.compile(r"(rank(?:0|[1-9][0-9]{0,8})|proc[0-9]+)(?:-([0-9]{1,6}))?" + re.escape(SUFFIX))
_LARGEST: Final = 1 << 30
_LONGEST_STEP: Final = 1 << 53


class Frame(NamedTuple):
    """One frame of a file. start: of its payload; size: bytes of it"""

    kind: bytes
    step: int
    start: int
    size: int


class Group(NamedTuple):
    """Numbers of a value frame that belong together: for each name every statistic, name by name."""

    metric: str
    statistics: tuple[str, ...]
    names: tuple[str, ...]


class Layout(NamedTuple):
    """Names of the numbers of value frames: the scalars first, then group by group."""

    number: int
    scalars: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def numbers(self) -> int:
        """Statistics of one frame."""
        return sum(len(group.statistics) * len(group.names) for group in self.groups)

    @property
    def size(self) -> int:
        """Bytes of one payload."""
        return _NUMBER.size + 8 * len(self.scalars) + 4 * self.numbers

    @property
    def statistics_start(self) -> int:
        """Offset of the statistics in a payload."""
        return _NUMBER.size + 8 * len(self.scalars)


def file_name(folder: str, part: int) -> str:
    """Name of a rank's file. folder: `rank3` or `proc{pid}`; part: 0, and one more for each time that the run was resumed"""
    return f"{folder}{SUFFIX}" if part == 0 else f"{folder}-{part}{SUFFIX}"


def parse_file_name(name: str) -> tuple[str, int] | None:
    """`(rank3, part)` of a file name, None for any other file."""
    found = _NAME.fullmatch(name)
    return (found[1], int(found[2] or 0)) if found else None


def make_frame(kind: bytes, payload: bytes, step: int = 0) -> bytes:
    """A frame with its payload."""
    return _FRAME.pack(_MARK, kind, len(payload), _checksum(kind, step, payload), step) + payload


def header_frame(facts: Mapping[str, Any]) -> bytes:
    """The frame with facts of the run; they must be what JSON can hold."""
    return make_frame(HEADER, json.dumps(facts).encode())


def layout_frame(layout: Layout) -> bytes:
    """The frame that names the numbers of a layout."""
    document = {"layout": layout.number, "scalars": layout.scalars, "groups": layout.groups}
    return make_frame(LAYOUT, json.dumps(document).encode())


def values_frame(layout: Layout, step: int, scalars: Sequence[float], statistics: bytes) -> bytes:
    """The frame with the numbers of a step. statistics: float32, little-endian, as many as the layout has"""
    head = _NUMBER.pack(layout.number) + struct.pack(f"<{len(layout.scalars)}d", *scalars)
    return make_frame(VALUES, head + statistics, step)


def find_frames(data: bytes | memoryview, start: int = 0) -> Iterator[Frame]:
    """The whole frames of a file's bytes from an offset on. Bytes between them belong to none."""
    view = memoryview(data)
    at, length = start, len(view)
    while at + _FRAME.size <= length:
        frame = _frame_at(view, at)
        if frame is None:
            at = _next_mark(view, at + 1)
            continue
        yield frame
        at = frame.start + frame.size


def frame_start(frame: Frame) -> int:
    """Offset of a frame's own first byte."""
    return frame.start - _FRAME.size


def parse_layout(payload: bytes) -> Layout:
    """The layout of a payload. Raises ValueError for one that is none."""
    try:
        document = json.loads(payload)
        groups = tuple(
            Group(str(metric), tuple(map(str, statistics)), tuple(map(str, names)))
            for metric, statistics, names in document["groups"]
        )
        return Layout(int(document["layout"]), tuple(map(str, document["scalars"])), groups)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a layout: {error}") from error


def layout_number(payload: bytes | memoryview) -> int:
    """Number of the layout of a value frame's payload. Raises ValueError for one that is too short."""
    if len(payload) < _NUMBER.size:
        raise ValueError("the payload is too short")
    return int(_NUMBER.unpack_from(payload)[0])


def read_scalars(layout: Layout, payload: bytes | memoryview) -> tuple[float, ...]:
    """Scalars of a value frame's payload, in the order of the layout."""
    return struct.unpack_from(f"<{len(layout.scalars)}d", payload, _NUMBER.size)


def _frame_at(view: memoryview, at: int) -> Frame | None:
    mark, kind, size, checksum, step = _FRAME.unpack_from(view, at)
    start = at + _FRAME.size
    if mark != _MARK or size > min(_LARGEST, len(view) - start) or abs(step) > _LONGEST_STEP:
        return None
    if _checksum(kind, step, view[start : start + size]) != checksum:
        return None
    return Frame(kind, step, start, size)


def _next_mark(view: memoryview, at: int, piece: int = 1 << 20) -> int:
    while at < len(view):
        found = bytes(view[at : at + piece + len(_MARK) - 1]).find(_MARK)
        if found >= 0:
            return at + found
        at += piece
    return len(view)


def _checksum(kind: bytes, step: int, payload: bytes | memoryview) -> int:
    return zlib.crc32(payload, zlib.crc32(kind + struct.pack("<q", step)))
