"""What one stretch of a tensor pair contributes; stretches are measured apart (blocks, threads) and merged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dumpscope.domain.records import Int64
from dumpscope.metrics.histogram import DECADE_BINS, ULP_BINS


def _decades() -> Int64:
    return np.zeros(DECADE_BINS, dtype=np.int64)


def _ulps() -> Int64:
    return np.zeros(ULP_BINS, dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class Partial:
    """Sums run over the positions finite on both sides (t target, g golden, d = t - g).

    excluded: positions not finite on at least one side; disagree: those of them whose non-finite values differ
    products, targets, goldens, differences: sums of t*g, t*t, g*g, d*d
    max_at: flat index of the first largest |d|, -1 where every d is zero
    below_1e3, below_5e3: relative errors below 0.001 and 0.005
    """

    elements: int = 0
    excluded: int = 0
    unequal: int = 0
    nonfinite_target: int = 0
    nonfinite_golden: int = 0
    disagree: int = 0
    products: float = 0.0
    targets: float = 0.0
    goldens: float = 0.0
    differences: float = 0.0
    max_abs: float = 0.0
    max_at: int = -1
    max_rel: float = 0.0
    below_1e3: int = 0
    below_5e3: int = 0
    max_ulp: int = 0
    ulps: Int64 = field(default_factory=_ulps)
    abs_decades: Int64 = field(default_factory=_decades)
    rel_decades: Int64 = field(default_factory=_decades)

    def matches(self, other: Partial) -> bool:
        """Whether all counts and extremes are the same and the sums agree but for rounding."""
        exact = all(getattr(self, name) == getattr(other, name) for name in (*_COUNTS, *_EXTREMES))
        counted = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _TABLES)
        return (
            exact
            and counted
            and all(math.isclose(getattr(self, name), getattr(other, name), rel_tol=1e-12) for name in _SUMS)
        )


_EXTREMES = ("max_abs", "max_at", "max_rel", "max_ulp")
_TABLES = ("ulps", "abs_decades", "rel_decades")
_COUNTS = (
    "elements", "excluded", "unequal", "nonfinite_target", "nonfinite_golden", "disagree", "below_1e3", "below_5e3",
)  # fmt: skip
_SUMS = ("products", "targets", "goldens", "differences")


def _sum(terms: Iterable[float]) -> float:
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):  # float64 data near its limit: measured again, scaled
        return math.inf


def merge(partials: Iterable[Partial]) -> Partial:
    """One Partial of the whole, from stretches in index order; sums are rounded once."""
    parts = list(partials)
    if len(parts) == 1:
        return parts[0]
    whole = Partial()
    for name in _COUNTS:
        setattr(whole, name, sum(getattr(part, name) for part in parts))
    for name in _SUMS:
        setattr(whole, name, _sum(getattr(part, name) for part in parts))
    for part in parts:
        if part.max_abs > whole.max_abs:
            whole.max_abs, whole.max_at = part.max_abs, part.max_at
        whole.max_rel = max(whole.max_rel, part.max_rel)
        whole.max_ulp = max(whole.max_ulp, part.max_ulp)
        whole.ulps += part.ulps
        whole.abs_decades += part.abs_decades
        whole.rel_decades += part.rel_decades
    return whole
