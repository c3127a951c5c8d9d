"""Result files of one comparison in a folder."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from dumpscope.domain.result import Answer
from dumpscope.errors import UsageError
from dumpscope.export.document import json_text
from dumpscope.export.junit import junit_text
from dumpscope.export.report import Report, report_html
from dumpscope.export.table.csv import csv_text
from dumpscope.export.table.unit_table import Table
from dumpscope.export.xlsx import write_xlsx
from dumpscope.texts import say

BY_NAME: Final = {
    "ptdbg": "dumpscope.ptdbg.export.files:write_all",
    "ptdbg-csv": "dumpscope.ptdbg.export.files:write_csv",
    "ptdbg-xlsx": "dumpscope.ptdbg.export.files:write_xlsx",
}
"""Writers in other packages, loaded on demand. Each takes folder, answer and tables, and returns its files."""
FORMATS: Final = ("csv", "xlsx", "json", "html", "junit", *BY_NAME)
PAGE: Final = "page"
"""The page of the UI in one file: a further format, which is made from the result file and not here."""

Tables = Sequence[Callable[[], Table]]
"""A new table per call, so that its columns are freed after each format."""


def check_formats(formats: Iterable[str]) -> tuple[str, ...]:
    """The formats without duplicates; raises UsageError for an unknown format."""
    wanted = tuple(dict.fromkeys(formats))
    for name in wanted:
        if name not in (*FORMATS, PAGE):
            known = ", ".join((*FORMATS, PAGE))
            raise UsageError(say("report.unknown_format", name=f"{name!r}"), hint=say("domain.known", names=known))
    return wanted


def require_writable(folder: Path) -> None:
    """Raise UsageError if result files cannot be made in `folder`, which need not exist. Leaves no files."""
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
    """Write every format; a file appears only when it is complete, and replaces a file of the same name. Returns the files.

    pairs: also list every item pair in the JSON
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name in check_formats(formats):
        if name in BY_NAME:
            module, _, function = BY_NAME[name].partition(":")
            written += getattr(importlib.import_module(module), function)(folder, answer, tables)
        elif name == "csv":
            written += [_csv(folder, make(), alone=len(tables) == 1) for make in tables]
        elif name == "xlsx":
            written.append(
                write_whole(folder / "compare_result.xlsx", lambda part: write_xlsx(part, (make() for make in tables)))
            )
        elif name == "json":
            written.append(
                write_whole(
                    folder / "export.json",
                    lambda part: write_text(part, json_text(answer, (make() for make in tables) if pairs else None)),
                )
            )
        elif name == "junit":
            written.append(write_whole(folder / "junit.xml", lambda part: write_text(part, _junit(answer, tables))))
        else:
            written.append(write_whole(folder / "report.html", lambda part: write_text(part, [report_html(report())])))
    return written


def unit_suffix(table: Table, *, alone: bool) -> str:
    """Step and rank in the name of a table's file; "" if there is only one table."""
    return "" if alone else f"_step{table.step}_rank{table.rank}"


def write_text(part: str, pieces: Iterable[str]) -> None:
    with open(part, "w", encoding="utf-8", errors="replace", newline="") as stream:
        stream.writelines(pieces)


def write_whole(path: Path, fill: Callable[[str], None]) -> Path:
    """Let `fill` write a temporary file, and rename it to `path` when it is complete."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        fill(str(part))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _csv(folder: Path, table: Table, *, alone: bool) -> Path:
    path = folder / f"compare_result{unit_suffix(table, alone=alone)}.csv"
    return write_whole(path, lambda part: write_text(part, csv_text(table)))


def _junit(answer: Answer, tables: Tables) -> Iterable[str]:
    return junit_text((make() for make in tables), f"{answer.target.path} against {answer.golden.path}", answer)
