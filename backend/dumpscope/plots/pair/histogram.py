"""Histograms of a tensor pair: both sides over common bins, their difference over its own, quantiles against quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.pair.pieces import pieces
from dumpscope.plots.pair.quantiles import Quantiles, Sample, quantiles
from dumpscope.plots.signed_log_axis import around
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import (
    DIFFERENCE,
    GOLDEN,
    GREY,
    MARK,
    TARGET,
    Figure,
    axis,
    layout,
    number,
    rounded,
)
from dumpscope.texts import Phrase, phrase

BINS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One histogram: `edges` (bins + 1), `counts` (bins), and the elements outside it.

    low, high: smallest and largest counted number, nan if there is none
    """

    edges: Float64
    counts: Int64
    low: float
    high: float
    nan: int
    positive_infinite: int
    negative_infinite: int

    @property
    def nonfinite(self) -> int:
        return self.nan + self.positive_infinite + self.negative_infinite


@dataclass(frozen=True, slots=True, kw_only=True)
class PairHistogram:
    """difference: target - golden where both are finite, its magnitude for complex numbers
    skipped: positions where at least one is not finite; equal: positions finite and equal
    log: counts on a logarithmic axis
    """

    elements: int
    target: Counted
    golden: Counted
    difference: Counted
    quantiles: Quantiles
    skipped: int
    equal: int
    log: bool
    magnitudes: bool


def pair_histogram_data(
    target: NDArray[Any], golden: NDArray[Any], *, bins: int = BINS, log: bool = False
) -> PairHistogram:
    """Histograms of two arrays of equal size and any numeric dtype, read twice in small pieces.

    Complex numbers count by magnitude. No memory of the size of the arrays is allocated, for any strides.
    Raises UsageError if the sizes differ.
    """
    magnitudes = np.iscomplexobj(target) or np.iscomplexobj(golden)
    ends = Ends(), Ends()
    change = Ends()
    samples = Sample(target.size), Sample(target.size)
    for piece in pieces(target, golden):
        for side, sample, values in zip(ends, samples, piece.values(), strict=True):
            side.see(values)
            sample.see(piece.start, values)
        change.see(piece.change())
    both = Ends(*ends)
    edges = both.edges(bins)
    change_edges = Ends(change, Ends.at(0.0)).edges(bins) if magnitudes else change.symmetric(bins)
    sides = [Counter(edges), Counter(edges), Counter(change_edges)]
    skipped = equal = 0
    for piece in pieces(target, golden):
        one, other = piece.values()
        sides[0].add(one)
        sides[1].add(other)
        finite = np.isfinite(one) & np.isfinite(other)
        skipped += int(finite.size - np.count_nonzero(finite))
        gap = piece.change()[finite]
        equal += int(np.count_nonzero(gap == 0))
        sides[2].add(gap)
    return PairHistogram(
        elements=int(target.size),
        target=sides[0].done(ends[0]),
        golden=sides[1].done(ends[1]),
        difference=sides[2].done(change),
        quantiles=quantiles(*samples, ((ends[0].low, ends[0].high), (ends[1].low, ends[1].high))),
        skipped=skipped,
        equal=equal,
        log=log,
        magnitudes=magnitudes,
    )


class Ends:
    """Running smallest and largest finite value."""

    def __init__(self, *parts: Ends) -> None:
        self.low: float = min((part.low for part in parts), default=np.inf)
        self.high: float = max((part.high for part in parts), default=-np.inf)

    @classmethod
    def at(cls, value: float) -> Ends:
        made = cls()
        made.low = made.high = value
        return made

    def see(self, values: Float64) -> None:
        finite = values[np.isfinite(values)]
        if finite.size:
            self.low = min(self.low, float(finite.min()))
            self.high = max(self.high, float(finite.max()))

    def edges(self, bins: int) -> Float64:
        low, high = (self.low, self.high) if self.low <= self.high else (0.0, 1.0)
        if low == high:
            low, high = around(low)
        return spaced(low, high, bins)

    def symmetric(self, bins: int) -> Float64:
        """Edges around zero with an odd number of bins, so that zero is in the middle of a bin."""
        reach = max(abs(self.low), abs(self.high)) if self.low <= self.high else 0.0
        if reach == 0.0:
            reach = 1.0
        return spaced(-reach, reach, bins + 1 - bins % 2)


