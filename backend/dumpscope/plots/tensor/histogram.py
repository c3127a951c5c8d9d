"""Histogram of one tensor: how its numbers are distributed, and how many are zero, NaN or infinite."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.plots.pair.histogram import BINS, Counted, Counter, Ends
from dumpscope.plots.pair.pieces import pieces, wide, zeros
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import TARGET, Figure, axis, layout, number, rounded
from dumpscope.texts import Phrase, phrase

_FEW: Final = 5
"""Elements of the fullest bin up to which every whole number has a tick, and nothing between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorHistogram:
    """zeros: elements that are exactly zero; log: counts on a logarithmic axis; magnitudes: of complex numbers"""

    elements: int
    counted: Counted
    zeros: int
    log: bool
    magnitudes: bool


def tensor_histogram_data(tensor: NDArray[Any], *, bins: int = BINS, log: bool = False) -> TensorHistogram:
    """Histogram of an array of any numeric dtype, read twice in small pieces. Complex numbers count by magnitude."""
    nothing = zeros(tensor.shape)
    ends, none = Ends(), 0
    for piece in pieces(tensor, nothing):
        values = wide(piece.target)
        ends.see(values)
        none += int(np.count_nonzero(values == 0))
    counter = Counter(ends.edges(bins))
    for piece in pieces(tensor, nothing):
        counter.add(wide(piece.target))
    return TensorHistogram(
        elements=int(tensor.size),
        counted=counter.done(ends),
        zeros=none,
        log=log,
        magnitudes=np.iscomplexobj(tensor),
    )


def tensor_histogram_figure(data: TensorHistogram) -> Figure:
    """Plotly figure: a bar per bin."""
    edges = data.counted.edges
    ends = rounded(edges, 4)
    trace = {
        "type": "bar", "name": "elements", "x": rounded(edges[:-1] / 2 + edges[1:] / 2),
        "y": data.counted.counts.tolist(), "width": rounded(edges[1:] - edges[:-1]),
        "customdata": [f"{low:g} … {high:g}" for low, high in pairwise(ends)],
        "marker": {"color": TARGET}, "hovertemplate": "%{customdata}: %{y}<extra></extra>",
    }  # fmt: skip
    whole = {"dtick": 1} if not data.log and int(data.counted.counts.max()) <= _FEW else {}
    return {
        "data": [trace],
        "layout": layout(
            xaxis=axis("magnitude" if data.magnitudes else "value", nticks=8),
            yaxis=axis("elements", type="log" if data.log else "linear", **whole),
            bargap=0,
            showlegend=False,
        ),
    }


def tensor_histogram_phrases(data: TensorHistogram) -> list[Phrase]:
    """The figure in words."""
    if not data.elements:
        return [phrase("tensor.empty")]
    counted = data.counted
    parts = [
        phrase("tensor.none", elements=data.elements)
        if np.isnan(counted.low)
        else phrase("tensor.range", elements=data.elements, low=number(counted.low), high=number(counted.high)),
        phrase("tensor.zeros", zeros=data.zeros),
    ]
    if counted.nonfinite:
        infinite = {"inf": counted.positive_infinite, "minus": counted.negative_infinite}
        parts.append(phrase("tensor.nonfinite", nan=counted.nan, **infinite))
    else:
        parts.append(phrase("tensor.finite"))
    return parts


def tensor_histogram_table(data: TensorHistogram) -> Table:
    """The bins, the elements outside them, and how many are zero."""
    counted = data.counted
    bins = zip(counted.edges.tolist(), counted.edges[1:].tolist(), counted.counts.tolist(), strict=False)
    rows: list[tuple[str, float | None, float | None, int]] = [("histogram", *one) for one in bins]
    apart = (
        ("nan", counted.nan),
        ("inf", counted.positive_infinite),
        ("-inf", counted.negative_infinite),
        ("zero", data.zeros),
    )
    rows += [(word, None, None, count) for word, count in apart]
    return table(("series", "from", "to", "elements"), rows)
