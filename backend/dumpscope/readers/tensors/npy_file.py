"""Arrays of `.npy` files (ptdbg dumps), mapped without numpy's loader: no pickle, no trust in the header."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from dumpscope.errors import TensorError
from dumpscope.readers.tensors.arrays import (
    DEFAULT_BUDGET,
    MAX_DIMENSIONS,
    Bytes,
    ElementType,
    LoadedTensor,
    strided,
    torch_name,
)
from dumpscope.readers.tensors.mapped_file import read_bytes
from dumpscope.texts import say

MAX_HEADER: Final = 10_000
_DESCR: Final = re.compile(r"[<>|=]?[A-Za-z][0-9]{0,2}")
_MAGIC: Final = b"\x93NUMPY"
_LENGTH_BYTES: Final = {1: 2, 2: 4, 3: 4}


def load(path: Path | str, *, budget: int = DEFAULT_BUDGET, root: Path | str | None = None) -> LoadedTensor:
    """The array of a `.npy` file of version 1, 2 or 3, read-only and mapped; dtype is given by its torch name.

    budget, root: as in `torchfile.load`
    Raises TensorError: missing, unreadable, refused (object arrays), truncated, damaged, unsupported, over_budget.
    """
    try:
        return parse(read_bytes(path, root=root), budget)
    except TensorError as error:
        error.where = error.where or str(path)
        raise


def parse(buffer: Bytes, budget: int = DEFAULT_BUDGET) -> LoadedTensor:
    """As `load`, of the content of a file."""
    if len(buffer) < 10:
        raise _cut_off() if _MAGIC.startswith(buffer[:6]) or buffer[:6] == _MAGIC else _no_npy()
    if buffer[:6] != _MAGIC:
        raise _no_npy()
    width = _LENGTH_BYTES.get(buffer[6])
    if width is None:
        raise TensorError(say("readers.version_numpy_format_not_known", buffer=buffer[6]), kind="unsupported")
    length = int.from_bytes(buffer[8 : 8 + width], "little")
    if length > MAX_HEADER:
        raise TensorError(
            say("readers.numpy_header_claims_bytes", length=f"{length:,}"),
            kind="refused",
            hint=say("readers.real_one_has_about_hundred"),
        )
    start = 8 + width + length
    text = buffer[8 + width : start]
    if len(text) != length:
        raise _cut_off()
    dtype, fortran, shape = _header(text.decode("utf-8" if buffer[6] == 3 else "latin-1", "replace"))
    name = torch_name(dtype)
    if name is None:
        raise TensorError(
            say("readers.numpy_dtype_has_no_counterpart_torch", str=f"{dtype.str!r}"),
            kind="unsupported",
            hint=say("readers.save_plain_number_type"),
        )
    native = dtype.newbyteorder("=")
    unit = native.itemsize // 2 if native.kind == "c" else native.itemsize
    element = ElementType(name=name, array=native, size=native.itemsize, unit=unit)
    stored = (len(buffer) - start) // native.itemsize
    budgeted = math.prod(shape)
    if stored < budgeted <= budget // native.itemsize:
        raise _cut_off()
    array, notes = strided(
        buffer, start, stored, element=element, shape=shape, stride=_contiguous(shape, fortran=fortran), budget=budget,
        swapped=not dtype.isnative,
    )  # fmt: skip
    return LoadedTensor(dtype=name, shape=shape, array=array, notes=notes)


def _header(text: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """(dtype, fortran order, shape) of a header, which is the text of a dict of literals."""
    try:
        header = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise _bad_header() from error
    if type(header) is not dict or set(header) != {"descr", "fortran_order", "shape"}:
        raise _bad_header()
    descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    if type(fortran) is not bool or type(shape) is not tuple or len(shape) > MAX_DIMENSIONS:
        raise _bad_header()
    if not all(type(size) is int and 0 <= size < 1 << 62 for size in shape):
        raise _bad_header()
    if type(descr) is not str or not _DESCR.fullmatch(descr):
        raise TensorError(
            say("readers.array_structured"), kind="unsupported", hint=say("readers.save_one_plain_number_type_file")
        )
    if "O" in descr:
        raise TensorError(
            say("readers.array_holds_python_objects_which_would"),
            kind="refused",
            hint=say("readers.save_numbers_instead"),
        )
    try:
        return np.dtype(descr), fortran, shape
    except (TypeError, ValueError) as error:
        raise TensorError(say("readers.numpy_dtype_not_known", descr=f"{descr!r}"), kind="unsupported") from error


def _contiguous(shape: tuple[int, ...], *, fortran: bool) -> tuple[int, ...]:
    """Strides in elements of a dense array."""
    steps: list[int] = []
    step = 1
    for size in shape if fortran else reversed(shape):
        steps.append(step)
        step *= max(size, 1)
    return tuple(steps if fortran else reversed(steps))


def _bad_header() -> TensorError:
    return TensorError(say("readers.numpy_header_damaged"), kind="damaged", hint=say("readers.copy_dump_file_again"))


def _no_npy() -> TensorError:
    return TensorError(say("readers.no_npy_file"), kind="damaged", hint=say("readers.copy_dump_file_again"))


def _cut_off() -> TensorError:
    return TensorError(say("readers.file_cut_off"), kind="truncated", hint=say("readers.copy_file_again_dump_again_if"))
