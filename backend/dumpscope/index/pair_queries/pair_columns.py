"""Whole columns of a unit's node pairs, kept in memory for the pictures that look at all of them at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.records import Float64, Int8
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.store import tables
from dumpscope.index.store.codec import scores
from dumpscope.index.store.database import Database, fetch_columns

KEPT: Final = 6
"""Units kept; one of 100 000 calls takes some 12 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeColumns:
    """One entry per node pair, in execution order; scores are nan where nothing was compared."""

    names: tuple[str, ...]
    verdict: Int8
    cls: Int8
    in_score: Float64
    out_score: Float64


_kept: OrderedDict[tuple[str, str], NodeColumns] = OrderedDict()
_lock = threading.Lock()


def node_columns(database: Database, unit: StoredUnit) -> NodeColumns:
    """Columns of a unit; read once per judgement of a comparison that is done."""
    if unit.stamp is None:
        return _load(database, unit)
    key = (database.url, f"{unit.stamp}:{unit.id}")
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    loaded = _load(database, unit)
    with _lock:
        _kept[key] = loaded
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return loaded


def _load(database: Database, unit: StoredUnit) -> NodeColumns:
    first, last = tables.key_range(unit.id)
    with database.read() as connection:
        columns = fetch_columns(
            connection,
            "SELECT name, verdict, cls, in_score, severity FROM node_pair"
            f" WHERE id BETWEEN {first} AND {last} ORDER BY id",
        )
    names, verdict, cls, in_score, severity = columns or [[] for _ in range(5)]
    return NodeColumns(
        names=tuple(names),
        verdict=np.array(verdict, dtype=np.int8),
        cls=np.array(cls, dtype=np.int8),
        in_score=scores(np.array(in_score, dtype=np.float64)),
        out_score=scores(np.array(severity, dtype=np.float64)),
    )
