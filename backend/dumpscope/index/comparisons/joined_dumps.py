"""Dumps that a comparison made by joining ranks, or passes of a model: listed nowhere, deleted with its result."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, delete, insert as insert_row, select

from dumpscope.index.dumps.catalogue import JOINED, new_dump
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.owners import RANKS, hide

SIDES: Final = ("target", "golden")


def joined_id(comparison_id: str, side: str) -> str:
    """Id of the dump that holds the joined ranks of a side."""
    return f"{comparison_id}.{side}"


def ensure_joined(database: Database, comparison_id: str, side: str) -> str:
    """Id of the dump that takes what a comparison joins of a side; it is made where there is none yet."""
    wanted = joined_id(comparison_id, side)
    with database.write() as connection:
        if connection.execute(select(tables.dump.c.serial).where(tables.dump.c.id == wanted)).scalar() is None:
            connection.execute(insert_row(tables.dump).values(new_dump(wanted, name=side, path="", status=JOINED)))
    return wanted


def hide_joined(connection: Connection, comparison_id: str) -> list[int]:
    """Take the joined dumps of a comparison away; returns their ranks, which are yet to be removed."""
    dump = tables.dump.c
    names = [joined_id(comparison_id, side) for side in SIDES]
    serials = list(connection.execute(select(dump.serial).where(dump.id.in_(names))).scalars())
    left = [rank for serial in serials for rank in hide(connection, RANKS, serial)]
    connection.execute(delete(tables.dump).where(dump.serial.in_(serials)))
    return left
