"""One statistic of every call of a dump over its steps, a row per rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, Connection, select

from dumpscope.analysis.trends import Bucket, fit_growth_of_buckets
from dumpscope.errors import NotFoundError
from dumpscope.index.dump_queries.node_values import RANKS, NodeValue, Part, Statistic, node_values
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Page
from dumpscope.index.store.recent import Recent
from dumpscope.index.trees.trees import kind_word
from dumpscope.index.trees.trend_rows import Call, Calls, Kind, Wanted, sample_owners, show, steps_and_ranks
from dumpscope.texts import say

_kinds: Final[Recent[int, Mapping[str, int]]] = Recent(16)
"""Kind of each call by its name, by digest of the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCell:
    """A bucket of steps. step: the first that is not finite, else the first that has the call; bad: one is not finite"""

    bucket: int
    value: float | None
    bad: bool
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTrend:
    """growth: factor of the value's size per step; first_bad: (step, rank) of the first number that is not finite"""

    name: str
    kind: str
    rank: int
    growth: float | None
    first_bad: tuple[int, int] | None
    cells: list[ValueCell]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTrends:
    steps: list[Bucket]
    ranks: list[int]
    page: Page[ValueTrend]


def dump_trends(
    database: Database,
    dump_id: str,
    *,
    statistic: Statistic = "norm",
    part: Part = "output",
    kind: Kind = "module",
    q: str = "",
    name: str | None = None,
    rank: int | None = None,
    buckets: int = 60,
    after: int | None = None,
    limit: int = 25,
) -> ValueTrends:
    """A page of calls in the order they ran, each with a row per rank. name: only this call; rank: only this rank

    Raises NotFoundError for a dump without ranks.
    """
    get_dump(database, dump_id)
    wanted = Wanted(kind=kind, q=q, name=name, buckets=buckets, after=after, limit=limit)
    owner = tables.rank_dump.c
    with database.read() as connection:
        serial = connection.execute(select(tables.dump.c.serial).where(tables.dump.c.id == dump_id)).scalar_one()
        mine = owner.dump == serial
        missing = NotFoundError(say("api.dump_has_no_ranks_yet"), hint=say("api.wait_ingest_job"))
        steps, ranks = steps_and_ranks(connection, tables.rank_dump, mine, missing)
        where = [mine] if rank is None else [mine, owner.rank == rank]
        edges, shown = show(_calls(connection, where), wanted, steps)
        places = select(owner.id.label("owner"), owner.step, owner.rank).where(*where)
        values = node_values(connection, places, shown.names, edges, statistic, part)
    rows = [_trend(one, values.get((one.name, one.rank), {}), edges) for _, one in shown.rows]
    return ValueTrends(steps=edges, ranks=ranks, page=shown.page(rows))


def _calls(connection: Connection, where: Sequence[ColumnElement[bool]]) -> Calls:
    entry = tables.entry.c
    calls = Calls()

    def load(rank: int) -> dict[str, int]:
        there = (entry.id.between(*tables.key_range(rank)), entry.kind.is_not(None))
        rows = connection.execute(select(entry.name, entry.kind).where(*there).order_by(entry.seq))
        return {row.name: row.kind for row in rows}

    for sample in sample_owners(connection, tables.rank_dump, tables.rank_dump.c.nodes, where):
        calls.add(sample.ranks, _kinds.get(sample.calls, partial(load, sample.owner)))
    return calls


def _trend(call: Call, values: dict[int, NodeValue], edges: Sequence[Bucket]) -> ValueTrend:
    cells = [
        ValueCell(
            bucket=bucket,
            value=found.value,
            bad=found.first_bad is not None,
            step=found.step if found.first_bad is None else found.first_bad // RANKS,
        )
        for bucket, found in sorted(values.items())
    ]
    bad = min((found.first_bad for found in values.values() if found.first_bad is not None), default=None)
    return ValueTrend(
        name=call.name,
        kind=kind_word(call.kind),
        rank=call.rank or 0,
        growth=fit_growth_of_buckets(edges, {cell.bucket: cell.value for cell in cells}),
        first_bad=None if bad is None else divmod(bad, RANKS),
        cells=cells,
    )
