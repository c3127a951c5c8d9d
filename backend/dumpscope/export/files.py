"""Result files of one comparison in a folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from dumpscope.domain.result import Answer
from dumpscope.errors import UsageError
from dumpscope.export.document import json_text
from dumpscope.export.junit import junit_text
from dumpscope.export.ptdbg.advice import advice
from dumpscope.export.ptdbg.table import ptdbg_csv, ptdbg_xlsx
from dumpscope.export.report import Report, report_html
from dumpscope.export.table.csv import csv_text
from dumpscope.export.table.unit_table import Table
from dumpscope.export.xlsx import write_xlsx
from dumpscope.texts import say

FORMATS: Final = ("csv", "xlsx", "json", "html", "junit", "ptdbg", "ptdbg-csv", "ptdbg-xlsx")

Tables = Sequence[Callable[[], Table]]
"""A fresh table per call: its columns live as long as one format needs them."""


def check_formats(formats: Iterable[str]) -> tuple[str, ...]:
    """The formats without repetition; raises UsageError for one that does not exist."""
    wanted = tuple(dict.fromkeys(formats))
    for name in wanted:
        if name not in FORMATS:
            raise UsageError(
                say("report.unknown_format", name=f"{name!r}"), hint=say("domain.known", names=", ".join(FORMATS))
            )
    return wanted


def require_writable(folder: Path) -> None:
    """Raise UsageError where result files could not be made in `folder`, which need not exist; leaves nothing behind."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(say("report.file_results_need_folder"), where=str(folder))
    place = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise UsageError(
            say("report.no_results_can_written_here", reason=error.strerror),
            where=str(place),
            hint=say("report.name_another_folder_o"),
        ) from error


def write_files(
    folder: Path,
    formats: Sequence[str],
    answer: Answer,
    tables: Tables,
    report: Callable[[], Report],
    *,
    pairs: bool = False,
) -> list[Path]:
    """Write every format; a file appears only when it is whole, and replaces one of the same name. Returns the files.

    pairs: the JSON lists every item pair too
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name in check_formats(formats):
        if name in ("csv", "ptdbg-csv"):
            written += [_csv(folder, name, make(), alone=len(tables) == 1) for make in tables]
        elif name == "ptdbg":
            written += write_ptdbg(folder, "ptdbg_result{unit}", "ptdbg_advisor{unit}", answer, tables)
        elif name == "ptdbg-xlsx":
            path = folder / "ptdbg_result.xlsx"
            written.append(_replace_whole(path, lambda part: ptdbg_xlsx(part, (make() for make in tables))))
        elif name == "xlsx":
            written.append(
                _replace_whole(
                    folder / "compare_result.xlsx", lambda part: write_xlsx(part, (make() for make in tables))
                )
            )
        elif name == "json":
            written.append(
                _replace_whole(
                    folder / "export.json",
                    lambda part: _text(part, json_text(answer, (make() for make in tables) if pairs else None)),
                )
            )
        elif name == "junit":
            written.append(_replace_whole(folder / "junit.xml", lambda part: _text(part, _junit(answer, tables))))
        else:
            written.append(_replace_whole(folder / "report.html", lambda part: _text(part, [report_html(report())])))
    return written


def write_ptdbg(
    folder: Path, table_name: str, advice_name: str | None, answer: Answer, tables: Tables, *, stacks: bool = True
) -> list[Path]:
    """ptdbg's csv, xlsx and advisor's text of every table. Names: `{unit}` stands for step and rank where there are several
    tables; advice_name: None for no advice; stacks: with the column of call stacks where there are any"""
    written = []
    for make in tables:
        table = make()
        unit = _unit(table, alone=len(tables) == 1)
        path = folder / table_name.format(unit=unit)
        written.append(
            _replace_whole(path.with_name(f"{path.name}.csv"), partial(_text, pieces=ptdbg_csv(table, stacks=stacks)))
        )
        written.append(
            _replace_whole(path.with_name(f"{path.name}.xlsx"), partial(_ptdbg_book, table=table, stacks=stacks))
        )
        if advice_name is not None:
            text = [advice(answer, table)]
            written.append(_replace_whole(folder / f"{advice_name.format(unit=unit)}.txt", partial(_text, pieces=text)))
    return written


def _ptdbg_book(part: str, table: Table, stacks: bool) -> None:
    ptdbg_xlsx(part, [table], stacks=stacks)


def _unit(table: Table, *, alone: bool) -> str:
    return "" if alone else f"_step{table.step}_rank{table.rank}"


def _csv(folder: Path, name: str, table: Table, *, alone: bool) -> Path:
    stem = "compare_result" if name == "csv" else "ptdbg_result"
    unit = _unit(table, alone=alone)
    pieces = csv_text(table) if name == "csv" else ptdbg_csv(table)
    return _replace_whole(folder / f"{stem}{unit}.csv", lambda part: _text(part, pieces))


def _junit(answer: Answer, tables: Tables) -> Iterable[str]:
    return junit_text((make() for make in tables), f"{answer.target.path} against {answer.golden.path}")


def _text(part: str, pieces: Iterable[str]) -> None:
    with open(part, "w", encoding="utf-8", errors="replace", newline="") as stream:
        stream.writelines(pieces)


def _replace_whole(path: Path, fill: Callable[[str], None]) -> Path:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        fill(str(part))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path
