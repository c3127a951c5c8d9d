"""Which rows a list shows, in its order: their numbers, kept in memory so that a page from any place reads that page alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Select

from dumpscope.domain.records import Int32
from dumpscope.index.store import tables

KEPT: Final = 12
"""Lists kept; one of a million rows takes 4 MB."""

Numbers = range | Int32
"""Numbers of a list's rows, in its order; a range where the list is a whole step and rank as it ran."""

_kept: OrderedDict[tuple[Any, ...], Int32] = OrderedDict()
_lock = threading.Lock()


def kept(key: tuple[Any, ...] | None, load: Callable[[], Int32]) -> Int32:
    """What was loaded under this key before, else what is loaded now; None: never kept."""
    if key is None:
        return load()
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    loaded = load()
    with _lock:
        _kept[key] = loaded
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return loaded


def numbers_of(connection: Connection, statement: Select[Any]) -> Int32:
    """Numbers of the keys in the first column, in the order of the rows; by a second one falling where there is one."""
    rows: Sequence[Any] = connection.execute(statement).cursor.fetchall()  # half the time of `Row`s
    keys = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    numbers = (keys & tables.NUMBER_MASK).astype(np.int32)
    if len(statement.selected_columns) == 1:
        return numbers
    falling = np.fromiter((row[1] for row in rows), dtype=np.float64, count=len(rows))
    return numbers[np.lexsort((numbers, -falling))]


def place_in(numbers: Numbers, number: int) -> int:
    """Place of a number among rising ones, or where it would be."""
    if isinstance(numbers, range):
        return min(max(number - numbers.start, 0), len(numbers))
    return int(np.searchsorted(numbers, number))
