"""Tensor files made by hand: opcodes, containers and lies that torch would never write."""

from __future__ import annotations

import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.errors import TensorError
from dumpscope.readers.tensors import torch_file as torchfile

MARK, STOP, TUPLE, REDUCE, PERSISTENT = b"(", b".", b"t", b"R", b"Q"
EMPTY_TUPLE, EMPTY_DICT, EMPTY_LIST, NONE, FALSE, TRUE = b")", b"}", b"]", b"N", b"\x89", b"\x88"
PROTOCOL = b"\x80\x02"


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value: int) -> bytes:
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def items(*parts: bytes) -> bytes:
    return MARK + b"".join(parts) + TUPLE


def numbers(*values: int) -> bytes:
    return items(*(number(value) for value in values))


def storage(count: int, *, kind: str = "FloatStorage", key: str = "0", device: str = "cpu") -> bytes:
    return items(text("storage"), name("torch", kind), text(key), text(device), number(count)) + PERSISTENT


ORDERED = name("collections", "OrderedDict") + EMPTY_TUPLE + REDUCE


def tensor(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    *,
    offset: int = 0,
    count: int = 4,
    kind: str = "FloatStorage",
    device: str = "cpu",
    builder: bytes = name("torch._utils", "_rebuild_tensor_v2"),
    more: bytes = b"",
) -> bytes:
    arguments = items(
        storage(count, kind=kind, device=device),
        number(offset),
        numbers(*shape),
        numbers(*stride),
        FALSE,
        ORDERED,
        more,
    )
    return builder + arguments + REDUCE


def torch_file(path: Path, pickle: bytes, data: bytes = b"\0" * 16, *, packed: bool = False, **members: bytes) -> Path:
    """A zip like torch's around a pickle (protocol and STOP are added) and one storage."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", PROTOCOL + pickle + STOP)
        archive.writestr("archive/byteorder", b"little")
        archive.writestr("archive/data/0", data)
        for member, content in members.items():
            archive.writestr(member, content)
    return path


def good(path: Path) -> Path:
    return torch_file(path, tensor((2, 2), (2, 1)), np.arange(4, dtype="<f4").tobytes())


KINDS = {
    "missing", "unreadable", "refused", "truncated", "damaged", "unsupported", "over_budget", "no_data", "not_a_tensor",
}  # fmt: skip


def failure(path: Path, load: Callable[..., Any] = torchfile.load, **options: Any) -> TensorError:
    """The error of a load that must fail, within seconds of processor time and 64 MB."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(TensorError) as caught:
            load(path, **options)
        seconds = time.process_time() - begin
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.kind in KINDS
    assert caught.value.where == str(path)
    assert seconds < 30
    assert peak < 64 << 20
    return caught.value
