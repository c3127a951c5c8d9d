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
from dumpscope.metrics.stretches import IN_MEMORY
from dumpscope.metrics.tensors import finish, index_of, plain_norms

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


def compare_many(sorts: list[Sort], targets: Int64, goldens: Int64) -> list[TensorFacts]:
    """Facts of pairs whose aligned contiguous elements lie at these addresses, shape (n,); the caller keeps them alive.

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
    stretches[:, fused.TARGET], stretches[:, fused.GOLDEN] = targets, goldens
    results = compiled.empty_results(fused, len(sorts))
    ulps = np.zeros(ULP_BINS, np.int64)  # one pair's at a time
    fused.compare(stretches, _EPS, True, ulps, results)
    wholes = compiled.partials(fused, results, [sort.elements for sort in sorts], ulps)
    worsts = results[:, fused.WORST_TARGET : fused.WORST_GOLDEN + 1].view(np.float64).tolist()
    facts = []
    for sort, whole, (target, golden), median in zip(
        sorts, wholes, worsts, results[:, fused.MEDIAN].tolist(), strict=True
    ):
        where, worst = (index_of(whole.max_at, sort.shape), (target, golden)) if whole.max_at >= 0 else (None, None)
        middle = STEPS[median] if median >= 0 else None
        facts.append(finish(whole, plain_norms(whole), sort.plan, where, worst, middle, detail=True))
    return facts
