"""Delete what belongs to a rank of a dump or to a unit of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Table, delete, select

from dumpscope.index import tables


def delete_ranks(connection: Connection, ranks: Sequence[int]) -> None:
    """Delete these rank_dump rows and all rows below them."""
    _delete_rows(connection, tables.RANK_ROWS, ranks)
    connection.execute(delete(tables.rank_dump).where(tables.rank_dump.c.id.in_(list(ranks))))


def delete_units(connection: Connection, units: Sequence[int]) -> None:
    """Delete these unit rows and all rows below them."""
    _delete_rows(connection, tables.UNIT_ROWS, units)
    connection.execute(delete(tables.unit).where(tables.unit.c.id.in_(list(units))))


def units_of(connection: Connection, comparison: int) -> list[int]:
    return list(connection.execute(select(tables.unit.c.id).where(tables.unit.c.comparison == comparison)).scalars())


def ranks_of(connection: Connection, dump: int) -> list[int]:
    return list(connection.execute(select(tables.rank_dump.c.id).where(tables.rank_dump.c.dump == dump)).scalars())


def _delete_rows(connection: Connection, below: Sequence[Table], owners: Sequence[int]) -> None:
    for owner in owners:
        first, last = tables.key_range(owner)
        for table in below:
            connection.execute(delete(table).where(table.c.id.between(first, last)))
