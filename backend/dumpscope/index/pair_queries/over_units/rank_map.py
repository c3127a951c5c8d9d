"""Verdict and score of every call of one step on every rank: rows of calls, columns of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Integer, cast, func, select

from dumpscope.analysis.ranks.strays import Stray, find_strays
from dumpscope.domain.facts import Verdict
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.over_units.trends import unit_calls
from dumpscope.index.store import tables
from dumpscope.index.store.codec import score
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Page
from dumpscope.index.trees.trees import kind_word
from dumpscope.index.trees.trend_rows import Calls, Kind, Wanted, show

_PAIR: Final = tables.node_pair.c
MARKS: Final = "y?wn"
"""Of each Verdict."""
NO_CALL: Final = "-"
"""Mark of a rank that does not make the call."""
STRAYS: Final = 20
CELLS: Final = 16_000
"""Cells of a page at most, so that no reply passes 200 kB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """A call. verdicts: one mark per rank; scores: largest error by rank in floors, None where nothing was compared
    no: ranks on which it is No"""

    name: str
    kind: str
    verdicts: str
    scores: list[float | None]
    no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMap:
    step: int
    ranks: list[int]
    page: Page[RankRow]


def rank_map(
    database: Database,
    units: Sequence[StoredUnit],
    *,
    kind: Kind = "module",
    q: str = "",
    after: int | None = None,
    limit: int = 25,
) -> RankMap:
    """A page of calls in execution order. units: all ranks of one step"""
    mine = sorted(units, key=lambda unit: unit.rank)
    limit = max(1, min(limit, CELLS // len(mine)))
    wanted = Wanted(kind=kind, q=q, by_rank=False, buckets=1, after=after, limit=limit)
    with database.read() as connection:
        _, shown = show(_calls(connection, mine), wanted, [mine[0].step])
        cells = _cells(connection, mine, shown.names)
    column = {unit.id: place for place, unit in enumerate(mine)}
    rows = []
    for _, call in shown.rows:
        verdicts = [NO_CALL] * len(mine)
        scores: list[float | None] = [None] * len(mine)
        no = 0
        for owner, verdict, severity in cells.get(call.name, []):
            place = column[owner]
            verdicts[place] = MARKS[verdict]
            scores[place] = _short(score(severity))
            no += verdict == Verdict.NO
        rows.append(
            RankRow(name=call.name, kind=kind_word(call.kind), verdicts="".join(verdicts), scores=scores, no=no)
        )
    return RankMap(step=mine[0].step, ranks=[unit.rank for unit in mine], page=shown.page(rows))


def list_strays(database: Database, units: Sequence[StoredUnit]) -> list[tuple[Stray, str]]:
    """The odd ranks of a comparison, STRAYS at most, with the first call of each that is No. units: all of the comparison"""
    ids = {(unit.step, unit.rank): unit.id for unit in units}
    found = []
    with database.read() as connection:
        for stray in find_strays((unit.step, unit.rank, unit.counts["no"]) for unit in units)[:STRAYS]:
            first = (
                select(_PAIR.name)
                .where(
                    _PAIR.verdict == int(Verdict.NO), _PAIR.id.between(*tables.key_range(ids[stray.step, stray.rank]))
                )
                .order_by(_PAIR.id)
                .limit(1)
            )
            found.append((stray, str(connection.execute(first).scalar_one())))
    return found


def _calls(connection: Connection, units: Sequence[StoredUnit]) -> Calls:
    """Those of all units; of results of older versions, those of one unit of every size."""
    calls = Calls()
    samples = {(unit.calls, unit.pairs): unit for unit in reversed(units)}
    for unit in reversed(samples.values()):
        calls.add([unit.rank], unit_calls(connection, unit.id, unit.calls)[0])
    return calls


def _cells(connection: Connection, units: Sequence[StoredUnit], names: Sequence[str]) -> dict[str, list[Any]]:
    """By name: (unit, worst verdict, largest score) of each rank that makes the call."""
    if not names:
        return {}
    owner = _PAIR.id.op(">>")(cast(tables.KEY_BITS, Integer))
    first, last = min(unit.id for unit in units), max(unit.id for unit in units)
    statement = (
        select(_PAIR.name, owner.label("owner"), func.max(_PAIR.verdict), func.max(_PAIR.severity))
        .where(_PAIR.name.in_(names), _PAIR.id.between(tables.key_range(first)[0], tables.key_range(last)[1]))
        .group_by(_PAIR.name, owner)
    )
    own = {unit.id for unit in units}
    found: dict[str, list[Any]] = {}
    for name, unit, verdict, severity in connection.execute(statement):
        if unit in own:
            found.setdefault(name, []).append((unit, verdict, severity))
    return found


def _short(value: float | None) -> float | None:
    """Three digits: what a colour shows."""
    return None if value is None else float(f"{value:.3g}")
