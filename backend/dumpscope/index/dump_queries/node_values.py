"""One statistic of the tensors of named nodes over steps, folded by the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import BigInteger, Connection, Integer, Select, case, cast, func, select

from dumpscope.analysis.trends import Bucket
from dumpscope.domain.records import STATISTICS, Kind, Role
from dumpscope.index.store import tables
from dumpscope.index.store.codec import STATE_BITS, number

Statistic = Literal["norm", "max", "min", "mean"]
Part = Literal["output", "input"]

RANKS: Final = 1 << 16
"""A place is step * RANKS + rank."""

_ROLES: Final[dict[Part, tuple[Role, ...]]] = {
    "output": (Role.OUTPUT, Role.GRADIENT, Role.DEBUG),
    "input": (Role.INPUT, Role.KWARG),
}
_NOT_FINITE: Final = sum(0b110 << place * STATE_BITS for place in range(len(STATISTICS)))
"""Bits of the four states of which one is set where a number is NaN or infinite (see `domain.records.State`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeValue:
    """Of all tensors of a node in a bucket of steps: the largest maximum or norm, the smallest minimum, the mean of largest size;
    not finite where one is, None where none was stored. step: the first that has the node
    first_bad: place of the first with any statistic that is not finite"""

    value: float | None
    step: int
    first_bad: int | None


def in_buckets(step: Any, edges: Sequence[Bucket]) -> tuple[Any, dict[int, int] | None]:
    """SQL expression of a step's bucket, and the number of each of its values where those are not the numbers themselves."""
    if all(edge.first == edge.last for edge in edges):
        return step, {edge.first: number for number, edge in enumerate(edges)}
    return (step - edges[0].first) // (edges[0].last - edges[0].first + 1), None


def node_values(
    connection: Connection,
    places: Select[tuple[int, int, int]],
    names: Sequence[str],
    edges: Sequence[Bucket],
    statistic: Statistic,
    part: Part = "output",
    *,
    by_rank: bool = True,
) -> dict[tuple[str, int | None], dict[int, NodeValue]]:
    """Values by name and rank (None: folded over ranks), then by bucket. places: selects rank_dump id, step and rank as `owner`,
    `step` and `rank`"""
    if not names:
        return {}
    place = places.subquery()
    entry, item = tables.entry.c, tables.item.c
    first = place.c.owner.op("<<")(cast(tables.KEY_BITS, Integer))
    number_of = STATISTICS.index(statistic.capitalize())
    column = item[statistic]
    bucket, numbers = in_buckets(place.c.step, edges)
    where = cast(place.c.step, BigInteger) * RANKS + place.c.rank
    by = [place.c.rank] if by_rank else []
    statement = (
        select(
            entry.name,
            bucket.label("bucket"),
            *by,
            func.min(place.c.step).label("first"),
            func.max(column).label("high"),
            func.min(column).label("low"),
            func.max(item.states.op(">>")(number_of * STATE_BITS).op("&")(7)).label("state"),
            func.min(case((item.states.op("&")(_NOT_FINITE) != 0, where))).label("bad"),
        )
        .select_from(place)
        .join(tables.entry, entry.id.between(first, first + tables.NUMBER_MASK))
        .join(tables.item, item.id.between(first + entry.first_item, first + entry.first_item + entry.item_count - 1))
        .where(entry.name.in_(names), item.role.in_(_ROLES[part]), item.kind == int(Kind.TENSOR))
        .group_by(entry.name, bucket, *by)
    )
    found: dict[tuple[str, int | None], dict[int, NodeValue]] = {}
    for row in connection.execute(statement):
        value = NodeValue(value=_folded(row, statistic), step=row.first, first_bad=row.bad)
        at = row.bucket if numbers is None else numbers[row.bucket]
        found.setdefault((row.name, row.rank if by_rank else None), {})[at] = value
    return found


def _folded(row: Any, statistic: Statistic) -> float | None:
    if row.state > 1:
        return number(None, row.state, 0)
    if row.high is None or statistic in ("max", "norm"):
        return None if row.high is None else float(row.high)
    return float(row.low if statistic == "min" or abs(row.low) > abs(row.high) else row.high)
