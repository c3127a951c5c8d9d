"""Offsets in a filtered list of node pairs: the page at an offset, and the offset of a node.

A whole step in call order counts in its keys. For any other list the numbers of its node pairs are read once, in order, and
kept in memory: one number a row, so that a jump to the middle of a million rows reads the page alone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, Connection, func, select

from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.pair_queries.node_pairs import (
    FALLING,
    NodeFilter,
    NodePairRow,
    Sort,
    beyond,
    conditions,
    page_of,
    rows_by_number,
    seek_key,
)
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Page, Seek
from dumpscope.index.trees.row_numbers import KEPT_NUMBERS, Numbers, numbers_of, position_of
from dumpscope.index.trees.trees import find_pair

_PAIR: Final = tables.node_pair.c


def node_pairs_at(
    database: Database, unit: StoredUnit, place: int, *, filters: NodeFilter, sort: Sort = "order", limit: int = 100
) -> Page[NodePairRow]:
    """The page that begins at this place of the list (0 is the first); empty behind its end."""
    with database.read() as connection:
        where = conditions(connection, unit, filters)
        return _page(
            connection, unit, pair_numbers(connection, database, unit, where, filters, sort), sort, place, limit
        )


def node_pairs_around(
    database: Database, unit: StoredUnit, name: str, *, filters: NodeFilter, sort: Sort = "order", limit: int = 100
) -> Page[NodePairRow]:
    """The page in whose middle the node `name` (of either side) stands; raises NotFoundError.

    Where the filters hide the node itself, the page surrounds the place where it would be.
    """
    with database.read() as connection:
        where = conditions(connection, unit, filters)
        numbers = pair_numbers(connection, database, unit, where, filters, sort)
        found = find_pair(connection, unit, name)
        place = _place(connection, numbers, where, sort, seek_key(found, sort))
        return _page(connection, unit, numbers, sort, max(place - limit // 2, 0), limit)


def pair_numbers(
    connection: Connection,
    database: Database,
    unit: StoredUnit,
    where: list[ColumnElement[bool]],
    filters: NodeFilter,
    sort: Sort,
) -> Numbers:
    """Numbers of the node pairs of a list, in its order; those of the last lists stay in memory. where: of the filters"""
    if sort == "order" and not (filters.verdicts or filters.classes or filters.leftovers or filters.api or filters.q):
        last = unit.pairs - 1 if filters.last is None else min(filters.last, unit.pairs - 1)
        return range(max(filters.first or 0, 0), last + 1)
    statement = select(_PAIR.id).where(*where)
    if sort in FALLING:
        statement = statement.add_columns(FALLING[sort])
    else:
        statement = statement.order_by(*([_PAIR.name, _PAIR.id] if sort == "name" else [_PAIR.id]))
    key = (database.url, unit.stamp, unit.id, filters, sort)
    lasting = unit.stamp is not None and filters.lasts
    return KEPT_NUMBERS.get(key if lasting else None, lambda: numbers_of(connection, statement))


def _place(
    connection: Connection,
    numbers: Numbers,
    where: list[ColumnElement[bool]],
    sort: Sort,
    key: tuple[Any, ...],
) -> int:
    """Place of the row with this key, or where it would be."""
    number = key[-1] & tables.NUMBER_MASK
    if isinstance(numbers, range) or sort == "order":
        return position_of(numbers, number)
    found = np.flatnonzero(numbers == number)
    if len(found):
        return int(found[0])
    before = beyond(sort, Seek(key=key, back=True))
    return int(
        connection.execute(select(func.count()).select_from(tables.node_pair).where(*where, before)).scalar_one()
    )


def _page(
    connection: Connection, unit: StoredUnit, numbers: Numbers, sort: Sort, start: int, limit: int
) -> Page[NodePairRow]:
    shown = [int(number) for number in numbers[start : start + limit]]
    rows = rows_by_number(connection, unit, shown)
    return page_of(
        connection,
        [rows[number] for number in shown],
        sort,
        more=start + limit < len(numbers),
        before=start > 0 and bool(shown),
        total=len(numbers),
        start=start,
    )
