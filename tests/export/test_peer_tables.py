"""Our tables against msprobe's own, cell by cell, but for the differences that docs/tables.md names."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from dumpscope.domain.options import Options
from dumpscope.domain.result import Unit
from dumpscope.export.table.columns import ACCURACY
from dumpscope.export.table.csv import csv_text
from dumpscope.export.table.unit_table import Table
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.readers import discover, read_rank
from export.peers import PEERS, peer_tables

Row = dict[str, str]

REAL: Final = (
    "Cosine",
    "EucDist",
    "MaxAbsErr",
    "MaxRelativeErr",
    "One Thousandth Err Ratio",
    "Five Thousandths Err Ratio",
)
ACCUSED: Final = re.compile(r"dist2|extra_op|renamed")
_STATISTIC: Final = re.compile(r"(Max|Min|Mean|L2norm|Norm)( diff|RelativeErr)")
_SHOWN: Final = {"Max": "max", "Min": "min", "Mean": "mean", "L2norm": "l2norm", "Norm": "l2norm"}


def absent(theirs: Row, ours: Row, column: str) -> bool:
    found = _STATISTIC.fullmatch(column)
    if found is None or (theirs[column], ours[column]) != ("0", "N/A"):
        return False
    stat = _SHOWN[found[1]]
    return ours[f"NPU {stat}"] == ours[f"Bench {stat}"] == "None"


def number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


EXCUSES: Final[dict[str, Callable[[Row, Row, str], bool]]] = {
    "absent-statistic": absent,
    "nonfinite-positions": lambda theirs, ours, column: (
        column in REAL and theirs[column] == "N/A" and number(ours[column]) and int(ours["NonFinite Disagree"]) > 0
    ),
    "relative-is-positive": lambda theirs, ours, column: (
        column.endswith("RelativeErr") and theirs[column] == "-inf" and ours[column] == "inf"
    ),
    "no-overflow": lambda theirs, ours, column: (
        column == "Cosine" and theirs[column] == "Nan" and float(ours["NPU max"]) > 1e200 and ours[column] == "1.0"
    ),
    "slice-values": lambda theirs, ours, column: (
        column.endswith("Tensor Shape") and theirs["NPU Dtype"] == "slice" and ours[column].count(",") == 2
    ),
    "qkv-is-judged": lambda theirs, ours, column: (
        column == "Result" and ".qkv." in ours["NPU Name"] and ours["NPU Dtype"] != ours["Bench Dtype"]
    ),
    "hash-of-other-dtype": lambda theirs, ours, column: (
        column == "Result" and "NPU MD5" in ours and ours["NPU Dtype"] != ours["Bench Dtype"]
    ),
}


def documented() -> set[str]:
    text = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
    block = re.search(r"```json\n(.*?)```", text, re.S)
    assert block is not None
    return {entry["id"] for entry in json.loads(block[1])}


def same(one: str, other: str) -> bool:
    one, other = one.strip().lower(), other.strip().lower()
    if one == other:
        return True
    try:
        first, second = float(one.rstrip("%")), float(other.rstrip("%"))
    except ValueError:
        return False
    if one.endswith("%") != other.endswith("%") and (first or second):
        return False
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-11)


def our_rows(unit: Unit) -> tuple[list[str], list[Row]]:
    reader = csv.DictReader(io.StringIO("".join(csv_text(Table(unit)))))
    return list(reader.fieldnames or ()), list(reader)


USED: Counter[str] = Counter()


@pytest.mark.parametrize("name", sorted(PEERS))
def test_our_table_agrees_with_msprobes_but_for_documented_differences(dumps: Path, name: str) -> None:
    for file, unit in peer_tables(dumps, name):
        with open(file, newline="") as stream:
            reader = csv.DictReader(stream)
            columns, theirs = list(reader.fieldnames or ()), list(reader)
        header, ours = our_rows(unit)
        assert header[: len(columns)] == columns
        assert header[len(columns)] == ACCURACY
        known = {row["NPU Name"] for row in theirs}
        extra = [row for row in ours if row["NPU Name"] not in known]
        for row in extra:
            if row["NPU Name"] == "N/A":
                USED["golden-only"] += 1
            else:
                assert re.search(r"Tensor\.to\.\d+\.forward\.input\.\d$", row["NPU Name"])
                USED["opaque-rows"] += 1
        shared = [row for row in ours if row["NPU Name"] in known]
        assert [row["NPU Name"] for row in shared] == [row["NPU Name"] for row in theirs]
        for their_row, our_row in zip(theirs, shared, strict=True):
            check_row(name, columns, their_row, our_row)


def check_row(name: str, columns: list[str], theirs: Row, ours: Row) -> None:
    if theirs["Bench Name"] != ours["Bench Name"]:
        assert ACCUSED.search(name)
        USED["pairing"] += 1
        if "renamed" in name and ours.get("Elements", "N/A") not in ("N/A", "0"):
            assert ours["Unequal Elements"] == "0"  # the same numbers under another name: ours found the right partner
        return
    for column in columns:
        if column == "Err_message":
            assert (ours[column] == "[]") == (ours["Result"] == "pass")
            continue
        if same(theirs[column], ours[column]):
            continue
        excuse = next((key for key, holds in EXCUSES.items() if holds(theirs, ours, column)), None)
        assert excuse, f"{theirs['NPU Name']} {column}: msprobe {theirs[column]!r}, ours {ours[column]!r}"
        USED[excuse] += 1


def test_items_only_the_golden_has_get_rows_in_place(dumps: Path) -> None:
    swapped = [read_rank(discover(dumps / name).ranks[0]) for name in ("golden", "target_extra_op")]
    _, ours = our_rows(compare_rank(*swapped, step=0, rank=0, options=Options()))
    alone = [row for row in ours if row["NPU Name"] == "N/A"]
    assert any(row["Bench Name"].startswith("Tensor.__mul__.2.forward") for row in alone)
    assert all(row["NPU max"] == "N/A" and row[ACCURACY] == "N/A" for row in alone)
    USED["golden-only"] += len(alone)


def test_every_documented_difference_occurs_and_no_other_is_used(dumps: Path) -> None:
    if "golden-only" not in USED:
        test_items_only_the_golden_has_get_rows_in_place(dumps)
    if "pairing" not in USED:
        for name in PEERS:
            test_our_table_agrees_with_msprobes_but_for_documented_differences(dumps, name)
    assert set(USED) == documented()
