"""Result table in ptdbg_ascend's form, for scripts written for it."""

from __future__ import annotations

import csv
from typing import Final, TextIO

from dumpscope.domain.facts import Outcome
from dumpscope.export.columns import ACCURACY
from dumpscope.export.rows import ExportRow, Number, SideCells, Table
from dumpscope.export.text import Cell, cell, guarded

_IDENTITY: Final = (
    "NPU Name", "Bench Name", "NPU Tensor Dtype", "Bench Tensor Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
)  # fmt: skip
_REAL: Final = ("Cosine", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio")
_REAL_PLACES: Final = (0, 2, 3, 4, 5)
_DIFF: Final = ("Max diff", "Min diff", "Mean diff", "L2norm diff")
_STATS: Final = (
    "NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm",
)  # fmt: skip


def write_ptdbg_csv(stream: TextIO, table: Table) -> int:
    """Write one table; open the stream with newline="". Golden-only items have no place in it. Returns the rows written."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(ptdbg_columns(table.mode, stacks=table.stacks))
    count = 0
    for row in table.rows:
        if row.target is not None:
            writer.writerow(ptdbg_row(row, table.mode, stacks=table.stacks))
            count += 1
    return count


def ptdbg_columns(mode: str, *, stacks: bool) -> list[str]:
    """Column names by mode."""
    middle = {
        "tensor": [*_REAL, *_STATS, ACCURACY, "Err_message"],
        "statistics": [*_DIFF, *_STATS, "Result", "Err_message"],
        "md5": ["NPU MD5", "BENCH MD5", "Result"],
        "structure": ["Result"],
    }[mode]
    return [*_IDENTITY, *middle, *(["NPU_Stack_Info"] if stacks else [])]


def ptdbg_row(row: ExportRow, mode: str, *, stacks: bool) -> list[Cell]:
    """Cells of one row, in the order of `ptdbg_columns`."""
    both = (row.target, row.golden)
    cells: list[Cell] = [_text(side, what) for what in ("name", "dtype", "shape") for side in both]
    if mode == "tensor":
        cells += [_real(row, place) for place in _REAL_PLACES]
        cells += [*_stats(both), accuracy(row), guarded(row.message)]
    elif mode == "statistics":
        cells += [cell(value, "Nan") for value in row.diff]
        cells += [*_stats(both), statistics_result(row), guarded(row.message)]
    elif mode == "md5":
        cells += [_text(side, "hash") for side in both] + [md5_result(row)]
    else:
        cells.append("Nan" if row.golden is None else "Pass")
    if stacks:
        cells.append("None" if row.stack is None else str(list(row.stack)))
    return cells


def _text(side: SideCells | None, attribute: str) -> str:
    value: str | None = None if side is None else getattr(side, attribute)
    return "Nan" if value is None else guarded(value)


def _stats(both: tuple[SideCells | None, SideCells | None]) -> list[Cell]:
    return [cell(value, "None") for side in both for value in (side.stats if side else ("Nan",) * 4)]


def _real(row: ExportRow, place: int) -> Cell:
    value = row.tensor[place]
    if value is not None:
        return round(value, 12)
    if row.outcome is Outcome.SHAPE:
        return "shape unmatched"
    if row.nonfinite_disagree:
        return "N/A"
    return "Nan" if row.golden is None else "unsupported"


def accuracy(row: ExportRow) -> str:
    """ptdbg's own accuracy label: cosine and largest absolute error against fixed limits."""
    if row.outcome is Outcome.SHAPE:
        return "Unmatched"
    if row.nonfinite_disagree:
        return "No"
    cosine, largest = row.tensor[0], row.tensor[2]
    if cosine is None or largest is None or cosine != cosine or largest != largest:  # noqa: PLR0124 - nan
        return "Nan"
    if (cosine < 0.99 and largest > 0.001) or cosine < 0.9 or largest > 1:
        return "No"
    return "Yes"


def statistics_result(row: ExportRow) -> str:
    """`Warning` where a statistic differs by more than half of the larger side; empty otherwise."""
    if row.target is None or row.golden is None:
        return "Nan"
    for one, other in zip(row.target.stats, row.golden.stats, strict=True):
        if _is_number(one) and _is_number(other):
            gap, scale = abs(float(one or 0) - float(other or 0)), max(abs(float(one or 0)), abs(float(other or 0)))
            if gap / (scale + 1e-10) > 0.5:
                return "Warning"
    return ""


def _is_number(value: Number) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def md5_result(row: ExportRow) -> str:
    if row.target is None or row.golden is None:
        return "Nan"
    return "Pass" if row.target.hash == row.golden.hash else "Different"
