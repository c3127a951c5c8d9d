"""The numpy kernel: any pair of dtypes, one cache-sized block at a time.

Whole-array numpy writes every intermediate to main memory and runs some thirty times slower than the same formulas on blocks
that stay in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Float64
from dumpscope.metrics.histogram import SAMPLE, STRIDE, Errors, count_decades, count_ulps
from dumpscope.metrics.partial import Partial
from dumpscope.metrics.ulps import Distances, Raw, common_unit, is_float, round_to, ulp_distance

BLOCK: Final = 8192
"""Elements per block: about fifteen float64 temporaries fit in a 1 MiB cache, and BLAS starts no threads for it."""

_SAMPLE: Final = np.add.outer(np.arange(0, BLOCK, STRIDE * SAMPLE.size), SAMPLE).reshape(-1)

SMALL_SUM: Final = 1e-280
LARGE_SUM: Final = 1e300
"""A sum of float64 squares outside these may have lost its terms to underflow or overflow."""

Bools = NDArray[np.bool_]
Part = tuple[Float64, Float64, Float64]
"""Target, golden and their difference, which is exact to the last bit even where 64-bit integers are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a pair of dtypes is measured.

    eps: replaces a golden value of zero in the relative error
    ulp: the float dtype whose steps are counted, None if a side has no such steps
    scaled: squares can leave the range of float64
    narrow: both are real floats of at most 32 bits: shares and decades look at errors rounded to float32
    """

    target: np.dtype[Any]
    golden: np.dtype[Any]
    eps: float
    complex: bool
    ulp: np.dtype[Any] | None
    scaled: bool
    narrow: bool


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _component(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


@cache
def plan_pair(target: np.dtype[Any], golden: np.dtype[Any]) -> Plan:
    """Raises ValueError for dtypes that hold no numbers."""
    target, golden = _native(target), _native(golden)
    eps_types: list[np.dtype[Any]] = []
    for dtype in (target, golden):
        small = dtype.kind == "V"  # the small floats and integers of ml_dtypes
        try:
            numeric = dtype.kind in "biufc" or (small and np.zeros(1, dtype).astype(np.float64).size == 1)
        except (TypeError, ValueError):
            numeric = False
        if not numeric or dtype.names is not None or dtype.subdtype is not None:
            raise ValueError(f"dtype {dtype} holds no numbers that could be compared")
        if dtype.kind == "b":  # a bool counts as the integer it stands for
            eps_types.append(np.dtype(np.int64))
        else:
            eps_types.append(np.dtype(np.float32) if small else _component(dtype))
    return Plan(
        target=target,
        golden=golden,
        eps=float(np.finfo(np.result_type(*eps_types, np.float32)).eps),
        complex="c" in (target.kind, golden.kind),
        ulp=common_unit(_component(target), _component(golden)),
        narrow=all(is_float(dtype) and dtype.itemsize <= 4 for dtype in (target, golden)),
        scaled=any(_component(dtype).kind == "f" and dtype.itemsize >= 8 for dtype in (target, golden)),
    )


def _halves(block: Raw) -> tuple[Float64, Float64]:
    """Numbers as the sum of two float64 arrays, each exact: the upper and lower 32 bits of a 64-bit integer, else value and 0."""
    if block.dtype.kind in "iu" and block.dtype.itemsize == 8:
        high = (block >> block.dtype.type(32)).astype(np.float64)
        high *= 4294967296.0
        return high, (block & block.dtype.type(0xFFFFFFFF)).astype(np.float64)
    return block.astype(np.float64), np.zeros(block.size)


def _part(target: Raw, golden: Raw) -> Part:
    if not any(side.dtype.kind in "iu" and side.dtype.itemsize == 8 for side in (target, golden)):
        first, second = target.astype(np.float64), golden.astype(np.float64)
        return first, second, first - second
    first, first_low = _halves(target)
    second, second_low = _halves(golden)
    delta = first - second
    delta += first_low - second_low
    return first + first_low, second + second_low, delta


def _components(target: Raw, golden: Raw) -> list[tuple[Raw, Raw]]:
    """Real and imaginary parts of both sides. The imaginary part of a real array is zero bits in numpy: not 0 in every dtype."""
    pairs = [
        (side.real, side.imag) if side.dtype.kind == "c" else (side, np.zeros(side.size)) for side in (target, golden)
    ]
    return list(zip(*pairs, strict=True))


def _parts(target: Raw, golden: Raw, plan: Plan) -> list[Part]:
    """The real part, and the imaginary one of complex pairs."""
    if plan.complex:
        return [_part(*sides) for sides in _components(target, golden)]
    return [_part(target, golden)]


def _length(components: list[Float64]) -> Float64:
    return np.abs(components[0]) if len(components) == 1 else np.hypot(*components)


def _distances(target: Raw, golden: Raw, plan: Plan) -> Distances:
    assert plan.ulp is not None
    unit = plan.ulp
    sides = _components(target, golden) if plan.complex else [(target, golden)]
    found = [ulp_distance(round_to(first, unit), round_to(second, unit), unit) for first, second in sides]
    return found[0] if len(found) == 1 else np.maximum(found[0], found[1])


def _count_nonfinite(parts: list[Part], into: Partial) -> Bools | None:
    """Count non-finite elements; return the positions that are finite on both sides, None if all are."""
    finite_target = np.logical_and.reduce([np.isfinite(first) for first, _, _ in parts])
    finite_golden = np.logical_and.reduce([np.isfinite(second) for _, second, _ in parts])
    both: Bools = finite_target & finite_golden
    size = both.size
    usable = int(np.count_nonzero(both))
    if usable == size:
        return None
    disagree: Bools = np.zeros(size, dtype=np.bool_)
    unequal: Bools = np.zeros(size, dtype=np.bool_)
    for first, second, delta in parts:
        differs = ~((delta == 0) | (first == second) | (np.isnan(first) & np.isnan(second)))
        unequal |= differs
        disagree |= differs & ~(np.isfinite(first) & np.isfinite(second))
    into.excluded += size - usable
    into.nonfinite_target += size - int(np.count_nonzero(finite_target))
    into.nonfinite_golden += size - int(np.count_nonzero(finite_golden))
    into.unequal += int(np.count_nonzero(unequal & ~both))
    differing = int(np.count_nonzero(disagree))
    into.disagree += differing
    into.below_1e3 -= differing  # measured below as 0 against 0, which counts as close
    into.below_5e3 -= differing
    return both


def _usable(both: Bools | None, size: int, sampled: bool) -> int:
    """Number of positions finite on both sides that the ULP histogram uses."""
    if not sampled:
        return size if both is None else int(np.count_nonzero(both))
    sample = _SAMPLE[: np.searchsorted(_SAMPLE, size)]
    return sample.size if both is None else int(np.count_nonzero(both[sample]))


def _float32_errors(target: Raw, golden: Raw, both: Bools | None, plan: Plan) -> tuple[Errors, Errors]:
    """Absolute and relative errors in float32 arithmetic; 0 if a side is not finite."""
    first, second = target.astype(np.float32), golden.astype(np.float32)
    if both is not None:
        first, second = np.where(both, first, np.float32(0)), np.where(both, second, np.float32(0))
    errors, lengths = np.abs(first - second), np.abs(second)
    return errors, errors / np.where(lengths == 0, np.float32(plan.eps), lengths)


def _restore_overflowed(coarse: Errors, exact: Float64) -> Errors:
    """Float32 errors, replaced by float64 errors where they exceed float32."""
    lost = np.isinf(coarse)
    return np.where(lost, exact, coarse) if coarse.dtype == np.float32 and lost.any() else coarse


def measure(target: Raw, golden: Raw, plan: Plan, start: int, into: Partial, *, detail: bool, sampled: bool) -> None:
    """Add one block (shape (n,), native byte order) that begins at flat index `start`. Floating-point errors must be ignored.

    detail: count decades; sampled: count ULP distances of a sample only
    """
    size = target.size
    parts = _parts(target, golden, plan)
    into.elements += size
    both = _count_nonfinite(parts, into)
    excluded = 0
    if both is not None:
        excluded = size - int(np.count_nonzero(both))
        parts = [
            (np.where(both, first, 0.0), np.where(both, second, 0.0), np.where(both, delta, 0.0))
            for first, second, delta in parts
        ]
    deltas = [delta for _, _, delta in parts]
    for first, second, _ in parts:
        into.products += float(np.dot(first, second))
        into.targets += float(np.dot(first, first))
        into.goldens += float(np.dot(second, second))
    lengths = _length([second for _, second, _ in parts])
    errors = _length(deltas)
    differing = int(np.count_nonzero(errors))
    into.unequal += differing
    if differing == 0:
        into.below_1e3 += size
        into.below_5e3 += size
        if plan.ulp is not None:
            into.ulps[0] += _usable(both, size, sampled)
        if detail:
            into.abs_decades[0] += size - excluded
            into.rel_decades[0] += size - excluded
        return
    into.differences += sum(float(np.dot(delta, delta)) for delta in deltas)
    relative = errors / np.where(lengths == 0.0, plan.eps, lengths)
    if plan.scaled:
        lost = np.isinf(errors) | np.isinf(lengths)
        if lost.any():
            quarters = [(first * 0.25, second * 0.25) for first, second, _ in parts]
            error = _length([first - second for first, second in quarters])
            relative[lost] = error[lost] / _length([second for _, second in quarters])[lost]
    coarse, coarse_relative = _float32_errors(target, golden, both, plan) if plan.narrow else (errors, relative)
    sizes, ratios = _restore_overflowed(coarse, errors), _restore_overflowed(coarse_relative, relative)
    at = int(sizes.argmax())
    if sizes[at] > into.max_abs:
        into.max_abs, into.max_at = float(sizes[at]), start + at
    into.max_rel = max(into.max_rel, float(ratios.max()))
    into.below_1e3 += int(np.count_nonzero(coarse_relative < coarse_relative.dtype.type(0.001)))
    into.below_5e3 += int(np.count_nonzero(coarse_relative < coarse_relative.dtype.type(0.005)))
    if plan.ulp is not None:
        distances = _distances(target, golden, plan)
        if both is not None:
            distances = np.where(both, distances, 0)
        into.max_ulp = max(into.max_ulp, int(distances.max()))
        if sampled:
            distances = distances[_SAMPLE[: np.searchsorted(_SAMPLE, size)]]
        count_ulps(distances, into.ulps)
        into.ulps[0] -= distances.size - _usable(both, size, sampled)
    if detail:
        count_decades(coarse, into.abs_decades)
        count_decades(coarse_relative, into.rel_decades)
        into.abs_decades[0] -= excluded
        into.rel_decades[0] -= excluded


def _finite_parts(target: Raw, golden: Raw, plan: Plan) -> list[tuple[Float64, Float64]]:
    parts = _parts(target, golden, plan)
    both = np.logical_and.reduce([np.isfinite(first) & np.isfinite(second) for first, second, _ in parts])
    return [(np.where(both, first, 0.0), np.where(both, second, 0.0)) for first, second, _ in parts]


def largest_components(target: Raw, golden: Raw, plan: Plan) -> tuple[float, float]:
    """Largest component of each side of one block, by magnitude, among the positions finite on both."""
    parts = _finite_parts(target, golden, plan)
    return (
        max(float(np.abs(first).max()) for first, _ in parts),
        max(float(np.abs(second).max()) for _, second in parts),
    )


def scaled_sums(
    target: Raw, golden: Raw, plan: Plan, powers: tuple[int, int, int]
) -> tuple[float, float, float, float]:
    """Sums of t*g, t*t, g*g, d*d of one block with t, g, d divided by 2**powers first, so that nothing over- or underflows."""
    sums = [0.0, 0.0, 0.0, 0.0]
    for_target, for_golden, for_delta = powers
    for first, second in _finite_parts(target, golden, plan):
        scaled_first = np.ldexp(first, -for_target)
        scaled_second = np.ldexp(second, -for_golden)
        if for_delta > 1020:  # the difference itself can overflow
            delta = np.ldexp(first, -for_delta) - np.ldexp(second, -for_delta)
        else:
            delta = np.ldexp(first - second, -for_delta)
        for place, (one, other) in enumerate(
            (
                (scaled_first, scaled_second),
                (scaled_first, scaled_first),
                (scaled_second, scaled_second),
                (delta, delta),
            )
        ):
            sums[place] += float(np.dot(one, other))
    return sums[0], sums[1], sums[2], sums[3]
