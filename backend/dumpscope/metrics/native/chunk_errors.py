"""Sums and errors of a chunk of float32 patterns, as loops that the compiler vectorises; they are compiled into
`fused.compare`. Counts use arithmetic instead of comparisons: comparisons write mask registers, and a processor fills only
one of them per cycle.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dumpscope.metrics.histogram import COARSE_EDGES
from dumpscope.metrics.native.float_formats import SIXTEEN
from dumpscope.numba_support import machine

_BOUNDS: Final = np.concatenate(([0, 0], (COARSE_EDGES.view(np.uint32) >> 16) - 1)).astype(np.uint16)
"""For each decade, the largest uint16 pattern below its lower edge."""
THOUSANDTH: Final = np.float32(0.001).view(np.uint32)
FIVE: Final = np.float32(0.005).view(np.uint32)
SEARCHED: Final = 512
"""Positions searched at a time for the largest error."""


@machine
def square(values: Any, size: int) -> Any:
    total = 0.0
    for i in range(size):
        value = np.float64(values[i])
        total += value * value
    return total


@machine
def sums(first: Any, second: Any, size: int) -> Any:
    """Sums of t*g, t*t, g*g, d*d."""
    products = 0.0
    targets = 0.0
    goldens = 0.0
    differences = 0.0
    for i in range(size):
        one = np.float64(first[i])
        other = np.float64(second[i])
        delta = one - other
        products += one * other
        targets += one * one
        goldens += other * other
        differences += delta * delta
    return products, targets, goldens, differences


@machine
def relative(first: Any, second: Any, eps: Any) -> Any:
    """Patterns of the absolute and the relative error, each rounded to float32."""
    error = abs(np.float32(first - second))
    length = abs(second)
    ratio = np.float32(error / (length if length != np.float32(0) else eps))
    return np.float32(error).view(np.uint32), np.float32(ratio).view(np.uint32)


@machine
def below(pattern: Any, bound: Any) -> Any:
    """1 if the pattern of a non-negative number is below a bound, else 0."""
    return np.uint32(np.uint32(pattern - bound) >> np.uint32(31))


@machine
def errors(first: Any, second: Any, size: int, eps: Any, deltas: Any, ratios: Any) -> Any:
    """Fill the upper halves of the patterns of absolute and relative errors. Return the patterns of the largest of each, how many
    are not zero (the same in both, as unequal numbers differ by 2**-25 of the larger one at least) and how many ratios are below
    0.001 and 0.005."""
    largest = np.int32(0)
    largest_ratio = np.int32(0)
    unequal = np.uint32(0)
    below_1e3 = np.uint32(0)
    below_5e3 = np.uint32(0)
    for i in range(size):
        error, ratio = relative(first[i], second[i], eps)
        deltas[i] = np.uint16(error >> SIXTEEN)
        ratios[i] = np.uint16(ratio >> SIXTEEN)
        largest = max(largest, np.int32(error))
        largest_ratio = max(largest_ratio, np.int32(ratio))
        unequal = np.uint32(unequal + min(error, np.uint32(1)))
        below_1e3 = np.uint32(below_1e3 + below(ratio, THOUSANDTH))
        below_5e3 = np.uint32(below_5e3 + below(ratio, FIVE))
    return largest, largest_ratio, np.int64(unequal), np.int64(below_1e3), np.int64(below_5e3)


@machine
def _error_pattern(first: Any, second: Any) -> Any:
    return np.float32(abs(np.float32(first - second))).view(np.int32)


@machine
def place_of(first: Any, second: Any, size: int, pattern: Any) -> Any:
    """The first position whose absolute error has this float32 pattern (the pattern of the largest error)."""
    for start in range(
        0, size, SEARCHED
    ):  # a loop that can end early is not vectorised: only one piece goes through it
        length = min(SEARCHED, size - start)
        some = first[start : start + length]
        others = second[start : start + length]
        largest = np.int32(0)
        for i in range(length):
            largest = max(largest, _error_pattern(some[i], others[i]))
        if largest == pattern:
            for i in range(length):
                if _error_pattern(some[i], others[i]) == pattern:
                    return start + i
    return -1


@machine
def beyond(first: Any, second: Any, size: int, eps: float) -> Any:
    """(largest absolute error, its first position, largest relative error) if some errors exceed float32: computed in float64,
    as float64 patterns."""
    largest = np.int64(-1)
    place = 0
    largest_ratio = np.int64(-1)
    for i in range(size):
        error = abs(np.float32(first[i] - second[i]))
        length = abs(second[i])
        ratio = np.float32(error / (length if length != np.float32(0) else np.float32(eps)))
        wide = abs(np.float64(first[i]) - np.float64(second[i]))
        wide_length = abs(np.float64(second[i]))
        wide_ratio = wide / (wide_length if wide_length != 0.0 else eps)
        pattern = np.float64(error if error < np.inf else wide).view(np.int64)
        if pattern > largest:
            largest = pattern
            place = i
        largest_ratio = max(largest_ratio, np.float64(ratio if ratio < np.inf else wide_ratio).view(np.int64))
    return largest, place, largest_ratio


@machine
def _count_above(patterns: Any, size: int, bound: Any, lower: Any) -> Any:
    """Count the patterns above each bound. Two bounds at once take 0.53 of the time of one after the other; three are no faster.

    patterns, bounds: uint16 below 2**15; size: at most 65535
    """
    count = np.uint16(0)
    more = np.uint16(0)
    for i in range(size):
        pattern = patterns[i]
        count = np.uint16(count + (np.uint16(bound - pattern) >> np.uint16(15)))
        more = np.uint16(more + (np.uint16(lower - pattern) >> np.uint16(15)))
    return np.int64(count), np.int64(more)


@machine
def count_decades(patterns: Any, size: int, largest: Any, unequal: Any, decades: Any) -> None:
    """Add the decades of the `unequal` errors that are not zero, from the largest decade down. Errors are upper halves of float32
    patterns; the largest pattern is given."""
    place = len(_BOUNDS) - 1
    while place > 1 and _BOUNDS[place] >= largest:
        place -= 1
    above = 0
    while place > 1 and above < unequal:
        reached, further = _count_above(patterns, size, _BOUNDS[place], _BOUNDS[place - 1])
        decades[place] += reached - above
        above = reached
        if place > 2:
            decades[place - 1] += further - reached
            above = further
        place -= 2
    decades[1] += unequal - above
