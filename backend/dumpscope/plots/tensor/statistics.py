"""What the recorded statistics of one tensor tell of its distribution, where the tensor itself was not dumped."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dumpscope.plots.table import Table, table
from dumpscope.plots.template import MARK, TARGET, Figure, axis, layout, number
from dumpscope.texts import Phrase, phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """low, high: minimum and maximum; mean: None if it was not stored or is not finite; deviation: the standard deviation
    that norm, mean and number of elements give, else None"""

    elements: int
    low: float
    high: float
    mean: float | None
    deviation: float | None

    @property
    def finite(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


def spread_of(
    elements: int, *, high: float | None, low: float | None, mean: float | None, norm: float | None
) -> Spread | None:
    """None where no minimum and maximum was stored: there is nothing to draw."""
    if high is None or low is None:
        return None
    middle = mean if mean is not None and math.isfinite(mean) else None
    deviation = None
    if middle is not None and norm is not None and math.isfinite(norm) and elements > 0:
        root = norm / math.sqrt(elements)
        deviation = math.sqrt(max(0.0, root * root - middle * middle))
    return Spread(elements=elements, low=low, high=high, mean=middle, deviation=deviation)


def spread_figure(data: Spread) -> Figure:
    """Plotly figure: a line from minimum to maximum, a bar one standard deviation to both sides of the mean."""
    traces: list[dict[str, object]] = [
        {
            "type": "scatter", "mode": "lines+markers+text", "name": "minimum and maximum", "x": [data.low, data.high],
            "y": [0, 0], "text": [number(data.low), number(data.high)], "textposition": "top center",
            "line": {"color": TARGET, "width": 2}, "marker": {"color": TARGET, "size": 9, "symbol": "line-ns-open"},
            "hovertemplate": "%{x}<extra></extra>",
        }
    ]  # fmt: skip
    if data.mean is not None and data.deviation is not None:
        ends = [max(data.low, data.mean - data.deviation), min(data.high, data.mean + data.deviation)]
        traces.append({
            "type": "scatter", "mode": "lines", "name": "mean ± standard deviation", "x": ends, "y": [0, 0],
            "line": {"color": TARGET, "width": 16}, "opacity": 0.45, "hovertemplate": "%{x}<extra></extra>",
        })  # fmt: skip
    if data.mean is not None:
        traces.append({
            "type": "scatter", "mode": "markers+text", "name": "mean", "x": [data.mean], "y": [0],
            "text": [number(data.mean)], "textposition": "bottom center",
            "marker": {"color": MARK, "size": 11, "symbol": "diamond"}, "hovertemplate": "%{x}<extra></extra>",
        })  # fmt: skip
    hidden = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False, "range": [-1, 1]}
    return {
        "data": traces,
        "layout": layout(xaxis=axis("value", nticks=8), yaxis=axis("", **hidden), meta={"scale": False}),
    }


def spread_phrases(data: Spread) -> list[Phrase]:
    """The figure in words, or why there is none."""
    ends: dict[str, int | str] = {"elements": data.elements, "low": number(data.low), "high": number(data.high)}
    if not data.finite:
        return [phrase("spread.lost", **ends)]
    parts = [phrase("spread.range", **ends)]
    if data.mean is not None and data.deviation is not None:
        parts.append(phrase("spread.deviation", mean=number(data.mean), deviation=number(data.deviation)))
    elif data.mean is not None:
        parts.append(phrase("spread.mean", mean=number(data.mean)))
    return parts


def spread_table(data: Spread) -> Table:
    """One row per number."""
    numbers = (("elements", data.elements), ("minimum", data.low), ("maximum", data.high))
    told = (("mean", data.mean), ("standard deviation", data.deviation))
    return table(("statistic", "value"), [*numbers, *told])
