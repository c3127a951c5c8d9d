"""The contribution of one stretch of a tensor pair; stretches are measured separately (blocks, threads) and merged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Int64
from dumpscope.metrics.histogram import DECADE_BINS, ULP_BINS

SUM_TOLERANCE: Final = 1e-12
"""Relative difference of two sums of the same numbers that were added in another order."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a field of several stretches is merged, and when two kernels agree about it."""

    merge: Callable[[list[Any]], Any]
    agrees: Callable[[Any, Any], bool]


def _exact_sum(terms: Iterable[float]) -> float:
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):  # float64 data near its limit: measured again, scaled
        return math.inf


def _same(first: Any, second: Any) -> bool:
    return bool(first == second)


def _close(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=SUM_TOLERANCE)


_COUNT: Final = _Kind(sum, _same)
_SUM: Final = _Kind(_exact_sum, _close)
_LARGEST: Final = _Kind(max, _same)
_TABLE: Final = _Kind(lambda tables: np.sum(tables, axis=0), lambda first, second: bool(np.array_equal(first, second)))


def _count() -> Any:
    return field(default=0, metadata={"kind": _COUNT})


def _sum() -> Any:
    return field(default=0.0, metadata={"kind": _SUM})


def _largest(none: float) -> Any:
    return field(default=none, metadata={"kind": _LARGEST})


def _place_of(name: str) -> Any:
    """Flat index of the first largest value of another field."""
    return field(default=-1, metadata={"kind": _LARGEST, "of": name})


def _decades() -> Int64:
    return np.zeros(DECADE_BINS, dtype=np.int64)


def _ulps() -> Int64:
    return np.zeros(ULP_BINS, dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class Partial:
    """Sums run over the positions finite on both sides (t target, g golden, d = t - g).

    Every field says how stretches are merged, so none can be lost: importing this module fails for a field that does not.

    excluded: positions not finite on at least one side; disagree: those of them whose non-finite values differ
    products, targets, goldens, differences: sums of t*g, t*t, g*g, d*d
    max_at: flat index of the first largest |d|, -1 where every d is zero
    below_1e3, below_5e3: relative errors below 0.001 and 0.005
    """

    elements: int = _count()
    excluded: int = _count()
    unequal: int = _count()
    nonfinite_target: int = _count()
    nonfinite_golden: int = _count()
    disagree: int = _count()
    products: float = _sum()
    targets: float = _sum()
    goldens: float = _sum()
    differences: float = _sum()
    max_abs: float = _largest(0.0)
    max_at: int = _place_of("max_abs")
    max_rel: float = _largest(0.0)
    below_1e3: int = _count()
    below_5e3: int = _count()
    max_ulp: int = _largest(0)
    ulps: Int64 = field(default_factory=_ulps, metadata={"kind": _TABLE})
    abs_decades: Int64 = field(default_factory=_decades, metadata={"kind": _TABLE})
    rel_decades: Int64 = field(default_factory=_decades, metadata={"kind": _TABLE})

    def matches(self, other: Partial) -> bool:
        """Whether all counts and extremes are the same and the sums agree except for rounding."""
        return all(kind.agrees(getattr(self, name), getattr(other, name)) for name, kind in _KINDS.items())


_KINDS: Final[dict[str, _Kind]] = {one.name: one.metadata["kind"] for one in fields(Partial)}
_PLACES: Final[dict[str, str]] = {one.name: one.metadata["of"] for one in fields(Partial) if "of" in one.metadata}


def merge(partials: Iterable[Partial]) -> Partial:
    """One Partial of the whole, from stretches in index order; sums are rounded once."""
    parts = list(partials)
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Partial()
    whole = Partial(**{name: kind.merge([getattr(part, name) for part in parts]) for name, kind in _KINDS.items()})
    for name, value in _PLACES.items():
        first = next(part for part in parts if getattr(part, value) == getattr(whole, value))
        setattr(whole, name, getattr(first, name))
    return whole
