"""One number of every call over steps and ranks, the worst of each bucket of steps; the database does the folding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import BigInteger, Connection, Integer, case, cast, func, select

from dumpscope.analysis.trends import Bucket, buckets_of, growth
from dumpscope.domain.facts import VERDICT_WORDS, Verdict
from dumpscope.domain.records import NodeKind
from dumpscope.errors import NotFoundError
from dumpscope.index import tables
from dumpscope.index.codec import score
from dumpscope.index.comparisons import get_comparison
from dumpscope.index.database import Database
from dumpscope.index.page import Page
from dumpscope.index.trees import kind_word

Kind = Literal["module", "api", "all"]

_PAIR: Final = tables.node_pair.c
_UNIT: Final = tables.unit.c
_RANKS: Final = 1 << 16
_STEPS: Final = 1 << 47
"""A place is step * _RANKS + rank; the worst verdict and, of equal ones, the first place are the largest of
verdict * _STEPS - place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The worst of a bucket: its verdict at its first place, and the largest value (score, or relative error)."""

    bucket: int
    verdict: str
    score: float | None
    error: float | None
    step: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """growth: factor of the score per step; first_bad: (step, rank) of the first No"""

    name: str
    kind: str
    growth: float | None
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
    kind: Kind = "module",
    q: str = "",
    name: str | None = None,
    rank: int | None = None,
    buckets: int = 60,
    after: int | None = None,
    limit: int = 25,
) -> Trends:
    """A page of calls in execution order. name: only this call; rank: only this rank, else the worst of all ranks."""
    get_comparison(database, comparison_id)
    with database.read() as connection:
        serial = _serial(connection, comparison_id)
        where = [_UNIT.comparison == serial]
        steps = list(connection.execute(select(_UNIT.step).where(*where).distinct().order_by(_UNIT.step)).scalars())
        ranks = list(connection.execute(select(_UNIT.rank).where(*where).distinct().order_by(_UNIT.rank)).scalars())
        if not steps:
            raise NotFoundError("the comparison has no result yet", hint="wait for its job")
        if rank is not None:
            where.append(_UNIT.rank == rank)
        listed = _listed(connection, where, kind, q, name)
        first = 0 if after is None else after + 1
        shown = listed[first : first + limit]
        edges = buckets_of(steps, buckets)
        cells = _cells(connection, where, [one for one, _ in shown], edges)
    rows = [_trend(one, code, cells.get(one, []), edges) for one, code in shown]
    page = Page(
        rows=rows,
        keys=[(first + place,) for place in range(len(rows))],
        more=first + len(rows) < len(listed),
        total=len(listed),
    )
    return Trends(steps=edges, ranks=ranks, page=page)


def _serial(connection: Connection, comparison_id: str) -> int:
    column = tables.comparison.c
    return int(connection.execute(select(column.serial).where(column.id == comparison_id)).scalar_one())


def _listed(connection: Connection, where: list[Any], kind: Kind, q: str, name: str | None) -> list[tuple[str, int]]:
    """Names and kinds of calls in execution order. They are taken from one unit of every rank and number of calls: other units
    make the same calls."""
    chosen = select(func.min(_UNIT.id)).where(*where).group_by(_UNIT.rank, _UNIT.pairs)
    found: dict[str, int] = {}
    for unit in sorted(connection.execute(chosen).scalars()):
        rows = select(_PAIR.name, _PAIR.kind).where(_PAIR.id.between(*tables.key_range(unit))).order_by(_PAIR.id)
        for row in connection.execute(rows):
            found.setdefault(row.name, row.kind)
    wanted = {"module": int(NodeKind.MODULE), "api": int(NodeKind.API), "all": None}[kind]
    return [
        (one, code)
        for one, code in found.items()
        if (name == one if name is not None else wanted in (None, code)) and q.lower() in one.lower()
    ]


def _cells(
    connection: Connection, where: list[Any], names: Sequence[str], edges: Sequence[Bucket]
) -> dict[str, list[Any]]:
    if not names:
        return {}
    width = edges[0].last - edges[0].first + 1
    single = all(edge.first == edge.last for edge in edges)
    bucket = _UNIT.step if single else (_UNIT.step - edges[0].first) // width
    place = cast(_UNIT.step, BigInteger) * _RANKS + _UNIT.rank  # PostgreSQL computes in the type of a column
    statement = (
        select(
            _PAIR.name,
            bucket.label("bucket"),
            func.max(cast(_PAIR.verdict, BigInteger) * _STEPS - place).label("worst"),
            func.max(_PAIR.severity).label("score"),
            func.max(_PAIR.out_error).label("error"),
            func.min(case((_PAIR.verdict == int(Verdict.NO), place))).label("bad"),
        )
        .join(tables.unit, _UNIT.id == _PAIR.id.op(">>")(cast(tables.KEY_BITS, Integer)))
        .where(_PAIR.name.in_(names), *where)
        .group_by(_PAIR.name, bucket)
    )
    numbers = {edge.first: place for place, edge in enumerate(edges)} if single else None
    found: dict[str, list[Any]] = {}
    for row in connection.execute(statement):
        number = numbers[row.bucket] if numbers is not None else row.bucket
        found.setdefault(row.name, []).append((number, row))
    return found


def _trend(name: str, kind: int, rows: list[Any], edges: Sequence[Bucket]) -> Trend:
    cells = []
    for bucket, row in sorted(rows, key=lambda one: one[0]):
        verdict = -(-row.worst // _STEPS)
        step, rank = divmod(verdict * _STEPS - row.worst, _RANKS)
        cells.append(
            Cell(
                bucket=bucket,
                verdict=VERDICT_WORDS[verdict],
                score=score(row.score),
                error=row.error,
                step=step,
                rank=rank,
            )
        )
    middles = [(edges[cell.bucket].first + edges[cell.bucket].last) / 2 for cell in cells]
    bad = min((row.bad for _, row in rows if row.bad is not None), default=None)
    return Trend(
        name=name,
        kind=kind_word(kind),
        growth=growth(middles, [float("nan") if cell.score is None else cell.score for cell in cells]),
        first_bad=None if bad is None else divmod(bad, _RANKS),
        cells=cells,
    )
