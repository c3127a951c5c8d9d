"""Machine code for one pass over float32, bfloat16 or float16 pairs. Importing this imports numba: `compiled` decides when.

A chunk of pairs is decoded into scratch arrays that stay in the first-level cache, screened for non-finite numbers with integer
arithmetic, and measured by short loops that the compiler vectorises. After the screening no loop meets a nan or infinity,
which makes the relaxed floating-point flags safe; divisions stay exact, so counts and histograms equal the numpy kernel's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from dumpscope.metrics.histogram import SAMPLE, ULP_BASE, ULP_BINS, ULP_SHIFT

Function = TypeVar("Function", bound=Callable[..., Any])

CHUNK: Final = 8 * len(SAMPLE)
"""Pairs whose scratch arrays fit the first-level cache."""

FLOAT32: Final = 0
BFLOAT16: Final = 1
FLOAT16: Final = 2

COUNTS: Final = 11
"""Length of the counts: see the constants below for what stands where."""
EXCLUDED, UNEQUAL, BAD_TARGET, BAD_GOLDEN, DISAGREE, BELOW_1E3, BELOW_5E3, MAX_AT, MAX_ABS, MAX_REL, MAX_ULP = range(
    COUNTS
)
"""MAX_ABS and MAX_REL are float64 bit patterns: those of non-negative numbers are ordered like the numbers."""

_SIGN: Final = np.uint32(0x80000000)
_MAGNITUDE: Final = np.uint32(0x7FFFFFFF)
_INFINITY: Final = np.uint32(0x7F800000)
_STEP: Final = np.uint32(0x00800000)  # one in the exponent: an exponent of all ones runs over into the sign bit
_SHIFT: Final = np.uint32(ULP_SHIFT)
_BASE: Final = np.int64(ULP_BASE)
_SIXTEEN: Final = np.uint32(16)
_ONE: Final = np.uint64(1)


def _machine(function: Function) -> Function:
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": {"nnan", "ninf", "nsz", "reassoc", "contract"},
    }
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # neither this folder nor a user cache folder can be written
        return numba.njit(**options)(function)  # type: ignore[no-any-return]


def _lower_prefetch(_typing: Any, values: Any, place: Any) -> Any:
    """Numba's way to emit one instruction: ask for the cache line of values[place], into the second-level cache."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        line = builder.gep(array.data, [arguments[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [line.type, number, number, number])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(instruction, [line, number(0), number(2), number(1)])  # for reading, locality 2, data
        return context.get_dummy_value()

    return types.none(values, types.intp), emit


_prefetch: Any = intrinsic(_lower_prefetch)


