"""Size of what each call of one run put out, in call order and by API, with the calls that put out NaN or infinity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from dumpscope.domain.records import Bool, Float64, Int64
from dumpscope.plots.error_axis import Lanes, lanes
from dumpscope.plots.run.apis import AllApis, all_apis_data, all_apis_figure
from dumpscope.plots.run.order import POINTS, Series, decimate, line_at, note_at, series_of
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import GREY, INPUT, LOST, MARK, OUTPUT, Figure, axis, layout, number, plain, shorten
from dumpscope.texts import Phrase, phrase

Measure = Literal["norm", "max"]

TITLES: Final[dict[Measure, str]] = {"norm": "norm of the output", "max": "largest magnitude of the output"}
NOT_FINITE: Final = "NaN/Inf"
_NAME: Final = 44
_BELOW_LOST: Final = 0.86
"""Height of a label, as a share of the plot's: below the lane of NaN and infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrder:
    """forward, backward: curves of the calls of each direction, the largest of each bucket
    lost: number of calls whose outputs hold NaN or infinity; first_lost: (place, name) of the first
    largest: (value, place, name) of the largest finite one; selected: (place, name, value, lost); starts: of the backward pass
    first: (place, name, drawn value) of the first call with a number that nobody asked for
    """

    measure: Measure
    forward: Series
    backward: Series
    calls: int
    told: int
    bucket: int
    lost: int
    first_lost: tuple[int, str] | None
    largest: tuple[float, int, str] | None
    selected: tuple[int, str, float, bool] | None
    starts: int | None
    first: tuple[int, str, float] | None
    lanes: Lanes


