"""A page of a list: its rows, and for every row the key at which the next page begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from sqlalchemy import Select, Table, and_, or_

from dumpscope.errors import UsageError
from dumpscope.texts import say

Row = TypeVar("Row")

LAST_NUMBER: Final = (1 << 28) - 1
"""Largest number that a row of one step and rank can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """Where a page begins: behind `key` (one value per sort column), or before it when `back`; END is the list's end."""

    key: tuple[Any, ...]
    back: bool = False

    def check(self, *kinds: type) -> None:
        """Raise UsageError unless the key has one value of each kind (float: any number); a cursor comes from outside."""
        fits = len(self.key) == len(kinds) and all(
            isinstance(value, int | float if kind is float else kind) and not isinstance(value, bool)
            for value, kind in zip(self.key, kinds, strict=True)
        )
        if not fits:
            raise UsageError(
                say("index.cursor_belongs_another_list_sort_order"), hint=say("index.start_again_without_cursor")
            )


END: Final = Seek(key=(), back=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """rows in list order; keys[i] is the seek key of rows[i]
    more: rows follow the last one; before: rows precede the first one; total: rows of the whole list
    start: place of the first row in the whole list, None where that would have to be counted
    back: read towards the beginning: where a page is cut to size, its last rows are kept
    """

    rows: list[Row]
    keys: list[tuple[Any, ...]]
    more: bool
    total: int
    before: bool = False
    start: int | None = None
    back: bool = False


Order = Literal["-created", "created", "name"]


def order_page(statement: Select[Any], table: Table, order: Order, after: Seek | None, limit: int) -> Select[Any]:
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
