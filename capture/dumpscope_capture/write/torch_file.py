"""Tensor files in the format of `torch.save`, built here: one system call a file, where torch.save takes milliseconds.

A stored zip of `data.pkl` (how to rebuild the tensor), `byteorder`, `data/0` (its bytes, at a multiple of 64) and `version`.
`torch.load(weights_only=True)` of every torch since 1.6 reads it.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import crc32

import torch

from dumpscope_format.older_python import without_prefix

_STORAGES: Final = {
    torch.float32: "FloatStorage", torch.float64: "DoubleStorage", torch.float16: "HalfStorage",
    torch.bfloat16: "BFloat16Storage", torch.int64: "LongStorage", torch.int32: "IntStorage", torch.int16: "ShortStorage",
    torch.int8: "CharStorage", torch.uint8: "ByteStorage", torch.bool: "BoolStorage",
    torch.complex64: "ComplexFloatStorage", torch.complex128: "ComplexDoubleStorage",
}  # fmt: skip
_UNTYPED: Final = frozenset(
    getattr(torch, name)
    for name in (
        "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
        "float4_e2m1fn_x2",
    )
    if hasattr(torch, name)
)  # fmt: skip
"""Types without a storage class; torch.save writes them as bytes and a dtype."""

_ALIGNMENT: Final = 64
_LOCAL: Final = struct.Struct("<4s5H3I2H")
_ENTRY: Final = struct.Struct("<4s6H3I5H2I")
_END: Final = struct.Struct("<4s4H2IH")
_CRC: Final = struct.Struct("<I")
_CRC_IN_LOCAL: Final = 14
_CRC_IN_ENTRY: Final = 16
_STAMP: Final = (0, 0x21)  # 1 January 1980: the same content gives the same file
_MAX: Final = 0xFFFF_0000


class TensorLayout(NamedTuple):
    """Type, shape and strides of a tensor that begins at the start of its storage."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool


def can_write(dtype: torch.dtype, nbytes: int) -> bool:
    """Whether `pack` knows a type and size (below 4 GiB: more needs zip64, which torch.save does)."""
    return (dtype in _STORAGES or dtype in _UNTYPED) and nbytes < _MAX


def pack(layout: TensorLayout, data: memoryview, check: int) -> list[bytes | memoryview]:
    """Parts of the file, in order. data: bytes of the storage; check: their CRC-32."""
    begin, header, middle, end = _around(layout, data.nbytes)
    word = _CRC.pack(check)
    return [b"".join((begin, word, header)), data, b"".join((middle, word, end))]


@lru_cache(maxsize=1024)
def _around(layout: TensorLayout, nbytes: int) -> tuple[bytes, bytes, bytes, bytes]:
    """All of a file but the tensor's bytes and the two places of their CRC: (before the first place, from there to the bytes,
    from there to the second place, the rest)."""
    pickled = _pickle(layout, nbytes)
    members = [
        (b"archive/data.pkl", pickled),
        (b"archive/byteorder", sys.byteorder.encode()),
        (b"archive/data/0", None),
        (b"archive/version", b"3\n"),
    ]
    before, after, directory = bytearray(), bytearray(), bytearray()
    place = 0
    marks: list[int] = []
    for name, content in members:
        size = nbytes if content is None else len(content)
        check = 0 if content is None else crc32(content)
        begin = place + _LOCAL.size + len(name)
        padding = -begin % _ALIGNMENT
        if padding and padding < 4:  # an extra field has a header of four bytes
            padding += _ALIGNMENT
        extra = struct.pack("<2sH", b"FB", padding - 4) + b"Z" * (padding - 4) if padding else b""
        out = after if marks else before
        if content is None:
            marks = [len(before) + _CRC_IN_LOCAL, len(directory) + _CRC_IN_ENTRY]
        out += _LOCAL.pack(b"PK\x03\x04", 10, 0, 0, *_STAMP, check, size, size, len(name), len(extra)) + name + extra
        out += content or b""
        directory += (
            _ENTRY.pack(b"PK\x01\x02", 10, 10, 0, 0, *_STAMP, check, size, size, len(name), 0, 0, 0, 0, 0, place) + name
        )
        place = begin + len(extra) + size
    first, second = marks[0], len(after) + marks[1]
    after += directory + _END.pack(b"PK\x05\x06", 0, 0, len(members), len(members), len(directory), place, 0)
    cut = _CRC.size
    return bytes(before[:first]), bytes(before[first + cut :]), bytes(after[:second]), bytes(after[second + cut :])


def _pickle(layout: TensorLayout, nbytes: int) -> bytes:
    """`_rebuild_tensor_v2(storage, 0, shape, stride, requires_grad, OrderedDict())`, v3 with a dtype where needed."""
    storage = _STORAGES.get(layout.dtype)
    typed = storage is not None
    count = nbytes // layout.dtype.itemsize if typed else nbytes
    kind = _global("torch", storage) if storage is not None else _global("torch.storage", "UntypedStorage")
    persistent = b"".join((b"(", _text("storage"), kind, _text("0"), _text("cpu"), _int(count), b"tQ"))
    flag = b"\x88" if layout.requires_grad else b"\x89"
    tail = b"" if typed else _global("torch", without_prefix(str(layout.dtype), "torch."))
    return b"".join((
        b"\x80\x02", _global("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3"), b"(", persistent,
        _int(0), _tuple(layout.shape), _tuple(layout.stride), flag, _global("collections", "OrderedDict"), b")R", tail, b"tR.",
    ))  # fmt: skip


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _int(number: int) -> bytes:
    if 0 <= number < 256:
        return b"K" + bytes((number,))
    if -(2**31) <= number < 2**31:
        return b"J" + struct.pack("<i", number)
    data = number.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes((len(data),)) + data


def _tuple(numbers: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(_int, numbers)) + b"t" if numbers else b")"