def spaced(low: float, high: float, bins: int) -> Float64:
    """Edges of `bins` equal bins, shape (bins + 1,)."""
    share = np.arange(bins + 1) / bins
    with np.errstate(under="ignore"):
        return low * (1 - share) + high * share  # never forms high - low, which may overflow


class Counter:
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

    def done(self, ends: Ends) -> Counted:
        found = ends.low <= ends.high
        return Counted(
            edges=self.edges,
            counts=self.counts,
            low=ends.low if found else np.nan,
            high=ends.high if found else np.nan,
            nan=self.nan,
            positive_infinite=self.positive,
            negative_infinite=self.negative,
        )


def pair_histogram_figure(data: PairHistogram, *, ecdf: bool = False) -> Figure:
    """Plotly figure: both sides at the left, their difference in the middle, quantiles against quantiles at the right.

    ecdf: of both sides the share of elements up to each value, from the quantiles, instead of counts
    """
    kind = "log" if data.log else "linear"
    what = "magnitude" if data.magnitudes else "value"
    change = "|target - golden|" if data.magnitudes else "target - golden"
    found = data.quantiles
    sides = (
        [_shares("target", found.target, found, TARGET), _shares("golden", found.golden, found, GOLDEN)]
        if ecdf
        else [
            _steps("target", data.target, TARGET, "x", "y") | {"fill": "tozeroy", "fillcolor": f"{TARGET}30"},
            _steps("golden", data.golden, GOLDEN, "x", "y") | {"fill": "tozeroy", "fillcolor": f"{GOLDEN}30"},
        ]
    )
    traces = [
        *sides,
        _steps(change, data.difference, DIFFERENCE, "x2", "y2"),
    ]
    if found.levels.size:
        low, high = float(min(found.target[0], found.golden[0])), float(max(found.target[-1], found.golden[-1]))
        traces += [
            {
                "type": "scatter", "mode": "lines", "name": "equal", "x": [low, high], "y": [low, high],
                "line": {"color": GREY, "dash": "dot", "width": 1}, "xaxis": "x3", "yaxis": "y3", "hoverinfo": "skip",
                "showlegend": False,
            },
            {
                "type": "scatter", "mode": "lines+markers", "name": "quantiles", "x": rounded(found.golden),
                "y": rounded(found.target), "customdata": [f"{level:.4g}" for level in found.levels.tolist()],
                "line": {"color": MARK, "width": 1}, "marker": {"size": 3, "color": MARK}, "xaxis": "x3", "yaxis": "y3",
                "hovertemplate": "quantile %{customdata}: target %{y}, golden %{x}<extra></extra>", "showlegend": False,
            },
        ]  # fmt: skip
    tall = {
        "xaxis": {"domain": [0, 1]}, "yaxis": {"domain": [0.58, 1]},
        "xaxis2": {"domain": [0, 0.44]}, "yaxis2": {"domain": [0, 0.42]},
        "xaxis3": {"domain": [0.58, 1]}, "yaxis3": {"domain": [0, 0.42]},
    }  # fmt: skip
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis(what, domain=[0, 0.36], anchor="y", nticks=4),
            yaxis=axis("share up to the value" if ecdf else "elements", type=kind),
            xaxis2=axis(change, domain=[0.46, 0.68], anchor="y2", nticks=3),
            yaxis2=axis("", type=kind, anchor="x2", nticks=4),
            xaxis3=axis("quantiles: golden", domain=[0.79, 1], anchor="y3", nticks=3),
            yaxis3=axis("target", anchor="x3", nticks=4),
            meta={"tall": tall},
        ),
    }


