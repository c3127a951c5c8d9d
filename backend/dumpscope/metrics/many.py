"""Many small pairs measured by one call of machine code, to the same facts as one by one."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import TENSOR_METRICS, TensorFacts
from dumpscope.domain.records import Int64
from dumpscope.metrics import compiled, kernels
from dumpscope.metrics.histogram import SAMPLED_FROM, STEPS, ULP_BINS
from dumpscope.metrics.kernels import Plan
from dumpscope.metrics.stretches import IN_MEMORY, address, borrowed
from dumpscope.metrics.tensors import index_of

Places = tuple[Int64, Int64]

_EPS: Final = kernels.plan(np.dtype(np.float32), np.dtype(np.float32)).eps  # that of every pair the kernel knows
_STEPS: Final = np.array(STEPS)
_OF_STEPS: Final = TENSOR_METRICS.index("max_ulp")
_OF_SEVERAL: Final = [TENSOR_METRICS.index(name) for name in ("cosine", "euclidean", "ratio_1e3", "ratio_5e3")]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sort:
    """What the kernel has to know of pairs of one shape and dtypes. stretch: the pair described for it but for the addresses"""

    shape: tuple[int, ...]
    elements: int
    plan: Plan
    stretch: tuple[int, ...]


def sort_of(target: np.dtype[Any], golden: np.dtype[Any], shape: tuple[int, ...]) -> Sort | None:
    """None where pairs have to be compared one by one: few elements, dtypes that the compiled kernel does not know."""
    forms = compiled.forms(target, golden)
    elements = math.prod(shape)
    if forms is None or elements < compiled.SMALLEST:
        return None
    first, second, unit = forms
    stretch = (0, first, IN_MEMORY, 0, second, IN_MEMORY, elements, 0, unit, int(elements >= SAMPLED_FROM), 0)
    return Sort(shape=shape, elements=elements, plan=kernels.plan(target, golden), stretch=stretch)


def compare_many(sorts: list[Sort], targets: Places, goldens: Places) -> list[TensorFacts | None]:
    """Facts of pairs whose contiguous elements lie at these places, None where a file did not give them; the caller keeps memory
    alive and files open.

    targets, goldens: descriptors of the files, or IN_MEMORY, and the byte there or the address of aligned elements; shapes (n,)
    Raises RuntimeError when this process has not loaded the compiled kernel (see `prepare`).
    """
    fused = compiled.loaded()
    if fused is None:
        raise RuntimeError("the compiled kernel is not loaded")
    stretches = np.empty((len(sorts), fused.PAIR), np.int64)
    start = 0
    for sort, run in itertools.groupby(sorts):
        stop = start + len(list(run))
        stretches[start:stop] = sort.stretch
        start = stop
    stretches[:, fused.TARGET_FILE], stretches[:, fused.TARGET] = targets
    stretches[:, fused.GOLDEN_FILE], stretches[:, fused.GOLDEN] = goldens
    results = compiled.empty_results(fused, len(sorts))
    ulps = np.zeros(ULP_BINS, np.int64)  # one pair's at a time
    with borrowed() as (buffer, _):
        stretches[:, fused.BUFFER] = address(buffer)
        fused.compare(stretches, _EPS, True, ulps, results)
    return _finished(fused, sorts, results)


def _finished(fused: ModuleType, sorts: list[Sort], results: Int64) -> list[TensorFacts | None]:
    """What `tensors.finish` makes of each row, None where a file was cut."""
    rows = results[:, : fused.ABS_DECADES].tolist()
    worsts = results[:, fused.WORST_TARGET : fused.WORST_GOLDEN + 1].view(np.float64).tolist()
    numbers = _numbers(fused, np.array([sort.elements for sort in sorts], np.int64), results)
    abs_decades = results[:, fused.ABS_DECADES : fused.REL_DECADES].tolist()
    rel_decades = results[:, fused.REL_DECADES :].tolist()
    facts: list[TensorFacts | None] = []
    for sort, row, number, worst, by_abs, by_rel in zip(
        sorts, rows, numbers, worsts, abs_decades, rel_decades, strict=True
    ):
        if row[fused.CUT]:
            facts.append(None)
            continue
        place = row[fused.MAX_AT]
        cosine, euclidean, max_abs, max_rel, ratio_1e3, ratio_5e3, rel_l2, max_ulp, median_ulp = number
        facts.append(
            TensorFacts(
                elements=sort.elements,
                unequal=row[fused.UNEQUAL],
                cosine=cosine,
                euclidean=euclidean,
                max_abs=max_abs,
                max_rel=max_rel,
                ratio_1e3=ratio_1e3,
                ratio_5e3=ratio_5e3,
                rel_l2=rel_l2,
                max_ulp=max_ulp,
                median_ulp=median_ulp,
                nonfinite_target=row[fused.BAD_TARGET],
                nonfinite_golden=row[fused.BAD_GOLDEN],
                nonfinite_disagree=row[fused.DISAGREE],
                worst_index=index_of(place, sort.shape) if place >= 0 else None,
                worst_target=worst[0] if place >= 0 else None,
                worst_golden=worst[1] if place >= 0 else None,
                abs_histogram=tuple(by_abs),
                rel_histogram=tuple(by_rel),
            )
        )
    return facts


@np.errstate(all="ignore")
def _numbers(fused: ModuleType, elements: Int64, results: Int64) -> list[list[float | None]]:
    """TENSOR_METRICS of each row, taken by columns: one by one that takes longer than to measure a small pair.

    All are floats of at most 32 bits, which have steps and whose sums do not overflow.
    """
    counts, reals = results[:, : fused.ABS_DECADES].T, results[:, : fused.ABS_DECADES].view(np.float64).T
    disagree, places, median = counts[fused.DISAGREE], counts[fused.MAX_AT], counts[fused.MEDIAN]
    compared = elements - disagree
    target, golden, delta = np.sqrt(reals[[fused.TARGETS, fused.GOLDENS, fused.DIFFERENCES]])
    same = delta == 0.0
    numbers = np.stack(
        (
            np.where(same, 1.0, (reals[fused.PRODUCTS] / target / golden).clip(-1.0, 1.0)),
            delta,
            np.where(places >= 0, np.abs(reals[fused.WORST_TARGET] - reals[fused.WORST_GOLDEN]), reals[fused.MAX_ABS]),
            reals[fused.MAX_REL],
            (counts[fused.BELOW_1E3] - disagree) / compared,
            (counts[fused.BELOW_5E3] - disagree) / compared,
            np.where(same, 0.0, delta / golden),
            counts[fused.MAX_ULP],
            _STEPS[median],
        ),
        axis=1,
    )
    absent = np.zeros(numbers.shape, np.bool_)
    absent[compared == 0, :_OF_STEPS] = True
    absent[np.ix_(elements == 1, _OF_SEVERAL)] = True
    absent[:, 0] |= ~same & ((target == 0.0) | (golden == 0.0))
    absent[elements == counts[fused.EXCLUDED], _OF_STEPS] = True
    absent[:, _OF_STEPS + 1] = median < 0
    rows: list[list[float | None]] = numbers.tolist()
    for row, column in np.argwhere(absent).tolist():
        rows[row][column] = None
    return rows
