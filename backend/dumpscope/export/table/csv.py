"""Result tables as csv text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dumpscope.domain.records import Bool, Int64
from dumpscope.export.table.cell_text import Cell
from dumpscope.export.table.cells import Bound, CellWriter
from dumpscope.export.table.columns import TableColumn, columns
from dumpscope.export.table.unit_table import Table

_QUOTED: Final = re.compile(r'[",\r\n]')


def csv_text(table: Table) -> Iterator[str]:
    """The whole table, a few thousand lines at a time."""
    yield csv_heading(table.mode, stacks=table.stacks, reference=table.reference)
    yield from csv_rows(table)


def csv_heading(mode: str, *, stacks: bool, reference: bool = False) -> str:
    """The first line of a table."""
    return heading_line(columns(mode, stacks=stacks, reference=reference))


def heading_line(listed: Sequence[TableColumn]) -> str:
    return ",".join(_field(column.name) for column in listed) + "\n"


def csv_rows(table: Table) -> Iterator[str]:
    """The lines below the heading, a few thousand at a time."""
    return csv_lines(
        table.blocks(), bind_columns(columns(table.mode, stacks=table.stacks, reference=table.reference), table)
    )


def bind_columns(listed: Sequence[TableColumn], table: Table) -> list[Bound]:
    return [column.bind(table) for column in listed]


def csv_lines(blocks: Iterator[Int64], sources: Sequence[Bound]) -> Iterator[str]:
    """csv lines of blocks of rows."""
    drawn = [CellWriter(_cell, _fields) for _ in sources]
    for rows in blocks:
        texts = [draw(source(rows)) for draw, source in zip(drawn, sources, strict=True)]
        yield "\n".join(map(",".join, zip(*texts, strict=True))) + "\n"


def select_rows(blocks: Iterator[Int64], keep: Bool) -> Iterator[Int64]:
    """The blocks without the rows that `keep` has False for."""
    for rows in blocks:
        left = rows[keep[rows]]
        if len(left):
            yield left


def _cell(value: Cell) -> str:
    return _field(str(value))


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _fields(texts: list[str]) -> list[str]:
    whole = "".join(texts)
    if not _QUOTED.search(whole):
        return texts
    search = _QUOTED.search
    if '"' in whole:
        return [_field(text) for text in texts]
    return [f'"{text}"' if search(text) else text for text in texts]
