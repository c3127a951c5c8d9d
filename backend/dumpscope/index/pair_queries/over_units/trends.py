"""One number of every call of a comparison over steps and ranks, the worst of each bucket of steps; the database folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Integer, case, cast, func, select

from dumpscope.analysis.trends import Bucket, fit_growth_of_buckets
from dumpscope.domain.facts import VERDICT_WORDS, Verdict
from dumpscope.domain.records import State
from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons.catalogue import get_comparison
from dumpscope.index.dump_queries.node_values import RANKS, NodeValue, Statistic, in_buckets, node_values
from dumpscope.index.store import tables
from dumpscope.index.store.codec import STATE_BITS, number, score
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Page
from dumpscope.index.store.recent import Recent
from dumpscope.index.trees.trees import kind_word
from dumpscope.index.trees.trend_rows import Call, Calls, Kind, Wanted, sample_owners, show, steps_and_ranks
from dumpscope.texts import say

_PAIR: Final = tables.node_pair.c
_UNIT: Final = tables.unit.c
_STEPS: Final = 1 << 47
"""The worst verdict and, of equal ones, the first place (step * RANKS + rank) are the largest of verdict * _STEPS - place."""

Kinds = Mapping[str, int]
"""Kind of each call by its name, in execution order."""
Sides = Mapping[str, tuple[str | None, str | None]]
"""Name of each call in target and golden, None on a side that lacks it."""

_LISTS: Final[Recent[int, tuple[Kinds, Sides]]] = Recent(16)

Values = dict[tuple[str, int | None], dict[int, NodeValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The worst of a bucket: its verdict at its first place, and the largest value (score, or relative error); an error that
    is not finite is larger than any other

    target, golden: the statistic that was asked for, of the outputs of each side; None where it was not or nothing was stored
    """

    bucket: int
    verdict: str
    score: float | None
    error: float | None
    step: int
    rank: int
    target: float | None = None
    golden: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """growth: factor of the score per step; first_bad: (step, rank) of the first No; rank: None where ranks share the row
    target_growth, golden_growth: factor per step of the statistic that was asked for"""

    name: str
    kind: str
    rank: int | None
    growth: float | None
    target_growth: float | None
    golden_growth: float | None
    first_bad: tuple[int, int] | None
    cells: list[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trends:
    steps: list[Bucket]
    ranks: list[int]
    page: Page[Trend]


def comparison_trends(
    database: Database,
    comparison_id: str,
    *,
    statistic: Statistic | None = None,
    by_rank: bool = False,
    kind: Kind = "module",
    q: str = "",
    name: str | None = None,
    rank: int | None = None,
    buckets: int = 60,
    after: int | None = None,
    limit: int = 25,
) -> Trends:
    """A page of calls in execution order. name: only this call; rank: only this rank, else the worst of all ranks
    by_rank: a row per rank; statistic: also the values of both sides"""
    get_comparison(database, comparison_id)
    wanted = Wanted(kind=kind, q=q, name=name, by_rank=by_rank, buckets=buckets, after=after, limit=limit)
    with database.read() as connection:
        mine = _UNIT.comparison == _serial(connection, comparison_id)
        missing = NotFoundError(say("index.comparison_has_no_result_yet"), hint=say("api.wait_job"))
        steps, ranks = steps_and_ranks(connection, tables.unit, mine, missing)
        where = [mine] if rank is None else [mine, _UNIT.rank == rank]
        calls, partners = _calls(connection, where)
        edges, shown = show(calls, wanted, steps)
        cells = _cells(connection, where, shown.names, edges, by_rank)
        values: tuple[Values, Values] = ({}, {})
        if statistic is not None:
            values = _values(connection, where, shown.names, partners, edges, statistic, by_rank)
    rows = [_trend(one, cells.get((one.name, one.rank), []), values, partners, edges) for _, one in shown.rows]
    return Trends(steps=edges, ranks=ranks, page=shown.page(rows))


def _serial(connection: Connection, comparison_id: str) -> int:
    column = tables.comparison.c
    return int(connection.execute(select(column.serial).where(column.id == comparison_id)).scalar_one())


def _calls(connection: Connection, where: list[Any]) -> tuple[Calls, Sides]:
    """The calls, and by the name of each its name in target and golden, None on a side that lacks it."""
    calls = Calls()
    partners: Sides = {}
    for sample in sample_owners(connection, tables.unit, _UNIT.pairs, where):
        kinds, sides = unit_calls(connection, sample.owner, sample.calls)
        calls.add(sample.ranks, kinds)
        partners = {**sides, **partners} if partners else sides
    return calls, partners


def unit_calls(connection: Connection, unit: int, digest: int | None) -> tuple[Kinds, Sides]:
    """Calls of a unit, kept in memory: every rank of a job makes the same ones.

    digest: of them as stored, None where an older version stored it
    """
    return _LISTS.get(digest, lambda: _load_calls(connection, unit))


def _load_calls(connection: Connection, unit: int) -> tuple[Kinds, Sides]:
    wanted = select(_PAIR.name, _PAIR.kind, _PAIR.golden_name, _PAIR.target.is_(None), _PAIR.golden.is_(None))
    kinds: dict[str, int] = {}
    sides: dict[str, tuple[str | None, str | None]] = {}
    for name, kind, other, no_target, no_golden in connection.execute(
        wanted.where(_PAIR.id.between(*tables.key_range(unit))).order_by(_PAIR.id)
    ):
        kinds.setdefault(name, kind)
        sides.setdefault(name, (None if no_target else name, None if no_golden else other or name))
    return kinds, sides


def _cells(
    connection: Connection, where: list[Any], names: Sequence[str], edges: Sequence[Bucket], by_rank: bool
) -> dict[tuple[str, int | None], list[Any]]:
    if not names:
        return {}
    bucket, numbers = in_buckets(_UNIT.step, edges)
    place = cast(_UNIT.step, BigInteger) * RANKS + _UNIT.rank  # PostgreSQL computes in the type of a column
    statement = (
        select(
            _PAIR.name,
            bucket.label("bucket"),
            *([_UNIT.rank] if by_rank else []),
            func.max(cast(_PAIR.verdict, BigInteger) * _STEPS - place).label("worst"),
            func.max(_PAIR.severity).label("score"),
            func.max(_PAIR.out_error).label("error"),
            func.max(_PAIR.error_states.op(">>")(STATE_BITS).op("&")(7)).label("state"),
            func.min(case((_PAIR.verdict == int(Verdict.NO), place))).label("bad"),
        )
        .join(tables.unit, _UNIT.id == _PAIR.id.op(">>")(cast(tables.KEY_BITS, Integer)))
        .where(_PAIR.name.in_(names), _PAIR.id.between(*_keys(connection, where)), *where)
        .group_by(_PAIR.name, bucket, *([_UNIT.rank] if by_rank else []))
    )
    found: dict[tuple[str, int | None], list[Any]] = {}
    for row in connection.execute(statement):
        number = numbers[row.bucket] if numbers is not None else row.bucket
        found.setdefault((row.name, row.rank if by_rank else None), []).append((number, row))
    return found


def _keys(connection: Connection, where: list[Any]) -> tuple[int, int]:
    """First and last key that a row of these units can have: another comparison's rows with the same names are not looked at."""
    first, last = connection.execute(select(func.min(_UNIT.id), func.max(_UNIT.id)).where(*where)).one()
    return tables.key_range(first or 0)[0], tables.key_range(last or 0)[1]


def _values(
    connection: Connection,
    where: list[Any],
    names: Sequence[str],
    partners: Sides,
    edges: Sequence[Bucket],
    statistic: Statistic,
    by_rank: bool,
) -> tuple[Values, Values]:
    """Of target and golden, by their own names."""
    sides = []
    for side, owner in enumerate((_UNIT.target, _UNIT.golden)):
        places = select(owner.label("owner"), _UNIT.step, _UNIT.rank).where(*where)
        own = [found for name in names if (found := partners[name][side]) is not None]
        sides.append(node_values(connection, places, own, edges, statistic, by_rank=by_rank))
    return sides[0], sides[1]


def _trend(
    call: Call,
    rows: list[Any],
    values: tuple[Values, Values],
    partners: Sides,
    edges: Sequence[Bucket],
) -> Trend:
    target, golden = (
        {bucket: found.value for bucket, found in side.get((own, call.rank), {}).items()} if own is not None else {}
        for side, own in zip(values, partners[call.name], strict=True)
    )
    cells = []
    for bucket, row in sorted(rows, key=lambda one: one[0]):
        verdict = -(-row.worst // _STEPS)
        step, rank = divmod(verdict * _STEPS - row.worst, RANKS)
        cells.append(
            Cell(
                bucket=bucket,
                verdict=VERDICT_WORDS[verdict],
                score=score(row.score),
                error=row.error if row.state <= State.FINITE else number(None, row.state, 0),
                step=step,
                rank=rank,
                target=target.get(bucket),
                golden=golden.get(bucket),
            )
        )
    bad = min((row.bad for _, row in rows if row.bad is not None), default=None)
    return Trend(
        name=call.name,
        kind=kind_word(call.kind),
        rank=call.rank,
        growth=fit_growth_of_buckets(edges, {cell.bucket: cell.score for cell in cells}),
        target_growth=fit_growth_of_buckets(edges, target),
        golden_growth=fit_growth_of_buckets(edges, golden),
        first_bad=None if bad is None else divmod(bad, RANKS),
        cells=cells,
    )
