"""Where the members of a JSON object begin and end, without decoding them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEP: Final[NDArray[np.int8]] = np.zeros(256, np.int8)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_CUTS: Final = _STEP.astype(bool)
_CUTS[ord(",")] = True


def structure(text: bytes) -> tuple[list[int], int]:
    """Positions of the commas between members of an object whose inside starts at `text[0]`, and of its closing bracket.

    The bracket's position is -1 where the object does not end inside `text`.
    """
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    if b'\\"' in text:
        quotes = quotes[_unescaped(text, quotes)]
    at = np.flatnonzero(_CUTS[data])
    at = at[(np.searchsorted(quotes, at) & 1) == 0]
    if len(at) == 0:
        return [], -1
    depth = np.cumsum(_STEP[data[at]], dtype=np.int64)
    below = np.flatnonzero(depth < 0)
    close = -1
    if len(below):
        close = int(at[below[0]])
        at, depth = at[: below[0]], depth[: below[0]]
    commas: list[int] = at[(depth == 0) & (data[at] == ord(","))].tolist()
    return commas, close


def _unescaped(text: bytes, quotes: NDArray[np.intp]) -> NDArray[np.bool_]:
    data = np.frombuffer(text, np.uint8)
    keep = np.ones(len(quotes), np.bool_)
    for number in np.flatnonzero(data[np.maximum(quotes - 1, 0)] == ord("\\")):
        keep[number] = not _escaped(text, int(quotes[number]))
    return keep


def _escaped(text: bytes, at: int) -> bool:
    """Whether there is an odd number of backslashes before position `at`."""
    run = at
    while run > 0 and text[run - 1] == 0x5C:
        run -= 1
    return bool((at - run) & 1)


def count_starts(text: bytes, start: bytes) -> int:
    """How often `start` is in a text; four bytes, those of a record in a dump, are looked for four times as fast."""
    if len(start) != 4:
        return text.count(start)
    wanted = np.frombuffer(start, np.uint32)[0]
    return sum(
        int(np.count_nonzero(np.frombuffer(text, np.uint32, (len(text) - first) // 4, first) == wanted))
        for first in range(min(4, len(text) - 3))
    )


def line_cuts(text: bytes, start: bytes) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(b"," + start), text)]


def placed(text: bytes, cuts: list[int]) -> Iterator[tuple[int, bytes]]:
    begin = 0
    for cut in cuts:
        yield begin, text[begin:cut]
        begin = cut + 1
    yield begin, text[begin:]


def pieces(text: bytes, cuts: list[int]) -> Iterator[bytes]:
    return (piece for _, piece in placed(text, cuts))
