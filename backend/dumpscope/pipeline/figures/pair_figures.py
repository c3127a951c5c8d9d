"""Figures about one pair of tensors: the item pair asked for, or the worst of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from dumpscope.domain.result import Answer
from dumpscope.errors import TensorError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.store.database import Database
from dumpscope.pipeline.figures.pair_tensors import has_file, item_of, load_sides, why_missing, why_unreadable
from dumpscope.pipeline.figures.request import FigureRequest, FigureResult, no_figure
from dumpscope.plots.pair.density import (
    pair_density_data,
    pair_density_figure,
    pair_density_phrases,
    pair_density_table,
)
from dumpscope.plots.pair.difference_map import (
    difference_map_data,
    difference_map_figure,
    difference_map_phrases,
    difference_map_table,
)
from dumpscope.plots.pair.errors import (
    error_histogram_data,
    error_histogram_figure,
    error_histogram_phrases,
    error_histogram_table,
)
from dumpscope.plots.pair.histogram import (
    pair_histogram_data,
    pair_histogram_figure,
    pair_histogram_phrases,
    pair_histogram_table,
)
from dumpscope.texts import phrase

Array = NDArray[Any]


def histogram(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: FigureRequest) -> FigureResult:
    """Values of both sides, their difference, quantiles against quantiles."""

    def draw(target: Array, golden: Array) -> FigureResult:
        data = pair_histogram_data(target, golden, log=wanted.by_log(False))
        figure = pair_histogram_figure(data, ecdf=wanted.ecdf)
        return FigureResult(
            figure=figure, said=pair_histogram_phrases(data), table=lambda: pair_histogram_table(data), log=data.log
        )

    return _of_tensors(database, unit, wanted, draw)


def density(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: FigureRequest) -> FigureResult:
    """Target against golden."""

    def draw(target: Array, golden: Array) -> FigureResult:
        data = pair_density_data(target, golden, log=wanted.by_log(True))
        figure = pair_density_figure(data) if data.elements else None
        return FigureResult(
            figure=figure, said=pair_density_phrases(data), table=lambda: pair_density_table(data), log=data.scale.log
        )

    return _of_tensors(database, unit, wanted, draw)


def difference_map(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: FigureRequest) -> FigureResult:
    """The difference over two dimensions."""

    def draw(target: Array, golden: Array) -> FigureResult:
        log = wanted.by_log(True)
        data = difference_map_data(target, golden, axes=wanted.axes, reduce=wanted.reduce, log=log)
        figure = difference_map_figure(data) if target.size else None
        return FigureResult(
            figure=figure, said=difference_map_phrases(data), table=lambda: difference_map_table(data), log=log
        )

    return _of_tensors(database, unit, wanted, draw)


def _of_tensors(
    database: Database, unit: StoredUnit, wanted: FigureRequest, draw: Callable[[Array, Array], FigureResult]
) -> FigureResult:
    """What `draw` makes of the two tensors, or why there are not two of one shape."""
    row = item_of(database, unit, wanted.node, wanted.pair, lambda row: has_file(row.target) and has_file(row.golden))
    try:
        sides = (None, None) if row is None else load_sides(database, unit, row)
    except TensorError as error:
        return no_figure(why_unreadable(error))
    target, golden = sides
    if row is None or row.target is None or target is None or golden is None:
        return no_figure(why_missing(row, wanted.node))
    if target.shape != golden.shape:
        shapes = {"target": str(list(target.shape)), "golden": str(list(golden.shape))}
        return no_figure(phrase("figure.shapes", **shapes))
    try:
        drawn = draw(target.array, golden.array)
    except TensorError as error:  # cut off while it is read
        return no_figure(why_unreadable(error))
    said = [phrase("figure.item", item=row.target.name), *drawn.said]
    return FigureResult(figure=drawn.figure, said=said, table=drawn.table, log=drawn.log)


def error_histogram(
    database: Database, unit: StoredUnit, _answer: Answer | None, wanted: FigureRequest
) -> FigureResult:
    """Absolute and relative errors, from what was measured."""
    row = item_of(database, unit, wanted.node, wanted.pair, lambda row: row.detail)
    if row is None or row.detail is None or row.target is None:
        return no_figure(why_missing(row, wanted.node))
    log = wanted.by_log(False)
    data = error_histogram_data(row.detail.abs_histogram, row.detail.rel_histogram, log=log)
    return FigureResult(
        figure=error_histogram_figure(data),
        said=[phrase("figure.item", item=row.target.name), *error_histogram_phrases(data)],
        table=lambda: error_histogram_table(data),
        log=log,
    )
