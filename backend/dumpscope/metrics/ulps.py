"""Distances in units in the last place: a float's bit pattern becomes an integer that rises with its value."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Raw = np.ndarray[Any, Any]
Distances = NDArray[np.unsignedinteger[Any]]
_UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def _fineness(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Mantissa bits and largest exponent; raises ValueError for a dtype that is no float."""
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.nmant), int(info.maxexp)


@cache
def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a real dtype holds floating-point numbers, the small ones of ml_dtypes included."""
    if dtype.kind == "f":
        return True
    if dtype.kind != "V" or dtype.names is not None:
        return False
    try:
        _fineness(dtype)
    except ValueError:
        return False
    return True


@cache
def common_unit(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype whose steps are counted: the float with fewer mantissa bits; with equal bits the one of smaller range.

    None if a side is no float, or if the coarser one has no sign (scale types) and the other has.
    """
    if not (is_float(first) and is_float(second)):
        return None
    unit = min(first, second, key=_fineness)
    signed = float(ml_dtypes.finfo(unit).min) < 0  # type: ignore[no-untyped-call]
    return unit if signed or first == second else None


def round_to(values: Raw, unit: np.dtype[Any]) -> Raw:
    """Contiguous values as `unit`; larger values become infinity, or the largest number of a type without infinity."""
    if values.dtype == unit:
        return np.ascontiguousarray(values)
    if unit.itemsize > 1:
        return values.astype(unit)
    info = ml_dtypes.finfo(unit)  # type: ignore[no-untyped-call]
    has_infinity = bool(np.isinf(np.array(np.inf).astype(unit).astype(np.float32)))
    return (values if has_infinity else np.clip(values.astype(np.float64), float(info.min), float(info.max))).astype(
        unit
    )


@cache
def _ranks(dtype: np.dtype[Any]) -> NDArray[np.int32]:
    """Rank of each code of a one-byte float among its values (zero and -zero share one); 0 for codes that are nan."""
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    distinct = np.unique(values[~np.isnan(values)])
    return np.where(np.isnan(values), 0, np.searchsorted(distinct, values)).astype(np.int32)


def ulp_distance(target: Raw, golden: Raw, dtype: np.dtype[Any]) -> Distances:
    """Steps of `dtype` between two arrays of finite numbers of that dtype (native byte order), shape (n,), unsigned.

    Neighbouring numbers are one step apart, 0.0 and -0.0 none.
    """
    if dtype.itemsize == 1:
        ranks = _ranks(dtype)
        steps: Distances = np.abs(ranks[target.view(np.uint8)] - ranks[golden.view(np.uint8)]).astype(np.uint32)
        return steps
    unsigned: Any = _UNSIGNED[dtype.itemsize]
    sign_bit = unsigned(1 << (8 * dtype.itemsize - 1))
    magnitude = unsigned((1 << (8 * dtype.itemsize - 1)) - 1)
    first, second = target.view(unsigned), golden.view(unsigned)
    lower, upper = first & magnitude, second & magnitude
    steps = np.maximum(lower, upper) - np.minimum(lower, upper)
    opposite = (first ^ second) >= sign_bit
    if not opposite.any():
        return steps
    wide: Any = np.uint64 if dtype.itemsize == 8 else np.uint32
    steps = steps.astype(wide, copy=False)
    np.add(lower, upper, out=steps, where=opposite, dtype=wide)
    return steps
