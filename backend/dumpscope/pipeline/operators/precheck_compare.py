"""Two pre-checks of the same calls, on two devices, against each other."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dumpscope.errors import NotFoundError, UnreadableError, UsageError
from dumpscope.pipeline.operators.precheck import DETAILS, RESULTS, write_table
from dumpscope.reproduce.standards import (
    COMPARED_DETAILS,
    COMPARED_RESULTS,
    NAME,
    OUR_COMPARED_DETAILS,
    OUR_COMPARED_RESULTS,
    REQUIRED,
    Cells,
    compared,
    results,
    unmatched,
    with_crashes,
)
from dumpscope.reproduce.tables import Row
from dumpscope.texts import say

RESULT_FILE: Final = "api_precision_compare_result.csv"
DETAIL_FILE: Final = "api_precision_compare_details.csv"

_Place = tuple[str, str, str]


def compare_prechecks(mine: Path, other: Path, output: Path | None) -> tuple[list[Row], list[Row]]:
    """Rows by call and by result; written as tables into `output` where one is given.

    mine, other: details tables, ours or msprobe's, or folders that hold one; `mine` is of the device in doubt
    Raises NotFoundError, UnreadableError, UsageError.
    """
    tables = _read(mine), _read(other)
    placed = all("Step" in row for table in tables for row in table[:1])
    sides = tuple(_by_place(path, table, placed) for path, table in zip((mine, other), tables, strict=True))
    if not sides[0].keys() & sides[1].keys():
        raise UsageError(say("pipeline.two_pre_checks_have_no_call"), hint=say("pipeline.give_two_same_dump"))
    details = [compared(row, sides[1].get(place)) for place, row in sides[0].items()]
    details += [unmatched(row) for place, row in sides[1].items() if place not in sides[0]]
    calls = with_crashes(results(details), _results_beside(mine) if placed else [])
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_table(output / RESULT_FILE, (*COMPARED_RESULTS, *OUR_COMPARED_RESULTS), calls)
        write_table(output / DETAIL_FILE, (*COMPARED_DETAILS, *OUR_COMPARED_DETAILS), details)
    return calls, details


def _by_place(path: Path, rows: Sequence[Cells], placed: bool) -> dict[_Place, Cells]:
    """Rows by name, and by step and rank where both tables have them: msprobe's are of one rank."""
    found: dict[_Place, Cells] = {}
    for row in rows:
        place = (row[NAME], row.get("Step", ""), row.get("Rank", "")) if placed else (row[NAME], "", "")
        if place in found:
            hint = say("pipeline.make_one_step_rank") if not placed else None
            raise UsageError(say("pipeline.there_twice", row=row[NAME]), where=str(path), hint=hint)
        found[place] = row
    return found


def _read(path: Path) -> list[Cells]:
    place = _table(path)
    try:
        with open(place, encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [title for title in REQUIRED if title not in (reader.fieldnames or ())]
            if missing:
                raise UsageError(say("pipeline.no_details_table_lacks", names=", ".join(missing)), where=str(place))
            return [{title: text or "" for title, text in row.items()} for row in reader]
    except FileNotFoundError as error:
        raise NotFoundError(
            say("readers.no_such_path"), where=str(place), hint=say("pipeline.name_precheck")
        ) from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnreadableError(str(error), where=str(place)) from error


def _results_beside(path: Path) -> list[Cells]:
    """Our table of calls beside the details: a call that ended its process has no details."""
    place = (path if path.is_dir() else path.parent) / RESULTS
    if not place.is_file() or _table(path).name != DETAILS:
        return []
    with open(place, encoding="utf-8-sig", newline="") as stream:
        return [row for row in csv.DictReader(stream) if "Verdict" in row]


def _table(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = [path / DETAILS] if (path / DETAILS).is_file() else sorted(path.glob("accuracy_checking_details*.csv"))
    if not found:
        raise NotFoundError(
            say("pipeline.no_2", details=DETAILS), where=str(path), hint=say("pipeline.dumpscope_precheck_writes_one")
        )
    if len(found) > 1:
        raise UsageError(
            say("pipeline.holds_several_details_tables"),
            where=str(path),
            hint=say("pipeline.name_one", name=found[-1].name),
        )
    return found[0]
