"""The call-order strip: a unit's node pairs in equal buckets, the worst of each."""

from __future__ import annotations

from dataclasses import dataclass

from dumpscope.domain.facts import CLASS_WORDS, VERDICT_WORDS
from dumpscope.index import tables
from dumpscope.index.codec import score
from dumpscope.index.comparisons import StoredUnit
from dumpscope.index.database import Database, fetch_columns

CLASS_SHIFT = 2  # a verdict needs two bits


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


def strip(database: Database, unit: StoredUnit, *, buckets: int) -> list[Bucket]:
    """At most `buckets` buckets over all node pairs, none of them empty."""
    total = unit.pairs
    if total == 0:
        return []
    wanted = min(buckets, total)
    base, last = tables.key(unit.id), tables.key(unit.id, total - 1)
    weight = f"((cls << {CLASS_SHIFT} | verdict) << {tables.KEY_BITS}) | ({tables.NUMBER_MASK} - (id - {base}))"
    with database.read() as connection:
        columns = fetch_columns(
            connection,
            f"SELECT (id - {base}) * {wanted} / {total} AS bucket, max({weight.replace('cls', _wide('cls', database.kind))}),"
            f" max(severity) FROM node_pair WHERE id BETWEEN {base} AND {last} GROUP BY bucket ORDER BY bucket",
        )
    found: list[Bucket] = []
    for bucket, worst, severity in zip(*columns, strict=True):
        word = worst >> tables.KEY_BITS
        found.append(
            Bucket(
                first=-(-bucket * total // wanted),
                last=-(-(bucket + 1) * total // wanted) - 1,
                severity=score(severity),
                cls=CLASS_WORDS[word >> CLASS_SHIFT],
                verdict=VERDICT_WORDS[word & 3],
                seq=tables.NUMBER_MASK - (worst & tables.NUMBER_MASK),
            )
        )
    return found


def _wide(column: str, kind: str) -> str:
    """PostgreSQL shifts smallint within smallint."""
    return f"{column}::bigint" if kind == "postgresql" else column
