"""Result table in ptdbg_ascend's form, for scripts written for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import Outcome
from dumpscope.domain.records import Float64, Int64
from dumpscope.export.cells import MISSING, Bound, Series
from dumpscope.export.columns import ACCURACY, TableColumn, message_column, names_of, stack_column, stat_columns
from dumpscope.export.table import Table
from dumpscope.export.tables import bound, heading_line, lines, selected
from dumpscope.export.text import Cell, cell, guarded

_REAL: Final = ("Cosine", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio")
_REAL_PLACES: Final = (0, 2, 3, 4, 5)
_COSINE, _LARGEST = 0, 2
_DIFF: Final = ("Max diff", "Min diff", "Mean diff", "L2norm diff")


def ptdbg_csv(table: Table) -> Iterator[str]:
    """The table as csv text, some thousand lines at a time. Golden-only items have no place in it."""
    listed = ptdbg_columns(table.mode, stacks=table.stacks)
    yield heading_line(listed)
    yield from lines(selected(table.blocks(), table.present(golden=False)), bound(listed, table))


def ptdbg_columns(mode: str, *, stacks: bool) -> list[TableColumn]:
    """Columns by mode."""
    middle = {
        "tensor": [
            *(TableColumn(name=name, bind=_real(place)) for name, place in zip(_REAL, _REAL_PLACES, strict=True)),
            *stat_columns("Nan"),
            TableColumn(name=ACCURACY, bind=lambda table: table.coded(_LABELS, accuracy(table)).shown(str)),
            message_column("Err_message"),
        ],
        "statistics": [
            *(TableColumn(name=name, bind=_diff(place)) for place, name in enumerate(_DIFF)),
            *stat_columns("Nan"),
            TableColumn(name="Result", bind=lambda table: table.coded(_WARNINGS, statistics_result(table)).shown(str)),
            message_column("Err_message"),
        ],
        "md5": [
            TableColumn(name="NPU MD5", bind=lambda table: table.target.hash.shown(_text)),
            TableColumn(name="BENCH MD5", bind=lambda table: table.golden.hash.shown(_text)),
            TableColumn(name="Result", bind=lambda table: table.coded(_EQUAL, md5_result(table)).shown(str)),
        ],
        "structure": [TableColumn(name="Result", bind=_found)],
    }[mode]
    return [*_identity(), *middle, *([stack_column("None")] if stacks else [])]


def _identity() -> list[TableColumn]:
    return [
        TableColumn(name="NPU Name", bind=lambda table: names_of(table.target, "Nan")),
        TableColumn(name="Bench Name", bind=lambda table: names_of(table.golden, "Nan")),
        TableColumn(name="NPU Tensor Dtype", bind=lambda table: table.target.dtype.shown(_text)),
        TableColumn(name="Bench Tensor Dtype", bind=lambda table: table.golden.dtype.shown(_text)),
        TableColumn(name="NPU Tensor Shape", bind=lambda table: table.target.shape.shown(_text)),
        TableColumn(name="Bench Tensor Shape", bind=lambda table: table.golden.shape.shown(_text)),
    ]


def _text(value: Any) -> str:
    return "Nan" if value is None or value is MISSING else guarded(value)


def _diff(place: int) -> Callable[[Table], Bound]:
    return lambda table: table.diff(place).shown(lambda value: cell(value, "Nan"))


def _found(table: Table) -> Bound:
    return table.coded(("Nan", "Pass"), table.present(golden=True).astype(np.int32)).shown(str)


def _real(place: int) -> Callable[[Table], Bound]:
    words = ("shape unmatched", "N/A", "Nan", "unsupported")

    def bind(table: Table) -> Bound:
        series = table.tensor(place)
        measured = series.numbers
        assert measured is not None
        width = len(series.table)
        alone, disagree = ~table.present(golden=True), table.count_column("nonfinite_disagree") > 0
        absent = np.select([table.row_outcome == Outcome.SHAPE, disagree, alone], [0, 1, 2], 3)

        def codes(rows: Int64) -> Any:
            found = series.codes(rows)
            return np.where(found == 0, width + absent[rows], found)

        def numbers(rows: Int64) -> Float64:
            return np.array([round(number, 12) for number in measured(rows).tolist()], np.float64)

        return Series(table=[*series.table, *words], codes=codes, numbers=numbers).shown(_as_is)

    return bind


def _as_is(value: Any) -> Cell:
    return "Nan" if value is None else value


_LABELS: Final = ("Yes", "No", "Nan", "Unmatched")
_WARNINGS: Final = ("", "Warning", "Nan")
_EQUAL: Final = ("Different", "Pass", "Nan")


def accuracy(table: Table) -> Any:
    """ptdbg's own accuracy label per row, code into _LABELS: cosine and largest absolute error against fixed limits."""
    rows = np.arange(len(table))
    cosine, largest = (_floats(table.tensor(place), rows) for place in (_COSINE, _LARGEST))
    wrong = ((cosine < 0.99) & (largest > 0.001)) | (cosine < 0.9) | (largest > 1)
    return np.select(
        [
            table.row_outcome == Outcome.SHAPE,
            table.count_column("nonfinite_disagree") > 0,
            np.isnan(cosine) | np.isnan(largest),
            wrong,
        ],
        [3, 1, 2, 1],
        0,
    )


def statistics_result(table: Table) -> Any:
    """`Warning` where a statistic differs by more than half of the larger side, code into _WARNINGS."""
    rows = np.arange(len(table))
    warned = np.zeros(len(rows), bool)
    with np.errstate(invalid="ignore"):
        for place in range(4):
            one, other = (_floats(side.stat(place), rows) for side in (table.target, table.golden))
            warned |= np.abs(one - other) / (np.maximum(np.abs(one), np.abs(other)) + 1e-10) > 0.5
    both = table.present(golden=False) & table.present(golden=True)
    return np.where(both, warned.astype(np.int32), 2)


def md5_result(table: Table) -> Any:
    """Whether the recorded hashes are equal, code into _EQUAL."""
    rows = np.arange(len(table))
    codes = {text: code for code, text in enumerate(table.target.hash.table)}
    known = np.array([codes.get(text, -1) for text in table.golden.hash.table], np.int64)
    same = table.target.hash.codes(rows) == known[table.golden.hash.codes(rows)]
    both = table.present(golden=False) & table.present(golden=True)
    return np.where(both, same.astype(np.int32), 2)


def _floats(series: Series, rows: Int64) -> Float64:
    """A series as float64, nan where it is no number."""
    assert series.numbers is not None
    codes = series.codes(rows)
    held = np.array([*map(_float, series.table), np.nan])
    return np.where(codes < 0, series.numbers(rows), held[codes])


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float("nan")
    try:
        return float(value)
    except OverflowError:  # an integer that no float holds
        return float("inf") if value > 0 else float("-inf")
