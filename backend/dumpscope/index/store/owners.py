"""Owners of many rows (ranks of dumps, units of comparisons): written and removed in batches, hidden meanwhile.

One transaction over a whole rank would keep every other writer waiting for seconds. So an owner begins unseen, its rows follow in
batches, each a transaction of its own, and one short transaction shows it; removing goes the other way. Unseen means that its
parent column holds `-(id << 32 | parent)`, which no query asks for: no reader can forget a filter, and no two collide. A process
that dies leaves unseen owners at most; `sweep` removes them at the next start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    func,
    insert as insert_row,
    or_,
    select,
    update,
)

from dumpscope.errors import DumpscopeError, NotFoundError
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database, insert
from dumpscope.texts import say

BATCH: Final = 4096
"""Rows of one transaction: some tens of milliseconds."""

_SHIFT: Final = 1 << 32

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """table: one row per owner; parent: its column that names what it belongs to; rows: tables keyed by owner"""

    table: Table
    parent: Column[Any]
    rows: tuple[Table, ...]


RANKS: Final = OwnerKind(tables.rank_dump, tables.rank_dump.c.dump, tables.RANK_ROWS)
UNITS: Final = OwnerKind(tables.unit, tables.unit.c.comparison, tables.UNIT_ROWS)


@dataclass(frozen=True, slots=True)
class Draft:
    """An unseen owner that takes rows."""

    database: Database
    kind: OwnerKind
    id: int

    def append(self, table: Table, columns: Sequence[Sequence[Any]]) -> None:
        """Add rows given as columns. Raises NotFoundError where somebody has removed the owner meanwhile."""
        for start in range(0, len(columns[0]), BATCH):
            with self.database.write() as connection:
                there = select(self.kind.table.c.id).where(self.kind.table.c.id == self.id)
                if connection.execute(there).scalar() is None:
                    raise NotFoundError(say("index.removed_while_being_written"), hint=say("index.start_again"))
                insert(connection, table, [column[start : start + BATCH] for column in columns])


@contextmanager
def draft(database: Database, kind: OwnerKind, parent: int, values: dict[str, Any]) -> Iterator[Draft]:
    """A new unseen owner below `parent`; it is removed again where the block is left by an exception."""
    owner = begin_draft(database, kind, parent, values)
    try:
        yield Draft(database, kind, owner)
    except BaseException:
        with suppress(Exception):  # the first error is the one to tell; what stays is swept
            _delete(database, kind, [owner])
        raise


def begin_draft(database: Database, kind: OwnerKind, parent: int, values: dict[str, Any]) -> int:
    """A new unseen owner below `parent`, whose `Draft` several processes may fill; returns its id. Whoever fails removes it."""
    with database.write() as connection:
        result = connection.execute(insert_row(kind.table).values({kind.parent.name: 0, **values}))
        owner = int(result.inserted_primary_key[0])  # type: ignore[index]
        connection.execute(
            update(kind.table).where(kind.table.c.id == owner).values({kind.parent.name: -(owner * _SHIFT + parent)})
        )
    return owner


def show(connection: Connection, kind: OwnerKind, owners: Sequence[int], parent: int) -> None:
    """Let readers see these owners."""
    connection.execute(update(kind.table).where(kind.table.c.id.in_(owners)).values({kind.parent.name: parent}))


def hide(connection: Connection, kind: OwnerKind, parent: int, *conditions: ColumnElement[bool]) -> list[int]:
    """Take the owners below `parent` from readers, all or those that meet the conditions; returns also those unseen before."""
    below = or_(kind.parent == parent, and_(kind.parent < 0, (-kind.parent) % _SHIFT == parent))
    found = list(connection.execute(select(kind.table.c.id).where(below, *conditions)).scalars())
    connection.execute(
        update(kind.table)
        .where(kind.parent == parent, *conditions)
        .values({kind.parent.name: -(kind.table.c.id * _SHIFT + kind.parent)})
    )
    return found


def remove(database: Database, kind: OwnerKind, owners: Sequence[int]) -> None:
    """Delete unseen owners and all their rows, as far as that is possible now: on a full disk they stay unseen until `sweep`. No
    reader sees them any more, so whoever asked is not told of a failure."""
    try:
        _delete(database, kind, owners)
    except DumpscopeError as error:
        log.warning("rows of %s that are not seen any more stay until the next start: %s", kind.table.name, error)


def _delete(database: Database, kind: OwnerKind, owners: Sequence[int]) -> None:
    for owner in owners:
        first, last = tables.key_range(owner)
        with database.read() as connection:
            ends = [
                connection.execute(select(func.max(table.c.id)).where(table.c.id.between(first, last))).scalar()
                for table in kind.rows
            ]
        end = max((number for number in ends if number is not None), default=first)
        for start in range(first, end + 1, BATCH):
            stop = start + BATCH - 1
            with database.write() as connection:
                for table in kind.rows:
                    connection.execute(delete(table).where(table.c.id.between(start, stop)))
                if stop >= end:
                    connection.execute(delete(kind.table).where(kind.table.c.id == owner, kind.parent < 0))


def unused_ranks(connection: Connection, ranks: Sequence[int]) -> list[int]:
    """Those of these unseen ranks that no unit was compared from: a rank that was read again stays while a result shows it."""
    if not ranks:
        return []
    unit, rank = tables.unit.c, tables.rank_dump.c
    used = select(unit.id).where(or_(unit.target == rank.id, unit.golden == rank.id)).exists()
    return list(connection.execute(select(rank.id).where(rank.id.in_(ranks), rank.dump < 0, ~used)).scalars())


def parent_of(kind: OwnerKind, row: Any) -> int:
    """What the owner of this row belongs to, unseen or not."""
    parent = int(row._mapping[kind.parent.name])
    return parent if parent >= 0 else -parent % _SHIFT


def sweep(database: Database) -> int:
    """Remove what a process that died has left unseen; returns how many. Only while no other process writes."""
    count = 0
    for kind in (UNITS, RANKS):
        with database.read() as connection:
            left = list(connection.execute(select(kind.table.c.id).where(kind.parent < 0)).scalars())
            left = unused_ranks(connection, left) if kind is RANKS else left
        _delete(database, kind, left)
        count += len(left)
    return count
