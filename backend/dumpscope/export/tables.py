"""Result tables as csv and xlsx."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, Final, TextIO

from dumpscope.export.columns import columns
from dumpscope.export.rows import ExportRow, Table
from dumpscope.export.text import Cell

SHEET_ROWS: Final = 1_048_575
"""Rows a sheet holds below its heading."""
_CELL_TEXT: Final = 32_767  # longest text a spreadsheet cell holds


def write_csv(stream: TextIO, table: Table) -> int:
    """Write one table; open the stream with newline="". Returns the number of rows."""
    listed = columns(table.mode, stacks=table.stacks)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.name for column in listed])
    cells = [column.cell for column in listed]
    count = 0
    for row in table.rows:
        writer.writerow([write(row) for write in cells])
        count += 1
    return count


def csv_lines(table: Table) -> Iterator[str]:
    """The csv text line by line, for answers that are streamed."""
    buffer = _Line()
    listed = columns(table.mode, stacks=table.stacks)
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.name for column in listed])
    yield buffer.text
    for row in table.rows:
        writer.writerow([column.cell(row) for column in listed])
        yield buffer.text


class _Line:
    text = ""

    def write(self, text: str) -> int:
        self.text = text
        return len(text)


def write_xlsx(target: str | BinaryIO, tables: Iterable[Table]) -> None:
    """Write one sheet per table (several where a table is longer than a sheet), holding one row in memory at a time."""
    import xlsxwriter  # noqa: PLC0415 - costs start-up that only this format needs

    book = xlsxwriter.Workbook(
        target, {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    )
    heading = book.add_format({"bold": True, "text_wrap": True})
    marks = {
        word: book.add_format({"bg_color": colour}) for word, colour in (("No", "#FFC7CE"), ("Warning", "#FFEB9C"))
    }
    empty = True
    for table in tables:
        empty = False
        rows = iter(table.rows)
        part = 0
        ahead = next(rows, None)
        while ahead is not None or part == 0:
            part += 1
            suffix = f" ({part})" if part > 1 else ""
            sheet = book.add_worksheet(f"step{table.step} rank{table.rank}{suffix}")
            listed = columns(table.mode, stacks=table.stacks)
            for place, column in enumerate(listed):
                sheet.write_string(0, place, column.name, heading)
            sheet.freeze_panes(1, 1)
            sheet.set_column(0, 1, 44)
            head = () if ahead is None else (ahead,)
            _fill(sheet, listed, [*head], islice(rows, SHEET_ROWS - len(head)), marks)
            ahead = next(rows, None)
    if empty:
        book.add_worksheet("empty")
    book.close()


def _fill(
    sheet: Any, listed: list[Any], head: list[ExportRow], rows: Iterator[ExportRow], marks: dict[str, Any]
) -> None:
    line = 0
    for source in (head, rows):
        for row in source:
            line += 1
            for place, column in enumerate(listed):
                _put(sheet, line, place, column.cell(row), marks)


def _put(sheet: Any, line: int, place: int, value: Cell, marks: dict[str, Any]) -> None:
    if isinstance(value, str):
        sheet.write_string(line, place, value[:_CELL_TEXT], marks.get(value))
    elif isinstance(value, bool):
        sheet.write_boolean(line, place, value)
    elif not math.isfinite(value) or abs(value) > 2**53:
        sheet.write_string(line, place, str(value))  # a sheet has neither infinities nor exact large integers
    else:
        sheet.write_number(line, place, value)
