"""Keys made inside a statement."""

from __future__ import annotations

from sqlalchemy import BigInteger, ColumnElement, literal

from dumpscope.index.store import tables


def key_at(owner: int, number: ColumnElement[int]) -> ColumnElement[int]:
    """Primary key of an owner's row whose number stands in a column.

    As a plain operand beside a column of 32 bits the owner's part would be sent as 32 bits too, which from the eighth owner are
    too few for PostgreSQL.
    """
    return literal(tables.key(owner), BigInteger) + number
