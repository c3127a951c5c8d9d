"""Many small pairs measured by one call of machine code, to the same facts as one by one."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.facts import TENSOR_METRICS, TensorFacts
from dumpscope.domain.records import Int64
from dumpscope.metrics import kernels
from dumpscope.metrics.histogram import SAMPLED_FROM, STEPS, ULP_BINS
from dumpscope.metrics.native import loader
from dumpscope.metrics.stretches import IN_MEMORY, ROOM, address, borrowed
from dumpscope.metrics.table import Sums, measure_metrics
from dumpscope.metrics.tensors import index_of

WHOLE: Final = ROOM - 1
"""Bytes of the largest file that can be read as a whole."""

_EPS: Final = kernels.plan(np.dtype(np.float32), np.dtype(np.float32)).eps  # that of every pair the kernel knows
_STEPS: Final = np.array(STEPS)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Laid:
    """How the files of one side are laid out: what they are recognised by, and where their contiguous elements are.

    start: byte of the first element; size: bytes of a file
    ends: bytes at either end that are read to recognise it, one end behind the other, or 0 for all of it
    parts: what must equal `fixed` when joined: where each part starts and ends, shape (n, 2)
    """

    start: int
    size: int
    ends: int
    parts: Int64
    fixed: bytes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sort:
    """What the kernel has to know of pairs of files laid out in one way.

    stretch: the pair described for it but for the open files, shape (1, PAIR); sides: kept, as the kernel has their addresses
    """

    shape: tuple[int, ...]
    elements: int
    stretch: Int64
    sides: tuple[Laid, Laid]


def sort_of(
    target: tuple[np.dtype[Any], Laid], golden: tuple[np.dtype[Any], Laid], shape: tuple[int, ...]
) -> Sort | None:
    """None where pairs have to be compared one by one: few elements, dtypes that the compiled kernel does not know, no ends given
    of files that are too large to be read as a whole."""
    forms = loader.forms(target[0], golden[0])
    elements = math.prod(shape)
    sides = target[1], golden[1]
    if forms is None or elements < loader.SMALLEST or any(not side.ends and side.size > WHOLE for side in sides):
        return None
    first, second, unit = forms
    stretch = (*_described(sides[0]), first, *_described(sides[1]), second, elements, 0, unit)
    sampled = elements >= SAMPLED_FROM
    return Sort(shape=shape, elements=elements, stretch=np.array([(*stretch, sampled, 0, 0)], np.int64), sides=sides)


def _described(side: Laid) -> tuple[int, ...]:
    fixed = np.frombuffer(side.fixed, np.uint8)
    return side.start, IN_MEMORY, side.size, side.ends, address(side.parts), len(side.parts), address(fixed)


def compare_many(sorts: list[Sort], files: Int64, otherwise: NDArray[np.bool_]) -> list[TensorFacts | None]:
    """Facts of pairs of files, None where they are not laid out as their sort says or do not give what they should.

    files: descriptors of open target and golden files, shape (2, n)
    otherwise: whether the files are those before, to be tried as another sort: nothing comes of it if the one before was right
    Raises RuntimeError when this process has not loaded the compiled kernel (see `prepare`).
    """
    fused = loader.loaded()
    if fused is None:
        raise RuntimeError("the compiled kernel is not loaded")
    stretches = np.concatenate([sort.stretch for sort in sorts])
    stretches[:, fused.TARGET_FILE], stretches[:, fused.GOLDEN_FILE] = files
    stretches[:, fused.OTHERWISE] = otherwise
    results = loader.empty_results(fused, len(sorts))
    ulps = np.zeros(ULP_BINS, np.int64)  # one pair's at a time
    with borrowed() as (buffer, _):
        stretches[:, fused.BUFFER] = address(buffer)
        fused.compare(stretches, _EPS, True, ulps, results)
    return _finished(fused, sorts, results)


@cache
def _row(fused: ModuleType) -> struct.Struct:
    """A row of results for `struct`, which takes them apart in half of numpy's time."""
    reals = fused.MAX_ABS, fused.MAX_REL, *range(fused.PRODUCTS, fused.WORST_GOLDEN + 1)
    return struct.Struct("".join("d" if place in reals else "q" for place in range(fused.RESULTS)))


def _finished(fused: ModuleType, sorts: list[Sort], results: Int64) -> list[TensorFacts | None]:
    """The facts of each row, None where a file was cut."""
    numbers = _numbers(fused, np.array([sort.elements for sort in sorts], np.int64), results)
    unequal, bad_target, bad_golden, disagree = fused.UNEQUAL, fused.BAD_TARGET, fused.BAD_GOLDEN, fused.DISAGREE
    cut, max_at, worst_target, worst_golden = fused.CUT, fused.MAX_AT, fused.WORST_TARGET, fused.WORST_GOLDEN
    abs_from, rel_from = fused.ABS_DECADES, fused.REL_DECADES
    facts: list[TensorFacts | None] = []
    for sort, row, number in zip(sorts, _row(fused).iter_unpack(results.data), numbers, strict=True):
        if row[cut]:
            facts.append(None)
            continue
        place = row[max_at]
        there = place >= 0
        facts.append(
            TensorFacts(
                elements=sort.elements,
                unequal=row[unequal],
                **dict(zip(TENSOR_METRICS, number, strict=True)),
                nonfinite_target=row[bad_target],
                nonfinite_golden=row[bad_golden],
                nonfinite_disagree=row[disagree],
                worst_index=index_of(place, sort.shape) if there else None,
                worst_target=row[worst_target] if there else None,
                worst_golden=row[worst_golden] if there else None,
                abs_histogram=row[abs_from:rel_from],
                rel_histogram=row[rel_from:],
            )
        )
    return facts


def _numbers(fused: ModuleType, elements: Int64, results: Int64) -> list[list[float | None]]:
    """TENSOR_METRICS of each row, taken by columns: one by one that takes longer than to measure a small pair.

    All are floats of at most 32 bits, which have steps and whose sums do not overflow.
    """
    counts, reals = results[:, : fused.ABS_DECADES].T, results[:, : fused.ABS_DECADES].view(np.float64).T
    disagree, places, median = counts[fused.DISAGREE], counts[fused.MAX_AT], counts[fused.MEDIAN]
    target, golden, difference = np.sqrt(reals[[fused.TARGETS, fused.GOLDENS, fused.DIFFERENCES]])
    worst = np.abs(reals[fused.WORST_TARGET] - reals[fused.WORST_GOLDEN])
    sums = Sums(
        elements=elements,
        excluded=counts[fused.EXCLUDED],
        disagree=disagree,
        products=reals[fused.PRODUCTS],
        target=target,
        golden=golden,
        difference=difference,
        powers=None,
        max_abs=np.where(places >= 0, worst, reals[fused.MAX_ABS]),
        max_rel=reals[fused.MAX_REL],
        below_1e3=counts[fused.BELOW_1E3] - disagree,
        below_5e3=counts[fused.BELOW_5E3] - disagree,
        max_ulp=counts[fused.MAX_ULP].astype(np.float64),
        median_ulp=np.where(median < 0, np.nan, _STEPS[median]),
    )
    numbers = measure_metrics(sums)
    rows: list[list[float | None]] = numbers.tolist()
    for row, column in np.argwhere(np.isnan(numbers)).tolist():
        rows[row][column] = None
    return rows
