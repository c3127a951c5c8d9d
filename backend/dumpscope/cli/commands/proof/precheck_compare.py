"""`dumpscope precheck-compare`: the pre-check of one device against that of another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

from dumpscope.cli.exit_codes import COMPARED, DIVERGED, NOT_FULLY_JUDGED
from dumpscope.cli.options import Json
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.export.words import plural
from dumpscope.pipeline.operators.precheck_compare import DETAIL_FILE, RESULT_FILE, compare_prechecks
from dumpscope.reproduce.tables import Row, counts
from dumpscope.texts import tell

LISTED: Final = 40


def precheck_compare(
    mine: Annotated[Path, Argument(metavar="A")],
    other: Annotated[Path, Argument(metavar="B")],
    output: Annotated[Path | None, Option("-o", "--output")] = None,
    json: Json = False,
) -> int:
    """Compare the pre-checks of two devices: is the first one less accurate? Returns the exit status."""
    calls, details = compare_prechecks(mine, other, output)
    by_ratio = [row for row in calls if _wrong(row)]
    by_units = [row for row in calls if row["Verdict"] in ("error", "crash")]
    if json:
        print_json({
            "schema": 1,
            "a": str(mine),
            "b": str(other),
            "calls": len(calls),
            "msprobe": counts(calls, "Forward Test Success"),
            "counts": counts(calls, "Verdict"),
            "results": calls,
            "details": details,
        })  # fmt: skip
    else:
        for title, column, found in (
            (tell("cli.by_ratio"), "Message", by_ratio),
            (tell("cli.by_units"), "Reason", by_units),
        ):
            for row in found[:LISTED]:
                place = "  " + tell("cli.step_rank_3", row=row["Step"], row2=row["Rank"]) if row["Step"] else ""
                line(
                    tell("cli.worse", styled=styled(row["API Name"], "red"), place=place, title=title, row=row[column])
                )
            if len(found) > LISTED:
                line(tell("cli.more", count=len(found) - LISTED))
        line(
            tell(
                "cli.worse_by_ratio_by_units",
                calls=plural(len(calls), "call"),
                count=len(by_ratio),
                count2=len(by_units),
            )
        )
        if output is not None:
            print(tell("cli.wrote_4", output=output / RESULT_FILE, detail_file=DETAIL_FILE), file=sys.stderr)
    if by_ratio or by_units:
        return DIVERGED
    return (
        COMPARED if any("pass" in (row["Forward Test Success"], row["Verdict"]) for row in calls) else NOT_FULLY_JUDGED
    )


def _wrong(row: Row) -> bool:
    return "error" in (row["Forward Test Success"], row["Backward Test Success"])
