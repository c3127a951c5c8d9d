"""`.safetensors`: eight bytes with the length of a JSON header, the header, then the bytes of all tensors."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeGuard

import numpy as np

from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Piece, Raw, Shape
from dumpscope.errors import Problem, TensorError
from dumpscope.readers.checkpoints.files import Files, damaged, parse_object, problem_of
from dumpscope.readers.tensors.arrays import ELEMENT_TYPES, MAX_DIMENSIONS, ElementType, brief, strided
from dumpscope.texts import say

MAX_HEADER: Final = 100_000_000
"""Bytes of a header; the format's own limit."""
_LENGTH: Final = struct.Struct("<Q")
_MAX_SIZE: Final = 1 << 62

_TYPES: Final = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz", "C64": "complex64", "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32",
    "I64": "int64", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
}  # fmt: skip


def read_file(files: Files, name: str) -> tuple[list[CheckpointTensor], list[Problem]]:
    """Tensors of one file, in the order of their bytes; one that cannot be read has its problem, which is in the list as well.

    Raises TensorError where the file as a whole cannot be read: header beyond the file, no JSON, overlapping tensors.
    """
    content = files.content(name)
    if len(content) < _LENGTH.size:
        raise damaged(name, say("checkpoints.header_beyond_file", length=_LENGTH.size, size=len(content)))
    (length,) = _LENGTH.unpack(content[: _LENGTH.size])
    start = _LENGTH.size + length
    if length > MAX_HEADER or start > len(content):
        raise damaged(name, say("checkpoints.header_beyond_file", length=f"{length:,}", size=f"{len(content):,}"))
    header = parse_object(content[_LENGTH.size : start], name)
    header.pop("__metadata__", None)
    entries = sorted(_entries(header, name), key=lambda entry: entry[2:4])
    _check_layout(entries, len(content) - start, name)
    tensors: list[CheckpointTensor] = []
    problems: list[Problem] = []
    for key, given, first, last, shape in entries:
        element = ELEMENT_TYPES.get(f"torch.{_TYPES.get(given, '')}")
        problem = None
        if element is None:
            problem = TensorError(
                say("checkpoints.dtype_not_known", dtype=f"{given!r}"),
                kind="unsupported", hint=say("checkpoints.save_plain_dtype"), where=f"{name}: {key}",
            )  # fmt: skip
        elif math.prod(shape) * element.size != last - first:
            problem = damaged(
                f"{name}: {key}",
                say(
                    "checkpoints.bytes_do_not_fit_shape",
                    bytes=f"{last - first:,}", shape=brief(shape), dtype=given,
                ),
            )  # fmt: skip
        if problem is not None:
            problems.append(problem_of(problem))
        tensors.append(
            CheckpointTensor(
                name=key,
                parameter=key,
                dtype=element.name if element else given,
                shape=shape,
                pieces=() if problem else (_piece(files, name, start + first, element, shape),),
                problem=problem.detail if problem else None,
            )
        )
    return tensors, problems


def _entries(header: dict[str, Any], name: str) -> Iterator[tuple[str, str, int, int, Shape]]:
    """Name, dtype, first byte, byte after the last, shape. Raises TensorError."""
    for key, value in header.items():
        where = f"{name}: {key[:200]}"
        if not isinstance(value, dict):
            raise damaged(where, say("checkpoints.entry_no_known_form"))
        dtype, shape, offsets = value.get("dtype"), value.get("shape"), value.get("data_offsets")
        if not (
            isinstance(dtype, str)
            and _are_sizes(shape, MAX_DIMENSIONS)
            and _are_sizes(offsets, 2)
            and len(offsets) == 2
            and offsets[0] <= offsets[1]
        ):
            raise damaged(where, say("checkpoints.entry_no_known_form"))
        yield key, dtype[:40], offsets[0], offsets[1], tuple(shape)


def _are_sizes(value: Any, most: int) -> TypeGuard[list[int]]:
    return (
        isinstance(value, list)
        and len(value) <= most
        and all(type(one) is int and 0 <= one < _MAX_SIZE for one in value)
    )


def _check_layout(entries: list[tuple[str, str, int, int, Shape]], size: int, name: str) -> None:
    """Raises TensorError where tensors overlap, or leave the file."""
    end = 0
    for key, _, first, last, _ in entries:
        if last > size:
            raise damaged(
                f"{name}: {key[:200]}",
                say("checkpoints.tensor_beyond_file", last=f"{last:,}", size=f"{size:,}"),
                kind="truncated",
            )
        if first < end and last > first:
            raise damaged(
                f"{name}: {key[:200]}", say("checkpoints.tensors_overlap", first=f"{first:,}", end=f"{end:,}")
            )
        end = max(end, last)


def _piece(files: Files, name: str, start: int, element: ElementType | None, shape: Shape) -> Piece:
    assert element is not None
    return Piece(
        shape=shape,
        place=(0,) * len(shape),
        read=_reader(files, name, start, element, shape),
        source=name,
        stored=(str(files.folder), name, start, shape),
    )


def _reader(files: Files, name: str, start: int, element: ElementType, shape: Shape) -> Callable[[], Raw]:
    def read() -> Raw:
        return view(files, name, start, element, shape)

    return read


def view(files: Files, name: str, start: int, element: ElementType, shape: Shape) -> Raw:
    """Elements that lie one after the other from a byte of a file on. A view of the map also where they are not aligned, since
    they are read piece by piece; only booleans may be copied. Raises TensorError."""
    content = files.content(name)
    count = math.prod(shape)
    if start + count * element.size > len(content):
        raise damaged(name, say("readers.file_cut_off"), kind="truncated")
    if element.array.kind == "b" or element.size != element.array.itemsize:
        stride = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
        return strided(content, start, count, element=element, shape=shape, stride=stride)[0]
    found: Raw = np.ndarray(shape, element.array, content, start)
    found.flags.writeable = False
    return found
