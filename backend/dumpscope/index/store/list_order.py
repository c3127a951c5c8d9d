"""Orders of the lists of dumps and of comparisons, and the keys from which a page goes on."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Select, Table, and_, or_

from dumpscope.index.store.page import Seek

Order = Literal["-created", "created", "name"]


def ordered(statement: Select[Any], table: Table, order: Order, after: Seek | None, limit: int) -> Select[Any]:
    """The rows of one page. after: `list_key` of the last row seen; raises UsageError where it is of another order."""
    name, serial = table.c.name, table.c.serial
    if order == "name":
        if after is not None:
            after.check(str, int)
            last_name, last = after.key
            statement = statement.where(or_(name > last_name, and_(name == last_name, serial > last)))
        return statement.order_by(name, serial).limit(limit)
    down = order == "-created"  # serials are given in the order of creation
    if after is not None:
        after.check(int)
        statement = statement.where(serial < after.key[0] if down else serial > after.key[0])
    return statement.order_by(serial.desc() if down else serial).limit(limit)


def list_key(row: Any, order: Order) -> tuple[Any, ...]:
    return (row.name, row.serial) if order == "name" else (row.serial,)
