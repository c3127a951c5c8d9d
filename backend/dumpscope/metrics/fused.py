"""Machine code for one pass over float32, bfloat16 or float16 pairs. Importing this imports numba: `compiled` decides when.

Pairs are taken a chunk at a time: everything about a chunk stays in cache and is measured by short loops that the compiler
vectorises. Sums are float64; errors are float32, sixteen to a register, in float64 where they leave it. Nothing is screened for
nan and infinity beforehand: a chunk that holds any shows it in its sums.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dumpscope.machine import fetch, machine, uint16_at, uint32_at
from dumpscope.metrics.forms import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    MAGNITUDE,
    ONE,
    SIXTEEN,
    decode,
    half_keys,
    round_to_bfloat16,
)
from dumpscope.metrics.histogram import COARSE_EDGES, DECADE_BINS, SAMPLE, STRIDE, ULP_BINS
from dumpscope.metrics.steps import SAMPLED, count_sample, count_steps, longest_step

CHUNK: Final = STRIDE * len(SAMPLE)
"""Pairs measured at a time: with their scratch arrays they fit the first two caches. Of 1024 to 16384 the smallest at which what
every chunk costs besides (some 200 ns) no longer shows."""

(
    EXCLUDED, UNEQUAL, BAD_TARGET, BAD_GOLDEN, DISAGREE, BELOW_1E3, BELOW_5E3, MAX_AT, MAX_ABS, MAX_REL, MAX_ULP,
    PRODUCTS, TARGETS, GOLDENS, DIFFERENCES, WORST_TARGET, WORST_GOLDEN, MEDIAN, ABS_DECADES,
) = range(19)  # fmt: skip
"""Where the results stand in an int64 array. MAX_ABS and MAX_REL are float64 bit patterns (those of non-negative numbers
are ordered like the numbers); the four sums and the two values at MAX_AT are float64 numbers; MEDIAN is the place of the lower
median in the ULP histogram, -1 where that is empty; three tables come last."""
REL_DECADES: Final = ABS_DECADES + DECADE_BINS
ULPS: Final = REL_DECADES + DECADE_BINS
RESULTS: Final = ULPS + ULP_BINS

TARGET, TARGET_FORM, GOLDEN, GOLDEN_FORM, LENGTH, BEGIN, UNIT, SAMPLED_ONLY, PAIR = range(9)
"""Where a stretch of a pair is described in an int64 array, and the length of that."""

_EDGES: Final = (COARSE_EDGES.view(np.uint32) >> 16).astype(np.uint16)
_INFINITY: Final = np.uint32(0x7F800000)
_INFINITE: Final = np.int32(0x7F800000)
_THOUSANDTH: Final = np.float32(0.001).view(np.int32)
_FIVE: Final = np.float32(0.005).view(np.int32)


@machine
def _differ(first: Any, second: Any, size: int) -> Any:
    differing = np.uint32(0)
    for i in range(size):
        differing = np.uint32(differing | np.uint32(first[i] ^ second[i]))
    return differing != 0


@machine
def _exclude(first: Any, second: Any, size: int, results: Any) -> Any:
    """Count non-finite positions and put 0 against 0 there; return how many there were, and how many in the sample."""
    excluded = 0
    excluded_sample = 0
    for i in range(size):
        one = first[i] & MAGNITUDE
        other = second[i] & MAGNITUDE
        if one < _INFINITY and other < _INFINITY:
            continue
        excluded += 1
        excluded_sample += SAMPLED[i // STRIDE] == i
        results[BAD_TARGET] += one >= _INFINITY
        results[BAD_GOLDEN] += other >= _INFINITY
        if not (first[i] == second[i] or (one > _INFINITY and other > _INFINITY)):
            results[DISAGREE] += 1
            results[UNEQUAL] += 1
        first[i] = np.uint32(0)
        second[i] = np.uint32(0)
    results[EXCLUDED] += excluded
    return excluded, excluded_sample


@machine
def _square(values: Any, size: int) -> Any:
    total = 0.0
    for i in range(size):
        value = np.float64(values[i])
        total += value * value
    return total


@machine
def _sums(first: Any, second: Any, size: int) -> Any:
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
def _errors(first: Any, second: Any, size: int, eps: Any, deltas: Any, ratios: Any) -> Any:
    """Fill the upper halves of the patterns of absolute and relative errors, rounded to float32. Return the patterns of the
    smallest but zero and of the largest of each, how many are zero (the same in both, as unequal numbers differ by 2**-25 of
    the larger one at least) and how many ratios are below 0.001 and 0.005."""
    smallest = np.uint32(0xFFFFFFFF)
    smallest_ratio = np.uint32(0xFFFFFFFF)
    largest = np.int32(0)
    largest_ratio = np.int32(0)
    zeros = np.int32(0)
    below_1e3 = np.int32(0)
    below_5e3 = np.int32(0)
    for i in range(size):
        error = abs(np.float32(first[i] - second[i]))
        length = abs(second[i])
        ratio = np.float32(error / (length if length != np.float32(0) else eps))
        pattern = np.float32(error).view(np.int32)
        ratio_pattern = np.float32(ratio).view(np.int32)
        deltas[i] = np.uint16(np.uint32(pattern) >> SIXTEEN)
        ratios[i] = np.uint16(np.uint32(ratio_pattern) >> SIXTEEN)
        largest = max(largest, pattern)
        largest_ratio = max(largest_ratio, ratio_pattern)
        smallest = min(smallest, np.uint32(np.uint32(pattern) - ONE))  # zero becomes the largest of all
        smallest_ratio = min(smallest_ratio, np.uint32(np.uint32(ratio_pattern) - ONE))
        zeros = np.int32(zeros + np.int32(pattern == np.int32(0)))
        below_1e3 = np.int32(below_1e3 + np.int32(ratio_pattern < _THOUSANDTH))
        below_5e3 = np.int32(below_5e3 + np.int32(ratio_pattern < _FIVE))
    return (
        np.int32(smallest + ONE), largest, np.int32(smallest_ratio + ONE), largest_ratio,
        np.int64(zeros), np.int64(below_1e3), np.int64(below_5e3),
    )  # fmt: skip


@machine
def _upper(pattern: Any) -> Any:
    return np.uint16(np.uint32(pattern) >> SIXTEEN)


@machine
def _count_reaching(patterns: Any, size: int, bound: Any) -> Any:
    """patterns, bound: uint16; size: at most 65535"""
    count = np.uint16(0)
    for i in range(size):
        count = np.uint16(count + np.uint16(patterns[i] >= bound))
    return np.int64(count)


@machine
def _place_of(first: Any, second: Any, size: int, pattern: Any) -> Any:
    """The first place whose absolute error has this float32 pattern."""
    for i in range(size):
        if np.float32(abs(np.float32(first[i] - second[i]))).view(np.int32) == pattern:
            return i
    return -1


@machine
def _beyond(first: Any, second: Any, size: int, eps: float) -> Any:
    """(largest absolute error, its first place, largest relative error) where some leave float32: those in float64, as float64
    patterns."""
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
def _decades(patterns: Any, size: int, smallest: Any, largest: Any, above: Any, decades: Any) -> None:
    """Add the decades of the `above` errors that are not zero; errors are upper halves of float32 patterns."""
    if above == 0:
        return
    edge = 0
    while edge < len(_EDGES) and _EDGES[edge] <= smallest:
        edge += 1
    while edge < len(_EDGES) and _EDGES[edge] <= largest:
        reached = _count_reaching(patterns, size, _EDGES[edge])
        decades[edge + 1] += above - reached
        above = reached
        edge += 1
    decades[edge + 1] += above


@machine
def _stretch(
    target: int,
    target_form: int,
    golden: int,
    golden_form: int,
    length: int,
    begin: int,
    unit: int,
    sampled: bool,
    eps: float,
    detail: bool,
    results: Any,
) -> None:
    """Add `length` pairs to results, shape (RESULTS,)."""
    target_wide = uint32_at(target, length if target_form == FLOAT32 else 0)
    target_narrow = uint16_at(target, 0 if target_form == FLOAT32 else length)
    golden_wide = uint32_at(golden, length if golden_form == FLOAT32 else 0)
    golden_narrow = uint16_at(golden, 0 if golden_form == FLOAT32 else length)
    sums = results.view(np.float64)
    abs_decades = results[ABS_DECADES:REL_DECADES]
    rel_decades = results[REL_DECADES:ULPS]
    ulps = results[ULPS:RESULTS]
    work = np.empty(6 * CHUNK + 16, np.uint32)
    aligned = np.intp((-(work.ctypes.data // 4)) % 16)
    target_scratch = work[aligned : aligned + CHUNK]
    golden_scratch = work[aligned + CHUNK : aligned + 2 * CHUNK]
    target_keys = work[aligned + 2 * CHUNK : aligned + 3 * CHUNK]
    golden_keys = work[aligned + 3 * CHUNK : aligned + 4 * CHUNK]
    bins = work[aligned + 4 * CHUNK : aligned + 5 * CHUNK]
    halves = work[aligned + 5 * CHUNK : aligned + 6 * CHUNK].view(np.uint16)
    deltas, ratios = halves[:CHUNK], halves[CHUNK:]
    differing = True  # what the chunk before showed: looked at only where equality is likely
    tables = np.zeros((4, ULP_BINS), np.uint32)
    shift = np.uint32(0) if unit == FLOAT32 else SIXTEEN
    part = CHUNK // 4
    for start in range(0, length, CHUNK):
        size = min(CHUNK, length - start)
        end = start + size
        fetch(target_wide, golden_wide, target_narrow, golden_narrow, end, part)
        if target_form == FLOAT32:
            first = target_wide[start:end]
        else:
            first = target_scratch
            decode(target_wide[start:end], target_narrow[start:end], target_form, size, first)
        if golden_form == FLOAT32:
            second = golden_wide[start:end]
        else:
            second = golden_scratch
            decode(golden_wide[start:end], golden_narrow[start:end], golden_form, size, second)
        differing = differing or _differ(first, second, size)
        fetch(target_wide, golden_wide, target_narrow, golden_narrow, end + part, part)
        if differing:
            products, targets, goldens, differences = _sums(first.view(np.float32), second.view(np.float32), size)
        else:
            products = targets = goldens = _square(first.view(np.float32), size)
            differences = 0.0
        excluded = 0
        looked_at = size
        if sampled:
            looked_at = size // STRIDE
            if looked_at < len(SAMPLED) and SAMPLED[looked_at] < size:
                looked_at += 1
        counted = looked_at  # by the ULP histogram
        if not targets + goldens < np.inf:
            decode(target_wide[start:end], target_narrow[start:end], target_form, size, target_scratch)
            decode(golden_wide[start:end], golden_narrow[start:end], golden_form, size, golden_scratch)
            first, second = target_scratch, golden_scratch
            excluded, excluded_sample = _exclude(first, second, size, results)
            counted -= excluded_sample if sampled else excluded
            products, targets, goldens, differences = _sums(first.view(np.float32), second.view(np.float32), size)
        sums[PRODUCTS] += products
        sums[TARGETS] += targets
        sums[GOLDENS] += goldens
        sums[DIFFERENCES] += differences
        fetch(target_wide, golden_wide, target_narrow, golden_narrow, end + 2 * part, part)
        differing = differences != 0.0
        if not differing:
            results[BELOW_1E3] += size
            results[BELOW_5E3] += size
            ulps[0] += counted
            abs_decades[0] += size - excluded
            rel_decades[0] += size - excluded
            fetch(target_wide, golden_wide, target_narrow, golden_narrow, end + 3 * part, part)
            continue
        smallest, largest, smallest_ratio, largest_ratio, zeros, below_1e3, below_5e3 = _errors(
            first.view(np.float32), second.view(np.float32), size, np.float32(eps), deltas, ratios
        )
        results[UNEQUAL] += size - zeros
        results[BELOW_1E3] += below_1e3
        results[BELOW_5E3] += below_5e3
        if max(largest, largest_ratio) >= _INFINITE:
            delta, place, ratio = _beyond(first.view(np.float32), second.view(np.float32), size, eps)
        else:
            delta = np.float64(np.int32(largest).view(np.float32)).view(np.int64)
            ratio = np.float64(np.int32(largest_ratio).view(np.float32)).view(np.int64)
            place = -1
        if delta > results[MAX_ABS]:
            if place < 0:
                place = _place_of(first.view(np.float32), second.view(np.float32), size, largest)
            results[MAX_ABS] = delta
            results[MAX_AT] = begin + start + place
            sums[WORST_TARGET] = np.float64(first.view(np.float32)[place])
            sums[WORST_GOLDEN] = np.float64(second.view(np.float32)[place])
        results[MAX_REL] = max(results[MAX_REL], ratio)
        fetch(target_wide, golden_wide, target_narrow, golden_narrow, end + 3 * part, part)
        if unit == FLOAT16:
            half_keys(first, target_narrow[start:end], size, target_keys)
            half_keys(second, golden_narrow[start:end], size, golden_keys)
            first, second = target_keys, golden_keys
        elif unit == BFLOAT16:
            if target_form == FLOAT32:
                round_to_bfloat16(first, size, target_keys)
                first = target_keys
            if golden_form == FLOAT32:
                round_to_bfloat16(second, size, golden_keys)
                second = golden_keys
        results[MAX_ULP] = max(results[MAX_ULP], longest_step(first, second, size, shift))
        if sampled:
            count_sample(first, second, looked_at, shift, bins, tables)
        else:
            count_steps(first, second, size, shift, bins, tables)
        ulps[0] -= looked_at - counted
        if detail:
            abs_decades[0] += zeros - excluded
            rel_decades[0] += zeros - excluded
            _decades(deltas, size, _upper(smallest), _upper(largest), size - zeros, abs_decades)
            _decades(ratios, size, _upper(smallest_ratio), _upper(largest_ratio), size - zeros, rel_decades)
    for table in range(4):
        for place in range(ULP_BINS):
            ulps[place] += tables[table, place]


@machine
def _median(counts: Any) -> Any:
    """Place of the lower median, -1 where nothing was counted."""
    total = 0
    for place in range(len(counts)):
        total += counts[place]
    place = -1
    reached = 0
    while reached < (total + 1) // 2:
        place += 1
        reached += counts[place]
    return place


@machine
def compare(stretches: Any, eps: float, detail: bool, results: Any) -> None:
    """Add each stretch to its row of results, shape (n, RESULTS).

    stretches: int64, shape (n, PAIR):
        TARGET, GOLDEN: addresses of aligned contiguous elements; LENGTH: how many, fewer than 2**32
        BEGIN: flat index of the first in the whole pair
        UNIT: the form whose steps are counted; FLOAT16 only where both sides are
        SAMPLED_ONLY: 1 where the ULP histogram counts only the places SAMPLE of each chunk
    """
    for row in range(len(stretches)):
        stretch = stretches[row]
        _stretch(
            stretch[TARGET], stretch[TARGET_FORM], stretch[GOLDEN], stretch[GOLDEN_FORM], stretch[LENGTH],
            stretch[BEGIN], stretch[UNIT], stretch[SAMPLED_ONLY] != 0, eps, detail, results[row],
        )  # fmt: skip
        results[row, MEDIAN] = _median(results[row, ULPS:RESULTS])
