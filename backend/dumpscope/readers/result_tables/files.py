"""Finds result tables at a path and reads their rows: csv, xlsx, and the JSON that msprobe's `-da` leaves."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dumpscope.errors import UnreadableError
from dumpscope.readers.regular_file import open_regular, read_head
from dumpscope.readers.result_tables.rows import Row, is_heading, read_row, read_rows
from dumpscope.texts import say

KINDS: Final = (".csv", ".xlsx", ".json")
"""In the order in which they are preferred: tables of one rank are the same in all."""
SIZE_LIMIT: Final = 4 << 30
"""Bytes of a table; msprobe's grow by some 600 a row."""
_RANK: Final = re.compile(r"rank_?([0-9]{1,9})")
_JSON_ROWS: Final = b'"op_items"'
_NAME: Final = re.compile(r"(debug_)?compare_result.*\.(csv|xlsx|json)", re.IGNORECASE)
_STAMP: Final = re.compile(r"[0-9]{14}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """rank: by the file's name, None where it tells none"""

    path: str
    rank: int | None

    @property
    def kind(self) -> str:
        return os.path.splitext(self.path)[1].lower()

    def rows(self) -> Iterator[Row]:
        """Raises UnreadableError for a file that is damaged or too large."""
        size = os.path.getsize(self.path)
        if size > SIZE_LIMIT:
            raise UnreadableError(say("readers.table_too_large", gib=SIZE_LIMIT >> 30), where=self.path)
        if self.kind == ".xlsx":
            yield from _xlsx_rows(self.path)
        elif self.kind == ".json":
            yield from _json_rows(self.path)
        else:
            yield from _csv_rows(self.path)


def names_table(name: str) -> bool:
    """Whether a file of this name is a result table, as far as names tell: as their tools name them."""
    return _NAME.fullmatch(name) is not None


def find_tables(path: str | os.PathLike[str]) -> list[TableFile]:
    """The tables that a path names: a file, or those of a folder, one a rank and the newest of each. Empty where it is none."""
    named = os.fspath(path)
    if os.path.isdir(named):
        return _newest(_table(os.path.join(named, name)) for name in sorted(os.listdir(named)))
    found = _table(named)
    return [found] if found is not None else []


def _newest(found: Iterator[TableFile | None]) -> list[TableFile]:
    chosen: dict[int | None, TableFile] = {}
    for one in found:
        if one is None:
            continue
        known = chosen.get(one.rank)
        if known is None or _order(one) > _order(known):
            chosen[one.rank] = one
    if len(chosen) > 1:  # beside tables of ranks, one without a number is a merged or an older one
        chosen.pop(None, None)
    return sorted(chosen.values(), key=lambda one: one.rank or 0)


def _order(table: TableFile) -> tuple[str, int]:
    stamp = _STAMP.search(os.path.basename(table.path))
    return stamp[0] if stamp else "", -KINDS.index(table.kind)


def _table(path: str) -> TableFile | None:
    name = os.path.basename(path)
    if not name.lower().endswith(KINDS) or name.startswith(".") or not os.path.isfile(path):
        return None
    found = _RANK.search(name)
    table = TableFile(path=path, rank=int(found[1]) if found else None)
    try:
        return table if _is_table(table) else None
    except (OSError, UnreadableError, ValueError):
        return None


def _is_table(table: TableFile) -> bool:
    if table.kind == ".xlsx":
        heading, _ = _sheet(table.path)
        return is_heading(heading)
    head = read_head(table.path)
    if table.kind == ".json":
        return _JSON_ROWS in head and b"NPU Name" in head
    first = head.decode("utf-8-sig", "replace").partition("\n")[0]
    return is_heading(next(csv.reader([first]), []))


def _csv_rows(path: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)  # a cell may hold the frames of a whole call stack
    with open_regular(path) as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", "replace", newline="")  # type: ignore[type-var]
        lines = csv.reader(text)
        try:
            heading = next(lines, [])
            yield from read_rows(heading, lines)
        except csv.Error as error:
            raise UnreadableError(say("readers.table_damaged", line=lines.line_num, error=error), where=path) from error


def _sheet(path: str) -> tuple[tuple[object, ...], Iterator[tuple[object, ...]]]:
    """Heading and lines of the first sheet."""
    from openpyxl import load_workbook  # noqa: PLC0415 - only tables need it

    try:
        sheet = load_workbook(path, read_only=True, data_only=True).worksheets[0]
        lines = sheet.iter_rows(values_only=True)
        return next(lines, ()), lines
    except Exception as error:  # openpyxl raises what zipfile, XML and its own parts raise
        raise UnreadableError(say("readers.table_no_workbook", error=error), where=path) from error


def _xlsx_rows(path: str) -> Iterator[Row]:
    heading, lines = _sheet(path)
    yield from read_rows(heading, lines)


def _json_rows(path: str) -> Iterator[Row]:
    try:
        found = json.loads(Path(path).read_bytes())  # it may hold NaN and Infinity
    except ValueError as error:
        raise UnreadableError(say("readers.no_json", error=error), where=path) from error
    for node in found.values() if isinstance(found, dict) else ():
        for record in node.get("op_items", ()) if isinstance(node, dict) else ():
            row = read_row(record)
            if row is not None:
                yield row
