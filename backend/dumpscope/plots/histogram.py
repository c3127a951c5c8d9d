"""Histograms of a tensor pair: both sides over common bins, and their difference over its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.phrases import Phrase, phrase
from dumpscope.domain.records import Float64, Int64
from dumpscope.errors import UsageError
from dumpscope.plots.template import DIFFERENCE, GOLDEN, TARGET, Figure, axis, layout, number

BLOCK = 32_768
BINS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One histogram: `edges` (bins + 1), `counts` (bins), and the elements that have no place in it."""

    edges: Float64
    counts: Int64
    nan: int
    positive_infinite: int
    negative_infinite: int

    @property
    def nonfinite(self) -> int:
        return self.nan + self.positive_infinite + self.negative_infinite


@dataclass(frozen=True, slots=True, kw_only=True)
class PairHistogram:
    """difference: target - golden where both are finite; skipped: positions where at least one is not
    log: counts on a logarithmic axis
    """

    elements: int
    target: Counted
    golden: Counted
    difference: Counted
    skipped: int
    equal: int
    log: bool
    magnitudes: bool


def pair_histogram_data(
    target: NDArray[Any], golden: NDArray[Any], *, bins: int = BINS, log: bool = False
) -> PairHistogram:
    """Histograms of two arrays of equal size and any numeric dtype, read twice in cache-sized blocks.

    Complex numbers count by magnitude. Nothing of the size of the arrays is allocated when they are contiguous (memory
    maps included). Raises UsageError where the sizes differ.
    """
    if target.size != golden.size:
        raise UsageError(f"shapes {list(target.shape)} and {list(golden.shape)} differ: there is no common histogram")
    ends = _Ends()
    change = _Ends()
    for one, other in _blocks(target, golden):
        both = np.isfinite(one) & np.isfinite(other)
        ends.see(one[np.isfinite(one)])
        ends.see(other[np.isfinite(other)])
        with np.errstate(over="ignore", invalid="ignore"):
            change.see((one - other)[both])
    edges = ends.edges(bins)
    change_edges = change.symmetric(bins)
    sides = [_Counter(edges), _Counter(edges), _Counter(change_edges)]
    skipped = equal = 0
    for one, other in _blocks(target, golden):
        sides[0].add(one)
        sides[1].add(other)
        both = np.isfinite(one) & np.isfinite(other)
        skipped += int(both.size - np.count_nonzero(both))
        with np.errstate(over="ignore", invalid="ignore"):
            gap = one[both] - other[both]
        equal += int(np.count_nonzero(gap == 0))
        sides[2].add(gap)
    return PairHistogram(
        elements=int(target.size),
        target=sides[0].done(),
        golden=sides[1].done(),
        difference=sides[2].done(),
        skipped=skipped,
        equal=equal,
        log=log,
        magnitudes=np.iscomplexobj(target) or np.iscomplexobj(golden),
    )


def _blocks(target: NDArray[Any], golden: NDArray[Any]) -> Iterator[tuple[Float64, Float64]]:
    one, other = target.reshape(-1), golden.reshape(-1)
    for start in range(0, one.size, BLOCK):
        yield _wide(one[start : start + BLOCK]), _wide(other[start : start + BLOCK])


def _wide(block: NDArray[Any]) -> Float64:
    if np.iscomplexobj(block):
        block = np.abs(block)
    wide: Float64 = block.astype(np.float64)
    return wide


