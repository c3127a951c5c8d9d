"""Distances in units in the last place, as loops of machine code. They become part of the code of `fused.compare`, whose copy on
disk is made anew only when fused.py changes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dumpscope.machine import machine
from dumpscope.metrics.forms import MAGNITUDE, ONE
from dumpscope.metrics.histogram import SAMPLE, STRIDE, ULP_BASE, ULP_SHIFT

SAMPLED: Final = SAMPLE.astype(np.uint32)

HALF: Final = STRIDE * len(SAMPLE) // 2
"""Where the golden side's sample starts in the scratch array; the sample itself is shorter."""

_SHIFT: Final = np.int32(ULP_SHIFT)
_BASE: Final = np.int32(ULP_BASE)


@machine
def _step(first: Any, second: Any) -> Any:
    """ULP distance of two sign-and-magnitude patterns."""
    one = np.uint32(first & MAGNITUDE)
    other = np.uint32(second & MAGNITUDE)
    apart = np.uint32(max(one, other) - min(one, other))
    return np.uint32(one + other) if np.uint32(first ^ second) > MAGNITUDE else apart


@machine
def _ulp_bin(step: Any) -> Any:
    pattern = np.int32(np.float32(step).view(np.int32) >> _SHIFT)
    return np.uint32(max(pattern, _BASE) - _BASE)


@machine
def longest_step(first: Any, second: Any, size: int, shift: Any) -> Any:
    longest = np.uint32(0)
    for i in range(size):
        longest = max(longest, _step(first[i], second[i]))
    return np.int64(longest >> shift)


@machine
def _count(bins: Any, size: int, tables: Any) -> None:
    """Four tables in turn, so that equal distances in a row do not wait for each other's store."""
    even = size - size % 4
    for i in range(0, even, 4):
        tables[0, bins[i]] += ONE
        tables[1, bins[i + 1]] += ONE
        tables[2, bins[i + 2]] += ONE
        tables[3, bins[i + 3]] += ONE
    for i in range(even, size):
        tables[0, bins[i]] += ONE


@machine
def count_steps(first: Any, second: Any, size: int, shift: Any, bins: Any, tables: Any) -> None:
    for i in range(size):
        bins[i] = np.uint32(_step(first[i], second[i]) >> shift)
    for i in range(size):
        bins[i] = _ulp_bin(bins[i])
    _count(bins, size, tables)


@machine
def count_sample(first: Any, second: Any, found: int, shift: Any, bins: Any, tables: Any) -> None:
    """Count the steps at the first `found` places of SAMPLE."""
    for k in range(found):
        bins[k] = first[SAMPLED[k]]
        bins[k + HALF] = second[SAMPLED[k]]
    for k in range(found):
        bins[k] = np.uint32(_step(bins[k], bins[k + HALF]) >> shift)
    for k in range(found):
        bins[k] = _ulp_bin(bins[k])
    _count(bins, found, tables)
