"""Result tables as a workbook, written as SpreadsheetML text, one block of rows at a time.

XlsxWriter (constant_memory) takes 5.4 times as long for 100 000 rows of 39 columns, openpyxl (write_only) more than six times.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import IO, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

from dumpscope.domain.records import Bool
from dumpscope.export.table.cell_text import Cell
from dumpscope.export.table.cells import CellWriter
from dumpscope.export.table.columns import ACCURACY, TableColumn, columns
from dumpscope.export.table.csv import bind_columns, select_rows
from dumpscope.export.table.unit_table import Table

SHEET_ROWS: Final = 1_048_575
"""Most rows of a sheet below its heading."""
CELL_TEXT: Final = 32_767
"""Most UTF-16 units of a cell."""
SHEET_BYTES: Final = 1_900_000_000
"""Most bytes of XML of a sheet; past 2 GiB an archive needs a form that not every reader supports."""
EXACT: Final = 2**53

_HEADING: Final = ' s="1"'
_MARKS: Final = {"No": ' s="2"', "Warning": ' s="3"'}
"""Styles of verdicts, by their index among the cellXfs of _BOOK_STYLES."""
_SPECIAL: Final = re.compile("[&<>\\x00-\\x08\\x0b-\\x1f\\ud800-\\udfff\\ufffe\\uffff]|_x")
_HIDDEN: Final = re.compile("[\\x00-\\x08\\x0b-\\x1f\\ud800-\\udfff\\ufffe\\uffff]|_(?=x[0-9a-fA-F]{4}_)")
"""Characters that XML cannot hold, and text that would be read as an escape."""
_FILLS: Final = 3
"""Style before the first fill of a row."""
_ROW: Final = "\x00"
"""Placeholder for the row's number until the row is complete."""

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN: Final = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_BOOK_STYLES: Final = (
    f'{_XML}<styleSheet {_MAIN}><fonts count="2"><font><sz val="11"/><name val="Calibri"/><family val="2"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/><family val="2"/></font></fonts>'
    '<fills count="6"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '<fill><patternFill patternType="solid"><fgColor rgb="FFFFC7CE"/><bgColor indexed="64"/></patternFill></fill>'
    '<fill><patternFill patternType="solid"><fgColor rgb="FFFFEB9C"/><bgColor indexed="64"/></patternFill></fill>'
    '<fill><patternFill patternType="solid"><fgColor rgb="00FFFF00"/><bgColor indexed="64"/></patternFill></fill>'
    '<fill><patternFill patternType="solid"><fgColor rgb="FFFF0000"/><bgColor indexed="64"/></patternFill></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="6"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1" applyAlignment="1">'
    '<alignment wrapText="1"/></xf>'
    '<xf numFmtId="0" fontId="0" fillId="2" borderId="0" xfId="0" applyFill="1"/>'
    '<xf numFmtId="0" fontId="0" fillId="3" borderId="0" xfId="0" applyFill="1"/>'
    '<xf numFmtId="0" fontId="0" fillId="4" borderId="0" xfId="0" applyFill="1"/>'
    '<xf numFmtId="0" fontId="0" fillId="5" borderId="0" xfId="0" applyFill="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
_SHEET: Final = (
    f'{_XML}<worksheet {_MAIN}><sheetViews><sheetView workbookViewId="0"><pane xSplit="1" ySplit="1" topLeftCell="B2" '
    'activePane="bottomRight" state="frozen"/></sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>'
    '<cols><col min="1" max="2" width="44.7109375" customWidth="1"/></cols><sheetData>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The part of a table on a sheet. rows: which of its rows, None for all; fills: code of each row's fill, 0 for none (then
    single cells have no fill)"""

    columns: Callable[[Table], list[TableColumn]]
    rows: Callable[[Table], Bool] | None = None
    fills: Callable[[Table], Any] | None = None


USUAL: Final = Sheet(columns=lambda table: columns(table.mode, stacks=table.stacks, reference=table.reference))


def write_xlsx(target: str | IO[bytes], tables: Iterable[Table], sheet: Sheet = USUAL) -> None:
    """Write one sheet per table, several if a table is longer than a sheet; only one block of rows is in memory as text."""
    names: list[str] = []
    with ZipFile(target, "w", ZIP_DEFLATED) as book:
        for table in tables:
            _write_table(book, names, table, sheet)
        if not names:
            names.append("empty")
            with book.open("xl/worksheets/sheet1.xml", "w") as part:
                part.write(f"{_XML}<worksheet {_MAIN}><sheetData/></worksheet>".encode())
        for name, text in _package(names).items():
            book.writestr(name, text)


def _write_table(book: ZipFile, names: list[str], table: Table, shown: Sheet) -> None:
    listed = shown.columns(table)
    fills = None if shown.fills is None else shown.fills(table)
    marks = {} if fills is not None else _MARKS
    sources = bind_columns(listed, table)
    drawn = [_cell_writer(column, column_letters(place), marks) for place, column in enumerate(listed)]
    blocks = table.blocks() if shown.rows is None else select_rows(table.blocks(), shown.rows(table))
    ahead = next(blocks, None)
    part = 0
    while ahead is not None or part == 0:
        part += 1
        names.append(f"step{table.step} rank{table.rank}" + (f" ({part})" if part > 1 else ""))
        with book.open(f"xl/worksheets/sheet{len(names)}.xml", "w") as sheet:
            sheet.write((_SHEET + _heading_row(listed)).encode())
            line, size = 1, 0
            while ahead is not None and line <= SHEET_ROWS and size < SHEET_BYTES:
                room = SHEET_ROWS + 1 - line
                rows, rest = ahead[:room], ahead[room:]
                cells = [draw(source(rows)) for draw, source in zip(drawn, sources, strict=True)]
                written = _row_texts(cells, line + 1, None if fills is None else fills[rows].tolist()).encode()
                sheet.write(written)
                line, size = line + len(rows), size + len(written)
                ahead = rest if len(rest) else next(blocks, None)
            sheet.write(b"</sheetData></worksheet>")


def _row_texts(cells: Sequence[Sequence[str]], first: int, fills: Sequence[int] | None) -> str:
    """Rows as text. fills: code of each, 1 and 2 for the fills behind those of verdicts"""
    rows = map("".join, zip(*cells, strict=True))
    if fills is not None:
        rows = map(_fill_row, rows, fills)
    return "".join(
        [f'<row r="{line}">{row.replace(_ROW, str(line))}</row>' for line, row in enumerate(rows, start=first)]
    )


def _fill_row(row: str, fill: int) -> str:
    return row.replace("<c ", f'<c s="{_FILLS + fill}" ') if fill else row


def _heading_row(listed: Sequence[TableColumn]) -> str:
    cells = "".join(_string(column_letters(place), column.name, _HEADING) for place, column in enumerate(listed))
    return f'<row r="1">{cells.replace(_ROW, "1")}</row>'


def column_letters(place: int) -> str:
    """Name of a column: A, B, ... Z, AA, ..."""
    ahead, last = divmod(place, 26)
    return (column_letters(ahead - 1) if ahead else "") + chr(ord("A") + last)


def _cell_writer(column: TableColumn, letter: str, marks: Mapping[str, str]) -> CellWriter:
    if column.name != ACCURACY:
        marks = {}

    def text(value: Cell) -> str:
        if isinstance(value, str):
            return _string(letter, value, marks.get(value, ""))
        if isinstance(value, bool):
            return f'<c r="{letter}{_ROW}" t="b"><v>{int(value)}</v></c>'
        if abs(value) > EXACT if isinstance(value, int) else not math.isfinite(value):
            return _string(letter, str(value), "")  # a sheet can hold neither infinities nor exact large integers
        return f'<c r="{letter}{_ROW}"><v>{value}</v></c>'

    ahead, behind = f'<c r="{letter}{_ROW}" t="inlineStr"><is><t>', "</t></is></c>"

    def texts(values: list[str]) -> list[str]:
        if _plain(values):
            return [f"{ahead}{value}{behind}" for value in values]
        return [_string(letter, value, "") for value in values]

    def numbers(values: list[str]) -> list[str]:
        return [f'<c r="{letter}{_ROW}"><v>{value}</v></c>' for value in values]

    return CellWriter(text, texts, numbers)


def _plain(values: Sequence[str]) -> bool:
    """Whether no text needs escaping."""
    return (
        not _SPECIAL.search("".join(values))
        and not any(map(str.isspace, {end for value in values for end in (value[:1], value[-1:])}))
        and max(map(len, values)) <= CELL_TEXT // 2
    )


def _string(letter: str, text: str, style: str) -> str:
    if len(text) > CELL_TEXT // 2:
        text = _cut(text)
    space = ' xml:space="preserve"' if text != text.strip() else ""
    held = escape(_HIDDEN.sub(lambda found: f"_x{ord(found[0]):04X}_", text), quote=False)
    return f'<c r="{letter}{_ROW}"{style} t="inlineStr"><is><t{space}>{held}</t></is></c>'


def _cut(text: str) -> str:
    """The text as far as a cell holds it, with a mark where it ends early. A character may take two of a cell's places."""
    places = text.encode("utf-16-le", "surrogatepass")
    if len(places) <= 2 * CELL_TEXT:
        return text
    mark = f" ... (cut: {len(text)} characters)"
    return places[: 2 * (CELL_TEXT - len(mark))].decode("utf-16-le", "ignore") + mark


def _package(names: Sequence[str]) -> dict[str, str]:
    """The parts of a workbook around its sheets."""
    numbers = range(1, len(names) + 1)
    sheets = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>'
        for number, name in zip(numbers, names, strict=True)
    )
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in numbers
    )
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for number in numbers
    )
    styles = f'<Relationship Id="rId{len(names) + 1}" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    relations = f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">'
    return {
        "xl/workbook.xml": f'{_XML}<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets></workbook>',
        "xl/styles.xml": _BOOK_STYLES,
        "xl/_rels/workbook.xml.rels": f"{relations}{links}{styles}</Relationships>",
        "_rels/.rels": f'{relations}<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "[Content_Types].xml": f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>{kinds}</Types>',
    }
