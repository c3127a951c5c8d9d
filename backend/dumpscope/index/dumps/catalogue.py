"""The catalogue of dumps: one row each, from registration to removal."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, func, insert as insert_row, or_, select, update

from dumpscope.errors import ConflictError, NotFoundError, Problem
from dumpscope.index.dumps.watches import WatchRow, forget_watched, watches_of
from dumpscope.index.store import tables
from dumpscope.index.store.codec import column_values, storable
from dumpscope.index.store.database import Database
from dumpscope.index.store.owners import RANKS, hide, remove
from dumpscope.index.store.page import Order, Seek, list_key, order_page
from dumpscope.index.store.prepared import Prepared, number_named, text_named
from dumpscope.texts import say

JOINED = "joined"
"""Status of a dump that a comparison made for itself (see `index.joined`): no list names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRow:
    """status: pending, ready or failed; error: wire form of what made it fail; owned: its files lie in the data folder
    bytes: size of the JSON files; created: seconds since the epoch"""

    id: str
    name: str
    path: str
    owned: bool
    status: str
    job: str | None
    error: dict[str, Any] | None
    framework: str | None
    task: str | None
    level: str | None
    summary: str | None
    steps: list[int]
    ranks: list[int]
    nodes: int
    items: int
    bytes: int
    created: float
    problems: list[Problem]
    watch: WatchRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All ranks of a dump, counted."""

    steps: list[int]
    ranks: list[int]
    nodes: int
    items: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRank:
    """A rank of a dump as stored: `id` names its rows, `dump` its dump."""

    id: int
    dump: str
    step: int
    rank: int
    nodes: int
    items: int
    inferred: bool
    folder: str


def create_dump(database: Database, *, name: str, path: str, owned: bool = False) -> str:
    """Register a dump as pending; returns its id."""
    dump_id = secrets.token_hex(5)
    with database.write() as connection:
        connection.execute(insert_row(tables.dump).values(new_dump(dump_id, name=name, path=path, owned=owned)))
    return dump_id


def new_dump(dump_id: str, *, name: str, path: str, owned: bool = False, status: str = "pending") -> dict[str, Any]:
    """Columns of a dump of which nothing is known yet."""
    return {
        "id": dump_id,
        "name": storable([name])[0],
        "path": storable([path])[0],
        "owned": int(owned),
        "status": status,
        "steps": "[]",
        "ranks": "[]",
        "nodes": 0,
        "items": 0,
        "bytes": 0,
        "created": time.time(),
        "problems": "[]",
    }


def change_dump(database: Database, dump_id: str, **values: Any) -> None:
    """Set columns; lists, dicts and Problems become JSON text."""
    with database.write() as connection:
        connection.execute(update(tables.dump).where(tables.dump.c.id == dump_id).values(**column_values(values)))


_DUMP: Final = Prepared(select(tables.dump).where(tables.dump.c.id == text_named("dump")))


def get_dump(database: Database, dump_id: str) -> DumpRow:
    """Raises NotFoundError."""
    with database.read() as connection:
        row = _DUMP.one(connection, dump=dump_id)
        watch = watches_of(connection, [row.serial]) if row is not None else {}
    if row is None:
        raise NotFoundError(say("index.no_dump", dump_id=f"{dump_id!r}"), hint=say("index.get_api_dumps_lists_them"))
    return _row(row, watch.get(row.serial))


def newest_at(database: Database, path: str) -> str | None:
    """Id of the dump that was last registered from this path, None where there is none."""
    table = tables.dump.c
    found = select(table.id).where(table.path == storable([path])[0], table.owned == 0, table.status != JOINED)
    with database.read() as connection:
        return connection.execute(found.order_by(table.serial.desc()).limit(1)).scalar()


def list_dumps(
    database: Database,
    *,
    q: str = "",
    watched: bool = False,
    order: Order = "-created",
    after: Seek | None = None,
    limit: int = 100,
) -> list[tuple[tuple[Any, ...], DumpRow]]:
    """Rows with their list keys, newest first; `after` is the key of the last one seen, `q` a part of the name or path.

    watched: only those whose folder is watched
    """
    statement = order_page(select(tables.dump).where(*_listed(q, watched)), tables.dump, order, after, limit)
    with database.read() as connection:
        rows = connection.execute(statement).all()
        watches = watches_of(connection, [row.serial for row in rows])
    return [(list_key(row, order), _row(row, watches.get(row.serial))) for row in rows]


def count_dumps(database: Database, *, q: str = "", watched: bool = False) -> int:
    statement = select(func.count()).select_from(tables.dump).where(*_listed(q, watched))
    with database.read() as connection:
        return int(connection.execute(statement).scalar_one())


def _listed(q: str, watched: bool) -> list[ColumnElement[bool]]:
    """Conditions on the dumps of a list."""
    conditions = [tables.dump.c.status != JOINED]
    if q:
        conditions.append(_matches(q))
    if watched:
        conditions.append(tables.dump.c.serial.in_(select(tables.watch.c.dump)))
    return conditions


def _matches(q: str) -> ColumnElement[bool]:
    pattern = like(q)
    return or_(tables.dump.c.name.ilike(pattern, escape="\\"), tables.dump.c.path.ilike(pattern, escape="\\"))


def has_dump(database: Database, dump_id: str) -> bool:
    with database.read() as connection:
        found = select(tables.dump.c.serial).where(tables.dump.c.id == dump_id)
        return connection.execute(found).scalar() is not None


def delete_dump(database: Database, dump_id: str) -> DumpRow:
    """Remove a dump and its rows; returns what it was. Raises ConflictError while a comparison uses it."""
    found = get_dump(database, dump_id)
    with database.write() as connection:
        serial = connection.execute(select(tables.dump.c.serial).where(tables.dump.c.id == dump_id)).scalar_one()
        comparison = tables.comparison.c
        sides = comparison.target, comparison.golden, comparison.reference
        users = select(comparison.name).where(or_(*(side == serial for side in sides))).limit(3)
        names = list(connection.execute(users).scalars())
        if names:
            raise ConflictError(
                say("index.dump_used_by", names=", ".join(names)), hint=say("index.delete_these_comparisons_first")
            )
        left = hide(connection, RANKS, serial)
        forget_watched(connection, serial)
        connection.execute(delete(tables.dump).where(tables.dump.c.serial == serial))
    remove(database, RANKS, left)
    return found


def stranded_dumps(database: Database) -> list[DumpRow]:
    """Pending dumps that no job is about: an upload under way, or one that a crash cut off. A watched folder waits for its first
    step."""
    about = select(tables.job.c.serial).where(tables.job.c.subject == tables.dump.c.id).exists()
    watched = select(tables.watch.c.serial).where(tables.watch.c.dump == tables.dump.c.serial).exists()
    statement = select(tables.dump).where(
        tables.dump.c.status == "pending", tables.dump.c.job.is_(None), ~about, ~watched
    )
    with database.read() as connection:
        return [_row(row) for row in connection.execute(statement)]


def stored_ranks(database: Database, dump_id: str) -> list[StoredRank]:
    """Ranks of a dump by step and rank."""
    with database.read() as connection:
        return [_stored_rank(dump_id, row) for row in _RANKS.rows(connection, dump=dump_id)]


def _stored_rank(dump_id: str, row: Any) -> StoredRank:
    return StoredRank(
        id=row.id,
        dump=dump_id,
        step=row.step,
        rank=row.rank,
        nodes=row.nodes,
        items=row.items,
        inferred=bool(row.inferred),
        folder=json.loads(row.place)["folder"],
    )


_RANK: Final = tables.rank_dump.c
_SELECT_RANKS: Final = (
    select(_RANK.id, _RANK.step, _RANK.rank, _RANK.nodes, _RANK["items"], _RANK.inferred, _RANK.place)
    .join(tables.dump, tables.dump.c.serial == _RANK.dump)
    .where(tables.dump.c.id == text_named("dump"))
    .order_by(_RANK.step, _RANK.rank)
)
_RANKS: Final = Prepared(_SELECT_RANKS)
_OF_STEP: Final = _RANK.step == number_named("step")
_OF_RANK: Final = _RANK.rank == number_named("rank")
_FIRST_RANK: Final = {
    (False, False): Prepared(_SELECT_RANKS.limit(1)),
    (True, False): Prepared(_SELECT_RANKS.where(_OF_STEP).limit(1)),
    (False, True): Prepared(_SELECT_RANKS.where(_OF_RANK).limit(1)),
    (True, True): Prepared(_SELECT_RANKS.where(_OF_STEP, _OF_RANK).limit(1)),
}
"""By whether a step and whether a rank is asked for."""


def rank_totals(database: Database, dump_id: str) -> Totals:
    """What the stored ranks of a dump hold together."""
    rank = tables.rank_dump.c
    statement = (
        select(rank.step, rank.rank, rank.nodes, rank["items"], rank.bytes)
        .join(tables.dump, tables.dump.c.serial == rank.dump)
        .where(tables.dump.c.id == dump_id)
    )
    with database.read() as connection:
        rows = connection.execute(statement).all()
    return Totals(
        steps=sorted({row.step for row in rows}),
        ranks=sorted({row.rank for row in rows}),
        nodes=sum(row.nodes for row in rows),
        items=sum(row.items for row in rows),
        bytes=sum(row.bytes or 0 for row in rows),
    )


def find_rank(database: Database, dump_id: str, step: int | None, rank: int | None) -> StoredRank:
    """The rank asked for, the first one where a number is left out; raises NotFoundError that lists what there is."""
    given = {name: value for name, value in (("step", step), ("rank", rank)) if value is not None}
    with database.read() as connection:
        found = _FIRST_RANK["step" in given, "rank" in given].one(connection, dump=dump_id, **given)
    if found is not None:
        return _stored_rank(dump_id, found)
    there = stored_ranks(database, dump_id)
    raise NotFoundError(
        say("index.dump_has_no", unit_word=unit_word(step, rank)) if there else say("api.dump_has_no_ranks_yet"),
        hint=_known(there) if there else say("api.wait_ingest_job"),
    )


def unit_word(step: int | None, rank: int | None) -> str:
    """A step and rank as they were asked for."""
    words = [f"{word} {number}" for word, number in (("step", step), ("rank", rank)) if number is not None]
    return " ".join(words) or "rank"


def _known(there: Sequence[StoredRank]) -> str:
    return "it has " + ", ".join(f"step {stored.step} rank {stored.rank}" for stored in there[:20])


def like(part: str) -> str:
    """LIKE pattern for "contains this", wildcards in it taken literally (escape character: backslash)."""
    clean = storable([part])[0].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{clean}%"


def contains(connection: Connection, column: ColumnElement[str], part: str) -> ColumnElement[bool]:
    """The column contains `part`, ASCII letters in either case. SQLite's LIKE is so by itself; lower() would double its cost."""
    if connection.dialect.name == "sqlite":
        return column.like(like(part), escape="\\")
    return column.ilike(like(part), escape="\\")


def _row(row: Any, watch: WatchRow | None = None) -> DumpRow:
    return DumpRow(
        id=row.id,
        name=row.name,
        path=row.path,
        owned=bool(row.owned),
        status=row.status,
        job=row.job,
        error=json.loads(row.error) if row.error else None,
        framework=row.framework,
        task=row.task,
        level=row.level,
        summary=row.summary,
        steps=json.loads(row.steps),
        ranks=json.loads(row.ranks),
        nodes=row.nodes,
        items=row.items,
        bytes=row.bytes,
        created=row.created,
        problems=[Problem(**problem) for problem in json.loads(row.problems)],
        watch=watch,
    )
