"""Distances of both sides from an absolute reference, stored by item pair, and by node pair as the output that decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, select

from dumpscope.analysis.reference import find_deciding_items
from dumpscope.domain.distances import MEASURE_WORDS, Distances, Standing as Standings
from dumpscope.domain.facts import Facts, ItemOpinions
from dumpscope.domain.records import Float64, Int8, Int64
from dumpscope.domain.result import Unit
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.prepared import Prepared, some_keys

NODE_COLUMNS: Final = ("target_distance", "golden_distance", "distance_measure", "ratio", "inverse")
OPINION_COLUMNS: Final = ("golden_score", "measure", "ratio", "inverse")
_COLUMNS: Final = ("id", "target_bulk", "target_peak", "golden_bulk", "golden_peak", *OPINION_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One row's distances as they are read: see `domain.distances`; measure: of MEASURE_WORDS, None where not measured"""

    target: float | None
    golden: float | None
    measure: str
    ratio: float | None
    inverse: float | None


Rows = Callable[[str, Sequence[str]], list[Sequence[Any]]]


def item_columns(base: int, facts: Facts, opinions: ItemOpinions) -> list[list[Any]]:
    """Rows of the table `distance` as columns: item pairs of which anything was measured. base: the unit's first key"""
    distances, standing = facts.distances, opinions.standing
    if distances is None or standing is None:
        return [[] for _ in _COLUMNS]
    rows = measured_rows(distances)
    both = np.column_stack([distances.target, distances.golden])
    return [
        (rows + base).tolist(),
        *(_nullable(column) for column in both[rows].T),
        *opinion_columns(standing, rows),
    ]


def measured_rows(distances: Distances) -> Int64:
    """Item pairs of which any distance is known."""
    both = np.column_stack([distances.target, distances.golden])
    rows: Int64 = np.flatnonzero(~np.isnan(both).all(axis=1))
    return rows


def opinion_columns(standing: Standings, rows: Any) -> list[list[Any]]:
    """Columns of OPINION_COLUMNS of these rows."""
    return [
        _nullable(standing.golden_score[rows]),
        standing.measure[rows].tolist(),
        _nullable(standing.ratio[rows]),
        _nullable(standing.inverse[rows]),
    ]


def node_columns(unit: Unit, roles: Int8, opinions: ItemOpinions) -> list[list[Any]]:
    """Columns of NODE_COLUMNS, one entry per node pair. roles: Role by item pair"""
    size = len(unit.pairs)
    empty: list[list[Any]] = [[None] * size, [None] * size, [None] * size, [-1.0] * size, [None] * size]
    distances, standing = unit.facts.distances, opinions.standing
    if distances is None or standing is None:
        return empty
    rows = find_deciding_items(unit.items, roles, opinions, size)
    for node in np.flatnonzero(rows >= 0).tolist():
        row, measure = int(rows[node]), int(standing.measure[rows[node]])
        values = (
            float(distances.target[row, measure]), float(distances.golden[row, measure]), measure,
            float(standing.ratio[row]), float(standing.inverse[row]),
        )  # fmt: skip
        for column, value in zip(empty, values, strict=True):
            column[node] = value
    return empty


def node_standing(row: Any) -> Standing | None:
    """Of a row of node_pair."""
    if row.distance_measure is None:
        return None
    return Standing(
        target=row.target_distance,
        golden=row.golden_distance,
        measure=MEASURE_WORDS[row.distance_measure],
        ratio=None if row.ratio < 0 else row.ratio,
        inverse=row.inverse,
    )


def item_standing(row: Any) -> Standing | None:
    """Of a row of `distance`; None where one side alone was measured."""
    if row is None or row.ratio is None:
        return None
    word = MEASURE_WORDS[row.measure]
    return Standing(
        target=getattr(row, f"target_{word}"),
        golden=getattr(row, f"golden_{word}"),
        measure=word,
        ratio=row.ratio,
        inverse=row.inverse,
    )


_SOME: Final = Prepared(select(tables.distance).where(tables.distance.c.id.in_(some_keys())))


def item_distances(connection: Connection, keys: Sequence[int]) -> dict[int, Any]:
    """Rows of `distance` by key."""
    return {row.id: row for row in _SOME.among(connection, keys)}


def has_distances(database: Database, unit: int) -> bool:
    """Whether anything of this unit was measured against a reference."""
    column = tables.distance.c.id
    with database.read() as connection:
        first = connection.execute(select(column).where(column.between(*tables.key_range(unit))).limit(1))
        return first.scalar() is not None


def read_distances(rows: Rows, size: int) -> tuple[Distances | None, Standings | None]:
    """What `item_columns` stored, over all `size` item pairs; (None, None) where there is nothing."""
    columns = rows("distance", _COLUMNS)
    if not len(columns[0]):
        return None, None
    places = np.array(columns[0], dtype=np.int64) & tables.NUMBER_MASK
    numbers = np.full((len(_COLUMNS) - 1, size), np.nan)
    numbers[:, places] = np.array(columns[1:], dtype=np.float64)
    return _columns(numbers)


def some_distances(rows: Sequence[Any]) -> tuple[Distances, Standings]:
    """The same of single rows of `distance`, None for an item pair without one."""
    numbers = np.array(
        [[None if row is None else getattr(row, name) for name in _COLUMNS[1:]] for row in rows], dtype=np.float64
    )
    return _columns(numbers.reshape(len(rows), len(_COLUMNS) - 1).T)


def _columns(numbers: Float64) -> tuple[Distances, Standings]:
    """numbers: (columns behind the key, item pairs)"""
    target_bulk, target_peak, golden_bulk, golden_peak, golden_score, measure, ratio, inverse = numbers
    distances = Distances(
        target=np.column_stack([target_bulk, target_peak]), golden=np.column_stack([golden_bulk, golden_peak])
    )
    measures = np.nan_to_num(measure).astype(np.int8)
    return distances, Standings(measure=measures, ratio=ratio, inverse=inverse, golden_score=golden_score)


def _nullable(column: Float64) -> list[float | None]:
    values: list[float | None] = column.tolist()
    for row in np.flatnonzero(np.isnan(column)).tolist():
        values[row] = None
    return values
