"""Dumps that a comparison made by joining ranks: listed nowhere, deleted with its result."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, delete, select

from dumpscope.index.dumps.catalogue import JOINED, change_dump, create_dump
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.owners import RANKS, hide

SIDES: Final = ("target", "golden")


def joined_id(comparison_id: str, side: str) -> str:
    """Id of the dump that holds the joined ranks of a side."""
    return f"{comparison_id}.{side}"


def create_joined(database: Database, comparison_id: str) -> None:
    """Make the two dumps that take the joined ranks of a comparison, which has none."""
    for side in SIDES:
        made = create_dump(database, name=side, path="")
        change_dump(database, made, id=joined_id(comparison_id, side), status=JOINED)


def hide_joined(connection: Connection, comparison_id: str) -> list[int]:
    """Take the joined dumps of a comparison away; returns their ranks, which are yet to be removed."""
    dump = tables.dump.c
    names = [joined_id(comparison_id, side) for side in SIDES]
    serials = list(connection.execute(select(dump.serial).where(dump.id.in_(names))).scalars())
    left = [rank for serial in serials for rank in hide(connection, RANKS, serial)]
    connection.execute(delete(tables.dump).where(dump.serial.in_(serials)))
    return left