class _Ends:
    """Running smallest and largest finite value."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    def see(self, values: Float64) -> None:
        finite = values[np.isfinite(values)]
        if finite.size:
            self.low = min(self.low, float(finite.min()))
            self.high = max(self.high, float(finite.max()))

    def edges(self, bins: int) -> Float64:
        low, high = (self.low, self.high) if self.low <= self.high else (0.0, 1.0)
        if low == high:
            half = max(0.5, abs(low) * 0.05)
            low, high = low - half, high + half
        return _spaced(low, high, bins)

    def symmetric(self, bins: int) -> Float64:
        """Edges around zero with an odd number of bins, so that equality sits in the middle of one."""
        reach = max(abs(self.low), abs(self.high)) if self.low <= self.high else 0.0
        if reach == 0.0:
            reach = 1.0
        return _spaced(-reach, reach, bins + 1 - bins % 2)


def _spaced(low: float, high: float, bins: int) -> Float64:
    share = np.arange(bins + 1) / bins
    with np.errstate(under="ignore"):
        return low * (1 - share) + high * share  # never forms high - low, which may overflow


class _Counter:
    def __init__(self, edges: Float64) -> None:
        self.edges = edges
        self.bins = len(edges) - 1
        self.width = edges[-1] / self.bins - edges[0] / self.bins
        self.counts = np.zeros(self.bins, dtype=np.int64)
        self.nan = self.positive = self.negative = 0

    def add(self, values: Float64) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            self.nan += int(np.count_nonzero(np.isnan(values)))
            self.positive += int(np.count_nonzero(np.isposinf(values)))
            self.negative += int(np.count_nonzero(np.isneginf(values)))
            values = values[finite]
        if self.width <= 0:  # edges closer than the smallest number: one bin holds everything
            self.counts[self.bins // 2] += values.size
            return
        places = (values / self.width - self.edges[0] / self.width).astype(np.int64)
        np.clip(places, 0, self.bins - 1, out=places)
        self.counts += np.bincount(places, minlength=self.bins)

    def done(self) -> Counted:
        return Counted(
            edges=self.edges,
            counts=self.counts,
            nan=self.nan,
            positive_infinite=self.positive,
            negative_infinite=self.negative,
        )


def pair_histogram_figure(data: PairHistogram) -> Figure:
    """Plotly figure: both sides at the left, their difference at the right."""
    kind = "log" if data.log else "linear"
    what = "magnitude" if data.magnitudes else "value"
    return {
        "data": [
            _steps("target", data.target, TARGET, "x", "y"),
            _steps("golden", data.golden, GOLDEN, "x", "y"),
            _steps("target - golden", data.difference, DIFFERENCE, "x2", "y2"),
        ],
        "layout": layout(
            xaxis=axis(what, domain=[0, 0.56], anchor="y"),
            yaxis=axis("elements", type=kind),
            xaxis2=axis("target - golden", domain=[0.66, 1], anchor="y2", nticks=5),
            yaxis2=axis("", type=kind, anchor="x2"),
        ),
    }


def _steps(name: str, counted: Counted, colour: str, across: str, up: str) -> dict[str, object]:
    """A histogram as a stepped outline: filled bars of two sides would hide each other."""
    edges = [float(f"{edge:.6g}") for edge in counted.edges.tolist()]
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": edges,
        "y": [*counted.counts.tolist(), int(counted.counts[-1])],
        "line": {"shape": "hv", "color": colour, "width": 1.5}, "xaxis": across, "yaxis": up,
        "hovertemplate": "from %{x}: %{y}<extra>" + name + "</extra>",
    }  # fmt: skip


def pair_histogram_said(data: PairHistogram) -> list[Phrase]:
    """The figure in words."""
    if not data.elements:
        return [phrase("values.empty")]
    low, high = float(data.target.edges[0]), float(data.target.edges[-1])
    parts = [
        phrase("values.range", elements=data.elements, low=number(low), high=number(high)),
        phrase("values.differ", equal=data.equal, most=number(float(data.difference.edges[-1])))
        if data.equal + data.skipped < data.elements
        else phrase("values.equal", equal=data.equal),
    ]
    for name, side in (("target", data.target), ("golden", data.golden)):
        if side.nonfinite:
            infinite = {"inf": side.positive_infinite, "minus": side.negative_infinite}
            parts.append(phrase("values.nonfinite", side=[phrase(f"side.{name}")], nan=side.nan, **infinite))
    return parts
