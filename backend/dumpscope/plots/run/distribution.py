"""Error of every call of one API: a box over all calls, a point per call, the current call marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.error_axis import Lanes, lanes
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import (
    MARK,
    MEASURE,
    OUTPUT,
    TARGET,
    Figure,
    axis,
    error_phrase,
    labels,
    layout,
    number,
    plain,
    shorten,
)
from dumpscope.texts import Phrase, phrase

POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDistribution:
    """Calls of one API.

    order, error, pair: position in the run, error and node pair number of the drawn calls (at most POINTS)
    names: node name per drawn call
    quartiles: lower whisker, first quartile, median, third quartile, upper whisker over all compared calls;
        None without any
    calls, compared, above: number of calls, of compared calls, and of calls above the floor
    current: (order, error, name) of the selected call, nan error if it was not compared
    floor: error that counts as the same, or None if the measure has no fixed floor
    """

    api: str
    floor: float | None
    order: Int64
    error: Float64
    pair: Int64
    names: tuple[str, ...]
    quartiles: tuple[float, float, float, float, float] | None
    calls: int
    compared: int
    above: int
    current: tuple[int, float, str] | None
    lanes: Lanes


def api_distribution_data(
    api: str,
    order: Sequence[int] | Int64,
    error: Sequence[float] | Float64,
    names: Sequence[str],
    *,
    pair: Sequence[int] | Int64 | None = None,
    current: int | None = None,
    floor: float | None = 1.0,
    log: bool = True,
) -> ApiDistribution:
    """Distribution of `error` over the calls of `api`; all sequences have one entry per call.

    error: never negative; nan if a call was not compared, inf if no tolerance applies
    pair: node pair number per call, returned by clicks; the call's position if left out
    current: position (not order) of the call to mark
    log: errors on a logarithmic axis
    """
    places = np.asarray(order, dtype=np.int64)
    errors = np.asarray(error, dtype=np.float64)
    pairs = np.arange(len(places)) if pair is None else np.asarray(pair, dtype=np.int64)
    compared = np.flatnonzero(~np.isnan(errors))
    drawn = _spread(compared, errors)
    return ApiDistribution(
        api=api,
        floor=floor,
        order=places[drawn],
        error=errors[drawn],
        pair=pairs[drawn],
        names=tuple(names[number] for number in drawn.tolist()),
        quartiles=quartiles(errors[compared]),
        calls=len(places),
        compared=len(compared),
        above=0 if floor is None else int(np.count_nonzero(errors[compared] > floor)),
        current=None if current is None else (int(places[current]), float(errors[current]), names[current]),
        lanes=lanes(errors, np.asarray([floor] if floor else []), log=log),
    )


def _spread(compared: Int64, errors: Float64) -> Int64:
    """At most POINTS calls: the worst half of the budget, then an even sample of the rest; in call order."""
    if len(compared) <= POINTS:
        return compared
    ranked = compared[np.argsort(-errors[compared], kind="stable")]
    worst, rest = ranked[: POINTS // 2], ranked[POINTS // 2 :]
    sample = rest[np.linspace(0, len(rest) - 1, POINTS - len(worst)).astype(np.int64)]
    return np.unique(np.concatenate([worst, sample]))


def quartiles(errors: Float64) -> tuple[float, float, float, float, float] | None:
    """Lower whisker, first quartile, median, third quartile, upper whisker of errors without nan; None without errors."""
    if not errors.size:
        return None
    ranked = np.sort(errors)
    # nearest ranks, not interpolated: interpolation between a number and infinity gives nan
    first, middle, third = (float(ranked[round((len(ranked) - 1) * share)]) for share in (0.25, 0.5, 0.75))
    reach = 1.5 * (third - first) if np.isfinite(third) else 0.0
    inside = ranked[(ranked >= first - reach) & (ranked <= third + reach)]
    return float(inside[0]), first, middle, third, float(inside[-1])


def api_distribution_figure(data: ApiDistribution) -> Figure:
    """Plotly figure: box on the left, calls in execution order on the right, one common logarithmic error axis."""
    traces: list[dict[str, object]] = []
    if data.quartiles is not None:
        low, first, middle, third, high = data.lanes.place(np.asarray(data.quartiles)).tolist()
        traces.append({
            "type": "box", "name": "all calls", "x": [plain(data.api)], "lowerfence": [low], "q1": [first],
            "median": [middle], "q3": [third], "upperfence": [high], "marker": {"color": TARGET}, "xaxis": "x",
            "yaxis": "y", "hoverinfo": "skip", "showlegend": False,
        })  # fmt: skip
    traces.append({
        "type": "scatter", "mode": "markers", "name": "calls", "x": data.order.tolist(),
        "y": data.lanes.place(data.error).tolist(),
        "text": labels(data.names, data.error),
        "customdata": data.pair.tolist(), "marker": {"color": OUTPUT, "size": 6, "opacity": 0.75}, "xaxis": "x2",
        "yaxis": "y", "hovertemplate": "%{text}<extra></extra>", "showlegend": False,
    })  # fmt: skip
    if data.current is not None and not np.isnan(data.current[1]):
        order, error, name = data.current
        traces.append({
            "type": "scatter", "mode": "markers", "name": "this call", "x": [order],
            "y": data.lanes.place(np.asarray([error])).tolist(), "text": [f"{plain(shorten(name))}: {number(error)}"],
            "marker": {"color": MARK, "size": 13, "symbol": "diamond", "line": {"width": 2, "color": "white"}},
            "xaxis": "x2", "yaxis": "y", "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    shapes = []
    if data.floor:
        shapes.append({
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": data.floor, "y1": data.floor,
            "line": {"dash": "dot", "width": 1, "color": MARK},
        })  # fmt: skip
    return {
        "data": traces,
        "layout": layout(
            yaxis=axis(MEASURE, **data.lanes.axis()),
            xaxis=axis("", domain=[0, 0.16], showticklabels=False),
            xaxis2=axis("place in the run", domain=[0.2, 1], anchor="y"),
            shapes=shapes,
        ),
    }


def api_distribution_phrases(data: ApiDistribution) -> list[Phrase]:
    """The figure in words."""
    if data.quartiles is None:
        return [phrase("calls.none", api=data.api, calls=data.calls)]
    low, first, middle, third, high = (number(value) for value in data.quartiles)
    parts = [
        phrase("calls.compared", api=data.api, compared=data.compared, calls=data.calls),
        phrase(
            "calls.spread",
            measure=[phrase("measure.score")],
            median=middle,
            first=first,
            third=third,
            low=low,
            high=high,
            largest=number(float(data.error.max())),
        ),
    ]
    if data.floor is not None:
        parts.append(phrase("calls.above", above=data.above, floor=number(data.floor)))
    if data.current is not None:
        order, error, name = data.current
        parts.append(phrase("calls.current", name=name, place=order, error=[error_phrase(error)]))
    return parts


def api_distribution_table(data: ApiDistribution) -> Table:
    """The drawn calls, in call order."""
    current = None if data.current is None else data.current[0]
    calls = zip(data.order.tolist(), data.names, data.error.tolist(), strict=True)
    return table(
        ("place", "node", "error", "this call"),
        ((place, name, error, "yes" if place == current else "") for place, name, error in calls),
    )
