"""The catalogue of monitored runs: one row each, from the request to its removal.

A row, and not the path alone in an address: the start page lists them, a link is short and gives no path away, and what an
examination found stays where it took minutes, or where the files are gone.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert as insert_row, or_, select, update

from dumpscope.errors import NotFoundError
from dumpscope.index.store import tables
from dumpscope.index.store.codec import column_values, storable
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Seek
from dumpscope.texts import say

_MONITOR = tables.monitor
_SHORT = [column for column in _MONITOR.c if column.name != "findings"]
"""What a list needs; thousands of anomalies are not read for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRow:
    """status: of the last examination: pending, done, failed or cancelled; path, other: the run and the one it is compared with

    answer: what the last examination that ended found, in short, None until there is one; error: wire form of what made it fail
    created: seconds since the epoch
    """

    serial: int
    id: str
    name: str
    path: str
    other: str | None
    status: str
    job: str | None
    error: dict[str, Any] | None
    answer: dict[str, Any] | None
    created: float


def create_monitor(database: Database, *, name: str, path: str, other: str | None) -> str:
    """Store a run as pending; returns its id."""
    monitor_id = secrets.token_hex(5)
    with database.write() as connection:
        connection.execute(
            insert_row(_MONITOR).values(
                id=monitor_id,
                name=storable([name])[0],
                path=storable([path])[0],
                other=None if other is None else storable([other])[0],
                status="pending",
                created=time.time(),
            )
        )
    return monitor_id


def change_monitor(database: Database, monitor_id: str, **values: Any) -> None:
    """Set columns; lists and dicts become JSON text."""
    with database.write() as connection:
        connection.execute(update(_MONITOR).where(_MONITOR.c.id == monitor_id).values(**column_values(values)))


def get_monitor(database: Database, monitor_id: str) -> MonitorRow:
    """Raises NotFoundError."""
    return _row(_found(database, monitor_id, _SHORT))


def get_findings(database: Database, monitor_id: str) -> tuple[MonitorRow, dict[str, Any]]:
    """The row and all that its last examination found, as JSON, of one moment; empty until there is one. Raises NotFoundError."""
    row = _found(database, monitor_id, list(_MONITOR.c))
    document: dict[str, Any] = json.loads(row.findings) if row.findings else {}
    return _row(row), document


def _found(database: Database, monitor_id: str, columns: Sequence[ColumnElement[Any]]) -> Any:
    with database.read() as connection:
        row = connection.execute(select(*columns).where(_MONITOR.c.id == monitor_id)).one_or_none()
    if row is None:
        raise NotFoundError(say("monitor.no_monitor", id=f"{monitor_id!r}"), hint=say("monitor.list_monitors"))
    return row


def list_monitors(
    database: Database, *, q: str = "", after: Seek | None = None, limit: int = 100
) -> list[tuple[tuple[Any, ...], MonitorRow]]:
    """Rows with their list keys, newest first. q: part of the name or of a path. Raises UsageError for a foreign key."""
    statement = select(*_SHORT).where(*_listed(q)).order_by(_MONITOR.c.serial.desc()).limit(limit)
    if after is not None:
        after.check(int)
        statement = statement.where(_MONITOR.c.serial < after.key[0])
    with database.read() as connection:
        return [((row.serial,), _row(row)) for row in connection.execute(statement)]


def count_monitors(database: Database, *, q: str = "") -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(_MONITOR).where(*_listed(q))).scalar_one())


def delete_monitor(database: Database, monitor_id: str) -> None:
    """Remove a row. Raises NotFoundError."""
    row = get_monitor(database, monitor_id)
    with database.write() as connection:
        connection.execute(delete(_MONITOR).where(_MONITOR.c.serial == row.serial))


def stranded_monitors(database: Database) -> list[str]:
    """Pending ones that no job is about: a crash came before it was queued."""
    about = select(tables.job.c.serial).where(tables.job.c.subject == _MONITOR.c.id).exists()
    with database.read() as connection:
        return list(connection.execute(select(_MONITOR.c.id).where(_MONITOR.c.status == "pending", ~about)).scalars())


def _listed(q: str) -> list[ColumnElement[bool]]:
    if not q:
        return []
    clean = storable([q])[0].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    columns = _MONITOR.c.name, _MONITOR.c.path, _MONITOR.c.other
    return [or_(*(column.ilike(f"%{clean}%", escape="\\") for column in columns))]


def _row(row: Any) -> MonitorRow:
    return MonitorRow(
        serial=row.serial,
        id=row.id,
        name=row.name,
        path=row.path,
        other=row.other,
        status=row.status,
        job=row.job,
        error=json.loads(row.error) if row.error else None,
        answer=json.loads(row.answer) if row.answer else None,
        created=row.created,
    )
