"""Figures of one dump alone: of one tensor of a call, and of the outputs of all calls of a step and rank."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Direction
from dumpscope.errors import NotFoundError, TensorError, UsageError
from dumpscope.index.dump_queries.outputs import get_record, node_place, shown_record
from dumpscope.index.dump_queries.value_columns import ValueColumns, value_columns
from dumpscope.index.dumps.catalogue import StoredRank, get_dump
from dumpscope.index.dumps.leaves import Leaf
from dumpscope.index.store.database import Database
from dumpscope.index.trees.trees import direction_word
from dumpscope.pipeline.figures.pair_tensors import load_record, why_unreadable
from dumpscope.pipeline.figures.request import FigureRequest, FigureResult, no_figure
from dumpscope.plots.run.apis import all_apis_table
from dumpscope.plots.run.values import (
    Measure,
    api_values_data,
    api_values_figure,
    api_values_phrases,
    value_order_data,
    value_order_figure,
    value_order_phrases,
    value_order_table,
)
from dumpscope.plots.tensor.histogram import (
    tensor_histogram_data,
    tensor_histogram_figure,
    tensor_histogram_phrases,
    tensor_histogram_table,
)
from dumpscope.plots.tensor.statistics import spread_figure, spread_of, spread_phrases, spread_table
from dumpscope.plots.tensor.value_map import value_map_data, value_map_figure, value_map_phrases, value_map_table
from dumpscope.texts import Phrase, phrase, say

Array = NDArray[Any]


def histogram(database: Database, rank: StoredRank, wanted: FigureRequest) -> FigureResult:
    """How the numbers of a tensor are distributed; without the tensor, what its statistics tell of that."""

    def draw(tensor: Array) -> FigureResult:
        data = tensor_histogram_data(tensor, log=wanted.by_log(False))
        figure = tensor_histogram_figure(data) if data.elements else None
        return FigureResult(
            figure=figure, said=tensor_histogram_phrases(data), table=lambda: tensor_histogram_table(data), log=data.log
        )

    return _of_tensor(database, rank, wanted, draw, _spread)


def value_map(database: Database, rank: StoredRank, wanted: FigureRequest) -> FigureResult:
    """The magnitudes of a tensor over two dimensions."""

    def draw(tensor: Array) -> FigureResult:
        log = wanted.by_log(True)
        data = value_map_data(tensor, axes=wanted.axes, reduce=wanted.reduce, log=log)
        figure = value_map_figure(data) if tensor.size else None
        return FigureResult(figure=figure, said=value_map_phrases(data), table=lambda: value_map_table(data), log=log)

    return _of_tensor(database, rank, wanted, draw, no_tensor)


def asked_record(database: Database, rank: StoredRank, wanted: FigureRequest) -> Leaf | None:
    """The record asked for, or the one of a node that is worth a look; None for a node without tensors.

    Raises UsageError where neither is named, NotFoundError where it is not there.
    """
    if wanted.item is not None:
        return get_record(database, rank, wanted.item)
    if wanted.node is None:
        raise UsageError(say("pipeline.figure_about_one_tensor"), hint=say("pipeline.add_item_node"))
    return shown_record(database, rank, wanted.node)


def _of_tensor(
    database: Database,
    rank: StoredRank,
    wanted: FigureRequest,
    draw: Callable[[Array], FigureResult],
    instead: Callable[[Leaf], FigureResult],
) -> FigureResult:
    """What `draw` makes of the tensor; what `instead` makes of its record where it was not dumped; or why there is neither."""
    record = asked_record(database, rank, wanted)
    if record is None:
        return no_figure(phrase("figure.call_without_tensors"))
    if record.shape is None:
        return no_figure(phrase("figure.not_tensor"))
    try:
        loaded = load_record(database, rank.id, record)
        drawn = instead(record) if loaded is None else draw(loaded.array)
    except TensorError as error:
        return no_figure(why_unreadable(error))
    if drawn.figure is None:
        return drawn
    said = [phrase("figure.item", item=record.name), *drawn.said]
    return FigureResult(figure=drawn.figure, said=said, table=drawn.table, log=drawn.log)


def not_dumped(record: Leaf) -> Phrase:
    """The setting of a dump that would bring this tensor."""
    return phrase("figure.no_tensor", node=record.node)


def no_tensor(record: Leaf) -> FigureResult:
    return no_figure(not_dumped(record))


def _spread(record: Leaf) -> FigureResult:
    high, low, mean, norm = (None if one is None else float(one) for one in record.stats)
    data = spread_of(prod(record.shape or ()), high=high, low=low, mean=mean, norm=norm)
    if data is None:
        return FigureResult(figure=None, said=[phrase("figure.no_statistics"), not_dumped(record)])
    said = [*spread_phrases(data), not_dumped(record)]
    if not data.finite:
        return FigureResult(figure=None, said=said)
    return FigureResult(figure=spread_figure(data), said=said, table=lambda: spread_table(data))


def value_order(
    database: Database, rank: StoredRank, wanted: FigureRequest, first: Callable[[], str | None]
) -> FigureResult:
    """Size of the outputs against call order. first: see `draw_of_dump`"""
    columns = _columns(database, rank)
    measure, values = _measured(columns, wanted)
    selected = None if wanted.node is None else node_place(database, rank, wanted.node)
    if not _told(columns, values):
        return no_figure(phrase("run_values.none"))
    log = wanted.by_log(True)
    found = first()
    data = value_order_data(
        columns.names,
        values,
        columns.lost,
        columns.backward,
        measure=measure,
        selected=selected,
        first=None if found is None else node_place(database, rank, found),
        log=log,
    )
    return FigureResult(
        figure=value_order_figure(data),
        said=value_order_phrases(data),
        table=lambda: value_order_table(data),
        log=log,
    )


def api_values(database: Database, rank: StoredRank, wanted: FigureRequest) -> FigureResult:
    """Size of the outputs by API, the two directions of one apart."""
    columns = _columns(database, rank)
    measure, values = _measured(columns, wanted)
    current = None if wanted.node is None else node_place(database, rank, wanted.node)
    if not _told(columns, values):
        return no_figure(phrase("run_values.none"))
    log = wanted.by_log(True)
    apis = [label if way == Direction.NONE else f"{label} {direction_word(way)}" for label, way in columns.apis]
    data = api_values_data(
        apis, columns.api, columns.names, values, columns.lost, measure=measure, current=current, log=log
    )
    return FigureResult(
        figure=api_values_figure(data) if data.all.shown else None,
        said=api_values_phrases(data),
        table=lambda: all_apis_table(data.all),
        log=log,
    )


def _columns(database: Database, rank: StoredRank) -> ValueColumns:
    return value_columns(database, rank, get_dump(database, rank.dump).job)


def _measured(columns: ValueColumns, wanted: FigureRequest) -> tuple[Measure, NDArray[np.float64]]:
    """What to show of the outputs: the norm unless another is asked for or no norm was stored."""
    usual: Measure = "max" if np.isnan(columns.norm).all() and not np.isnan(columns.largest).all() else "norm"
    measure = wanted.measure or usual
    return measure, columns.norm if measure == "norm" else columns.largest


def _told(columns: ValueColumns, values: NDArray[np.float64]) -> bool:
    return bool(columns.lost.any()) or not bool(np.isnan(values).all())


FIGURES: Final[dict[str, Callable[[Database, StoredRank, FigureRequest], FigureResult]]] = {
    "histogram": histogram,
    "value-map": value_map,
    "api-values": api_values,
}

IN_ORDER: Final = "value-order"
DUMP_FIGURES: Final = (*FIGURES, IN_ORDER)


def draw_of_dump(
    database: Database, rank: StoredRank, name: str, wanted: FigureRequest, first: Callable[[], str | None]
) -> FigureResult:
    """The figure `name`; raises NotFoundError for an unknown name, node or record, UsageError where a node is needed.

    first: looks for the call with the first NaN, infinity or clipped number that nobody asked for
    """
    if name not in DUMP_FIGURES:
        known = say("domain.known", names=", ".join(DUMP_FIGURES))
        raise NotFoundError(say("pipeline.no_figure", name=f"{name!r}"), hint=known)
    if name == IN_ORDER:
        return value_order(database, rank, wanted, first)
    return FIGURES[name](database, rank, wanted)
