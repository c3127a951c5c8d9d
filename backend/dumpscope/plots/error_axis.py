"""An axis for errors with a lane for infinite errors at the top and, if logarithmic, a lane for zero errors at the bottom."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpscope.domain.records import Float64

_SPAN = 24  # most decades shown: a single denormal must not flatten everything else


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """low, high: exponents of the ends of the ordinary range; zeros are drawn one decade below, infinities above.

    largest: finite error; the end of a linear axis
    top: what the lane of infinities is called
    """

    low: int
    high: int
    zeros: int
    infinite: int
    largest: float
    log: bool = True
    top: str = "inf"

    @property
    def zero_place(self) -> float:
        return float(10.0 ** (self.low - 1))

    @property
    def infinite_place(self) -> float:
        return float(10.0 ** (self.high + 1)) if self.log else self.largest * 1.1

    def place(self, values: Float64) -> Float64:
        """Drawn position of each value; nan (not compared) stays nan."""
        if not self.log:
            return np.where(np.isposinf(values), self.infinite_place, np.minimum(values, self.largest))
        inside = np.clip(values, 10.0**self.low, 10.0**self.high)
        inside = np.where(values == 0, self.zero_place, inside)
        return np.where(np.isposinf(values), self.infinite_place, inside)

    def fraction(self, values: Float64) -> Float64:
        """Position on the axis as a share of its length, 0 at the bottom; nan stays nan."""
        return self.height(self.place(values))

    def height(self, places: Float64) -> Float64:
        """The same for values that are already drawn positions."""
        bottom, top = self.range
        return ((np.log10(places) if self.log else places) - bottom) / (top - bottom)

    @property
    def range(self) -> tuple[float, float]:
        """Ends of the axis, as powers of ten if it is logarithmic."""
        if not self.log:
            return (-0.03 * self.largest, self.largest * (1.15 if self.infinite else 1.05))
        return (
            self.low - (1.4 if self.zeros else 0.3),
            self.high + (1.4 if self.infinite else 0.3),
        )

    def ticks(self) -> list[tuple[float, str]]:
        """Drawn positions and their labels, at most a dozen."""
        if not self.log:
            step = 10.0 ** math.floor(math.log10(self.largest))
            step *= next(times for times in (0.1, 0.2, 0.5, 1, 2) if self.largest / (step * times) <= 6)
            even = [(step * count, f"{step * count:.4g}") for count in range(int(self.largest / step + 1e-9) + 1)]
            return [*even, (self.infinite_place, self.top)] if self.infinite else even
        step = max(1, math.ceil((self.high - self.low) / 9))
        found = [(float(10.0**power), f"1e{power}") for power in range(self.low, self.high + 1, step)]
        if self.zeros:
            found.insert(0, (self.zero_place, "0"))
        if self.infinite:
            found.append((self.infinite_place, self.top))
        return found

    def axis(self) -> dict[str, Any]:
        """Plotly settings of this axis."""
        ticks = self.ticks()
        return {
            "type": "log" if self.log else "linear",
            "range": list(self.range),
            "tickmode": "array",
            "tickvals": [place for place, _ in ticks],
            "ticktext": [label for _, label in ticks],
        }


def lanes(*series: Float64, log: bool = True, top: str = "inf") -> Lanes:
    """Lanes that hold every value of `series` (errors, never negative; nan means not compared)."""
    values = np.concatenate([np.asarray(one, dtype=np.float64).reshape(-1) for one in series] or [np.zeros(0)])
    ordinary = values[np.isfinite(values) & (values > 0)]
    largest = 1.0
    if ordinary.size:
        largest = min(max(float(ordinary.max()), 1e-290), 1e290)
        low = math.floor(math.log10(float(ordinary.min())))
        high = math.ceil(math.log10(float(ordinary.max())))
    else:
        low, high = -1, 0
    high = max(high, low + 1)
    low = max(low, high - _SPAN)
    return Lanes(
        low=max(low, -300),
        high=min(high, 306),
        zeros=int(np.count_nonzero(values == 0)),
        infinite=int(np.count_nonzero(np.isposinf(values))),
        largest=largest,
        log=log,
        top=top,
    )
