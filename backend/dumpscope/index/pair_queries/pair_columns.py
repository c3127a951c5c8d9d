"""Whole columns of a unit's node pairs, for figures that show all of them; the last ones stay in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.facts import CLASS_WORDS, VERDICT_WORDS, Verdict
from dumpscope.domain.records import Float64, Int8
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.store import tables
from dumpscope.index.store.codec import score, scores, severities
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Node pairs first..last; verdict and cls of the worst one (worst class, then worst verdict), `seq` is its number,
    severity the largest out score of the bucket."""

    first: int
    last: int
    severity: float | None
    cls: str
    verdict: str
    seq: int


def strip(columns: PairColumns, *, buckets: int) -> list[Bucket]:
    """At most `buckets` buckets over all node pairs, none of them empty."""
    total = len(columns.names)
    if total == 0:
        return []
    wanted = min(buckets, total)
    first = -(-np.arange(wanted) * total // wanted)
    place = np.arange(total)
    rank = columns.cls.astype(np.int64) * len(Verdict) + columns.verdict
    worst = np.maximum.reduceat(rank * total + (total - 1 - place), first)  # of equals, the first one
    seq = total - 1 - worst % total
    severity = np.maximum.reduceat(severities(columns.out_score), first)
    last = np.append(first[1:], total) - 1
    return [
        Bucket(
            first=start,
            last=end,
            severity=score(largest),
            cls=CLASS_WORDS[columns.cls[number]],
            verdict=VERDICT_WORDS[columns.verdict[number]],
            seq=number,
        )
        for start, end, largest, number in zip(
            first.tolist(), last.tolist(), severity.tolist(), seq.tolist(), strict=True
        )
    ]
