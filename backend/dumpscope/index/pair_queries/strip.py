"""The call-order strip: a unit's node pairs in equal buckets, the worst of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dumpscope.domain.facts import CLASS_WORDS, VERDICT_WORDS, Verdict
from dumpscope.index.pair_queries.pair_columns import PairColumns
from dumpscope.index.store.codec import score, severities


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
