"""A page of a list: its rows, and for every row the key from which the next page would go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from dumpscope.errors import UsageError
from dumpscope.texts import say

Row = TypeVar("Row")


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