def value_order_data(
    names: Sequence[str],
    values: Float64,
    lost: Bool,
    backward: Bool,
    *,
    measure: Measure,
    selected: int | None = None,
    first: int | None = None,
    points: int = POINTS,
    log: bool = True,
) -> ValueOrder:
    """Curves over all calls in call order.

    values: never negative, nan where nothing was stored; lost: an output holds NaN or infinity, whatever its value says
    selected, first: places of calls to mark, the latter as the first with a number that nobody asked for
    """
    places = np.arange(len(names))
    drawn = np.where(lost, np.inf, values)
    bucket = max(1, -(-len(names) // max(1, points // 2)))
    curves = []
    for mask in (~backward, backward):
        walk = np.flatnonzero(mask)
        curves.append(series_of(decimate(walk, drawn, bucket), drawn, places, places, names))
    finite = np.where(np.isfinite(drawn), drawn, -1.0)
    best = int(finite.argmax()) if len(names) else 0
    bad = np.flatnonzero(lost)
    starts = np.flatnonzero(backward)
    return ValueOrder(
        measure=measure,
        forward=curves[0],
        backward=curves[1],
        calls=len(names),
        told=int(np.count_nonzero(~np.isnan(drawn))),
        bucket=bucket,
        lost=len(bad),
        first_lost=(int(bad[0]), names[int(bad[0])]) if bad.size else None,
        largest=(float(finite[best]), best, names[best]) if len(names) and finite[best] >= 0 else None,
        selected=None
        if selected is None
        else (selected, names[selected], float(values[selected]), bool(lost[selected])),
        starts=int(starts[0]) if starts.size else None,
        first=None if first is None else (first, names[first], float(drawn[first])),
        lanes=lanes(drawn, log=log, top=NOT_FINITE),
    )


def value_order_figure(data: ValueOrder) -> Figure:
    """Plotly figure: a curve per direction, crosses in a lane of their own for NaN and infinity; a click selects the call."""
    traces = []
    for name, series, colour, symbol in (
        ("forward", data.forward, OUTPUT, "circle"),
        ("backward", data.backward, INPUT, "circle-open"),
    ):
        if not series.order.size:
            continue
        finite = np.isfinite(series.error)
        traces.append({
            "type": "scatter", "mode": "lines+markers", "name": name, "x": series.order.tolist(),
            "y": [
                float(f"{value:.5g}") if there else None
                for value, there in zip(data.lanes.place(series.error).tolist(), finite.tolist(), strict=True)
            ],
            "text": [
                f"{plain(shorten(node, _NAME))}: {number(value)}"
                for node, value in zip(series.names, series.error.tolist(), strict=True)
            ],
            "customdata": series.pair.tolist(), "line": {"width": 1, "color": colour},
            "marker": {"size": 4, "color": colour, "symbol": symbol}, "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    if (lost := _lost(data)).order.size:
        traces.append({
            "type": "scatter", "mode": "markers", "name": NOT_FINITE, "x": lost.order.tolist(),
            "y": data.lanes.place(lost.error).tolist(), "text": [plain(shorten(node, _NAME)) for node in lost.names],
            "customdata": lost.pair.tolist(), "marker": {"size": 8, "color": LOST, "symbol": "x"},
            "hovertemplate": "%{text}: NaN/Inf<extra></extra>",
        })  # fmt: skip
    if data.first is not None and not np.isnan(data.first[2]):
        place, name, value = data.first
        traces.append({
            "type": "scatter", "mode": "markers", "name": "first not asked for", "x": [place],
            "y": data.lanes.place(np.asarray([value])).tolist(), "text": [plain(shorten(name, _NAME))],
            "customdata": [place], "marker": {"color": MARK, "size": 14, "symbol": "star"},
            "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    shapes, notes = [], []
    last = max(0, data.calls - 1)
    if data.selected is not None:
        place, name = data.selected[:2]
        shapes.append(line_at(place, MARK, "solid"))
        notes.append({**note_at(place, plain(shorten(name, 36)), last), "y": _BELOW_LOST})
    if data.starts is not None and data.forward.order.size:
        shapes.append(line_at(data.starts, GREY, "dash"))
        notes.append({**note_at(data.starts, "backward", last), "y": 0, "yanchor": "bottom"})
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis("place in the run", rangemode="nonnegative"),
            yaxis=axis(TITLES[data.measure], **data.lanes.axis()),
            shapes=shapes,
            annotations=notes,
            meta={"measure": data.measure},
        ),
    }


def _lost(data: ValueOrder) -> Series:
    """Drawn calls of both curves with NaN or infinity."""
    curves = data.forward, data.backward
    masks = [np.isinf(one.error) for one in curves]
    names = [
        name for one, mask in zip(curves, masks, strict=True) for name, bad in zip(one.names, mask, strict=True) if bad
    ]
    order, error, pair = (
        np.concatenate([getattr(one, key)[mask] for one, mask in zip(curves, masks, strict=True)])
        for key in ("order", "error", "pair")
    )
    return Series(order=order, error=error, pair=pair, names=tuple(names))


def value_order_phrases(data: ValueOrder) -> list[Phrase]:
    """The figure in words."""
    measure = [phrase(f"run_values.{data.measure}")]
    parts = [phrase("run_values.order", measure=measure, calls=data.told)]
    if data.largest is not None:
        value, place, name = data.largest
        parts.append(phrase("run_values.largest", value=number(value), name=name, place=place))
    if data.first_lost is not None:
        place, name = data.first_lost
        parts.append(phrase("run_values.lost", count=data.lost, name=name, place=place))
        if data.first is not None and data.first[0] != place:
            parts.append(phrase("run_values.first", name=data.first[1], place=data.first[0]))
    else:
        parts.append(phrase("run_values.finite"))
    if data.starts is not None:
        parts.append(phrase("order.backward", place=data.starts))
    if data.selected is not None:
        _place, name, value, lost = data.selected
        parts.append(phrase("run_values.selected", name=name, value=[_value_phrase(value, lost)]))
    if data.bucket > 1:
        parts.append(phrase("run_values.bucket", bucket=data.bucket))
    return parts


def _value_phrase(value: float, lost: bool) -> Phrase:
    if lost:
        return phrase("run_values.not_finite")
    return phrase("run_values.unknown") if np.isnan(value) else phrase("measure.value", value=number(value))


def value_order_table(data: ValueOrder) -> Table:
    """The drawn points of both curves; `inf` where the outputs hold NaN or infinity."""
    curves = (("forward", data.forward), ("backward", data.backward))
    return table(
        ("direction", "place", "node", data.measure),
        (
            (side, place, name, value)
            for side, curve in curves
            for place, name, value in zip(curve.order.tolist(), curve.names, curve.error.tolist(), strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiValues:
    """lost: APIs with NaN or infinity in an output of a call, in the order of their first such call"""

    measure: Measure
    all: AllApis
    lost: tuple[str, ...]


def api_values_data(
    apis: Sequence[str],
    api: Int64,
    names: Sequence[str],
    values: Float64,
    lost: Bool,
    *,
    measure: Measure,
    current: int | None = None,
    log: bool = True,
) -> ApiValues:
    """All calls of every API; parameters as of `all_apis_data` and `value_order_data`."""
    drawn = np.where(lost, np.inf, values)
    found = all_apis_data(apis, api, drawn, names, current=current, floor=None, log=log, top=NOT_FINITE)
    bad = dict.fromkeys(apis[number] for number in api[lost].tolist() if number >= 0)
    return ApiValues(measure=measure, all=found, lost=tuple(bad))


def api_values_figure(data: ApiValues) -> Figure:
    """Plotly figure: one horizontal box per API, the one with the largest call on top; a click selects that call."""
    figure = all_apis_figure(data.all, TITLES[data.measure], "largest call")
    figure["layout"]["meta"]["measure"] = data.measure
    return figure


def api_values_phrases(data: ApiValues) -> list[Phrase]:
    """The figure in words."""
    found, lost = data.all, data.lost
    if not found.shown:
        return [phrase("run_values.none")]
    measure = [phrase(f"run_values.{data.measure}")]
    parts = [phrase("run_values.apis", measure=measure, apis=found.apis - found.unseen)]
    if lost:
        parts.append(phrase("run_values.apis_lost", names=", ".join(lost[:3]), count=len(lost)))
    if finite := next((one for one in found.shown if np.isfinite(one.largest)), None):
        told = {"api": finite.api, "value": number(finite.largest), "name": finite.node}
        parts.append(phrase("run_values.apis_rest" if lost else "run_values.apis_largest", **told))
    left = found.apis - found.unseen - len(found.shown)
    if left:
        parts.append(phrase("run_values.apis_left", left=left))
    if found.current is not None and found.rank is not None:
        parts.append(phrase("run_values.apis_current", api=found.current[0], rank=found.rank))
    return parts
