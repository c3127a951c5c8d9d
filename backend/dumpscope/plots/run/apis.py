"""Errors of all APIs side by side: a box over the calls of each, the API of the current call marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.error_axis import Lanes, lanes
from dumpscope.plots.run.distribution import quartiles
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import MARK, MEASURE, OUTPUT, TARGET, Figure, axis, layout, number, plain, shorten
from dumpscope.texts import Phrase, phrase

SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiErrors:
    """One API. quartiles: see ApiDistribution; largest: error of its worst call, at position `worst` of the run, named `node`"""

    api: str
    calls: int
    compared: int
    above: int
    quartiles: tuple[float, float, float, float, float]
    largest: float
    worst: int
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AllApis:
    """shown: APIs with a compared call, largest error first, at most SHOWN, always with the current one
    apis, unseen, above: number of APIs, of those without a compared call, and of those with a call above the floor
    current: (API, error, node) of the selected call; None without one, nan error if it was not compared
    rank: position of its API among all by largest error, from 1; None if none of its calls was compared
    """

    shown: tuple[ApiErrors, ...]
    apis: int
    unseen: int
    above: int
    current: tuple[str, float, str] | None
    rank: int | None
    floor: float | None
    lanes: Lanes


def all_apis_data(
    apis: Sequence[str],
    api: Int64,
    error: Float64,
    names: Sequence[str],
    *,
    current: int | None = None,
    floor: float | None = 1.0,
    log: bool = True,
    top: str = "inf",
) -> AllApis:
    """Errors of every API; `api` (index into `apis`, -1: none), `error` and `names` have one entry per call in call order.

    error: never negative; nan if not compared, inf if no tolerance applies. current: position of the call to mark
    top: what the lane of infinities is called
    """
    calls = np.bincount(api[api >= 0], minlength=len(apis))
    compared = np.flatnonzero(~np.isnan(error) & (api >= 0))
    walk = compared[
        np.lexsort((error[compared], api[compared]))
    ]  # by API, then by error: one sort for thousands of APIs
    ends = np.searchsorted(api[walk], np.arange(len(apis) + 1))
    seen = np.flatnonzero(np.diff(ends))
    largest = error[walk[ends[seen + 1] - 1]]
    middle = error[walk[ends[seen] + np.rint((np.diff(ends)[seen] - 1) * 0.5).astype(np.int64)]]
    high = (
        np.zeros(len(apis), np.int64)
        if floor is None
        else np.bincount(api[compared[error[compared] > floor]], minlength=len(apis))
    )
    ordered = sorted(
        zip(
            (-largest).tolist(),
            (-middle).tolist(),
            [apis[place] for place in seen.tolist()],
            seen.tolist(),
            strict=True,
        )
    )
    marked = None
    if current is not None and api[current] >= 0:
        marked = (apis[api[current]], float(error[current]), names[current])
    rank = None
    if marked is not None:
        rank = next((place for place, one in enumerate(ordered, 1) if one[2] == marked[0]), None)
    chosen = [one[3] for one in ordered[:SHOWN]]
    if rank is not None and rank > SHOWN:
        chosen.append(ordered[rank - 1][3])
    shown = []
    for place in chosen:
        own = walk[ends[place] : ends[place + 1]]
        boxes = quartiles(error[own])
        assert boxes is not None, "it has a compared call"
        worst = int(own[np.searchsorted(error[own], error[own[-1]])])  # of equals, the first call
        shown.append(
            ApiErrors(
                api=apis[place],
                calls=int(calls[place]),
                compared=len(own),
                above=int(high[place]),
                quartiles=boxes,
                largest=float(error[worst]),
                worst=worst,
                node=names[worst],
            )
        )
    values = [np.asarray([*one.quartiles, one.largest]) for one in shown]
    return AllApis(
        shown=tuple(shown),
        apis=len(apis),
        unseen=len(apis) - len(seen),
        above=int(np.count_nonzero(high)),
        current=marked,
        rank=rank,
        floor=floor,
        lanes=lanes(*values, np.asarray([floor] if floor else []), log=log, top=top),
    )


def all_apis_figure(data: AllApis, measure: str = MEASURE, worst: str = "worst call") -> Figure:
    """Plotly figure: one horizontal box per API, the worst on top, its worst call beside it; a click there selects that call.

    measure, worst: title of the axis, and name of the worst calls"""
    places = list(range(len(data.shown)))
    boxes = data.lanes.place(
        np.asarray([one.quartiles for one in data.shown], dtype=np.float64).reshape(-1, 5)
    ).T.tolist()
    traces: list[dict[str, object]] = [
        {
            "type": "box", "orientation": "h", "name": "all calls", "y": places, "lowerfence": boxes[0], "q1": boxes[1],
            "median": boxes[2], "q3": boxes[3], "upperfence": boxes[4], "line": {"color": TARGET, "width": 1.5},
            "hoverinfo": "skip", "showlegend": False,
        },
        {
            "type": "scatter", "mode": "markers", "name": worst, "y": places,
            "x": data.lanes.place(np.asarray([one.largest for one in data.shown])).tolist(),
            "text": [f"{plain(shorten(one.node, 44))}: {number(one.largest)}" for one in data.shown],
            "customdata": [one.worst for one in data.shown], "marker": {"color": OUTPUT, "size": 6},
            "hovertemplate": "%{text}<extra></extra>",
        },
    ]  # fmt: skip
    marked = None
    if data.current is not None and data.rank is not None and not np.isnan(data.current[1]):
        api, error, node = data.current
        marked = [one.api for one in data.shown].index(api)
        traces.append({
            "type": "scatter", "mode": "markers", "name": "this call", "y": [marked],
            "x": data.lanes.place(np.asarray([error])).tolist(), "text": [f"{plain(shorten(node))}: {number(error)}"],
            "marker": {"color": MARK, "size": 12, "symbol": "diamond", "line": {"width": 2, "color": "white"}},
            "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    shapes = []
    if data.floor:
        shapes.append({
            "type": "line", "xref": "x", "x0": data.floor, "x1": data.floor, "yref": "paper", "y0": 0, "y1": 1,
            "line": {"dash": "dot", "width": 1, "color": MARK},
        })  # fmt: skip
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis(measure, **data.lanes.axis()),
            yaxis=axis(
                "",
                range=[len(places) - 0.4, -0.6],
                tickmode="array",
                tickvals=places,
                ticktext=[plain(shorten(one.api, 30)) for one in data.shown],
                zeroline=False,
            ),
            shapes=shapes,
            dragmode="pan",
            meta={"inView": marked},
        ),
    }


def all_apis_phrases(data: AllApis) -> list[Phrase]:
    """The figure in words."""
    if not data.shown:
        return [phrase("apis.none", apis=data.apis)]
    worst = data.shown[0]
    parts = [
        phrase("apis.all", apis=data.apis, measure=[phrase("measure.score")]),
        phrase("apis.worst", api=worst.api, error=number(worst.largest), name=worst.node),
    ]
    if data.floor is not None:
        parts.append(phrase("apis.above", above=data.above, floor=number(data.floor)))
    if data.unseen:
        parts.append(phrase("apis.unseen", unseen=data.unseen))
    left = data.apis - data.unseen - len(data.shown)
    if left:
        parts.append(phrase("apis.left", left=left))
    if data.current is not None and data.rank is not None:
        parts.append(phrase("apis.current", api=data.current[0], rank=data.rank))
    return parts


def all_apis_table(data: AllApis) -> Table:
    """One row per API shown."""
    names = ("lower whisker", "first quartile", "median", "third quartile", "upper whisker")
    return table(
        ("api", "calls", "compared", "above the floor", *names, "largest", "worst call"),
        ((one.api, one.calls, one.compared, one.above, *one.quartiles, one.largest, one.node) for one in data.shown),
    )