@_machine
def _fetch(values: Any, start: int, size: int) -> None:
    """Ask for the next chunk while this one is measured: what the loops read comes in bursts that hardware does not foresee."""
    if start + size <= len(values):
        for place in range(start, start + size, 64 // values.itemsize):
            _prefetch(values, place)


@_machine
def _decode(wide: Any, narrow: Any, form: int, size: int, bits: Any, small: Any) -> None:
    """Float32 bit patterns of `size` elements; small (float32 scratch) receives the values of subnormal halves."""
    if form == FLOAT32:
        for i in range(size):
            bits[i] = wide[i]
    elif form == BFLOAT16:
        for i in range(size):
            bits[i] = np.uint32(narrow[i]) << _SIXTEEN
    else:
        tiny = small.view(np.uint32)
        for i in range(size):
            small[i] = np.float32(narrow[i] & np.uint16(0x3FF)) * np.float32(2.0**-24)
        for i in range(size):
            half = np.uint32(narrow[i])
            magnitude = half & np.uint32(0x7FFF)
            offset = np.uint32(112 << 23)
            if magnitude >= np.uint32(0x7C00):
                offset = np.uint32(224 << 23)
            normal = (magnitude << np.uint32(13)) + offset
            value = tiny[i] if magnitude < np.uint32(0x400) else normal
            bits[i] = np.uint32(value) | ((half & np.uint32(0x8000)) << _SIXTEEN)


@_machine
def _screen(first: Any, second: Any, size: int) -> Any:
    """Whether the bit patterns differ anywhere, and whether any is not finite."""
    differing = np.uint32(0)
    bad = np.uint32(0)
    for i in range(size):
        differing |= np.uint32(first[i] ^ second[i])
        bad |= np.uint32((first[i] & _MAGNITUDE) + _STEP) | np.uint32((second[i] & _MAGNITUDE) + _STEP)
    return differing != 0, (bad & _SIGN) != 0


@_machine
def _exclude(first: Any, second: Any, size: int, counts: Any, sample: Any) -> Any:
    """Count non-finite positions and put 0 against 0 there; return how many there were, and how many in the sample."""
    excluded = 0
    excluded_sample = 0
    for i in range(size):
        one = first[i] & _MAGNITUDE
        other = second[i] & _MAGNITUDE
        if one < _INFINITY and other < _INFINITY:
            continue
        excluded += 1
        excluded_sample += sample[i >> 3] == i
        counts[BAD_TARGET] += one >= _INFINITY
        counts[BAD_GOLDEN] += other >= _INFINITY
        if not (first[i] == second[i] or (one > _INFINITY and other > _INFINITY)):
            counts[DISAGREE] += 1
            counts[UNEQUAL] += 1
        first[i] = np.uint32(0)
        second[i] = np.uint32(0)
    counts[EXCLUDED] += excluded
    return excluded, excluded_sample


@_machine
def _square(values: Any, size: int) -> Any:
    total = 0.0
    for i in range(size):
        value = np.float64(values[i])
        total += value * value
    return total


@_machine
def _measure(first: Any, second: Any, size: int, eps: float, deltas: Any, ratios: Any) -> Any:
    """Sums of t*g, t*t, g*g, d*d; fills absolute errors and relative ones."""
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
        error = abs(delta)
        length = abs(other)
        deltas[i] = error
        ratios[i] = error / (length if length != 0.0 else eps)
    return products, targets, goldens, differences


@_machine
def _ranges(deltas: Any, ratios: Any, size: int) -> Any:
    """Of float64 bit patterns of non-negative numbers: smallest but zero and largest of both arrays, how many zeros in each."""
    smallest = np.uint64(0xFFFFFFFFFFFFFFFF)
    smallest_ratio = np.uint64(0xFFFFFFFFFFFFFFFF)
    largest = np.int64(0)
    largest_ratio = np.int64(0)
    zeros = np.int64(0)
    zero_ratios = np.int64(0)
    for i in range(size):
        delta = deltas[i]
        ratio = ratios[i]
        largest = max(largest, delta)
        largest_ratio = max(largest_ratio, ratio)
        smallest = min(smallest, np.uint64(np.uint64(delta) - _ONE))  # zero becomes the largest of all
        smallest_ratio = min(smallest_ratio, np.uint64(np.uint64(ratio) - _ONE))
        zeros += np.int64(delta == 0)
        zero_ratios += np.int64(ratio == 0)
    return np.int64(smallest + _ONE), largest, zeros, np.int64(smallest_ratio + _ONE), largest_ratio, zero_ratios


@_machine
def _below(ratios: Any, size: int) -> Any:
    thousandth = np.int64(0)
    five = np.int64(0)
    for i in range(size):
        thousandth += np.int64(ratios[i] < 0.001)
        five += np.int64(ratios[i] < 0.005)
    return thousandth, five


@_machine
def _decades(patterns: Any, size: int, smallest: int, largest: int, above: Any, edges: Any, decades: Any) -> None:
    """Add the decades of the `above` patterns that are not zero."""
    if above == 0:
        return
    for edge in range(len(edges)):
        if edges[edge] <= smallest:
            continue
        if edges[edge] > largest:
            decades[edge + 1] += above
            return
        reached = np.int64(0)
        bound = edges[edge]
        for i in range(size):
            reached += np.int64(patterns[i] >= bound)
        decades[edge + 1] += above - reached
        above = reached
    decades[len(edges) + 1] += above


@_machine
def _steps(first: Any, second: Any, size: int, steps: Any) -> Any:
    """ULP distances of sign-and-magnitude patterns, as float32; returns the largest exactly."""
    largest = np.uint32(0)
    for i in range(size):
        one = np.uint32(first[i] & _MAGNITUDE)
        other = np.uint32(second[i] & _MAGNITUDE)
        apart = np.uint32(max(one, other) - min(one, other))
        step = np.uint32(one + other) if (first[i] ^ second[i]) & _SIGN != 0 else apart
        largest = max(largest, step)
        steps[i] = np.float32(step)
    return np.int64(largest)


@_machine
def _ulp_bin(pattern: Any) -> Any:
    return max(np.int64(pattern >> _SHIFT), _BASE) - _BASE


@_machine
def _count_steps(patterns: Any, size: int, tables: Any) -> None:
    """Four tables in turn, so that equal distances in a row do not wait for each other's store."""
    even = size - size % 4
    for i in range(0, even, 4):
        tables[0, _ulp_bin(patterns[i])] += 1
        tables[1, _ulp_bin(patterns[i + 1])] += 1
        tables[2, _ulp_bin(patterns[i + 2])] += 1
        tables[3, _ulp_bin(patterns[i + 3])] += 1
    for i in range(even, size):
        tables[0, _ulp_bin(patterns[i])] += 1


@_machine
def _count_sample(patterns: Any, size: int, sample: Any, tables: Any) -> None:
    for place in sample:
        if place >= size:
            return
        tables[place & 3, _ulp_bin(patterns[place])] += 1


@_machine
def _sample_size(sample: Any, size: int) -> Any:
    found = size >> 3
    return found + 1 if size & 7 and sample[found] < size else found


@_machine
def _bfloat16_keys(bits: Any, size: int, keys: Any) -> None:
    for i in range(size):
        magnitude = bits[i] & _MAGNITUDE
        rounded = (magnitude + np.uint32(0x7FFF) + ((magnitude >> _SIXTEEN) & np.uint32(1))) >> _SIXTEEN
        keys[i] = rounded | (bits[i] & _SIGN)


@_machine
def _float16_keys(bits: Any, narrow: Any, size: int, keys: Any) -> None:
    """Patterns of halves with the sign moved to bit 31; 0 where the pair was excluded (its bits are 0 then)."""
    for i in range(size):
        half = np.uint32(narrow[i])
        key = (half & np.uint32(0x7FFF)) | ((half & np.uint32(0x8000)) << _SIXTEEN)
        keys[i] = key if bits[i] != 0 else np.uint32(0)


@_machine
def compare(
    target_wide: Any,
    target_narrow: Any,
    target_form: int,
    golden_wide: Any,
    golden_narrow: Any,
    golden_form: int,
    unit: int,
    eps: float,
    detail: bool,
    sampled: bool,
    sample: Any,
    counts: Any,
    sums: Any,
    ulps: Any,
    abs_decades: Any,
    rel_decades: Any,
    edges: Any,
) -> None:
    """Add a stretch of pairs to counts (COUNTS,), sums (4,), ulps (ULP_BINS,) and the decades.

    wide, narrow: bit patterns as uint32 (float32) or uint16; the one that does not apply is empty
    sampled: the ULP histogram counts only the places `sample` of each chunk
    unit: the form whose steps are counted; FLOAT16 only where both sides are
    """
    length = max(len(target_wide), len(target_narrow))
    first = np.empty(CHUNK, np.uint32)
    second = np.empty(CHUNK, np.uint32)
    first_key = np.empty(CHUNK, np.uint32)
    second_key = np.empty(CHUNK, np.uint32)
    steps = np.empty(CHUNK, np.float32)
    deltas = np.empty(CHUNK, np.float64)
    ratios = np.empty(CHUNK, np.float64)
    tables = np.zeros((4, ULP_BINS), np.int64)
    first_value, second_value = first.view(np.float32), second.view(np.float32)
    delta_bits, ratio_bits, step_bits = deltas.view(np.int64), ratios.view(np.int64), steps.view(np.uint32)
    for start in range(0, length, CHUNK):
        size = min(CHUNK, length - start)
        end = start + size
        _fetch(target_wide, end, CHUNK)
        _fetch(target_narrow, end, CHUNK)
        _fetch(golden_wide, end, CHUNK)
        _fetch(golden_narrow, end, CHUNK)
        _decode(target_wide[start:end], target_narrow[start:end], target_form, size, first, steps)
        _decode(golden_wide[start:end], golden_narrow[start:end], golden_form, size, second, steps)
        differing, bad = _screen(first, second, size)
        excluded = 0
        looked_at = _sample_size(sample, size) if sampled else size
        counted = looked_at  # by the ULP histogram
        if bad:
            excluded, excluded_sample = _exclude(first, second, size, counts, sample)
            counted -= excluded_sample if sampled else excluded
        if not differing:
            squares = _square(first_value, size)
            sums[0] += squares
            sums[1] += squares
            sums[2] += squares
            counts[BELOW_1E3] += size
            counts[BELOW_5E3] += size
            ulps[0] += counted
            abs_decades[0] += size - excluded
            rel_decades[0] += size - excluded
            continue
        products, targets, goldens, differences = _measure(first_value, second_value, size, eps, deltas, ratios)
        sums[0] += products
        sums[1] += targets
        sums[2] += goldens
        sums[3] += differences
        smallest, largest, zeros, smallest_ratio, largest_ratio, zero_ratios = _ranges(delta_bits, ratio_bits, size)
        counts[UNEQUAL] += size - zeros
        thousandth, five = _below(ratios, size)
        counts[BELOW_1E3] += thousandth
        counts[BELOW_5E3] += five
        counts[MAX_REL] = max(counts[MAX_REL], largest_ratio)
        if largest > counts[MAX_ABS]:
            counts[MAX_ABS] = largest
            for i in range(size):
                if delta_bits[i] == largest:
                    counts[MAX_AT] = start + i
                    break
        if unit == FLOAT32:
            longest = _steps(first, second, size, steps)
        else:
            if unit == BFLOAT16:
                _bfloat16_keys(first, size, first_key)
                _bfloat16_keys(second, size, second_key)
            else:
                _float16_keys(first, target_narrow[start:end], size, first_key)
                _float16_keys(second, golden_narrow[start:end], size, second_key)
            longest = _steps(first_key, second_key, size, steps)
        counts[MAX_ULP] = max(counts[MAX_ULP], longest)
        if sampled:
            _count_sample(step_bits, size, sample, tables)
        else:
            _count_steps(step_bits, size, tables)
        ulps[0] -= looked_at - counted
        if detail:
            abs_decades[0] += zeros - excluded
            rel_decades[0] += zero_ratios - excluded
            _decades(delta_bits, size, smallest, largest, size - zeros, edges, abs_decades)
            _decades(ratio_bits, size, smallest_ratio, largest_ratio, size - zero_ratios, edges, rel_decades)
    for table in range(4):
        for place in range(ULP_BINS):
            ulps[place] += tables[table, place]
