"""Quantiles of both sides of a tensor pair, against each other: where two distributions differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.records import Float64

SAMPLED: Final = 1 << 20
"""Elements per side from which quantiles are taken; larger tensors use an even sample."""

LEVELS: Final = np.concatenate(
    [[0.0, 0.0001, 0.001, 0.005], np.arange(1, 100) / 100, [0.995, 0.999, 0.9999, 1.0]]
).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """levels, target, golden: one entry per quantile, none if a side holds no finite number
    sampled: elements used per side, None if all were
    """

    levels: Float64
    target: Float64
    golden: Float64
    sampled: int | None


class Sample:
    """Finite numbers of one side: all of a small tensor, an even sample of a large one. The positions depend on the size only,
    so both sides of a pair use the same positions."""

    def __init__(self, size: int) -> None:
        self._every = -(-size // SAMPLED) if size else 1
        self._kept: list[Float64] = []
        self.seen = 0

    def see(self, start: int, values: Float64) -> None:
        """Add values from flat index `start` on."""
        if self._every > 1:
            # a fixed stride could hit the same column of every row
            places = np.arange(0, values.size, self._every)
            places += np.random.default_rng(start).integers(0, self._every, places.size)
            values = values[places[places < values.size]]
        self.seen += values.size
        self._kept.append(values[np.isfinite(values)])

    @property
    def whole(self) -> bool:
        return self._every == 1

    def sorted(self) -> Float64:
        return np.sort(np.concatenate(self._kept)) if self._kept else np.zeros(0)


def quantiles(target: Sample, golden: Sample, ends: tuple[tuple[float, float], tuple[float, float]]) -> Quantiles:
    """Every quantile is a value of the tensor. ends: smallest and largest finite number of each whole side"""
    sides = [sample.sorted() for sample in (target, golden)]
    if not all(side.size for side in sides):
        empty = np.zeros(0)
        return Quantiles(levels=empty, target=empty, golden=empty, sampled=None)
    found = []
    for side, (low, high) in zip(sides, ends, strict=True):
        chosen = side[np.rint(LEVELS * (side.size - 1)).astype(np.int64)]
        chosen[0], chosen[-1] = low, high
        found.append(chosen)
    sampled = None if target.whole else target.seen
    return Quantiles(levels=LEVELS, target=found[0], golden=found[1], sampled=sampled)
