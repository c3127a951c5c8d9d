"""Result files of ptdbg_ascend: its table as csv and xlsx, and the advisor's text."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dumpscope.domain.result import Answer
from dumpscope.export.files import Tables, unit_suffix, write_text, write_whole
from dumpscope.ptdbg.export.advice import advice
from dumpscope.ptdbg.export.table import ptdbg_csv, ptdbg_xlsx


def write_all(folder: Path, answer: Answer, tables: Tables) -> list[Path]:
    """Format `ptdbg`: three files for each table."""
    return write_ptdbg(folder, "ptdbg_result{unit}", "ptdbg_advisor{unit}", answer, tables)


def write_csv(folder: Path, _answer: Answer, tables: Tables) -> list[Path]:
    """Format `ptdbg-csv`: a file for each table."""
    written = []
    for make in tables:
        table = make()
        path = folder / f"ptdbg_result{unit_suffix(table, alone=len(tables) == 1)}.csv"
        written.append(write_whole(path, partial(write_text, pieces=ptdbg_csv(table))))
    return written


def write_xlsx(folder: Path, _answer: Answer, tables: Tables) -> list[Path]:
    """Format `ptdbg-xlsx`: one workbook with a sheet for each table."""
    path = folder / "ptdbg_result.xlsx"
    return [write_whole(path, lambda part: ptdbg_xlsx(part, (make() for make in tables)))]


def write_ptdbg(
    folder: Path, table_name: str, advice_name: str | None, answer: Answer, tables: Tables, *, stacks: bool = True
) -> list[Path]:
    """ptdbg's csv, xlsx and advisor's text of every table.

    table_name, advice_name: `{unit}` in them becomes step and rank where there are several tables; advice_name None: no advice
    stacks: with the column of call stacks where there are any
    """
    written = []
    for make in tables:
        table = make()
        unit = unit_suffix(table, alone=len(tables) == 1)
        name = table_name.format(unit=unit)
        csv = partial(write_text, pieces=ptdbg_csv(table, stacks=stacks))
        written.append(write_whole(folder / f"{name}.csv", csv))
        book = partial(ptdbg_xlsx, tables=[table], stacks=stacks)
        written.append(write_whole(folder / f"{name}.xlsx", book))
        if advice_name is not None:
            text = partial(write_text, pieces=[advice(answer, table)])
            written.append(write_whole(folder / f"{advice_name.format(unit=unit)}.txt", text))
    return written
