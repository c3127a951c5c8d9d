"""Whole columns of a unit's node pairs, for figures that show all of them; the last ones stay in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.records import Float64, Int8
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.store import tables
from dumpscope.index.store.codec import scores
from dumpscope.index.store.database import Database, fetch_columns
from dumpscope.index.store.recent import Recent

KEPT: Final = 6
"""Units kept; one of 100 000 calls takes some 12 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairColumns:
    """One entry per node pair, in execution order; scores are nan where nothing was compared."""

    names: tuple[str, ...]
    verdict: Int8
    cls: Int8
    in_score: Float64
    out_score: Float64


_RECENT: Final[Recent[tuple[str, str], PairColumns]] = Recent(KEPT)


def pair_columns(database: Database, unit: StoredUnit) -> PairColumns:
    """Columns of a unit; read once per judgement of a comparison that is done."""
    key = None if unit.stamp is None else (database.url, f"{unit.stamp}:{unit.id}")
    return _RECENT.get(key, lambda: _load(database, unit))


def _load(database: Database, unit: StoredUnit) -> PairColumns:
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        columns = fetch_columns(
            connection,
            "SELECT name, verdict, cls, in_score, severity FROM node_pair"
            f" WHERE id BETWEEN {first} AND {last} ORDER BY id",
        )
    names, verdict, cls, in_score, severity = columns or [[] for _ in range(5)]
    return PairColumns(
        names=tuple(names),
        verdict=np.array(verdict, dtype=np.int8),
        cls=np.array(cls, dtype=np.int8),
        in_score=scores(np.array(in_score, dtype=np.float64)),
        out_score=scores(np.array(severity, dtype=np.float64)),
    )
