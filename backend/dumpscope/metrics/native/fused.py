"""Machine code for one pass over float32, bfloat16 or float16 pairs. Importing this imports numba: `loader` decides when.

Pairs are processed in chunks: all data of a chunk stay in the cache and are measured by short loops that the compiler
vectorises. Sums are float64; errors are float32, sixteen per register, or float64 if they exceed float32. There is no check for
nan and infinity beforehand: they show in the sums of a chunk. The position of the largest error is searched only in a
chunk with a larger error than all earlier chunks.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dumpscope.metrics.histogram import DECADE_BINS, STRIDE, ULP_BINS
from dumpscope.metrics.native.bf16_pairs import square_words, sum_words, word_errors
from dumpscope.metrics.native.chunk_errors import beyond, count_decades, errors, place_of, square, sums
from dumpscope.metrics.native.float_formats import BFLOAT16, FLOAT32, MAGNITUDE, decode, round_to_bfloat16, usable
from dumpscope.metrics.native.ulp_steps import (
    SAMPLED,
    count_short_steps,
    count_steps,
    longest_step,
    sample,
    short_steps,
    step_bin,
)
from dumpscope.metrics.stretches import IN_MEMORY, READ
from dumpscope.numba_support import READS, machine, read_at, uint16_at, uint32_at

__all__ = ["READS", "compare"]

CHUNK: Final = STRIDE * len(SAMPLED)
"""Pairs per chunk: with their scratch arrays they fit the second-level cache, and the fixed cost of a chunk is negligible."""

(
    EXCLUDED, UNEQUAL, BAD_TARGET, BAD_GOLDEN, DISAGREE, BELOW_1E3, BELOW_5E3, MAX_AT, MAX_ABS, MAX_REL, MAX_ULP,
    PRODUCTS, TARGETS, GOLDENS, DIFFERENCES, WORST_TARGET, WORST_GOLDEN, CUT, ABS_DECADES,
) = range(19)  # fmt: skip
"""Positions of the results in an int64 array. MAX_ABS and MAX_REL are float64 bit patterns (those of non-negative numbers
are ordered like the numbers); the four sums and the two values at MAX_AT are float64 numbers; CUT is 1 if a file was shorter than
expected; two tables come last."""
REL_DECADES: Final = ABS_DECADES + DECADE_BINS
RESULTS: Final = REL_DECADES + DECADE_BINS

(
    TARGET, TARGET_FILE, TARGET_FORM, GOLDEN, GOLDEN_FILE, GOLDEN_FORM, LENGTH, BEGIN, UNIT, SAMPLED_ONLY, BUFFER, PAIR,
) = range(12)  # fmt: skip
"""Positions of the description of a stretch in an int64 array, and the array's length."""

_INFINITY: Final = np.uint32(0x7F800000)
_INFINITE: Final = np.int32(0x7F800000)


@machine
def _differ(first: Any, second: Any, size: int) -> Any:
    differing = np.uint32(0)
    for i in range(size):
        differing = np.uint32(differing | np.uint32(first[i] ^ second[i]))
    return differing != 0


