"""Figures about the calls of a run: one API, all APIs, call order, steps and ranks."""

from __future__ import annotations

import numpy as np

from dumpscope.domain.facts import CAUSES
from dumpscope.domain.records import Direction
from dumpscope.domain.result import Answer
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit, stored_units
from dumpscope.index.pair_queries.api_columns import calls_by_api, calls_of_api, runs_of_call
from dumpscope.index.pair_queries.node_pairs import one_node_pair
from dumpscope.index.pair_queries.pair_columns import PairColumns, pair_columns
from dumpscope.index.store.database import Database
from dumpscope.index.trees.trees import direction_word
from dumpscope.pipeline.figures.request import FigureRequest, FigureResult, no_figure
from dumpscope.plots.run.apis import all_apis_data, all_apis_figure, all_apis_phrases, all_apis_table
from dumpscope.plots.run.distribution import (
    api_distribution_data,
    api_distribution_figure,
    api_distribution_phrases,
    api_distribution_table,
)
from dumpscope.plots.run.order import error_order_data, error_order_figure, error_order_phrases, error_order_table
from dumpscope.plots.run.steps_and_ranks import (
    call_over_runs_data,
    call_over_runs_figure,
    call_over_runs_phrases,
    call_over_runs_table,
)
from dumpscope.plots.svg import api_distribution_svg, error_order_svg
from dumpscope.texts import phrase, say


def api_distribution(
    database: Database, unit: StoredUnit, _answer: Answer | None, wanted: FigureRequest
) -> FigureResult:
    """All calls of the API of one node."""
    if wanted.node is None:
        raise UsageError(say("pipeline.figure_about_api_one_node"), hint=say("pipeline.add_node_name"))
    calls = calls_of_api(database, unit, wanted.node)
    if calls is None:
        return no_figure(phrase("figure.no_api"))
    log = wanted.by_log(True)
    data = api_distribution_data(
        _api(calls.api, calls.direction),
        calls.order,
        calls.score,
        calls.names,
        pair=calls.order,
        current=calls.current,
        log=log,
    )
    figure = api_distribution_figure(data)
    return FigureResult(
        figure=figure,
        said=api_distribution_phrases(data),
        table=lambda: api_distribution_table(data),
        svg=lambda: api_distribution_svg(data),
        log=log,
    )


def all_apis(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: FigureRequest) -> FigureResult:
    """All APIs side by side, the two directions of one apart."""
    calls = calls_by_api(database, unit, wanted.node)
    if calls is None:
        return no_figure(phrase("figure.no_nodes"))
    log = wanted.by_log(True)
    apis = [_api(label, direction) for label, direction in calls.apis]
    data = all_apis_data(apis, calls.api, calls.score, calls.names, current=calls.current, log=log)
    figure = all_apis_figure(data) if data.shown else None
    return FigureResult(figure=figure, said=all_apis_phrases(data), table=lambda: all_apis_table(data), log=log)


def _api(label: str, direction: int) -> str:
    return label if direction == Direction.NONE else f"{label} {direction_word(direction)}"


def error_order(database: Database, unit: StoredUnit, answer: Answer | None, wanted: FigureRequest) -> FigureResult:
    """Input and output error in call order."""
    columns = pair_columns(database, unit)
    selected = None
    if wanted.node is not None:
        with database.read() as connection:
            selected = one_node_pair(connection, unit, wanted.node).order
    if not columns.names:
        return no_figure(phrase("figure.no_nodes"))
    log = wanted.by_log(True)
    data = error_order_data(
        np.arange(len(columns.names)),
        columns.in_score,
        columns.out_score,
        columns.names,
        selected=selected,
        origins=_origins(unit, answer, columns),
        backward=unit.backward,
        log=log,
    )
    figure = error_order_figure(data)
    return FigureResult(
        figure=figure,
        said=error_order_phrases(data),
        table=lambda: error_order_table(data),
        svg=lambda: error_order_svg(data),
        log=log,
    )


def _origins(unit: StoredUnit, answer: Answer | None, columns: PairColumns) -> list[int]:
    if answer is None:
        causes: list[int] = np.flatnonzero(np.isin(columns.cls, CAUSES)).tolist()
        return causes
    return [
        origin.pair
        for origin in answer.origins
        if (origin.step, origin.rank) == (unit.step, unit.rank) and origin.pair >= 0
    ]


def over_runs(database: Database, unit: StoredUnit, wanted: FigureRequest, comparison_id: str) -> FigureResult:
    """One call in every step and on every rank."""
    if wanted.node is None:
        raise UsageError(say("pipeline.figure_about_one_node"), hint=say("pipeline.add_node_name"))
    runs = runs_of_call(database, unit, stored_units(database, comparison_id), wanted.node)
    log = wanted.by_log(True)
    data = call_over_runs_data(
        runs.name,
        [one.step for one in runs.units],
        [one.rank for one in runs.units],
        runs.score,
        current=(unit.step, unit.rank),
        log=log,
    )
    figure = call_over_runs_figure(data)
    return FigureResult(
        figure=figure, said=call_over_runs_phrases(data), table=lambda: call_over_runs_table(data), log=log
    )
