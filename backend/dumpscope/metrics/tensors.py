"""Compares two tensors of equal shape. Formulas, units and edge cases: docs/metrics.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dumpscope.domain.facts import TENSOR_METRICS, TensorFacts
from dumpscope.metrics import numpy_kernel
from dumpscope.metrics.histogram import SAMPLED_FROM, median_ulp
from dumpscope.metrics.native import loader
from dumpscope.metrics.numpy_kernel import BLOCK, LARGE_SUM, SMALL_SUM, Plan
from dumpscope.metrics.partial import Partial, merge
from dumpscope.metrics.stretches import LONGEST, STRETCH, Pair, Parts
from dumpscope.metrics.table import Sums, measure_metrics
from dumpscope.metrics.ulps import Raw, is_float


def compare_tensors(target: Raw, golden: Raw, *, threads: int = 1, detail: bool = True) -> TensorFacts:
    """Measure two arrays of one shape: any numeric dtypes, strides and byte orders; no element of either is changed.

    threads: threads that share the work of a large contiguous pair
    detail: also fill the two histograms
    Raises ValueError when the shapes differ (nothing is ever broadcast) or a dtype holds no numbers.
    """
    if target.shape != golden.shape:
        raise ValueError(f"shapes differ: {target.shape} and {golden.shape}")
    plan = numpy_kernel.plan_pair(target.dtype, golden.dtype)
    if target.flags.f_contiguous and golden.flags.f_contiguous and not target.flags.c_contiguous:
        facts = compare_tensors(target.T, golden.T, threads=threads, detail=detail)
        return replace(facts, worst_index=facts.worst_index[::-1]) if facts.worst_index else facts
    whole = _measure(target, golden, plan, threads, detail, target.size >= SAMPLED_FROM)
    where = index_of(whole.max_at, target.shape) if whole.max_at >= 0 else None
    worst = None if where is None else (_scalar(target[where]), _scalar(golden[where]))
    return _facts(whole, _norms(whole, target, golden, plan), plan, where, worst, detail=detail)


Blocks = Iterable[tuple[Raw, Raw]]
"""Consecutive blocks of two tensors in C order, both of one shape."""


def compare_blocks(
    blocks: Callable[[], Blocks],
    dtypes: tuple[np.dtype[Any], np.dtype[Any]],
    shape: tuple[int, ...],
    *,
    threads: int = 1,
    detail: bool = True,
) -> TensorFacts:
    """Measure two tensors that are never whole in memory. A block may be used again as soon as the next one is asked for.

    blocks: gives all of them, and may be called a second time (numbers of float64 near its limits)
    shape: of both tensors
    """
    plan = numpy_kernel.plan_pair(*dtypes)
    sampled = math.prod(shape) >= SAMPLED_FROM
    whole = Partial()
    worst: tuple[Scalar, Scalar] | None = None
    start = 0
    for target, golden in blocks():
        part = _measure(target, golden, plan, threads, detail, sampled)
        if part.max_at >= 0 and (worst is None or part.max_abs > whole.max_abs):
            inside = index_of(part.max_at, target.shape)
            worst = _scalar(target[inside]), _scalar(golden[inside])
        part.max_at += start if part.max_at >= 0 else 0
        whole = merge([whole, part]) if start else part
        start += target.size
    sums = (whole.targets, whole.goldens, whole.differences)
    if plan.scaled and whole.max_abs > 0 and not all(SMALL_SUM <= value <= LARGE_SUM for value in sums):
        norms = _scaled_norms(whole.max_abs, blocks, plan)
    else:
        norms = _plain_norms(whole)
    where = index_of(whole.max_at, shape) if whole.max_at >= 0 else None
    return _facts(whole, norms, plan, where, worst, detail=detail)


def _measure(target: Raw, golden: Raw, plan: Plan, threads: int, detail: bool, sampled: bool) -> Partial:
    if not (target.flags.c_contiguous and golden.flags.c_contiguous):
        return _scattered(target, golden, plan, detail=detail, sampled=sampled)
    if target.size == 0:
        return Partial()
    first, second = target.reshape(-1), golden.reshape(-1)
    fused = loader.kernel_for(first, second)
    pair = Pair(first, second)

    length = STRETCH if fused is None or threads > 1 else LONGEST

    def stretch(start: int) -> Partial:
        stop = min(start + length, pair.size)
        if fused is not None:
            return fused(pair, start, stop, plan.eps, detail=detail, sampled=sampled)
        return _by_numpy(pair.parts(start, stop), plan, detail=detail, sampled=sampled)

    starts = range(0, pair.size, length)
    if threads <= 1 or len(starts) == 1:
        return merge(stretch(start) for start in starts)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (only large tensors need one)

    with ThreadPoolExecutor(min(threads, len(starts))) as pool:
        return merge(pool.map(stretch, starts))


@np.errstate(all="ignore")
def _scattered(target: Raw, golden: Raw, plan: Plan, *, detail: bool, sampled: bool) -> Partial:
    """Measure pairs that are not contiguous."""
    whole = Partial()
    start = 0
    for first, second in _blocks(target, golden, plan):
        numpy_kernel.measure(first, second, plan, start, whole, detail=detail, sampled=sampled)
        start += first.size
    return whole


@np.errstate(all="ignore")
def _by_numpy(parts: Parts, plan: Plan, *, detail: bool, sampled: bool) -> Partial:
    whole = Partial()
    for start, first, second in parts:
        for begin in range(0, first.size, BLOCK):
            end = min(begin + BLOCK, first.size)
            numpy_kernel.measure(
                first[begin:end].astype(plan.target, copy=False),
                second[begin:end].astype(plan.golden, copy=False),
                plan,
                start + begin,
                whole,
                detail=detail,
                sampled=sampled,
            )
    return whole


def _blocks(target: Raw, golden: Raw, plan: Plan) -> Iterator[tuple[Raw, Raw]]:
    """Contiguous blocks of both arrays in C order, for any strides."""
    if target.flags.c_contiguous and golden.flags.c_contiguous:
        target, golden = target.reshape(-1), golden.reshape(-1)
        for begin in range(0, target.size, BLOCK):
            end = begin + BLOCK
            yield (
                target[begin:end].astype(plan.target, copy=False),
                golden[begin:end].astype(plan.golden, copy=False),
            )
        return
    first, second = target.flat, golden.flat
    for begin in range(0, target.size, BLOCK):
        end = min(begin + BLOCK, target.size)
        yield (
            np.asarray(first[begin:end]).astype(plan.target, copy=False),
            np.asarray(second[begin:end]).astype(plan.golden, copy=False),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """Sum of t*g and the norms of t, g and d, each divided by its own power of two.

    powers: exponents for t, g, d, None if nothing was divided; products is divided by those of t and g
    """

    products: float
    target: float
    golden: float
    difference: float
    powers: tuple[int, int, int] | None = None


def _norms(whole: Partial, target: Raw, golden: Raw, plan: Plan) -> Norms:
    sums = (whole.targets, whole.goldens, whole.differences)
    if plan.scaled and whole.max_abs > 0 and not all(SMALL_SUM <= value <= LARGE_SUM for value in sums):
        return _scaled_norms(whole.max_abs, lambda: [(target, golden)], plan)
    return _plain_norms(whole)


def _plain_norms(whole: Partial) -> Norms:
    return Norms(
        products=whole.products,
        target=math.sqrt(whole.targets),
        golden=math.sqrt(whole.goldens),
        difference=math.sqrt(whole.differences),
    )


def _all(blocks: Callable[[], Blocks], plan: Plan) -> Iterator[tuple[Raw, Raw]]:
    for target, golden in blocks():
        yield from _blocks(target, golden, plan)


@np.errstate(all="ignore")
def _scaled_norms(max_abs: float, blocks: Callable[[], Blocks], plan: Plan) -> Norms:
    """Norms of float64 data whose squares may exceed float64: two more passes over the data, scaled by powers of two."""
    tops = [numpy_kernel.largest_components(first, second, plan) for first, second in _all(blocks, plan)]
    top_target, top_golden = max(top for top, _ in tops), max(top for _, top in tops)
    powers = (
        math.frexp(top_target)[1],
        math.frexp(top_golden)[1],
        math.frexp(max_abs)[1] if max_abs < math.inf else math.frexp(max(top_target, top_golden))[1] + 1,
    )
    rows = [numpy_kernel.scaled_sums(first, second, plan, powers) for first, second in _all(blocks, plan)]
    products, targets, goldens, deltas = (math.fsum(column) for column in zip(*rows, strict=True))
    return Norms(
        products=products,
        target=math.sqrt(targets),
        golden=math.sqrt(goldens),
        difference=math.sqrt(deltas),
        powers=powers,
    )


Scalar = float | int | str


def _facts(
    whole: Partial,
    norms: Norms,
    plan: Plan,
    where: tuple[int, ...] | None,
    worst: tuple[Scalar, Scalar] | None,
    *,
    detail: bool,
) -> TensorFacts:
    """The facts that follow from sums and counts.

    where, worst: index of the largest absolute error and both values there, None if there is no error
    """
    max_abs = whole.max_abs
    if plan.narrow and worst is not None:  # found in float32
        max_abs = abs(float(worst[0]) - float(worst[1]))
    middle = median_ulp(whole.ulps) if plan.ulp is not None else None
    sums = Sums(
        elements=np.array([whole.elements]),
        excluded=np.array([whole.excluded]),
        disagree=np.array([whole.disagree]),
        products=np.array([norms.products]),
        target=np.array([norms.target]),
        golden=np.array([norms.golden]),
        difference=np.array([norms.difference]),
        powers=None if norms.powers is None else np.array([norms.powers]).T,
        max_abs=np.array([max_abs]),
        max_rel=np.array([whole.max_rel]),
        below_1e3=np.array([whole.below_1e3]),
        below_5e3=np.array([whole.below_5e3]),
        max_ulp=np.array([float(whole.max_ulp) if plan.ulp is not None else math.nan]),
        median_ulp=np.array([math.nan if middle is None else middle]),
    )
    numbers = [None if number != number else number for number in measure_metrics(sums)[0].tolist()]  # noqa: PLR0124
    return TensorFacts(
        elements=whole.elements,
        unequal=whole.unequal,
        **dict(zip(TENSOR_METRICS, numbers, strict=True)),
        nonfinite_target=whole.nonfinite_target,
        nonfinite_golden=whole.nonfinite_golden,
        nonfinite_disagree=whole.disagree,
        worst_index=where,
        worst_target=None if worst is None else worst[0],
        worst_golden=None if worst is None else worst[1],
        abs_histogram=tuple(whole.abs_decades.tolist()) if detail else (),
        rel_histogram=tuple(whole.rel_decades.tolist()) if detail else (),
    )


def index_of(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Index of the element at flat position `place` in C order."""
    index = []
    for size in reversed(shape):
        place, rest = divmod(place, size)
        index.append(rest)
    return tuple(reversed(index))


def _scalar(value: Any) -> Scalar:
    """One element as a plain number (integers exactly); a complex one as text."""
    dtype = np.asarray(value).dtype
    if dtype.kind == "c":
        return str(complex(value))
    return int(value) if dtype.kind in "biu" or not is_float(dtype) else float(value)
