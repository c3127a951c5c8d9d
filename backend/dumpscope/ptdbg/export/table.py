"""Result table in ptdbg_ascend's form, for scripts written for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import Outcome
from dumpscope.domain.records import Bool, Float64, Int64
from dumpscope.export.table.cell_text import Cell, cell, guard
from dumpscope.export.table.cells import MISSING, Bound, Series, Texts
from dumpscope.export.table.columns import ACCURACY, TableColumn, message_column, names_of, stack_column, stat_columns
from dumpscope.export.table.csv import bind_columns, csv_lines, heading_line, select_rows
from dumpscope.export.table.unit_table import Table
from dumpscope.export.xlsx import Sheet, write_xlsx
from dumpscope.ptdbg.export.marks import as_floats, has_value, row_marks

_METRICS: Final = {
    "Cosine": "cosine", "MaxAbsErr": "max_abs", "MaxRelativeErr": "max_rel", "One Thousandth Err Ratio": "ratio_1e3",
    "Five Thousandths Err Ratio": "ratio_5e3",
}  # fmt: skip
"""Columns of measured tensors, and the metric in each."""
_SINCE_4: Final = ("MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio", "L2norm diff")
"""Columns that generation 2.3 did not have."""
_DIFF: Final = ("Max diff", "Min diff", "Mean diff", "L2norm diff")


def ptdbg_csv(table: Table, *, stacks: bool = True) -> Iterator[str]:
    """The table as csv text, some thousand lines at a time. Golden-only items have no place in it. stacks: show what there are"""
    listed = _columns_of(table, stacks)
    yield heading_line(listed)
    yield from csv_lines(select_rows(table.blocks(), table.present(golden=False)), bind_columns(listed, table))


def ptdbg_xlsx(target: str, tables: Iterable[Table], *, stacks: bool = True) -> None:
    """The tables as a workbook, one sheet each, with rows coloured by `marks.row_marks`."""
    sheet = Sheet(columns=lambda table: _columns_of(table, stacks), rows=_with_target, fills=row_marks)
    write_xlsx(target, tables, sheet)


def _with_target(table: Table) -> Bool:
    found: Bool = table.present(golden=False)
    return found


def _columns_of(table: Table, stacks: bool) -> list[TableColumn]:
    layout = table.unit.target.header.layout
    shown = stacks and bool(table.unit.target.nodes.stacks)
    return ptdbg_columns(table.mode, stacks=shown, generation=layout.partition(" ")[2])


def ptdbg_columns(mode: str, *, stacks: bool, generation: str = "") -> list[TableColumn]:
    """Columns by mode, of the generation that wrote the target: 2.3, 4.0, or the last one."""
    middle = [column for column in _middle(mode) if column.name not in _later(mode, generation)]
    return [*_identity(), *middle, *([stack_column("None")] if stacks else [])]


def _later(mode: str, generation: str) -> frozenset[str]:
    """Columns that a generation did not have yet."""
    if generation == "2.3":
        return frozenset((*_SINCE_4, "NPU l2norm", "Bench l2norm"))
    return frozenset(("Result", "Err_message") if (generation, mode) == ("4.0", "statistics") else ())


def _middle(mode: str) -> list[TableColumn]:
    return {
        "tensor": [
            *(TableColumn(name=heading, bind=_metric(name)) for heading, name in _METRICS.items()),
            *stat_columns("Nan"),
            TableColumn(name=ACCURACY, bind=lambda table: table.coded(_LABELS, accuracy(table)).shown(str)),
            _message(accuracy),
        ],
        "statistics": [
            *(TableColumn(name=name, bind=_diff(place)) for place, name in enumerate(_DIFF)),
            *stat_columns("Nan"),
            TableColumn(name="Result", bind=lambda table: table.coded(_WARNINGS, statistics_result(table)).shown(str)),
            _message(statistics_result),
        ],
        "md5": [
            TableColumn(name="NPU MD5", bind=lambda table: table.target.hash.shown(_text)),
            TableColumn(name="BENCH MD5", bind=lambda table: table.golden.hash.shown(_text)),
            TableColumn(name="Result", bind=lambda table: table.coded(_EQUAL, md5_result(table)).shown(str)),
        ],
        "structure": [TableColumn(name="Result", bind=_found)],
    }[mode]


def _message(label: Callable[[Table], Any]) -> TableColumn:
    """What is wrong with a row: nothing where its label says that it is well."""

    def bind(table: Table) -> Bound:
        wrong, told = label(table) != 0, message_column("Err_message").bind(table)

        def texts(rows: Int64) -> Texts:
            found = told(rows)
            assert isinstance(found, Texts)
            return Texts(
                texts=[text if bad else "" for text, bad in zip(found.texts, wrong[rows].tolist(), strict=True)]
            )

        return texts

    return TableColumn(name="Err_message", bind=bind)


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
    return "Nan" if value is None or value is MISSING else guard(value)


def _diff(place: int) -> Callable[[Table], Bound]:
    return lambda table: table.diff(place).shown(lambda value: cell(value, "Nan"))


def _found(table: Table) -> Bound:
    return table.coded(("Nan", "Pass"), table.present(golden=True).astype(np.int32)).shown(str)


def _metric(name: str) -> Callable[[Table], Bound]:
    words = ("shape unmatched", "N/A", "Nan", 0, "unsupported")

    def bind(table: Table) -> Bound:
        series = table.metric(name)
        measured = series.numbers
        assert measured is not None
        width = len(series.table)
        alone, disagree = ~table.present(golden=True), table.count_column("nonfinite_disagree") > 0
        outcome = table.row_outcome
        empty = outcome == Outcome.EMPTY
        single = empty | (outcome == Outcome.SCALAR) | (table.count_column("elements") == 1)
        absent = np.select(
            [outcome == Outcome.SHAPE, disagree, alone, single if name == "cosine" else empty],
            [0, 1, 2, 4 if name == "cosine" else 3],
            2,
        )

        def codes(rows: Int64) -> Any:
            found = series.codes(
                rows
            )  # what is left where NaN or infinities disagree may agree: it would read as a pass
            return np.where((found == 0) | (disagree[rows] & (found < 0)), width + absent[rows], found)

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
    cosine, largest = (as_floats(table.metric(name), rows) for name in ("cosine", "max_abs"))
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
            sides = table.target.stat(place), table.golden.stat(place)
            one, other = (as_floats(side, rows) for side in sides)
            warned |= np.abs(one - other) / (np.maximum(np.abs(one), np.abs(other)) + 1e-10) > 0.5
            apart = ~((one == other) | (np.isnan(one) & np.isnan(other)) | (np.isfinite(one) & np.isfinite(other)))
            warned |= apart & has_value(sides[0], rows) & has_value(sides[1], rows)
    both = table.present(golden=False) & table.present(golden=True) & ~table.ruled("X-4")
    return np.where(both, warned.astype(np.int32), 2)


def md5_result(table: Table) -> Any:
    """Whether the recorded hashes are equal, code into _EQUAL. Numbers of Python's have none: their own verdict counts."""
    rows = np.arange(len(table))
    codes = {text: code for code, text in enumerate(table.target.hash.table)}
    of_target = np.array([codes.get(text, -1) for text in table.golden.hash.table], np.int64)
    same = table.target.hash.codes(rows) == of_target[table.golden.hash.codes(rows)]
    both = table.present(golden=False) & table.present(golden=True)
    sides = table.target.hash, table.golden.hash
    hashed = has_value(sides[0], rows) & has_value(sides[1], rows)
    unlike = table.ruled("S-1", "S-2", "V-1", "N-1")
    return np.select(
        [~both, unlike, hashed, table.ruled("E-1")],
        [2, 0, same.astype(np.int32), 1],
        2,
    )


def failing_rows(table: Table) -> Bool:
    """Rows whose label says that something is wrong: No, Unmatched, Warning or Different."""
    if table.mode == "structure":
        return np.zeros(len(table), bool)
    label, words = {
        "tensor": (accuracy, _LABELS), "statistics": (statistics_result, _WARNINGS), "md5": (md5_result, _EQUAL)
    }[table.mode]  # fmt: skip
    found: Bool = np.isin(words, ("No", "Unmatched", "Warning", "Different"))[label(table)]
    return found