@machine
def _exclude(first: Any, second: Any, size: int, results: Any) -> Any:
    """Count non-finite positions and set both sides to 0 there; return their number, and their number in the sample."""
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
def _upper(pattern: Any) -> Any:
    return np.uint16(np.uint32(pattern) >> np.uint32(16))


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
    ulps: Any,
    results: Any,
    work: Any,
    tables: Any,
) -> None:
    """Add `length` pairs to results, shape (RESULTS,), and their steps to ulps or to tables, shape (4, ULP_BINS), which are
    added up later; work: 7 * CHUNK numbers."""
    target_wide = uint32_at(target, length if target_form == FLOAT32 else 0)
    target_narrow = uint16_at(target, 0 if target_form == FLOAT32 else length)
    golden_wide = uint32_at(golden, length if golden_form == FLOAT32 else 0)
    golden_narrow = uint16_at(golden, 0 if golden_form == FLOAT32 else length)
    in_words = target_form == BFLOAT16 and golden_form == BFLOAT16 and target % 4 == 0 and golden % 4 == 0
    target_words = uint32_at(target, length // 2 if in_words else 0)
    golden_words = uint32_at(golden, length // 2 if in_words else 0)
    totals = results.view(np.float64)
    abs_decades = results[ABS_DECADES:REL_DECADES]
    rel_decades = results[REL_DECADES:RESULTS]
    target_scratch = work[:CHUNK]
    golden_scratch = work[CHUNK : 2 * CHUNK]
    bins = work[2 * CHUNK : 3 * CHUNK]
    samples = work[3 * CHUNK : 3 * CHUNK + len(SAMPLED)]
    others = work[3 * CHUNK + len(SAMPLED) : 3 * CHUNK + 2 * len(SAMPLED)]
    short_samples = samples.view(np.uint16)
    halves = work[4 * CHUNK : 7 * CHUNK].view(np.uint16)
    deltas = halves[:CHUNK]
    ratios = halves[CHUNK : 2 * CHUNK]
    target_keys = halves[2 * CHUNK : 3 * CHUNK]
    golden_keys = halves[3 * CHUNK : 4 * CHUNK]
    steps = halves[4 * CHUNK : 5 * CHUNK]
    differing = True  # from the previous chunk: test for equality only if it is likely
    for start in range(0, length, CHUNK):
        size = min(CHUNK, length - start)
        end = start + size
        by_words = in_words and size % 2 == 0
        first_words = target_words[start // 2 : end // 2]
        second_words = golden_words[start // 2 : end // 2]
        first = target_wide[start:end] if target_form == FLOAT32 else target_scratch
        second = golden_wide[start:end] if golden_form == FLOAT32 else golden_scratch
        if not by_words:
            if target_form != FLOAT32:
                decode(target_wide, target_narrow[start:end], target_form, size, first)
            if golden_form != FLOAT32:
                decode(golden_wide, golden_narrow[start:end], golden_form, size, second)
        if not differing:
            differing = _differ(first_words, second_words, size // 2) if by_words else _differ(first, second, size)
        if differing:
            if by_words:
                products, targets, goldens, differences = sum_words(first_words, second_words, size // 2)
            else:
                products, targets, goldens, differences = sums(first.view(np.float32), second.view(np.float32), size)
        else:
            if by_words:
                products = targets = goldens = square_words(first_words, size // 2)
            else:
                products = targets = goldens = square(first.view(np.float32), size)
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
            by_words = False
            excluded, excluded_sample = _exclude(first, second, size, results)
            counted -= excluded_sample if sampled else excluded
            products, targets, goldens, differences = sums(first.view(np.float32), second.view(np.float32), size)
        totals[PRODUCTS] += products
        totals[TARGETS] += targets
        totals[GOLDENS] += goldens
        totals[DIFFERENCES] += differences
        differing = differences != 0.0
        if not differing:
            results[BELOW_1E3] += size
            results[BELOW_5E3] += size
            ulps[0] += counted
            abs_decades[0] += size - excluded
            rel_decades[0] += size - excluded
            continue
        if by_words:
            largest, largest_ratio, unequal, below_1e3, below_5e3 = word_errors(
                first_words, second_words, size // 2, np.float32(eps), deltas.view(np.uint32), ratios.view(np.uint32)
            )
        else:
            largest, largest_ratio, unequal, below_1e3, below_5e3 = errors(
                first.view(np.float32), second.view(np.float32), size, np.float32(eps), deltas, ratios
            )
        results[UNEQUAL] += unequal
        results[BELOW_1E3] += below_1e3
        results[BELOW_5E3] += below_5e3
        delta = np.float64(np.int32(largest).view(np.float32)).view(np.int64)
        ratio = np.float64(np.int32(largest_ratio).view(np.float32)).view(np.int64)
        lost = max(largest, largest_ratio) >= _INFINITE
        if by_words and (lost or delta > results[MAX_ABS]):  # the position is searched among single numbers
            decode(target_wide, target_narrow[start:end], target_form, size, first)
            decode(golden_wide, golden_narrow[start:end], golden_form, size, second)
        place = -1
        if lost:
            delta, place, ratio = beyond(first.view(np.float32), second.view(np.float32), size, eps)
        if delta > results[MAX_ABS]:
            if place < 0:
                place = place_of(first.view(np.float32), second.view(np.float32), size, largest)
            results[MAX_ABS] = delta
            results[MAX_AT] = begin + start + place
            totals[WORST_TARGET] = np.float64(first.view(np.float32)[place])
            totals[WORST_GOLDEN] = np.float64(second.view(np.float32)[place])
        results[MAX_REL] = max(results[MAX_REL], ratio)
        if unit == FLOAT32:
            longest = longest_step(first, second, size)
            if sampled:
                sample(first, looked_at, samples)
                sample(second, looked_at, others)
        else:
            first_keys = target_narrow[start:end] if target_form != FLOAT32 and excluded == 0 else target_keys
            second_keys = golden_narrow[start:end] if golden_form != FLOAT32 and excluded == 0 else golden_keys
            if target_form == FLOAT32:
                round_to_bfloat16(first, size, target_keys)
            elif excluded != 0:
                usable(first, target_narrow[start:end], size, target_keys)
            if golden_form == FLOAT32:
                round_to_bfloat16(second, size, golden_keys)
            elif excluded != 0:
                usable(second, golden_narrow[start:end], size, golden_keys)
            longest = short_steps(first_keys, second_keys, size, steps)
            if sampled:
                sample(steps, looked_at, short_samples)
        results[MAX_ULP] = max(results[MAX_ULP], longest)
        if detail:
            equal = size - unequal - excluded
            abs_decades[0] += equal
            rel_decades[0] += equal
            count_decades(deltas, size, _upper(largest), unequal, abs_decades)
            count_decades(ratios, size, _upper(largest_ratio), unequal, rel_decades)
        ulps[0] -= looked_at - counted
        if unit == FLOAT32 and sampled:  # only now, because wide loads wait for narrow stores
            count_steps(samples, others, looked_at, bins, tables)
        elif unit == FLOAT32:
            count_steps(first, second, size, bins, tables)
        elif sampled:
            count_short_steps(short_samples, looked_at, bins, tables)
        else:
            count_short_steps(steps, size, bins, tables)


@machine
def _whole(stretch: Any, eps: float, detail: bool, ulps: Any, results: Any, work: Any, tables: Any) -> None:
    """Measure a stretch; data in a file are read piece by piece."""
    buffer = stretch[BUFFER]
    target_file, first_target = stretch[TARGET_FILE], stretch[TARGET]
    golden_file, first_golden = stretch[GOLDEN_FILE], stretch[GOLDEN]
    target_size = 4 if stretch[TARGET_FORM] == FLOAT32 else 2
    golden_size = 4 if stretch[GOLDEN_FORM] == FLOAT32 else 2
    step = stretch[LENGTH]
    if target_file != IN_MEMORY or golden_file != IN_MEMORY:
        step = READ // max(target_size, golden_size)
    done = 0
    while done < stretch[LENGTH]:
        length = min(step, stretch[LENGTH] - done)
        target = first_target + done * target_size
        golden = first_golden + done * golden_size
        if target_file != IN_MEMORY:
            if not read_at(target_file, buffer, length * target_size, target):
                results[CUT] = 1
                return
            target = buffer
        if golden_file != IN_MEMORY:
            if not read_at(golden_file, buffer + READ, length * golden_size, golden):
                results[CUT] = 1
                return
            golden = buffer + READ
        _stretch(
            target, stretch[TARGET_FORM], golden, stretch[GOLDEN_FORM], length, stretch[BEGIN] + done, stretch[UNIT],
            stretch[SAMPLED_ONLY] != 0, eps, detail, ulps, results, work, tables,
        )  # fmt: skip
        done += length


@machine
def compare(stretch: Any, eps: float, detail: bool, ulps: Any, results: Any) -> None:
    """Add a stretch to results, shape (RESULTS,), and its steps to ulps, shape (ULP_BINS,).

    stretch: int64, shape (PAIR,):
        TARGET, GOLDEN: addresses of aligned contiguous elements, or their first byte in a file
        TARGET_FILE, GOLDEN_FILE: descriptors of the files, or IN_MEMORY
        LENGTH: how many, fewer than 2**32; BEGIN: flat index of the first in the whole pair
        UNIT: the format whose steps are counted; FLOAT16 only if both sides are
        SAMPLED_ONLY: 1 if the ULP histogram counts only the positions SAMPLE of each chunk
        BUFFER: address of 2 * READ bytes if a side is in a file
    """
    work = np.empty(7 * CHUNK + 16, np.uint32)
    aligned = np.intp((-(work.ctypes.data // 4)) % 16)
    work = work[aligned : aligned + 7 * CHUNK]
    tables = np.zeros((4, ULP_BINS), np.uint32)
    _whole(stretch, eps, detail, ulps, results, work, tables)
    top = np.intp(step_bin(np.uint32(results[MAX_ULP])))
    for table in range(4):
        for step in range(top + 1):
            ulps[step] += tables[table, step]
