"""The watches on folders of dumps: one a dump at most, with what the last look saw and the comparison that it keeps."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sqlalchemy import Connection, Select, delete, func, insert as insert_row, select, update

from dumpscope.domain.options import Options
from dumpscope.domain.watching import Seen
from dumpscope.errors import ConflictError, NotFoundError
from dumpscope.index.store import tables
from dumpscope.index.store.codec import column_values, to_json
from dumpscope.index.store.database import Database
from dumpscope.texts import say

SideWord = Literal["target", "golden"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRow:
    """dump, partner, comparison: ids; side: of the watched dump in the comparison with its partner
    compared: digest of the ranks that were compared last; new_steps, new_ranks: read since the watch began"""

    id: str
    dump: str
    dump_name: str
    path: str
    side: SideWord
    partner: str | None
    partner_name: str | None
    options: Options
    comparison: str | None
    compared: str | None
    new_steps: list[int]
    new_ranks: list[int]
    seen: Seen
    created: float


def create_watch(
    database: Database, dump_id: str, *, partner: str | None, side: SideWord, options: Options
) -> WatchRow:
    """Begin to watch a dump. Raises NotFoundError for an unknown dump, ConflictError where the partner watches this one already,
    or the dump is watched."""
    watch_id = secrets.token_hex(5)
    with database.write() as connection:
        serial = _serial(connection, dump_id)
        other = _partner(connection, serial, partner)
        if connection.execute(select(tables.watch.c.id).where(tables.watch.c.dump == serial)).scalar() is not None:
            raise ConflictError(say("index.watched_already"), hint=say("index.change_watch"))
        row = connection.execute(select(tables.dump.c.steps, tables.dump.c.ranks).where(tables.dump.c.serial == serial))
        steps, ranks = row.one()
        connection.execute(
            insert_row(tables.watch).values(
                id=watch_id,
                dump=serial,
                partner=other,
                side=side,
                options=to_json(options.to_json()),
                begun=to_json({"steps": json.loads(steps), "ranks": json.loads(ranks)}),
                seen=to_json(Seen(since=time.time()).to_json()),
                created=time.time(),
            )
        )
    return get_watch(database, watch_id)


def get_watch(database: Database, watch_id: str) -> WatchRow:
    """Raises NotFoundError."""
    with database.read() as connection:
        row = connection.execute(_select().where(tables.watch.c.id == watch_id)).one_or_none()
    if row is None:
        raise NotFoundError(say("index.no_watch", watch_id=f"{watch_id!r}"), hint=say("index.get_api_watches"))
    return _row(row)


def list_watches(database: Database, *, after: int | None = None, limit: int = 100) -> list[tuple[int, WatchRow]]:
    """Newest first, as (serial, row); `after` is the serial of the last one seen."""
    statement = _select().order_by(tables.watch.c.serial.desc()).limit(limit)
    if after is not None:
        statement = statement.where(tables.watch.c.serial < after)
    with database.read() as connection:
        return [(row.serial, _row(row)) for row in connection.execute(statement)]


def count_watches(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(tables.watch)).scalar_one())


def watches_of(connection: Connection, dumps: Sequence[int]) -> dict[int, WatchRow]:
    """Serial of a dump -> its watch, for those of these dumps that have one."""
    if not dumps:
        return {}
    return {row.dump: _row(row) for row in connection.execute(_select().where(tables.watch.c.dump.in_(dumps)))}


def pair_watch(database: Database, watch_id: str, *, partner: str | None, side: SideWord) -> WatchRow:
    """Give a watch another partner, or none; raises as `create_watch`."""
    with database.write() as connection:
        table = tables.watch
        serial = connection.execute(select(table.c.dump).where(table.c.id == watch_id)).scalar()
        if serial is None:
            raise NotFoundError(say("index.no_watch", watch_id=f"{watch_id!r}"), hint=say("index.get_api_watches"))
        other = _partner(connection, int(serial), partner)
        connection.execute(
            update(table).where(table.c.id == watch_id).values(partner=other, side=side, comparison=None, compared=None)
        )
    return get_watch(database, watch_id)


def change_watch(database: Database, watch_id: str, *, comparison: str | None = None, **values: Any) -> None:
    """Set columns; lists and dicts become JSON text. comparison: its id"""
    changed = column_values(values)
    with database.write() as connection:
        if comparison is not None:
            found = select(tables.comparison.c.serial).where(tables.comparison.c.id == comparison)
            changed["comparison"] = connection.execute(found).scalar()
        connection.execute(update(tables.watch).where(tables.watch.c.id == watch_id).values(**changed))


def delete_watch(database: Database, watch_id: str) -> None:
    """End a watch; its dump and its comparison stay. A dump of which nothing was read fails."""
    row = get_watch(database, watch_id)
    with database.write() as connection:
        connection.execute(delete(tables.watch).where(tables.watch.c.id == watch_id))
        error = NotFoundError(say("index.watch_ended_before_dump"), hint=say("api.register_again")).body()
        waits = tables.dump.c.status == "pending", tables.dump.c.job.is_(None)
        connection.execute(
            update(tables.dump)
            .where(tables.dump.c.id == row.dump, *waits)
            .values(**column_values({"status": "failed", "error": error}))
        )


def forget_watched(connection: Connection, dump: int) -> None:
    """Take a dump that is being deleted out of all watches. dump: its serial"""
    table = tables.watch
    connection.execute(delete(table).where(table.c.dump == dump))
    connection.execute(
        update(table).where(table.c.partner == dump).values(partner=None, comparison=None, compared=None)
    )


def stored_stamps(database: Database, dump_id: str) -> dict[str, str | None]:
    """Folder -> stamp of its files when they were read, for all ranks of a dump."""
    rank = tables.rank_dump.c
    statement = (
        select(rank.place, rank.stamp)
        .join(tables.dump, tables.dump.c.serial == rank.dump)
        .where(tables.dump.c.id == dump_id)
    )
    with database.read() as connection:
        return {json.loads(row.place)["folder"]: row.stamp for row in connection.execute(statement)}


def newest_rank(database: Database, dump_id: str) -> int:
    """The largest id of a rank of a dump, 0 where it has none: another one after any rank was read again."""
    rank = tables.rank_dump.c
    statement = (
        select(func.max(rank.id))
        .join(tables.dump, tables.dump.c.serial == rank.dump)
        .where(tables.dump.c.id == dump_id)
    )
    with database.read() as connection:
        return int(connection.execute(statement).scalar() or 0)


def digest_ranks(database: Database, dumps: Sequence[str], steps: Sequence[int]) -> str:
    """A digest of the ranks of these dumps in these steps: another one after any of them was read again."""
    rank = tables.rank_dump.c
    found: list[tuple[int, ...]] = []
    wanted = set(steps)
    with database.read() as connection:
        for number, dump_id in enumerate(dumps):
            statement = (
                select(rank.id, rank.step, rank.rank)
                .join(tables.dump, tables.dump.c.serial == rank.dump)
                .where(tables.dump.c.id == dump_id)
            )
            found += [(number, *row) for row in connection.execute(statement) if row.step in wanted]
    return hashlib.sha256(to_json(sorted(found)).encode()).hexdigest()[:32]


def _serial(connection: Connection, dump_id: str) -> int:
    found = connection.execute(select(tables.dump.c.serial).where(tables.dump.c.id == dump_id)).scalar()
    if found is None:
        raise NotFoundError(say("index.no_dump", dump_id=f"{dump_id!r}"), hint=say("index.get_api_dumps_lists_them"))
    return int(found)


def _partner(connection: Connection, dump: int, partner: str | None) -> int | None:
    """Serial of a partner that may be one."""
    if partner is None:
        return None
    other = _serial(connection, partner)
    table = tables.watch.c
    back = select(table.id).where(table.dump == other, table.partner == dump)
    if other == dump or connection.execute(back).scalar() is not None:
        raise ConflictError(say("index.pair_is_watched"), hint=say("index.one_watch_compares"))
    return other


@cache
def _select() -> Select[Any]:
    """Watches with their dumps and comparison; made once, as that of comparisons is."""
    dump, partner = tables.dump.alias("watched_dump"), tables.dump.alias("partner_dump")
    return (
        select(
            tables.watch,
            dump.c.id.label("dump_id"),
            dump.c.name.label("dump_name"),
            dump.c.path.label("path"),
            dump.c.steps.label("steps"),
            dump.c.ranks.label("ranks"),
            partner.c.id.label("partner_id"),
            partner.c.name.label("partner_name"),
            tables.comparison.c.id.label("comparison_id"),
        )
        .join(dump, dump.c.serial == tables.watch.c.dump)
        .outerjoin(partner, partner.c.serial == tables.watch.c.partner)
        .outerjoin(tables.comparison, tables.comparison.c.serial == tables.watch.c.comparison)
    )


def _row(row: Any) -> WatchRow:
    begun = json.loads(row.begun)
    return WatchRow(
        id=row.id,
        dump=row.dump_id,
        dump_name=row.dump_name,
        path=row.path,
        side=row.side,
        partner=row.partner_id,
        partner_name=row.partner_name,
        options=Options.from_json(json.loads(row.options)),
        comparison=row.comparison_id,
        compared=row.compared,
        new_steps=sorted(set(json.loads(row.steps)) - set(begun["steps"])),
        new_ranks=sorted(set(json.loads(row.ranks)) - set(begun["ranks"])),
        seen=Seen.from_json(json.loads(row.seen)),
        created=row.created,
    )
