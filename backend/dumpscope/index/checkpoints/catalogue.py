"""The catalogue of comparisons of checkpoints: one row each, from the request to its removal."""

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
from dumpscope.index.store.codec import column_values, storable, to_json
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Seek
from dumpscope.texts import say

_DIFF = tables.checkpoint_diff


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDiffRow:
    """status: pending, done, failed or cancelled; target, golden: paths; answer: the summary as JSON, None until there is one
    error: wire form of what made it fail; created: seconds since the epoch"""

    serial: int
    id: str
    name: str
    target: str
    golden: str
    renames: list[str]
    status: str
    job: str | None
    error: dict[str, Any] | None
    answer: dict[str, Any] | None
    created: float


def create_checkpoint_diff(database: Database, *, name: str, target: str, golden: str, renames: Sequence[str]) -> str:
    """Store a new comparison as pending; returns its id."""
    diff_id = secrets.token_hex(5)
    with database.write() as connection:
        connection.execute(
            insert_row(_DIFF).values(
                id=diff_id,
                name=storable([name])[0],
                target=storable([target])[0],
                golden=storable([golden])[0],
                renames=to_json(list(renames)),
                status="pending",
                created=time.time(),
            )
        )
    return diff_id


def change_checkpoint_diff(database: Database, diff_id: str, **values: Any) -> None:
    """Set columns; lists and dicts become JSON text."""
    with database.write() as connection:
        connection.execute(update(_DIFF).where(_DIFF.c.id == diff_id).values(**column_values(values)))


def get_checkpoint_diff(database: Database, diff_id: str) -> CheckpointDiffRow:
    """Raises NotFoundError."""
    with database.read() as connection:
        row = connection.execute(select(_DIFF).where(_DIFF.c.id == diff_id)).one_or_none()
    if row is None:
        raise NotFoundError(say("checkpoints.no_diff", id=f"{diff_id!r}"), hint=say("checkpoints.list_diffs"))
    return _row(row)


def list_checkpoint_diffs(
    database: Database, *, q: str = "", after: Seek | None = None, limit: int = 100
) -> list[tuple[tuple[Any, ...], CheckpointDiffRow]]:
    """Rows with their list keys, newest first. q: part of the name or of a path. Raises UsageError for a foreign key."""
    statement = select(_DIFF).where(*_listed(q)).order_by(_DIFF.c.serial.desc()).limit(limit)
    if after is not None:
        after.check(int)
        statement = statement.where(_DIFF.c.serial < after.key[0])
    with database.read() as connection:
        return [((row.serial,), _row(row)) for row in connection.execute(statement)]


def count_checkpoint_diffs(database: Database, *, q: str = "") -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(_DIFF).where(*_listed(q))).scalar_one())


def delete_checkpoint_diff(database: Database, diff_id: str) -> None:
    """Remove a comparison and its tensors. Raises NotFoundError."""
    row = get_checkpoint_diff(database, diff_id)
    tensor = tables.checkpoint_tensor
    with database.write() as connection:
        connection.execute(delete(tensor).where(tensor.c.diff == row.serial))
        connection.execute(delete(_DIFF).where(_DIFF.c.serial == row.serial))


def stranded_checkpoint_diffs(database: Database) -> list[str]:
    """Pending ones that no job is about: a crash came before it was queued."""
    about = select(tables.job.c.serial).where(tables.job.c.subject == _DIFF.c.id).exists()
    with database.read() as connection:
        return list(connection.execute(select(_DIFF.c.id).where(_DIFF.c.status == "pending", ~about)).scalars())


def _listed(q: str) -> list[ColumnElement[bool]]:
    if not q:
        return []
    clean = storable([q])[0].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    columns = _DIFF.c.name, _DIFF.c.target, _DIFF.c.golden
    return [or_(*(column.ilike(f"%{clean}%", escape="\\") for column in columns))]


def _row(row: Any) -> CheckpointDiffRow:
    return CheckpointDiffRow(
        serial=row.serial,
        id=row.id,
        name=row.name,
        target=row.target,
        golden=row.golden,
        renames=json.loads(row.renames),
        status=row.status,
        job=row.job,
        error=json.loads(row.error) if row.error else None,
        answer=json.loads(row.answer) if row.answer else None,
        created=row.created,
    )
