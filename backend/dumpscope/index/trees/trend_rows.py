"""Rows of a table of trends: which calls have one, in which buckets of steps, and how many make a page. One dump's table and a
comparison's are alike here: one selects ranks of a dump, the other units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Calls in execution order, with the ranks that make them."""

    kinds: dict[str, int] = field(default_factory=dict)
    ranks: dict[str, list[int]] = field(default_factory=dict)

    def add(self, rank: int, calls: Iterable[tuple[str, int]]) -> None:
        for name, kind in calls:
            self.kinds.setdefault(name, kind)
            at = self.ranks.setdefault(name, [])
            if rank not in at:
                at.append(rank)

    def rows(self, wanted: Wanted) -> list[Call]:
        """Those of one name, or of a kind and with `q` in their name."""
        code, name = _CODES[wanted.kind], wanted.name
        return [
            Call(name=one, kind=kind, rank=rank)
            for one, kind in self.kinds.items()
            if (name == one if name is not None else code in (None, kind)) and wanted.q.lower() in one.lower()
            for rank in (sorted(self.ranks[one]) if wanted.by_rank else [None])
        ]


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


def sample_owners(
    connection: Connection, table: Table, size: Column[Any], where: Sequence[ColumnElement[bool]]
) -> list[tuple[int, int]]:
    """(id, rank) of one row of every rank and `size`, by id: other steps make the same calls."""
    chosen = select(func.min(table.c.id), table.c.rank).where(*where).group_by(table.c.rank, size)
    return sorted((int(owner), int(rank)) for owner, rank in connection.execute(chosen))


def show(calls: Calls, wanted: Wanted, steps: Sequence[int]) -> tuple[list[Bucket], Shown]:
    """Buckets of the steps, and the rows of the page that is asked for."""
    edges = make_buckets(steps, wanted.buckets)
    rows = calls.rows(wanted)
    first = 0 if wanted.after is None else wanted.after + 1
    size = max(1, min(wanted.limit, CELLS // len(edges)))
    shown = list(enumerate(rows[first : first + size], start=first))
    return edges, Shown(rows=shown, names=list(dict.fromkeys(one.name for _, one in shown)), total=len(rows))
