"""Result files of a stored comparison; one unit at a time is in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from dumpscope.domain.result import Answer, Unit
from dumpscope.errors import ConflictError, NotFoundError
from dumpscope.export.answer_text import answer_lines
from dumpscope.export.document import json_text
from dumpscope.export.junit import junit_text
from dumpscope.export.report import report_html
from dumpscope.export.table.csv import csv_heading, csv_rows
from dumpscope.export.table.unit_table import Table
from dumpscope.export.words import safe
from dumpscope.export.xlsx import write_xlsx
from dumpscope.index.comparisons.catalogue import StoredUnit, get_comparison, stored_units
from dumpscope.index.comparisons.distances import has_distances
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.dumps.catalogue import unit_word
from dumpscope.index.dumps.load_rank import has_stacks
from dumpscope.index.pair_queries.node_pairs import NodeFilter, check_filters, node_pair_numbers
from dumpscope.index.store.database import Database
from dumpscope.pipeline.results.report import report
from dumpscope.texts import say

EXPORTS: Final = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "page.html": "text/html; charset=utf-8",
    "junit.xml": "application/xml",
    "txt": "text/plain; charset=utf-8",
    "db": "application/vnd.sqlite3",
}
"""Formats and their media types."""


ALL: Final = NodeFilter()


def export_units(
    database: Database, comparison_id: str, step: int | None, rank: int | None, filters: NodeFilter = ALL
) -> tuple[Answer, list[StoredUnit]]:
    """The answer and the units to export; raises ConflictError where there is no result yet, NotFoundError, and UsageError for
    filters that mean nothing, before a document is begun."""
    row = get_comparison(database, comparison_id)
    if row.answer is None:
        raise ConflictError(say("api.comparison_has_no_result", status=row.status), hint=say("api.wait_job"))
    units = [
        unit
        for unit in stored_units(database, comparison_id)
        if step in (None, unit.step) and rank in (None, unit.rank)
    ]
    if not units:
        raise NotFoundError(say("index.comparison_has_no", unit_word=unit_word(step, rank)))
    check_filters(database, units[0], filters)
    return row.answer, units


def csv_text(database: Database, units: Sequence[StoredUnit], filters: NodeFilter = ALL) -> Iterator[str]:
    """Rows of all units below one heading (they name their step and rank); another heading where the mode changes."""
    heading = ""
    for unit in units:
        own = csv_heading(
            unit.mode, stacks=has_stacks(database, unit.target), reference=has_distances(database, unit.id)
        )
        if own != heading:
            yield f"\n{own}" if heading else own
            heading = own
        yield from csv_rows(_table(database, unit, filters))


def json_document(
    database: Database, answer: Answer, units: Sequence[StoredUnit], filters: NodeFilter = ALL, *, pairs: bool
) -> Iterator[str]:
    """The summary document, with the item pairs if asked for."""
    return json_text(answer, _tables(database, units, filters) if pairs else None)


def answer_text(answer: Answer, units: Sequence[StoredUnit]) -> str:
    """What the command prints, in the language of this context."""
    lines = answer_lines(answer, [(unit.step, unit.rank) for unit in units])
    return "".join(f"{safe(line)}\n" for line in lines)


def junit_document(
    database: Database, answer: Answer, units: Sequence[StoredUnit], filters: NodeFilter, name: str
) -> Iterator[str]:
    """A test suite of the answer, and one per unit. name: of the comparison"""
    return junit_text(_tables(database, units, filters), name, answer)


def xlsx_file(
    database: Database, units: Sequence[StoredUnit], filters: NodeFilter, file: Path, check: Callable[[], None]
) -> None:
    """One sheet per unit. check: called before every write; what it raises ends the work"""
    with _Checked(file, check) as stream:
        write_xlsx(stream, _tables(database, units, filters))


def html_page(database: Database, answer: Answer, units: Sequence[StoredUnit], check: Callable[[], None]) -> str:
    """The self-contained report. check: called before every unit; what it raises ends the work"""
    return report_html(report(answer, _Stored(database, units, check)))


class _Checked(io.FileIO):
    def __init__(self, file: Path, check: Callable[[], None]) -> None:
        super().__init__(file, "w+")
        self._check = check

    def write(self, data: Any, /) -> int:
        self._check()
        return super().write(data)


class _Stored:
    """Units that are loaded when they are looked at."""

    def __init__(self, database: Database, units: Sequence[StoredUnit], check: Callable[[], None]) -> None:
        self._check = check
        self._database = database
        self._units = units

    @property
    def places(self) -> list[tuple[int, int]]:
        return [(unit.step, unit.rank) for unit in self._units]

    def __getitem__(self, place: int) -> Unit:
        self._check()
        return load_unit(self._database, self._units[place].id)

    def __iter__(self) -> Iterator[Unit]:
        return (self[place] for place in range(len(self._units)))


def _tables(database: Database, units: Sequence[StoredUnit], filters: NodeFilter) -> Iterator[Table]:
    return (_table(database, unit, filters) for unit in units)


def _table(database: Database, unit: StoredUnit, filters: NodeFilter) -> Table:
    """The rows of the calls that the filters let through."""
    wanted = None
    if filters:
        wanted = np.zeros(unit.pairs, np.bool_)
        wanted[node_pair_numbers(database, unit, filters)] = True
    return Table(load_unit(database, unit.id), wanted)
