"""Figures about the calls of a run: one API, all APIs, call order, steps and ranks."""

from __future__ import annotations

import numpy as np
from sqlalchemy import or_, select

from dumpscope.domain.facts import CAUSES
from dumpscope.domain.records import Direction
from dumpscope.domain.result import Answer
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit, stored_units
from dumpscope.index.pair_queries.node_pairs import one_node_pair
from dumpscope.index.pair_queries.pair_columns import NodeColumns, node_columns
from dumpscope.index.store import tables
from dumpscope.index.store.codec import scores
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.texts import texts_by_id
from dumpscope.index.trees.trees import direction_word, find_pair
from dumpscope.pipeline.figures.request import Drawn, Wanted, nothing
from dumpscope.plots.run.apis import all_apis_data, all_apis_figure, all_apis_said, all_apis_table
from dumpscope.plots.run.distribution import (
    api_distribution_data,
    api_distribution_figure,
    api_distribution_said,
    api_distribution_table,
)
from dumpscope.plots.run.order import error_order_data, error_order_figure, error_order_said, error_order_table
from dumpscope.plots.run.steps_and_ranks import (
    call_over_runs_data,
    call_over_runs_figure,
    call_over_runs_said,
    call_over_runs_table,
)
from dumpscope.plots.svg import api_distribution_svg, error_order_svg
from dumpscope.texts import phrase, say


def api_distribution(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: Wanted) -> Drawn:
    """All calls of the API of one node."""
    if wanted.node is None:
        raise UsageError(say("pipeline.figure_about_api_one_node"), hint=say("pipeline.add_node_name"))
    with database.read() as connection:
        row = find_pair(connection, unit, wanted.node)
        if row.label is None:
            return nothing(phrase("figure.no_api"))
        first, last = tables.key_range(unit.id)
        columns = fetch_columns(
            connection,
            f"SELECT id, severity, name FROM node_pair WHERE label = {row.label} AND direction = {row.direction}"
            f" AND id BETWEEN {first} AND {last} ORDER BY id",
        )
        label = texts_by_id(connection, [row.label])[row.label]
    order = np.array(columns[0], dtype=np.int64) - first
    log = wanted.by_log(True)
    data = api_distribution_data(
        _api(label, row.direction),
        order,
        scores(np.array(columns[1], dtype=np.float64)),
        columns[2],
        pair=order,
        current=int(np.searchsorted(order, row.id - first)),
        log=log,
    )
    figure = api_distribution_figure(data)
    return Drawn(
        figure=figure,
        said=api_distribution_said(data),
        table=lambda: api_distribution_table(data),
        svg=lambda: api_distribution_svg(data),
        log=log,
    )


def all_apis(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: Wanted) -> Drawn:
    """All APIs side by side, the two directions of one apart."""
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        current = None if wanted.node is None else find_pair(connection, unit, wanted.node).id - first
        columns = fetch_columns(
            connection,
            "SELECT COALESCE(label, -1), direction, severity, name FROM node_pair"
            f" WHERE id BETWEEN {first} AND {last} ORDER BY id",
        )
        if not columns:
            return nothing(phrase("figure.no_nodes"))
        label, direction = (np.array(column, dtype=np.int64) for column in columns[:2])
        kinds, place = np.unique(np.where(label < 0, -1, label * 8 + direction), return_inverse=True)
        texts = texts_by_id(connection, {int(kind) // 8 for kind in kinds if kind >= 0})
    nameless = int(np.count_nonzero(kinds < 0))  # 0 or 1: they come first
    log = wanted.by_log(True)
    data = all_apis_data(
        [_api(texts[int(kind) // 8], int(kind) % 8) for kind in kinds[nameless:]],
        place - nameless,
        scores(np.array(columns[2], dtype=np.float64)),
        columns[3],
        current=current,
        log=log,
    )
    figure = all_apis_figure(data) if data.shown else None
    return Drawn(figure=figure, said=all_apis_said(data), table=lambda: all_apis_table(data), log=log)


def _api(label: str, direction: int) -> str:
    return label if direction == Direction.NONE else f"{label} {direction_word(direction)}"


def error_order(database: Database, unit: StoredUnit, answer: Answer | None, wanted: Wanted) -> Drawn:
    """Input and output error in call order."""
    columns = node_columns(database, unit)
    selected = None
    if wanted.node is not None:
        with database.read() as connection:
            selected = one_node_pair(connection, unit, wanted.node).order
    if not columns.names:
        return nothing(phrase("figure.no_nodes"))
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
    return Drawn(
        figure=figure,
        said=error_order_said(data),
        table=lambda: error_order_table(data),
        svg=lambda: error_order_svg(data),
        log=log,
    )


def _origins(unit: StoredUnit, answer: Answer | None, columns: NodeColumns) -> list[int]:
    if answer is None:
        return np.flatnonzero(np.isin(columns.cls, CAUSES)).tolist()
    return [
        origin.pair
        for origin in answer.origins
        if (origin.step, origin.rank) == (unit.step, unit.rank) and origin.pair >= 0
    ]


def over_runs(database: Database, unit: StoredUnit, wanted: Wanted, comparison_id: str) -> Drawn:
    """One call in every step and on every rank."""
    if wanted.node is None:
        raise UsageError(say("pipeline.figure_about_one_node"), hint=say("pipeline.add_node_name"))
    units = {one.id: one for one in stored_units(database, comparison_id)}
    pair = tables.node_pair.c
    with database.read() as connection:
        name = find_pair(connection, unit, wanted.node).name
        first, last = tables.key_range(min(units))[0], tables.key_range(max(units))[1]
        statement = select(pair.id, pair.severity).where(
            or_(pair.name == name, pair.golden_name == name), pair.id.between(first, last)
        )
        found: dict[int, float] = {}
        for row in connection.execute(statement):
            owner = row.id >> tables.KEY_BITS
            if owner in units:
                found[owner] = max(row.severity, found.get(owner, -1.0))
    log = wanted.by_log(True)
    places = [units[one] for one in found]
    data = call_over_runs_data(
        name,
        [one.step for one in places],
        [one.rank for one in places],
        scores(np.array(list(found.values()), dtype=np.float64)),
        current=(unit.step, unit.rank),
        log=log,
    )
    figure = call_over_runs_figure(data)
    return Drawn(figure=figure, said=call_over_runs_said(data), table=lambda: call_over_runs_table(data), log=log)
