"""Many small pairs measured by one call of machine code, to the same facts as one by one."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import TensorFacts
from dumpscope.domain.records import Int64
from dumpscope.metrics import compiled, kernels
from dumpscope.metrics.histogram import SAMPLED_FROM, STEPS, ULP_BINS
from dumpscope.metrics.kernels import Plan
from dumpscope.metrics.stretches import IN_MEMORY, address, borrowed
from dumpscope.metrics.tensors import finish, index_of, plain_norms

Places = tuple[Int64, Int64]

_EPS: Final = kernels.plan(np.dtype(np.float32), np.dtype(np.float32)).eps  # that of every pair the kernel knows


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
    wholes = compiled.partials(fused, results, [sort.elements for sort in sorts], ulps)
    worsts = results[:, fused.WORST_TARGET : fused.WORST_GOLDEN + 1].view(np.float64).tolist()
    facts: list[TensorFacts | None] = []
    for sort, whole, (target, golden), (median, cut) in zip(
        sorts, wholes, worsts, results[:, fused.MEDIAN : fused.CUT + 1].tolist(), strict=True
    ):
        if cut:
            facts.append(None)
            continue
        where, worst = (index_of(whole.max_at, sort.shape), (target, golden)) if whole.max_at >= 0 else (None, None)
        middle = STEPS[median] if median >= 0 else None
        facts.append(finish(whole, plain_norms(whole), sort.plan, where, worst, middle, detail=True))
    return facts
