"""Element types of tensors, and strided arrays over raw storage bytes. Neither needs torch.

numpy has no bfloat16 and no 8-bit floats: those come from ml_dtypes. complex32 (two float16) has no counterpart at all and
is widened to complex64, which holds every one of its values exactly.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from dumpscope.errors import TensorError
from dumpscope.texts import say

DEFAULT_BUDGET: Final = 16 << 30
"""Logical bytes (elements times element size) that one load may hand out unless the caller allows more."""

MAX_DIMENSIONS: Final = 64
_BOOL_BLOCK: Final = 1 << 20

Bytes = bytes | mmap.mmap
Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """name: torch's name ("torch.bfloat16"); array: dtype handed out; size: stored bytes of one element;
    unit: bytes of one number inside it (half of `size` for complex), which is what a foreign byte order reverses."""

    name: str
    array: np.dtype[Any]
    size: int
    unit: int


@dataclass(frozen=True, slots=True)
class LoadedTensor:
    """One tensor read from a file. `array` is read-only and, where the file allows, a view of the mapped file.

    dtype: torch's name, "torch.bfloat16"
    device: where the tensor lived when it was saved ("cpu", "npu:0", "cuda:7")
    notes: what had to be done to the stored bytes ("conjugate bit applied", ...); empty for a plain view
    """

    dtype: str
    shape: tuple[int, ...]
    array: Array
    device: str = "cpu"
    requires_grad: bool = False
    parameter: bool = False
    notes: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """Logical bytes: what the array would take if every element were written out."""
        return self.array.nbytes


def _element(name: str, dtype: Any, *, size: int = 0, unit: int = 0) -> ElementType:
    array = np.dtype(dtype)
    return ElementType(name=f"torch.{name}", array=array, size=size or array.itemsize, unit=unit or array.itemsize)


_TYPES: Final = (
    _element("float32", np.float32),
    _element("float64", np.float64),
    _element("float16", np.float16),
    _element("bfloat16", ml_dtypes.bfloat16),
    _element("float8_e4m3fn", ml_dtypes.float8_e4m3fn),
    _element("float8_e5m2", ml_dtypes.float8_e5m2),
    _element("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    _element("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    _element("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu),
    _element("complex64", np.complex64, unit=4),
    _element("complex128", np.complex128, unit=8),
    _element("complex32", np.complex64, size=4, unit=2),
    _element("bool", np.bool_),
    _element("int8", np.int8),
    _element("int16", np.int16),
    _element("int32", np.int32),
    _element("int64", np.int64),
    _element("uint8", np.uint8),
    _element("uint16", np.uint16),
    _element("uint32", np.uint32),
    _element("uint64", np.uint64),
)
_ALIASES: Final = {
    "torch.float": "torch.float32", "torch.double": "torch.float64", "torch.half": "torch.float16",
    "torch.cfloat": "torch.complex64", "torch.cdouble": "torch.complex128", "torch.chalf": "torch.complex32",
    "torch.short": "torch.int16", "torch.int": "torch.int32", "torch.long": "torch.int64",
}  # fmt: skip

ELEMENT_TYPES: Final[dict[str, ElementType]] = {kind.name: kind for kind in _TYPES}
ELEMENT_TYPES.update({alias: ELEMENT_TYPES[name] for alias, name in _ALIASES.items()})

_TORCH_NAMES: Final[dict[np.dtype[Any], str]] = {
    kind.array: kind.name for kind in _TYPES if kind.name != "torch.complex32"
}
_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def torch_name(dtype: np.dtype[Any]) -> str | None:
    """torch's name of a numpy or ml_dtypes dtype in any byte order; None where torch has no such dtype."""
    return _TORCH_NAMES.get(dtype.newbyteorder("="))


def check_budget(shape: tuple[int, ...], size: int, budget: int) -> int:
    """Number of elements of `shape`; raises TensorError "over_budget" when elements of `size` bytes pass the budget."""
    count = math.prod(shape)
    if count * size > budget:
        raise TensorError(
            say(
                "readers.tensor_shape_takes_bytes_more_than",
                shape=brief(shape),
                count=f"{count * size:,}",
                budget=f"{budget:,}",
            ),
            kind="over_budget",
            hint=say("readers.raise_tensor_budget_compare_item_by"),
        )
    return count


def brief(shape: tuple[int, ...]) -> str:
    """Shape as text of bounded length (a hostile file may claim 64 dimensions of 19 digits)."""
    text = str(tuple(shape))
    return text if len(text) <= 80 else f"{text[:80]}..."


