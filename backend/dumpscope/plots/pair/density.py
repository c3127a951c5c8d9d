"""Two-dimensional histogram of a tensor pair: target against golden, equal values on the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.pair.pieces import pieces, wide
from dumpscope.plots.signed_log_axis import Axis, Magnitudes, axis_of
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import GREY, SHADES, Figure, axis, colour_bar, layout, number, rounded
from dumpscope.texts import Phrase, phrase

BINS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDensity:
    """counts: elements by golden bin and target bin, shape (bins, bins), those finite on both sides; scale: both axes

    on, below, above: equal elements, and elements whose target is smaller or larger than its golden
    low, high: range of both sides, nan if nothing is finite
    """

    elements: int
    scale: Axis
    counts: Int64
    on: int
    below: int
    above: int
    skipped: int
    low: float
    high: float
    magnitudes: bool


def pair_density_data(target: NDArray[Any], golden: NDArray[Any], *, bins: int = BINS, log: bool = True) -> PairDensity:
    """Counts of (golden, target) over equal bins of one scale, which both axes share; read twice in small pieces.

    log: logarithmic axes, symmetric about zero if there are both signs. Complex numbers count by magnitude.
    Raises UsageError if the sizes differ.
    """
    seen = Magnitudes()
    for piece in pieces(target, golden):
        for values in piece.values():
            seen = seen.and_of(values[np.isfinite(values)])
    scale = axis_of(seen, log=log)
    edges = scale.edges(bins)
    counts = np.zeros(bins * bins, dtype=np.int64)
    on = below = above = skipped = 0
    for piece in pieces(target, golden):
        one, other = wide(piece.target), wide(piece.golden)
        both = np.isfinite(one) & np.isfinite(other)
        skipped += int(both.size - np.count_nonzero(both))
        one, other, change = one[both], other[both], piece.change()[both]
        on += int(np.count_nonzero(change == 0))
        below += int(np.count_nonzero(one < other))
        above += int(np.count_nonzero(one > other))
        places = _bins(scale.place(other), edges) * bins + _bins(scale.place(one), edges)
        counts += np.bincount(places, minlength=bins * bins)
    found = seen.low <= seen.high
    return PairDensity(
        elements=int(target.size),
        scale=scale,
        counts=counts.reshape(bins, bins),
        on=on,
        below=below,
        above=above,
        skipped=skipped,
        low=seen.low if found else np.nan,
        high=seen.high if found else np.nan,
        magnitudes=np.iscomplexobj(target) or np.iscomplexobj(golden),
    )


def _bins(places: Float64, edges: Float64) -> Int64:
    count = len(edges) - 1
    width = edges[-1] / count - edges[0] / count
    if width <= 0:
        return np.full(places.shape, count // 2)
    found: Int64 = (places / width - edges[0] / width).astype(np.int64)
    np.clip(found, 0, count - 1, out=found)
    return found


def pair_density_figure(data: PairDensity) -> Figure:
    """Plotly figure: colour by the logarithm of the count, empty bins without colour, the diagonal dotted."""
    edges = data.scale.edges(len(data.counts))
    # plotly's rows are along the second axis: target
    counts = data.counts.T
    with np.errstate(divide="ignore"):
        colour = np.log10(counts)
    most = float(max(1, counts.max(initial=1)))
    ends = [data.scale.start, data.scale.stop]
    what = " (magnitude)" if data.magnitudes else ""
    return {
        "data": [
            {
                "type": "heatmap", "name": "elements", "x": rounded(edges), "y": rounded(edges),
                "z": [[value if value > -1 else None for value in row] for row in rounded(colour, 4)],
                "customdata": counts.tolist(), "colorscale": SHADES, "zmin": 0, "zmax": max(1.0, float(np.log10(most))),
                "colorbar": colour_bar("elements", [(power, f"1e{power}") for power in range(int(np.log10(most)) + 1)]),
                "hovertemplate": "%{customdata} elements<extra></extra>", "hoverongaps": False,
            },
            {
                "type": "scatter", "mode": "lines", "name": "equal", "x": ends, "y": ends, "hoverinfo": "skip",
                "line": {"color": GREY, "dash": "dot", "width": 1}, "showlegend": False,
            },
        ],
        "layout": layout(
            xaxis=axis(f"golden{what}", **data.scale.ticks(), zeroline=False),
            yaxis=axis(f"target{what}", **data.scale.ticks(), zeroline=False),
        ),
    }  # fmt: skip


def pair_density_phrases(data: PairDensity) -> list[Phrase]:
    """The figure in words."""
    if not data.elements:
        return [phrase("values.empty")]
    if np.isnan(data.low) or data.skipped == data.elements:
        return [phrase("density.none", elements=data.elements)]
    counts = {"equal": data.on, "below": data.below, "above": data.above}
    parts = [phrase("density.all", elements=data.elements - data.skipped, **counts)]
    beside = data.elements - data.skipped - data.on - data.below - data.above
    if beside:
        parts.append(phrase("density.phase", count=beside))
    parts.append(phrase("density.range", low=number(data.low), high=number(data.high)))
    if data.skipped:
        parts.append(phrase("density.skipped", count=data.skipped))
    return parts


def pair_density_table(data: PairDensity) -> Table:
    """The bins that are not empty, by the values at their edges."""
    edges = data.scale.value(data.scale.edges(len(data.counts))).tolist()
    rows = [
        (edges[golden], edges[golden + 1], edges[target], edges[target + 1], int(data.counts[golden, target]))
        for golden, target in np.argwhere(data.counts).tolist()
    ]
    return table(("golden from", "golden to", "target from", "target to", "elements"), rows)
