"""The tensors of a comparison of checkpoints: stored worst first, listed by page, by state, by part of a name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, and_, delete, func, or_, select

from dumpscope.domain.checkpoints.differences import STATES
from dumpscope.errors import NotFoundError, UsageError
from dumpscope.index.checkpoints.catalogue import CheckpointDiffRow
from dumpscope.index.store import tables
from dumpscope.index.store.codec import storable, to_json
from dumpscope.index.store.database import Database, insert
from dumpscope.index.store.page import Seek
from dumpscope.texts import say

BATCH: Final = 2000
"""Rows of one transaction."""
Sort = Literal["worst", "name", "-largest", "-share"]
_ROW: Final = tables.checkpoint_tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """number: place in the list, worst first; facts: as they travel; share, largest: -1 where nothing was compared"""

    number: int
    facts: dict[str, Any]
    share: float
    largest: float


def store_tensors(database: Database, serial: int, documents: Sequence[tuple[dict[str, Any], float, float]]) -> None:
    """Store the tensors of a comparison in place of earlier ones. documents: facts, share and largest difference, worst first"""
    with database.write() as connection:
        connection.execute(delete(_ROW).where(_ROW.c.diff == serial))
    for start in range(0, len(documents), BATCH):
        rows = [
            (
                serial, number, STATES.index(facts["state"]), *storable([facts["name"], facts["golden"]]),
                min(share, 2.0), min(largest, 1.7e308), to_json(facts),
            )
            for number, (facts, share, largest) in enumerate(documents[start : start + BATCH], start)
        ]  # fmt: skip
        with database.write() as connection:
            insert(connection, _ROW, list(zip(*rows, strict=True)))


def list_tensors(
    database: Database,
    diff: CheckpointDiffRow,
    *,
    states: Sequence[str] = (),
    q: str = "",
    sort: Sort = "worst",
    after: Seek | None = None,
    limit: int = 100,
) -> list[tuple[tuple[Any, ...], StoredTensor]]:
    """Rows with their list keys. states: any of these, all if empty; q: part of a name of either side

    Raises UsageError for an unknown state, or a key of another order.
    """
    column: ColumnElement[Any] | None = None
    down = sort.startswith("-")
    if sort != "worst":
        column = _ROW.c[sort.removeprefix("-")]
    statement = select(_ROW).where(*_conditions(diff, states, q)).limit(limit)
    if column is None:
        statement = statement.order_by(_ROW.c.number)
        if after is not None:
            after.check(int)
            statement = statement.where(_ROW.c.number > after.key[0])
    else:
        statement = statement.order_by(column.desc() if down else column, _ROW.c.number)
        if after is not None:
            after.check(float if down else str, int)
            value, number = after.key
            beyond = column < value if down else column > value
            statement = statement.where(or_(beyond, and_(column == value, _ROW.c.number > number)))
    with database.read() as connection:
        rows = connection.execute(statement).all()
    return [
        ((row.number,) if column is None else (getattr(row, sort.removeprefix("-")), row.number), _stored(row))
        for row in rows
    ]


def count_tensors(database: Database, diff: CheckpointDiffRow, *, states: Sequence[str] = (), q: str = "") -> int:
    with database.read() as connection:
        counted = select(func.count()).select_from(_ROW).where(*_conditions(diff, states, q))
        return int(connection.execute(counted).scalar_one())


def count_states(database: Database, diff: CheckpointDiffRow, *, q: str = "") -> dict[str, int]:
    """Tensors by state, of those whose name holds `q`."""
    with database.read() as connection:
        counted = select(_ROW.c.state, func.count()).where(*_conditions(diff, (), q)).group_by(_ROW.c.state)
        return {STATES[state]: count for state, count in connection.execute(counted)}


def get_tensor(database: Database, diff: CheckpointDiffRow, number: int) -> StoredTensor:
    """Raises NotFoundError."""
    wanted = select(_ROW).where(_ROW.c.diff == diff.serial, _ROW.c.number == number)
    with database.read() as connection:
        row = connection.execute(wanted).one_or_none()
    if row is None:
        raise NotFoundError(say("checkpoints.no_tensor", number=number))
    return _stored(row)


def _conditions(diff: CheckpointDiffRow, states: Sequence[str], q: str) -> list[ColumnElement[bool]]:
    unknown = [state for state in states if state not in STATES]
    if unknown:
        known = ", ".join(STATES)
        raise UsageError(say("checkpoints.no_such_state", state=f"{unknown[0][:40]!r}", states=known))
    found: list[ColumnElement[bool]] = [_ROW.c.diff == diff.serial]
    if states:
        found.append(_ROW.c.state.in_([STATES.index(state) for state in states]))
    if q:
        clean = storable([q])[0].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found.append(or_(*(column.ilike(f"%{clean}%", escape="\\") for column in (_ROW.c.name, _ROW.c.golden))))
    return found


def _stored(row: Any) -> StoredTensor:
    return StoredTensor(number=row.number, facts=json.loads(row.facts), share=row.share, largest=row.largest)
