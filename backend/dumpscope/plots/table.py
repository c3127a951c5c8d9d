"""The numbers of a figure as rows, for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Cell = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """columns: their names; rows: one cell per column, None if empty; numbers may be nan or inf"""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]


def table(columns: Iterable[str], rows: Iterable[Sequence[Cell]]) -> Table:
    return Table(columns=tuple(columns), rows=list(rows))