def strided(
    buffer: Bytes,
    start: int,
    stored: int,
    *,
    element: ElementType,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int = 0,
    budget: int = DEFAULT_BUDGET,
    swapped: bool = False,
    conj: bool = False,
    neg: bool = False,
) -> tuple[Array, tuple[str, ...]]:
    """Read-only array over `stored` elements that begin at byte `start` of `buffer`, and notes on what was not plain.

    shape, stride and offset count elements. Nothing is copied unless the bytes cannot be used as they lie: foreign byte
    order, a lazy conjugate or negative bit, complex32, a misaligned storage, bool bytes other than 0 and 1. A copy covers
    the stored span only, so an expanded tensor (stride 0) stays small.
    Raises TensorError: over_budget, or damaged for a geometry that leaves the storage.
    """
    count = check_budget(shape, element.size, budget)
    _check_geometry(shape, stride, offset)
    if count == 0:
        return _empty(shape, element), ()
    span = 1
    for size, step in zip(shape, stride, strict=True):
        span += (size - 1) * step
    if offset + span > stored:
        raise TensorError(
            say(
                "readers.tensor_shape_reaches_element_storage",
                shape=brief(shape),
                offset=f"{offset + span:,}",
                stored=f"{stored:,}",
            ),
            kind="damaged",
            hint=say("readers.file_damaged_hostile_dump_tensor_again"),
        )
    first = start + offset * element.size
    plain = not (swapped or conj or neg) and element.size == element.array.itemsize and element.array.kind != "b"
    if plain:
        array = _view(buffer, first, element, shape, stride)
        if array.flags.aligned:
            return array, ()
    if span * element.array.itemsize > budget:
        raise TensorError(
            say(
                "readers.storage_behind_tensor_spans_bytes_more",
                span=f"{span * element.array.itemsize:,}",
                budget=f"{budget:,}",
            ),
            kind="over_budget",
            hint=say("readers.raise_tensor_budget_compare_item_by"),
        )
    try:
        flat, notes = _converted(buffer, first, span, element, swapped=swapped, conj=conj, neg=neg)
    except MemoryError as error:
        raise TensorError(
            say("readers.memory_does_not_hold_tensor"), kind="over_budget", hint=say("readers.lower_number_jobs")
        ) from error
    return _view(flat, 0, element, shape, stride), notes


def _view(
    buffer: Bytes | Array, first: int, element: ElementType, shape: tuple[int, ...], stride: tuple[int, ...]
) -> Array:
    """Read-only array over bytes known to suffice. A dimension of size 1 may state any stride, even one numpy cannot hold."""
    size = element.array.itemsize
    steps = tuple(step * size if extent > 1 else 0 for extent, step in zip(shape, stride, strict=True))
    try:
        array: Array = np.ndarray(shape, element.array, buffer, first, steps)
    except (ValueError, OverflowError, TypeError) as error:
        raise TensorError(
            say("readers.numpy_cannot_hold_tensor_shape", shape=brief(shape)), kind="unsupported"
        ) from error
    array.flags.writeable = False
    return array


def _check_geometry(shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
    if len(shape) != len(stride) or len(shape) > MAX_DIMENSIONS:
        raise TensorError(say("readers.sizes_strides_no_tensor", count=len(shape), count2=len(stride)), kind="damaged")
    if offset < 0 or (shape and (min(shape) < 0 or min(stride) < 0)):
        raise TensorError(say("readers.tensor_has_negative_size_stride_offset"), kind="damaged")


def _empty(shape: tuple[int, ...], element: ElementType) -> Array:
    try:
        array: Array = np.empty(shape, element.array)
    except (ValueError, OverflowError, MemoryError) as error:
        raise TensorError(say("readers.shape_too_large_exist", shape=brief(shape)), kind="damaged") from error
    array.flags.writeable = False
    return array


def _converted(
    buffer: Bytes, first: int, span: int, element: ElementType, *, swapped: bool, conj: bool, neg: bool
) -> tuple[Array, tuple[str, ...]]:
    """`span` consecutive elements as an array of shape (span,) that may differ from the stored bytes, and why it does."""
    raw: Array = np.ndarray((span * element.size,), np.uint8, buffer, first)
    notes: list[str] = []
    if element.array.kind == "b":
        if _largest(raw) <= 1:
            return raw.view(np.bool_), ()
        return raw != 0, ("bytes other than 0 and 1 read as true",)
    if swapped and element.unit > 1:
        unsigned = _UNSIGNED[element.unit]
        raw = np.ndarray((raw.size // element.unit,), unsigned, buffer, first).byteswap().view(np.uint8)
        notes.append("big-endian storage")
    flat: Array
    if element.size != element.array.itemsize:
        flat = _aligned(raw, np.dtype(np.float16)).astype(np.float32).view(np.complex64)
        notes.append("complex32 widened to complex64")
    else:
        flat = _aligned(raw, element.array)
    if conj and flat.dtype.kind == "c":
        flat = np.conjugate(flat)
        notes.append("conjugate bit applied")
    if neg:
        flat = np.negative(flat)
        notes.append("negative bit applied")
    return flat, tuple(notes)


def _aligned(raw: Array, dtype: np.dtype[Any]) -> Array:
    """Bytes seen as `dtype`, copied first where they do not lie on the boundary the type needs."""
    if raw.ctypes.data % dtype.alignment:
        raw = raw.copy()
    return raw.view(dtype)


def _largest(raw: Array) -> int:
    """Largest byte, read in blocks so that a first bad byte ends the search early."""
    for begin in range(0, raw.size, _BOOL_BLOCK):
        high = int(raw[begin : begin + _BOOL_BLOCK].max())
        if high > 1:
            return high
    return 0
