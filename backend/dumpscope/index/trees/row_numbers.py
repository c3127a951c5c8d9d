"""Numbers of the rows of a list, in its order: kept in memory, so that a page at any offset reads only its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Select

from dumpscope.domain.records import Int32
from dumpscope.index.store import tables
from dumpscope.index.store.recent import Recent

KEPT: Final = 12
"""Lists kept; one of a million rows takes 4 MB."""

Numbers = range | Int32
"""Numbers of a list's rows, in its order; a range where the list is a whole step and rank as it ran."""

KEPT_NUMBERS: Final[Recent[tuple[Any, ...], Int32]] = Recent(KEPT)
"""Row numbers of the lists asked for last."""


def numbers_of(connection: Connection, statement: Select[Any]) -> Int32:
    """Numbers of the keys in the first column, in the order of the rows; by a second one falling where there is one."""
    rows: Sequence[Any] = connection.execute(statement).cursor.fetchall()  # half the time of `Row`s
    keys = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    numbers = (keys & tables.NUMBER_MASK).astype(np.int32)
    if len(statement.selected_columns) == 1:
        return numbers
    falling = np.fromiter((row[1] for row in rows), dtype=np.float64, count=len(rows))
    return numbers[np.lexsort((numbers, -falling))]


def position_of(numbers: Numbers, number: int) -> int:
    """Position of a number among rising ones, or where it would be."""
    if isinstance(numbers, range):
        return min(max(number - numbers.start, 0), len(numbers))
    return int(np.searchsorted(numbers, number))
