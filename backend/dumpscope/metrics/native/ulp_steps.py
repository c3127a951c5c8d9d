"""Distances in units in the last place. These loops are compiled into `fused.compare`; its code on disk is compiled again
only when fused.py changes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dumpscope.metrics.histogram import SAMPLE, STRIDE, ULP_BASE, ULP_SHIFT
from dumpscope.metrics.native.float_formats import MAGNITUDE, ONE
from dumpscope.numba_support import machine

SAMPLED: Final = np.add.outer(STRIDE * SAMPLE.size * np.arange(4), SAMPLE).reshape(-1).astype(np.uint32)
"""Sampled positions of 16384 in a row."""

_SHIFT: Final = np.int32(ULP_SHIFT)
_BASE: Final = np.int32(ULP_BASE)
_SHORT_MAGNITUDE: Final = np.uint16(0x7FFF)


@machine
def _step(first: Any, second: Any) -> Any:
    """ULP distance of two sign-and-magnitude patterns of 32 bits."""
    one = np.uint32(first & MAGNITUDE)
    other = np.uint32(second & MAGNITUDE)
    apart = np.uint32(max(one, other) - min(one, other))
    return np.uint32(one + other) if np.uint32(first ^ second) > MAGNITUDE else apart


@machine
def _short_step(first: Any, second: Any) -> Any:
    """The same for 16-bit patterns."""
    one = np.uint16(first & _SHORT_MAGNITUDE)
    other = np.uint16(second & _SHORT_MAGNITUDE)
    apart = np.uint16(max(one, other) - min(one, other))
    return np.uint16(one + other) if np.uint16(first ^ second) > _SHORT_MAGNITUDE else apart


@machine
def longest_step(first: Any, second: Any, size: int) -> Any:
    longest = np.uint32(0)
    signs = np.uint32(0)
    for i in range(size):  # half the work if no two signs are opposite
        longest = max(longest, np.uint32(max(first[i], second[i]) - min(first[i], second[i])))
        signs = np.uint32(signs | np.uint32(first[i] ^ second[i]))
    if signs > MAGNITUDE:
        longest = np.uint32(0)
        for i in range(size):
            longest = max(longest, _step(first[i], second[i]))
    return np.int64(longest)


@machine
def short_steps(first: Any, second: Any, size: int, steps: Any) -> Any:
    """Fill in the distances of 16-bit patterns; return the largest."""
    longest = np.uint16(0)
    signs = np.uint16(0)
    for i in range(size):
        step = np.uint16(max(first[i], second[i]) - min(first[i], second[i]))
        longest = max(longest, step)
        signs = np.uint16(signs | np.uint16(first[i] ^ second[i]))
        steps[i] = step
    if signs > _SHORT_MAGNITUDE:
        longest = np.uint16(0)
        for i in range(size):
            step = _short_step(first[i], second[i])
            longest = max(longest, step)
            steps[i] = step
    return np.int64(longest)


@machine
def step_bin(step: Any) -> Any:
    """The bin of a distance in the ULP histogram."""
    pattern = np.int32(np.float32(step).view(np.int32) >> _SHIFT)
    return np.uint32(max(pattern, _BASE) - _BASE)


@machine
def _count(bins: Any, size: int, tables: Any) -> None:
    """Count into four tables in turn, so that equal distances in a row do not wait for each other's store."""
    even = size - size % 4
    for i in range(0, even, 4):
        tables[0, bins[i]] += ONE
        tables[1, bins[i + 1]] += ONE
        tables[2, bins[i + 2]] += ONE
        tables[3, bins[i + 3]] += ONE
    for i in range(even, size):
        tables[0, bins[i]] += ONE


@machine
def count_steps(first: Any, second: Any, size: int, bins: Any, tables: Any) -> None:
    for i in range(size):
        bins[i] = step_bin(_step(first[i], second[i]))
    _count(bins, size, tables)


@machine
def count_short_steps(steps: Any, size: int, bins: Any, tables: Any) -> None:
    for i in range(size):
        bins[i] = step_bin(np.uint32(steps[i]))
    _count(bins, size, tables)


@machine
def sample(values: Any, found: int, sampled: Any) -> None:
    """Copy the values at the first `found` positions of SAMPLE next to each other."""
    for k in range(found):
        sampled[k] = values[SAMPLED[k]]