def _shares(name: str, values: Float64, found: Quantiles, colour: str) -> dict[str, object]:
    """The share of elements up to each value, at the values of the quantiles."""
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": rounded(values), "y": rounded(found.levels),
        "line": {"shape": "hv", "color": colour, "width": 1.5}, "xaxis": "x", "yaxis": "y",
        "hovertemplate": "up to %{x}: %{y}<extra>" + name + "</extra>",
    }  # fmt: skip


def _steps(name: str, counted: Counted, colour: str, across: str, up: str) -> dict[str, object]:
    """A histogram as a stepped outline: filled bars of two sides would hide each other, a clear fill below a line does not."""
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": rounded(counted.edges),
        "y": [*counted.counts.tolist(), int(counted.counts[-1])],
        "line": {"shape": "hv", "color": colour, "width": 1.5}, "xaxis": across, "yaxis": up,
        "hovertemplate": "from %{x}: %{y}<extra>" + name + "</extra>",
    }  # fmt: skip


def pair_histogram_phrases(data: PairHistogram) -> list[Phrase]:
    """The figure in words."""
    if not data.elements:
        return [phrase("values.empty")]
    low, high = _least(data.target.low, data.golden.low), _most(data.target.high, data.golden.high)
    parts = [
        phrase("values.none", elements=data.elements)
        if np.isnan(low)
        else phrase("values.range", elements=data.elements, low=number(low), high=number(high)),
        phrase(
            "values.differ", equal=data.equal, most=number(_most(abs(data.difference.low), abs(data.difference.high)))
        )
        if data.equal + data.skipped < data.elements
        else phrase("values.equal", equal=data.equal),
    ]
    for name, side in (("target", data.target), ("golden", data.golden)):
        if side.nonfinite:
            infinite = {"inf": side.positive_infinite, "minus": side.negative_infinite}
            parts.append(phrase("values.nonfinite", side=[phrase(f"side.{name}")], nan=side.nan, **infinite))
    return [*parts, *_quantiles_phrases(data.quantiles)]


def _quantiles_phrases(found: Quantiles) -> list[Phrase]:
    if not found.levels.size:
        return []
    gap = np.abs(found.target / 2 - found.golden / 2)
    worst = len(gap) - 1 - int(gap[::-1].argmax())
    if gap[worst] == 0:
        parts = [phrase("quantiles.equal")]
    else:
        sides = {"target": number(float(found.target[worst])), "golden": number(float(found.golden[worst]))}
        parts = [phrase("quantiles.worst", level=f"{found.levels[worst]:.4g}", **sides)]
    if found.sampled is not None:
        parts.append(phrase("quantiles.sampled", sampled=found.sampled))
    return parts


def _least(one: float, other: float) -> float:
    return float(np.fmin(one, other))


def _most(one: float, other: float) -> float:
    return float(np.fmax(one, other))


def pair_histogram_table(data: PairHistogram) -> Table:
    """Bins of the three histograms, the elements outside them, and the quantiles."""
    sides = {"target": data.target, "golden": data.golden, "difference": data.difference}
    rows: list[tuple[str, float | None, float | None, float]] = []
    for name, side in sides.items():
        bins = zip(side.edges.tolist(), side.edges[1:].tolist(), side.counts.tolist(), strict=False)
        rows += [(f"{name} histogram", low, high, count) for low, high, count in bins]
        apart = (("nan", side.nan), ("inf", side.positive_infinite), ("-inf", side.negative_infinite))
        rows += [(f"{name} {word}", None, None, count) for word, count in apart]
    for name, quantile in (("target", data.quantiles.target), ("golden", data.quantiles.golden)):
        levels = zip(data.quantiles.levels.tolist(), quantile.tolist(), strict=True)
        rows += [(f"{name} quantile", level, None, value) for level, value in levels]
    return table(("series", "from or level", "to", "elements or value"), rows)
