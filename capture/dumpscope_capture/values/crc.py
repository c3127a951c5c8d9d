"""CRC-32 of large data, two to three times as fast as zlib's.

Bytes are the coefficients of a polynomial in y = x^8, the first byte that of the highest power, and a CRC is its remainder. The
polynomial of CRC-32 divides y^_FAR + y^_NEAR + 1, so a byte may be taken out where the bytes _FAR and _FAR - _NEAR behind it are
XORed with it: the remainder stays. So numpy folds all but the last _FAR bytes onto these, and zlib hashes only them.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

import numpy as np

FOLDED: Final = 1 << 20
"""Bytes from which folding pays."""

CHUNK: Final = 1 << 22
"""Bytes that are folded at a time."""

_FAR: Final = 260_720
_NEAR: Final = 49_498
_STEP: Final = _FAR - _NEAR
_POLYNOMIAL: Final = 0xEDB88320  # the bit of x^31 is the lowest
_ONE: Final = 1 << 31
_X: Final = 1 << 30
_ALL: Final = 0xFFFFFFFF
_scratch: Final = threading.local()

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def crc(data: memoryview) -> int:
    """CRC-32 of bytes, as zlib gives it."""
    size = data.nbytes
    if size < FOLDED:
        return crc32(data)
    whole = np.frombuffer(data, np.uint8)
    total = _of_chunk(whole[:CHUNK])
    for start in range(CHUNK, size, CHUNK):
        part = whole[start : start + CHUNK]
        total = _product(_power(len(part)), total) ^ (crc32(part.data) if len(part) < FOLDED else _of_chunk(part))
    return total


def _of_chunk(data: Bytes) -> int:
    size = len(data)
    last = _folded(data)
    # zlib starts with all bits set, which zeros in front of the last bytes would not leave as they are
    return crc32(last.data) ^ _of_zeros(_FAR) ^ _of_zeros(size)


def _folded(data: Bytes) -> Bytes:
    """The last _FAR bytes with all others folded onto them, in memory that is used again."""
    size = len(data)
    buffer: Bytes | None = getattr(_scratch, "buffer", None)
    if buffer is None:
        buffer = _scratch.buffer = np.empty(CHUNK, np.uint8)
    buffer[:_STEP] = data[:_STEP]
    np.bitwise_xor(data[_STEP:_FAR], buffer[: _FAR - _STEP], out=buffer[_STEP:_FAR])
    near = size - _NEAR  # behind it only bytes far away are XORed, as those nearer by stay
    for start in range(_FAR, near, _STEP):
        end = min(start + _STEP, near)
        part = buffer[start:end]
        np.bitwise_xor(data[start:end], buffer[start - _STEP : end - _STEP], out=part)
        np.bitwise_xor(part, buffer[start - _FAR : end - _FAR], out=part)
    np.bitwise_xor(data[near:], buffer[near - _FAR : size - _FAR], out=buffer[near:size])
    return buffer[size - _FAR : size]


@lru_cache(maxsize=4096)
def _of_zeros(size: int) -> int:
    """CRC-32 of zeros."""
    return _product(_power(size), _ALL) ^ _ALL


@lru_cache(maxsize=4096)
def _power(size: int) -> int:
    """x to the number of bits in `size` bytes."""
    result, square, left = _ONE, _X, size * 8
    while left:
        if left & 1:
            result = _product(square, result)
        square = _product(square, square)
        left >>= 1
    return result


def _product(one: int, other: int) -> int:
    """Of two remainders."""
    result, bit = 0, _ONE
    while one:
        if one & bit:
            result ^= other
            one ^= bit
        bit >>= 1
        other = (other >> 1) ^ _POLYNOMIAL if other & 1 else other >> 1
    return result
