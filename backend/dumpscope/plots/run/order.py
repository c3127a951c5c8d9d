"""Input and output error of every node in call order: where the error starts, and how it spreads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.records import Float64, Int64
from dumpscope.plots.error_axis import Lanes, lanes
from dumpscope.plots.table import Table, table
from dumpscope.plots.template import (
    GREY,
    INPUT,
    MARK,
    MEASURE,
    OUTPUT,
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

POINTS = 2000
MARKED: Final = 250
"""Points of a curve up to which each is drawn as a mark; more of them run together, and a browser draws each one by itself."""
_NAME = 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve after decimation: position in the run, error, node pair number and node name per point."""

    order: Int64
    error: Float64
    pair: Int64
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One node that is marked; nan if that side was not compared."""

    order: int
    input_error: float
    output_error: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorOrder:
    """inputs, outputs: curves with at most POINTS points together, the worst node of each bucket
    nodes, bucket: number of nodes, and nodes per point
    selected, origins: marked nodes; backward: position where the backward pass starts, or None
    floor: error that counts as the same
    """

    floor: float | None
    inputs: Series
    outputs: Series
    nodes: int
    bucket: int
    selected: Mark | None
    origins: tuple[Mark, ...]
    backward: int | None
    lanes: Lanes
    last: int


def error_order_data(
    order: Sequence[int] | Int64,
    input_error: Sequence[float] | Float64,
    output_error: Sequence[float] | Float64,
    names: Sequence[str],
    *,
    pair: Sequence[int] | Int64 | None = None,
    selected: int | None = None,
    origins: Sequence[int] = (),
    backward: int | None = None,
    floor: float | None = 1.0,
    points: int = POINTS,
    log: bool = True,
) -> ErrorOrder:
    """Curves over nodes; all sequences have one entry per node and `order` may come in any order.

    input_error, output_error: never negative; nan if not compared, inf if no tolerance applies
    selected, origins: positions of nodes to mark; backward: the `order` at which the backward pass starts
    log: errors on a logarithmic axis
    """
    places = np.asarray(order, dtype=np.int64)
    sides = [np.asarray(side, dtype=np.float64) for side in (input_error, output_error)]
    pairs = np.arange(len(places)) if pair is None else np.asarray(pair, dtype=np.int64)
    walk = np.argsort(places, kind="stable")
    buckets = max(1, points // 2)
    bucket = max(1, -(-len(walk) // buckets))
    inputs, outputs = (series_of(decimate(walk, side, bucket), side, places, pairs, names) for side in sides)
    marks = [_mark(number, places, sides, names) for number in origins]
    return ErrorOrder(
        floor=floor,
        inputs=inputs,
        outputs=outputs,
        nodes=len(places),
        bucket=bucket,
        selected=None if selected is None else _mark(selected, places, sides, names),
        origins=tuple(marks[:50]),
        backward=backward,
        lanes=lanes(*sides, np.asarray([floor] if floor else []), log=log),
        last=int(places.max()) if len(places) else 0,
    )


def _mark(position: int, places: Int64, sides: list[Float64], names: Sequence[str]) -> Mark:
    return Mark(
        order=int(places[position]),
        input_error=float(sides[0][position]),
        output_error=float(sides[1][position]),
        name=names[position],
    )


def decimate(walk: Int64, errors: Float64, bucket: int) -> Int64:
    """Keep the worst compared node of every `bucket` consecutive nodes; buckets without one have no point."""
    rows = -(-len(walk) // bucket)
    padded = np.full(rows * bucket, -1.0)
    padded[: len(walk)] = np.where(np.isnan(errors[walk]), -1.0, errors[walk])
    grid = padded.reshape(rows, bucket)
    best = grid.argmax(axis=1) if rows else np.zeros(0, dtype=np.int64)
    keep = np.flatnonzero(grid[np.arange(rows), best] >= 0) if rows else best
    chosen: Int64 = walk[keep * bucket + best[keep]]
    return chosen


def series_of(chosen: Int64, errors: Float64, places: Int64, pairs: Int64, names: Sequence[str]) -> Series:
    """The curve through the chosen nodes."""
    return Series(
        order=places[chosen],
        error=errors[chosen],
        pair=pairs[chosen],
        names=tuple(names[number] for number in chosen.tolist()),
    )


def error_order_figure(data: ErrorOrder) -> Figure:
    """Plotly figure: input and output curves, marks, floor, and the forward/backward boundary."""
    traces = [
        _curve("input error", data.inputs, data.lanes, INPUT, "circle-open"),
        _curve("output error", data.outputs, data.lanes, OUTPUT, "circle"),
    ]
    marks = [mark for mark in data.origins if not np.isnan(mark.output_error)]
    if marks:
        traces.append({
            "type": "scatter", "mode": "markers", "name": "origin", "x": [mark.order for mark in marks],
            "y": data.lanes.place(np.asarray([mark.output_error for mark in marks])).tolist(),
            "text": [plain(shorten(mark.name, _NAME)) for mark in marks],
            "marker": {"color": MARK, "size": 14, "symbol": "star"}, "hovertemplate": "origin %{text}<extra></extra>",
        })  # fmt: skip
    shapes: list[dict[str, object]] = []
    notes: list[dict[str, object]] = []
    if data.floor:
        shapes.append({
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": data.floor, "y1": data.floor,
            "line": {"dash": "dot", "width": 1, "color": MARK},
        })  # fmt: skip
    if data.selected is not None:
        shapes.append(line_at(data.selected.order, MARK, "solid"))
        notes.append(note_at(data.selected.order, plain(shorten(data.selected.name, 36)), data.last))
    if data.backward is not None:
        shapes.append(line_at(data.backward, GREY, "dash"))
        notes.append({**note_at(data.backward, "backward", data.last), "y": 0, "yanchor": "bottom"})
    return {
        "data": traces,
        "layout": layout(
            xaxis=axis("place in the run", rangemode="nonnegative"),
            yaxis=axis(MEASURE, **data.lanes.axis()),
            shapes=shapes,
            annotations=notes,
        ),
    }


def _curve(name: str, series: Series, scale: Lanes, colour: str, symbol: str) -> dict[str, object]:
    mode = "lines+markers" if len(series.order) <= MARKED else "lines"
    return {
        "type": "scatter", "mode": mode, "name": name, "x": series.order.tolist(),
        "y": [float(f"{value:.5g}") for value in scale.place(series.error).tolist()],
        "text": labels(series.names, series.error, _NAME),
        "customdata": series.pair.tolist(), "line": {"width": 1, "color": colour},
        "marker": {"size": 4, "color": colour, "symbol": symbol}, "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def line_at(place: int, colour: str, dash: str) -> dict[str, object]:
    """An upright line through the whole plot."""
    return {
        "type": "line", "xref": "x", "x0": place, "x1": place, "yref": "paper", "y0": 0, "y1": 1,
        "line": {"dash": dash, "width": 1.5, "color": colour},
    }  # fmt: skip


def note_at(place: int, text: str, last: int) -> dict[str, object]:
    """A label at a vertical line, on the side where there is room."""
    side = "left" if 2 * place <= last else "right"
    return {
        "xref": "x", "x": place, "yref": "paper", "y": 1, "yanchor": "top", "xanchor": side, "text": text,
        "showarrow": False,
    }  # fmt: skip


def error_order_phrases(data: ErrorOrder) -> list[Phrase]:
    """The figure in words."""
    errors = data.outputs.error
    if not errors.size:
        return [phrase("order.none", nodes=data.nodes)]
    worst = int(errors.argmax())
    parts = [
        phrase("order.all", measure=[phrase("measure.score")], nodes=data.nodes),
        phrase(
            "order.largest",
            error=number(float(errors[worst])),
            name=data.outputs.names[worst],
            place=int(data.outputs.order[worst]),
        ),
    ]
    if data.floor is not None:
        above = np.flatnonzero(errors > data.floor)
        if above.size:
            first = int(above[0])
            place = int(data.outputs.order[first])
            name = data.outputs.names[first]
            parts.append(phrase("order.first", floor=number(data.floor), name=name, place=place))
        else:
            parts.append(phrase("order.no_first", floor=number(data.floor)))
    if data.origins:
        parts.append(phrase("order.origins", names=", ".join(mark.name for mark in data.origins[:3])))
    if data.backward is not None:
        parts.append(phrase("order.backward", place=data.backward))
    if data.selected is not None:
        mark = data.selected
        sides = {"input": [error_phrase(mark.input_error)], "output": [error_phrase(mark.output_error)]}
        parts.append(phrase("order.selected", name=mark.name, **sides))
    if data.bucket > 1:
        parts.append(phrase("order.bucket", bucket=data.bucket))
    return parts


def error_order_table(data: ErrorOrder) -> Table:
    """The drawn points of both curves."""
    curves = (("input", data.inputs), ("output", data.outputs))
    return table(
        ("side", "place", "node", "error"),
        (
            (side, place, name, error)
            for side, curve in curves
            for place, name, error in zip(curve.order.tolist(), curve.names, curve.error.tolist(), strict=True)
        ),
    )
