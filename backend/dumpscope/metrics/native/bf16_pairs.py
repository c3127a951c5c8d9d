"""Processes two bfloat16 numbers at a time, as one 32-bit word: each half is a float32 pattern when the other half is cleared,
so nothing has to be unpacked. These loops are compiled into `fused.compare`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dumpscope.metrics.native.chunk_errors import FIVE, THOUSANDTH, below, relative
from dumpscope.metrics.native.float_formats import SIXTEEN, UPPER
from dumpscope.numba_support import machine


@machine
def _lower(word: Any) -> Any:
    return np.uint32(word << SIXTEEN).view(np.float32)


@machine
def _upper(word: Any) -> Any:
    return np.uint32(word & UPPER).view(np.float32)


@machine
def _joined(lower: Any, upper: Any) -> Any:
    """The upper halves of two float32 patterns."""
    return np.uint32((lower >> SIXTEEN) | (upper & UPPER))


@machine
def square_words(words: Any, size: int) -> Any:
    total = 0.0
    for i in range(size):
        one = np.float64(_lower(words[i]))
        other = np.float64(_upper(words[i]))
        total += one * one
        total += other * other
    return total


@machine
def sum_words(first: Any, second: Any, size: int) -> Any:
    """`errors.sums` of `size` words."""
    products = 0.0
    targets = 0.0
    goldens = 0.0
    differences = 0.0
    for i in range(size):
        one = np.float64(_lower(first[i]))
        other = np.float64(_lower(second[i]))
        delta = one - other
        products += one * other
        targets += one * one
        goldens += other * other
        differences += delta * delta
        one = np.float64(_upper(first[i]))
        other = np.float64(_upper(second[i]))
        delta = one - other
        products += one * other
        targets += one * one
        goldens += other * other
        differences += delta * delta
    return products, targets, goldens, differences


@machine
def word_errors(first: Any, second: Any, size: int, eps: Any, deltas: Any, ratios: Any) -> Any:
    """`errors.errors` of `size` words."""
    largest = np.int32(0)
    largest_ratio = np.int32(0)
    unequal = np.uint32(0)
    below_1e3 = np.uint32(0)
    below_5e3 = np.uint32(0)
    for i in range(size):
        error, ratio = relative(_lower(first[i]), _lower(second[i]), eps)
        upper_error, upper_ratio = relative(_upper(first[i]), _upper(second[i]), eps)
        deltas[i] = _joined(error, upper_error)
        ratios[i] = _joined(ratio, upper_ratio)
        largest = max(largest, np.int32(error))
        largest = max(largest, np.int32(upper_error))
        largest_ratio = max(largest_ratio, np.int32(ratio))
        largest_ratio = max(largest_ratio, np.int32(upper_ratio))
        unequal = np.uint32(unequal + min(error, np.uint32(1)))
        unequal = np.uint32(unequal + min(upper_error, np.uint32(1)))
        below_1e3 = np.uint32(below_1e3 + below(ratio, THOUSANDTH))
        below_1e3 = np.uint32(below_1e3 + below(upper_ratio, THOUSANDTH))
        below_5e3 = np.uint32(below_5e3 + below(ratio, FIVE))
        below_5e3 = np.uint32(below_5e3 + below(upper_ratio, FIVE))
    return largest, largest_ratio, np.int64(unequal), np.int64(below_1e3), np.int64(below_5e3)
