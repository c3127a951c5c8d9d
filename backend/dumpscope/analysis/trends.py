"""How a number of one call changes over the steps of a run: buckets of steps, and its growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

LEAST: Final = 3
"""Steps that a growth rate needs."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Steps `first`..`last`, both included."""

    first: int
    last: int


def make_buckets(steps: Sequence[int], most: int) -> list[Bucket]:
    """One bucket a step, or at most `most` of equal width where there are more steps. steps: rising"""
    if len(steps) <= most:
        return [Bucket(step, step) for step in steps]
    width = -(-(steps[-1] - steps[0] + 1) // most)
    return [Bucket(first, min(first + width - 1, steps[-1])) for first in range(steps[0], steps[-1] + 1, width)]


def fit_growth(steps: Sequence[float], values: Sequence[float]) -> float | None:
    """Factor from one step to the next, fitted to the logarithms; None with fewer than LEAST finite positive values."""
    x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    known = np.isfinite(y) & (y > 0)
    if known.sum() < LEAST:
        return None
    x, logs = x[known] - x[known].mean(), np.log(y[known])
    return float(np.exp((x * logs).sum() / (x * x).sum()))


def fit_growth_of_buckets(edges: Sequence[Bucket], values: Mapping[int, float | None]) -> float | None:
    """Growth of the sizes of numbers by bucket, each placed in the middle of its steps."""
    known = sorted((bucket, value) for bucket, value in values.items() if value is not None)
    middles = [(edges[bucket].first + edges[bucket].last) / 2 for bucket, _ in known]
    return fit_growth(middles, [abs(value) for _, value in known])
