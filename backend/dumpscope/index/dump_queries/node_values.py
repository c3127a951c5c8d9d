"""One statistic of the tensors of named nodes over steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal

import numpy as np
from sqlalchemy import Connection, Integer, Select, cast, select

from dumpscope.analysis.trends import Bucket
from dumpscope.domain.records import STATISTICS, Float64, Kind, Role, State, UInt8
from dumpscope.index.dumps.items import some_items
from dumpscope.index.store import tables
from dumpscope.index.store.codec import number

Statistic = Literal["norm", "max", "min", "mean"]
Part = Literal["output", "input"]

RANKS: Final = 1 << 16
"""A place is step * RANKS + rank."""

_ROLES: Final[dict[Part, tuple[Role, ...]]] = {
    "output": (Role.OUTPUT, Role.GRADIENT, Role.DEBUG),
    "input": (Role.INPUT, Role.KWARG),
}


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
    place, entry = places.subquery(), tables.entry.c
    first = place.c.owner.op("<<")(cast(tables.KEY_BITS, Integer))
    bucket, numbers = in_buckets(place.c.step, edges)
    statement = (
        select(place, bucket.label("bucket"), entry.name, entry.first_item, entry.item_count)
        .join(tables.entry, entry.id.between(first, first + tables.NUMBER_MASK))
        .where(entry.name.in_(names), entry.item_count > 0)
        .order_by(place.c.owner)
    )
    found: dict[tuple[str, int | None], dict[int, _Fold]] = {}
    for owner, rows in groupby(connection.execute(statement).all(), lambda row: int(row.owner)):
        nodes = list(rows)
        items = _Tensors(connection, owner, nodes, part)
        for row in nodes:
            values, states = items.of(row)
            if not len(values):
                continue
            at = row.bucket if numbers is None else numbers[row.bucket]
            folds = found.setdefault((row.name, row.rank if by_rank else None), {})
            folds.setdefault(at, _Fold()).add(row, values, states, STATISTICS.index(statistic.capitalize()))
    return {key: {at: fold.value(statistic) for at, fold in folds.items()} for key, folds in found.items()}


class _Tensors:
    """The tensors that nodes of a rank took or put out."""

    def __init__(self, connection: Connection, owner: int, nodes: Sequence[Any], part: Part) -> None:
        wanted = [number for row in nodes for number in range(row.first_item, row.first_item + row.item_count)]
        items = some_items(connection, owner, wanted)
        kept = np.flatnonzero(np.isin(items.role, _ROLES[part]) & (items.kind == Kind.TENSOR))
        self._number, self._stats, self._states = items.number[kept], items.stats[kept], items.states[kept]

    def of(self, row: Any) -> tuple[Float64, UInt8]:
        """Statistics and their states, (n, 4)."""
        first, end = np.searchsorted(self._number, [row.first_item, row.first_item + row.item_count])
        return self._stats[first:end], self._states[first:end]


class _Fold:
    """One statistic over the tensors of a node, in a bucket of steps."""

    def __init__(self) -> None:
        self.step, self.bad = math.inf, math.inf
        self.high, self.low = -math.inf, math.inf
        self.state = int(State.ABSENT)

    def add(self, row: Any, stats: Float64, states: UInt8, statistic: int) -> None:
        self.step = min(self.step, row.step)
        if (states >= State.NAN).any():
            self.bad = min(self.bad, row.step * RANKS + row.rank)
        own = states[:, statistic]
        self.state = max(self.state, int(own.max()))
        finite = stats[own == State.FINITE, statistic]
        if len(finite):
            self.high, self.low = max(self.high, float(finite.max())), min(self.low, float(finite.min()))

    def value(self, statistic: Statistic) -> NodeValue:
        return NodeValue(
            value=self._folded(statistic),
            step=int(self.step),
            first_bad=None if math.isinf(self.bad) else int(self.bad),
        )

    def _folded(self, statistic: Statistic) -> float | None:
        if self.state > State.FINITE:
            return number(None, self.state, 0)
        if self.state == State.ABSENT:
            return None
        if statistic in ("max", "norm"):
            return self.high
        return self.low if statistic == "min" or abs(self.low) > abs(self.high) else self.high
