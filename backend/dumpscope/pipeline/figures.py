"""Figures of a stored comparison: rows of the index and tensor files in, plotly figure and words out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import select

from dumpscope.domain.facts import CAUSES
from dumpscope.domain.phrases import Phrase, phrase
from dumpscope.domain.records import Direction
from dumpscope.domain.result import Answer
from dumpscope.errors import NotFoundError, TensorError, UsageError
from dumpscope.index import tables
from dumpscope.index.codec import scores
from dumpscope.index.columns import NodeColumns, node_columns
from dumpscope.index.comparisons import StoredUnit
from dumpscope.index.database import Database, fetch_columns
from dumpscope.index.item_pairs import ItemPairRow, get_item_pair, items_of_node
from dumpscope.index.node_pairs import one_node_pair
from dumpscope.index.texts import texts_by_id
from dumpscope.index.trees import direction_word, find_pair
from dumpscope.plots.distribution import api_distribution_data, api_distribution_figure, api_distribution_said
from dumpscope.plots.errors import error_histogram_data, error_histogram_figure, error_histogram_said
from dumpscope.plots.histogram import pair_histogram_data, pair_histogram_figure, pair_histogram_said
from dumpscope.plots.order import error_order_data, error_order_figure, error_order_said
from dumpscope.readers import tensorfile

CANDIDATES: Final = 100
"""Item pairs of a node among which the one to show is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """figure: plotly JSON, None where there is nothing to draw; said: the same in words, or why there is none"""

    figure: dict[str, Any] | None
    said: list[Phrase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a figure is about. node: name of either side; pair: key of an item pair; log: logarithmic counts"""

    node: str | None = None
    pair: int | None = None
    log: bool = False


def draw(database: Database, unit: StoredUnit, answer: Answer | None, name: str, wanted: Wanted) -> Drawn:
    """The figure `name`; raises NotFoundError for an unknown name, node or pair, UsageError where a node is needed."""
    if name not in FIGURES:
        raise NotFoundError(f"no figure {name!r}", hint=f"known: {', '.join(FIGURES)}")
    return FIGURES[name](database, unit, answer, wanted)


def _api_distribution(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: Wanted) -> Drawn:
    if wanted.node is None:
        raise UsageError("this figure is about the API of one node", hint="add node=NAME")
    with database.read() as connection:
        row = find_pair(connection, unit, wanted.node)
        if row.label is None:
            return _nothing(phrase("figure.no_api"))
        first, last = tables.key_range(unit.id)
        columns = fetch_columns(
            connection,
            f"SELECT id, severity, name FROM node_pair WHERE label = {row.label} AND direction = {row.direction}"
            f" AND id BETWEEN {first} AND {last} ORDER BY id",
        )
        label = texts_by_id(connection, [row.label])[row.label]
    order = np.array(columns[0], dtype=np.int64) - first
    api = label if row.direction == Direction.NONE else f"{label} {direction_word(row.direction)}"
    data = api_distribution_data(
        api,
        order,
        scores(np.array(columns[1], dtype=np.float64)),
        columns[2],
        pair=order,
        current=int(np.searchsorted(order, row.id - first)),
    )
    return Drawn(figure=api_distribution_figure(data), said=api_distribution_said(data))


def _error_order(database: Database, unit: StoredUnit, answer: Answer | None, wanted: Wanted) -> Drawn:
    columns = node_columns(database, unit)
    selected = None
    if wanted.node is not None:
        with database.read() as connection:
            selected = one_node_pair(connection, unit, wanted.node).order
    if not columns.names:
        return _nothing(phrase("figure.no_nodes"))
    data = error_order_data(
        np.arange(len(columns.names)),
        columns.in_score,
        columns.out_score,
        columns.names,
        selected=selected,
        origins=_origins(unit, answer, columns),
        backward=unit.backward,
    )
    return Drawn(figure=error_order_figure(data), said=error_order_said(data))


def _origins(unit: StoredUnit, answer: Answer | None, columns: NodeColumns) -> list[int]:
    if answer is None:
        return np.flatnonzero(np.isin(columns.cls, CAUSES)).tolist()
    return [
        origin.pair
        for origin in answer.origins
        if (origin.step, origin.rank) == (unit.step, unit.rank) and origin.pair >= 0
    ]


def _histogram(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: Wanted) -> Drawn:
    row = _item(database, unit, wanted, lambda row: _file(row.target) and _file(row.golden))
    if row is None or row.target is None or row.golden is None:
        return _missing(row, wanted)
    loaded = []
    for rank, leaf in ((unit.target, row.target), (unit.golden, row.golden)):
        folder = _tensor_folder(database, rank)
        if folder is None or leaf.data_name is None:
            return _missing(row, wanted)
        try:
            loaded.append(tensorfile.load(os.path.join(folder, leaf.data_name), root=folder).array)
        except TensorError as error:
            return _nothing(phrase("figure.unreadable", error=str(error)))
    if loaded[0].shape != loaded[1].shape:
        target, golden = (str(list(array.shape)) for array in loaded)
        return _nothing(phrase("figure.shapes", target=target, golden=golden))
    data = pair_histogram_data(*loaded, log=wanted.log)
    return Drawn(
        figure=pair_histogram_figure(data),
        said=[phrase("figure.item", item=row.target.name), *pair_histogram_said(data)],
    )


def _error_histogram(database: Database, unit: StoredUnit, _answer: Answer | None, wanted: Wanted) -> Drawn:
    row = _item(database, unit, wanted, lambda row: row.detail)
    if row is None or row.detail is None or row.target is None:
        return _missing(row, wanted)
    data = error_histogram_data(row.detail.abs_histogram, row.detail.rel_histogram, log=wanted.log)
    return Drawn(
        figure=error_histogram_figure(data),
        said=[phrase("figure.item", item=row.target.name), *error_histogram_said(data)],
    )


def _item(
    database: Database, unit: StoredUnit, wanted: Wanted, usable: Callable[[ItemPairRow], Any]
) -> ItemPairRow | None:
    """The pair asked for, or of a node's pairs the usable one with the largest score (outputs before inputs at equal score)."""
    if wanted.pair is not None:
        return get_item_pair(database, unit, wanted.pair)
    if wanted.node is None:
        raise UsageError("this figure is about one pair of items", hint="add pair=ID or node=NAME")
    with database.read() as connection:
        node = one_node_pair(connection, unit, wanted.node)
        rows = items_of_node(connection, unit, node.pair, limit=CANDIDATES)
    fit = [row for row in rows if usable(row)]
    if not fit:
        return rows[0] if rows else None
    return max(fit, key=lambda row: (-1.0 if row.score is None else row.score, row.role == "output"))


def _nothing(why: Phrase) -> Drawn:
    return Drawn(figure=None, said=[why])


def _file(leaf: Any) -> bool:
    return leaf is not None and leaf.data_name is not None


def _missing(row: ItemPairRow | None, wanted: Wanted) -> Drawn:
    if row is None:
        return _nothing(phrase("figure.no_items"))
    if row.target is None or row.golden is None:
        side = "golden" if row.target is None else "target"
        return _nothing(phrase("figure.one_side", side=[phrase(f"side.{side}")]))
    return _nothing(phrase("figure.no_tensors", node=row.node or wanted.node or ""))


def _tensor_folder(database: Database, rank: int) -> str | None:
    with database.read() as connection:
        header = connection.execute(select(tables.rank_dump.c.header).where(tables.rank_dump.c.id == rank)).scalar()
    if header is None:
        raise NotFoundError("this rank of the dump is gone", hint="register the dump again")
    folder: str | None = json.loads(header)["data_dir"]
    return folder


FIGURES: Final[dict[str, Callable[[Database, StoredUnit, Answer | None, Wanted], Drawn]]] = {
    "api-distribution": _api_distribution,
    "error-order": _error_order,
    "histogram": _histogram,
    "error-histogram": _error_histogram,
}
