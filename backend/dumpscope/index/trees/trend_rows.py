"""Rows of a table of trends: which calls have one, in which buckets of steps, and how many make a page. One dump's table and a
comparison's are alike here: one selects ranks of a dump, the other units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Table, func, select

from dumpscope.analysis.trends import Bucket, make_buckets
from dumpscope.domain.records import NodeKind
from dumpscope.errors import NotFoundError
from dumpscope.index.store.page import Page

Kind = Literal["module", "api", "all"]
Row = TypeVar("Row")

CELLS: Final = 1000
"""Cells of a page at most, so that no reply passes 200 kB."""

_ONE: Final = (None,)
"""The row of all ranks together."""

_CODES: Final = {"module": int(NodeKind.MODULE), "api": int(NodeKind.API), "all": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """rank: None where the ranks share a row"""

    name: str
    kind: int
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows of a table are asked for. q: part of a name; name: only this call; by_rank: a row per rank
    buckets: most buckets of steps; after: number of the last row of the page before; limit: most rows"""

    kind: Kind = "module"
    q: str = ""
    name: str | None = None
    by_rank: bool = True
    buckets: int = 60
    after: int | None = None
    limit: int = 25


@dataclass(slots=True)
class Calls:
    """Calls in execution order, with the ranks that make them: ranks of a job make the same ones, so they are kept by list."""

    _kinds: Mapping[str, int] = field(default_factory=dict)
    _ranks: list[tuple[Mapping[str, int], list[int]]] = field(default_factory=list)

    def add(self, ranks: Sequence[int], kinds: Mapping[str, int]) -> None:
        """These ranks make these calls. kinds: of each call by its name, in execution order"""
        self._ranks.append((kinds, list(ranks)))
        new = {name: kind for name, kind in kinds.items() if name not in self._kinds} if self._kinds else kinds
        self._kinds = {**self._kinds, **new} if self._kinds else new  # that of one list is shared, not copied

    def rows(self, wanted: Wanted, first: int, size: int) -> tuple[list[tuple[int, Call]], int]:
        """`size` rows from number `first` on, each with its number, of the calls of one name, or of a kind and with `q` in their
        name; and how many there are."""
        names = self._chosen(wanted)
        if not wanted.by_rank or len(self._ranks) == 1:  # all have as many rows
            ranks: Sequence[int | None] = self._ranks[0][1] if wanted.by_rank else _ONE
            total = len(names) * len(ranks)
            rows = [
                (names[number // len(ranks)], ranks[number % len(ranks)], number)
                for number in range(first, min(first + size, total))
            ]
            return [(number, Call(name=name, kind=self._kinds[name], rank=rank)) for name, rank, number in rows], total
        found: list[tuple[int, Call]] = []
        total = 0
        for name in names:
            ranks = self._rows_of(name)
            if total < first + size and total + len(ranks) > first:
                shown = range(max(first - total, 0), min(first + size - total, len(ranks)))
                found += [
                    (total + place, Call(name=name, kind=self._kinds[name], rank=ranks[place])) for place in shown
                ]
            total += len(ranks)
        return found, total

    def _chosen(self, wanted: Wanted) -> list[str]:
        """The calls of one name, or of a kind and with `q` in their name."""
        code, q = _CODES[wanted.kind], wanted.q.lower()
        if wanted.name is not None:
            names = [wanted.name] if wanted.name in self._kinds else []
        elif code is None:
            names = list(self._kinds)
        else:
            names = [name for name, kind in self._kinds.items() if kind == code]
        return [name for name in names if q in name.lower()] if q else names

    def _rows_of(self, name: str) -> Sequence[int | None]:
        makers = [ranks for kinds, ranks in self._ranks if name in kinds]
        return makers[0] if len(makers) == 1 else sorted({rank for ranks in makers for rank in ranks})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The rows of a page by number, their names, and how many rows there are."""

    rows: list[tuple[int, Call]]
    names: list[str]
    total: int

    def page(self, rows: list[Row]) -> Page[Row]:
        """The page, with these in place of its calls."""
        more = bool(self.rows) and self.rows[-1][0] + 1 < self.total
        return Page(rows=rows, keys=[(number,) for number, _ in self.rows], more=more, total=self.total)


def steps_and_ranks(
    connection: Connection, table: Table, mine: ColumnElement[bool], missing: NotFoundError
) -> tuple[list[int], list[int]]:
    """Steps and ranks of the rows `mine` of a table, ascending. Raises `missing` where there are none."""
    columns = (table.c.step, table.c.rank)
    steps, ranks = (
        list(connection.execute(select(column).where(mine).distinct().order_by(column)).scalars()) for column in columns
    )
    if not steps:
        raise missing
    return steps, ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An owner (rank of a dump, or unit) that stands for all with the same calls. ranks: ascending
    calls: digest of the calls, None in what an older version stored"""

    owner: int
    ranks: list[int]
    calls: int | None


def sample_owners(
    connection: Connection, table: Table, size: Column[Any], where: Sequence[ColumnElement[bool]]
) -> list[Sample]:
    """One row of a table for each list of calls, by id; without digests one of every rank and `size`: other steps make the same
    calls."""
    chosen = (
        select(func.min(table.c.id), table.c.rank, table.c.calls)
        .where(*where)
        .group_by(table.c.rank, size, table.c.calls)
    )
    found: dict[tuple[int, ...], tuple[int, int | None, set[int]]] = {}
    for owner, rank, calls in sorted(map(tuple, connection.execute(chosen)), key=lambda row: row[0]):
        key = (owner, 0) if calls is None else (calls,)
        found.setdefault(key, (owner, calls, set()))[2].add(rank)
    return [Sample(owner=owner, ranks=sorted(ranks), calls=calls) for owner, calls, ranks in found.values()]


def show(calls: Calls, wanted: Wanted, steps: Sequence[int]) -> tuple[list[Bucket], Shown]:
    """Buckets of the steps, and the rows of the page that is asked for."""
    edges = make_buckets(steps, wanted.buckets)
    first = 0 if wanted.after is None else wanted.after + 1
    shown, total = calls.rows(wanted, first, max(1, min(wanted.limit, CELLS // len(edges))))
    return edges, Shown(rows=shown, names=list(dict.fromkeys(one.name for _, one in shown)), total=total)
