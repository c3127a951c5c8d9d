"""Hashes of a tensor's bytes: CRC-32 under summary mode "md5", XOR under "xor".

Both read the bytes as they are at the time of the call, in the tensor's own dtype and in row-major order.

`crc` is two to three times as fast as zlib on large data. Bytes are the coefficients of a polynomial in y = x^8, the first byte
that of the highest power, and a CRC is the remainder of this polynomial. The polynomial of CRC-32 divides y^_FAR + y^_NEAR + 1.
So a byte may be dropped if it is XORed into the two bytes that lie _FAR and _FAR - _NEAR behind it: the remainder stays the same.
numpy folds all but the last _FAR bytes in this way, and zlib hashes only what is left.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import torch

from dumpscope_capture.optional_numpy import np
from dumpscope_capture.values.live_memory import read

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy

FOLDED: Final = 1 << 20
"""Number of bytes from which folding is faster."""

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

Bytes: TypeAlias = "numpy.ndarray[Any, numpy.dtype[numpy.uint8]]"


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """Row-major bytes of a plain strided CPU tensor as a one-dimensional uint8 tensor, copied only where it is not contiguous."""
    flat = tensor.contiguous().view(-1)
    if tensor.is_quantized:
        flat = flat.int_repr()
    if tensor.is_conj() or tensor.is_neg():
        flat = flat.resolve_conj().resolve_neg()
    return flat.view(torch.uint8)


def digits(check: int) -> str:
    """8 lowercase hex digits, as records have a CRC-32."""
    return f"{check:08x}"


def xor(tensor: torch.Tensor) -> str | float | int | bool:
    """`0x` and 16 hex digits: the XOR of all 8-byte words, the last padded with zeros. 0-dim: the value; empty: 0."""
    if tensor.dim() == 0:
        value: float | int | bool | complex = tensor.item()
        return str(value) if isinstance(value, complex) else value
    return read(raw(tensor), _xor) if tensor.numel() else 0


def _xor(data: memoryview) -> str:
    whole = data.nbytes - data.nbytes % 8
    result = _xor_words(data[:whole]) if whole else 0
    if whole < data.nbytes:
        result ^= int.from_bytes(bytes(data[whole:]), "little")
    return f"0x{result:016x}"


def _xor_words(data: memoryview) -> int:
    if np is not None:
        return int(np.bitwise_xor.reduce(np.frombuffer(data, np.uint64)))
    number, words = int.from_bytes(data, "little"), data.nbytes // 8
    while words > 1:  # the upper half onto the lower
        words = (words + 1) // 2
        number = (number >> 64 * words) ^ (number & ((1 << 64 * words) - 1))
    return number


# -- CRC-32 of large data -------------------------------------------------------------------------------------------------


def crc_of(tensor: torch.Tensor) -> int:
    """CRC-32 of the row-major bytes of a plain strided CPU tensor."""
    return read(raw(tensor), crc)


def crc(data: memoryview) -> int:
    """CRC-32 of bytes, as zlib gives it."""
    size = data.nbytes
    if size < FOLDED or np is None:
        return crc32(data)
    whole = np.frombuffer(data, np.uint8)
    total = _of_chunk(whole[:CHUNK])
    for start in range(CHUNK, size, CHUNK):
        part = whole[start : start + CHUNK]
        total = _product(_power(len(part)), total) ^ (crc32(part.data) if len(part) < FOLDED else _of_chunk(part))
    return total


def _of_chunk(data: Bytes) -> int:
    size = len(data)
    last = _fold(data)
    # zlib starts with all bits set; corrects for the zeros that are now before the last bytes
    return crc32(last.data) ^ _of_zeros(_FAR) ^ _of_zeros(size)


def _fold(data: Bytes) -> Bytes:
    """The last _FAR bytes with all others folded onto them, in a reused buffer."""
    size = len(data)
    buffer: Bytes | None = getattr(_scratch, "buffer", None)
    if buffer is None:
        buffer = _scratch.buffer = np.empty(CHUNK, np.uint8)
    buffer[:_STEP] = data[:_STEP]
    np.bitwise_xor(data[_STEP:_FAR], buffer[: _FAR - _STEP], out=buffer[_STEP:_FAR])
    near = size - _NEAR  # after it only the far bytes are XORed, as the near ones are among the bytes that stay
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
    """Product of two remainders."""
    result, bit = 0, _ONE
    while one:
        if one & bit:
            result ^= other
            one ^= bit
        bit >>= 1
        other = (other >> 1) ^ _POLYNOMIAL if other & 1 else other >> 1
    return result
