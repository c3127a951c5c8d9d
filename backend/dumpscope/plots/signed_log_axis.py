"""An axis for values of both signs: logarithmic away from zero, with zero in the middle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Float64

_SPAN: Final = 12
"""Most decades on each side of zero: a single denormal must not flatten everything else."""


_LARGEST: Final = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """Range of an axis, collected piece by piece. smallest: of the numbers that are not zero, by magnitude"""

    low: float = math.inf
    high: float = -math.inf
    smallest: float = math.inf

    def and_of(self, values: Float64) -> Magnitudes:
        """The range extended by finite `values`."""
        if not values.size:
            return self
        size = np.abs(values)
        nonzero = size[size > 0]
        return Magnitudes(
            low=min(self.low, float(values.min())),
            high=max(self.high, float(values.max())),
            smallest=min(self.smallest, float(nonzero.min()) if nonzero.size else math.inf),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Positions of values on a drawn axis. log: by powers of ten, else linear

    unit: power of ten that is one step from zero on a logarithmic axis; smaller values are in between
    start, stop: ends as positions
    """

    log: bool
    unit: int
    start: float
    stop: float

    def place(self, values: Float64) -> Float64:
        """Drawn position of each finite value."""
        if not self.log:
            return values
        size = np.abs(values)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            far = np.log10(size) - self.unit + 1
            near = size / 10.0**self.unit
        return np.copysign(np.where(near >= 1, far, near), values)

    def value(self, places: Float64) -> Float64:
        """Inverse of `place`."""
        if not self.log:
            return places
        size = np.abs(places)
        with np.errstate(over="ignore", under="ignore"):
            value = np.where(size >= 1, 10.0 ** (np.maximum(size, 1) - 1 + self.unit), size * 10.0**self.unit)
        return np.copysign(np.minimum(value, _LARGEST), places)

    def edges(self, bins: int) -> Float64:
        """Positions of the edges of equal bins, shape (bins + 1,)."""
        share = np.arange(bins + 1) / bins
        return self.start * (1 - share) + self.stop * share

    def ticks(self) -> dict[str, Any]:
        """Plotly settings: ticks at powers of ten, or none for a linear axis."""
        if not self.log:
            return {"range": [self.start, self.stop]}
        low, high = math.ceil(self.start - 1e-9), math.floor(self.stop + 1e-9)
        stride = max(1, math.ceil((high - low) / 8))
        places = [place for place in range(low, high + 1) if place % stride == 0]
        words = [self._word(place) for place in places]
        return {
            "range": [self.start, self.stop], "tickmode": "array", "tickvals": places, "ticktext": words,
        }  # fmt: skip

    def _word(self, place: int) -> str:
        if place == 0:
            return "0"
        return f"{'-' if place < 0 else ''}1e{abs(place) - 1 + self.unit}"


def around(value: float) -> tuple[float, float]:
    """Ends of an axis for a single value."""
    half = max(0.5, abs(value) * 0.05)
    return max(value - half, -_LARGEST), min(value + half, _LARGEST)


def axis_of(seen: Magnitudes, *, log: bool) -> Axis:
    """An axis that holds all collected values; from 0 to 1 without values."""
    low, high = (seen.low, seen.high) if seen.low <= seen.high else (0.0, 1.0)
    if not log:
        if low == high:
            low, high = around(low)
        return Axis(log=False, unit=0, start=low, stop=high)
    largest = max(abs(low), abs(high))
    top = math.floor(math.log10(largest)) if largest > 0 else 0
    bottom = math.floor(math.log10(seen.smallest)) if math.isfinite(seen.smallest) else 0
    unit = max(bottom, top - _SPAN, -300)
    flat = Axis(log=True, unit=unit, start=0, stop=1)
    start, stop = flat.place(np.asarray([low, high])).tolist()
    start, stop = math.floor(start), math.ceil(stop)
    if start == stop:
        start, stop = start - (high < 0 or low == high == 0), stop + (low >= 0)
    return Axis(log=True, unit=unit, start=float(start), stop=float(stop))
