"""Elements of two arrays that are farther apart than a tolerance, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """count: elements beyond the tolerance, of total; largest: difference of any two, inf where only one is finite;
    places: flat indices of the largest differences, the largest first"""

    total: int
    count: int
    largest: float
    places: list[int]


def find_differing(
    first: NDArray[Any], second: NDArray[Any], *, absolute: float, relative: float, limit: int
) -> Differing:
    """Elements with |first - second| > absolute + relative * |second|, in float64, of flat arrays of numbers.

    The shorter array is filled with zeros. Two equal infinities and two NaN agree; a number against one of them does not.
    limit: largest number of places
    """
    total = max(first.size, second.size)
    count, largest = 0, 0.0
    places, gaps = np.empty(0, np.int64), np.empty(0, np.float64)
    for start in range(0, total, BLOCK):
        length = min(BLOCK, total - start)
        one, other = _block(first, start, length), _block(second, start, length)
        with np.errstate(all="ignore"):
            gap = np.abs(one - other)
            gap[(one == other) | (np.isnan(one) & np.isnan(other))] = 0
            gap[np.isnan(gap)] = np.inf
            bad = np.flatnonzero((gap > absolute + relative * np.abs(other)) | np.isinf(gap))
        count += len(bad)
        largest = max(largest, float(gap.max()))
        gaps, places = np.concatenate((gaps, gap[bad])), np.concatenate((places, bad + start))
        kept = np.argsort(-gaps, kind="stable")[:limit]
        gaps, places = gaps[kept], places[kept]
    return Differing(total=total, count=count, largest=largest, places=places.tolist())


def _block(values: NDArray[Any], start: int, length: int) -> NDArray[Any]:
    part = values[start : start + length]
    out: NDArray[Any] = np.zeros(length, np.complex128 if values.dtype.kind == "c" else np.float64)
    out[: len(part)] = part
    return out
