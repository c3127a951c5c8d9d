"""Columns of the result tables: msprobe's names and order by mode, its older accuracy column, then ours (docs/tables.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import Outcome, Verdict
from dumpscope.domain.records import Int64
from dumpscope.export.stack_frames import locate_call
from dumpscope.export.table.cell_text import Cell, cell, guard, guard_all, percent
from dumpscope.export.table.cells import MISSING, Bound, Series, Texts
from dumpscope.export.table.sides import SideTable
from dumpscope.export.table.unit_table import Table
from dumpscope.metrics import METRICS, all_metrics

ACCURACY: Final = "Accuracy Reached or Not"
ACCURACY_WORDS: Final = {Verdict.YES: "Yes", Verdict.NA: "N/A", Verdict.WARNING: "Warning", Verdict.NO: "No"}
OF_MSPROBE: Final = ("cosine", "euclidean", "max_abs", "max_rel", "ratio_1e3", "ratio_5e3")
"""Metrics of msprobe's table, in its order; the others are among our own columns."""
REFERENCE: Final = ("Target to Reference", "Golden to Reference", "Reference Ratio")
"""Columns of a comparison with an absolute reference."""
_OF_SCALARS: Final = ("max_abs", "max_rel")
"""Metrics that msprobe has for a single element."""
_STATS: Final = ("max", "min", "mean", "l2norm")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """bind: takes a table and returns its cells; texts of distinct values are made at that time"""

    name: str
    bind: Callable[[Table], Bound]


def columns(mode: str, *, stacks: bool, reference: bool = False) -> list[TableColumn]:
    """Columns of a table in `mode` (tensor, statistics, md5 or structure), with the stack column if stacks exist and distances
    if there is a reference."""
    listed = [*_basic()]
    if mode == "tensor":
        labels = {metric.name: metric.label for metric in METRICS}
        listed += [TableColumn(name=labels[name], bind=_metric(name)) for name in OF_MSPROBE]
        listed += stat_columns("N/A")
    elif mode == "statistics":
        names = ("Max", "Min", "Mean", "L2norm")
        listed += [TableColumn(name=f"{name} diff", bind=_diff(place)) for place, name in enumerate(names)]
        names = ("Max", "Min", "Mean", "Norm")
        listed += [TableColumn(name=f"{name}RelativeErr", bind=_rel(place)) for place, name in enumerate(names)]
        listed += stat_columns("N/A")
    elif mode == "md5":
        listed += [
            TableColumn(name="NPU MD5", bind=lambda table: table.target.digest.shown(_text)),
            TableColumn(name="BENCH MD5", bind=lambda table: table.golden.digest.shown(_text)),
        ]
    listed += [
        TableColumn(name="Requires_grad Consistent", bind=_grads_agree),
        TableColumn(name="Result", bind=lambda table: table.result.shown(str)),
        TableColumn(name="Err_message", bind=lambda table: table.errors.shown(json.dumps)),
    ]
    if stacks:
        listed.append(stack_column("N/A"))
    if mode == "tensor":
        listed.append(TableColumn(name="Data_name", bind=_files))
    listed.append(TableColumn(name=ACCURACY, bind=_accuracy))
    return listed + _ours(mode, reference=reference)


def names_of(side: SideTable, absent: str) -> Bound:
    """Item names, `absent` in rows without this side."""
    return lambda rows: Texts(texts=guard_all([absent if name is None else name for name in side.names(rows)]))


def stat_columns(missing: str) -> list[TableColumn]:
    """The eight statistics. missing: text for a missing side; a record without a statistic shows `None`."""
    return [
        TableColumn(name=f"{word} {stat}", bind=_stat(golden, place, missing))
        for word, golden in (("NPU", False), ("Bench", True))
        for place, stat in enumerate(_STATS)
    ]


def stack_column(absent: str) -> TableColumn:
    return TableColumn(
        name="NPU_Stack_Info",
        bind=lambda table: table.stack.shown(lambda stack: absent if stack is None else str(list(stack))),
    )


def message_column(name: str) -> TableColumn:
    return TableColumn(name=name, bind=lambda table: lambda rows: Texts(texts=guard_all(table.messages(rows))))


def _basic() -> list[TableColumn]:
    return [
        TableColumn(name="NPU Name", bind=lambda table: names_of(table.target, "N/A")),
        TableColumn(name="Bench Name", bind=lambda table: names_of(table.golden, "N/A")),
        TableColumn(name="NPU Dtype", bind=lambda table: table.target.dtype.shown(_text)),
        TableColumn(name="Bench Dtype", bind=lambda table: table.golden.dtype.shown(_text)),
        TableColumn(name="NPU Tensor Shape", bind=lambda table: table.target.shape.shown(_text)),
        TableColumn(name="Bench Tensor Shape", bind=lambda table: table.golden.shape.shown(_text)),
        TableColumn(name="NPU Requires_grad", bind=lambda table: table.target.requires_grad.shown(_known)),
        TableColumn(name="Bench Requires_grad", bind=lambda table: table.golden.requires_grad.shown(_known)),
    ]


def _ours(mode: str, *, reference: bool) -> list[TableColumn]:
    listed = [
        TableColumn(name="Match", bind=lambda table: table.match.shown(str)),
        TableColumn(name="Match Confidence", bind=lambda table: table.confidence.shown(_known)),
        TableColumn(name="Rule", bind=lambda table: table.rule.shown(str)),
        TableColumn(name="Score", bind=lambda table: table.score.shown(_known)),
        message_column("Message"),
        TableColumn(name="Node", bind=lambda table: lambda rows: Texts(texts=guard_all(table.nodes(rows)))),
        TableColumn(name="Node Class", bind=lambda table: table.cls.shown(str)),
        TableColumn(name="Step", bind=lambda table: table.constant(table.step).shown(_known)),
        TableColumn(name="Rank", bind=lambda table: table.constant(table.rank).shown(_known)),
        TableColumn(name="No Partner", bind=lambda table: lambda rows: Texts(texts=guard_all(table.leftovers(rows)))),
        TableColumn(name="Module", bind=lambda table: table.modules.shown(_text)),
        TableColumn(
            name="Called At",
            bind=lambda table: table.stack.shown(lambda stack: "" if stack is None else guard(locate_call(stack))),
        ),
    ]
    if mode == "tensor":
        ours = [metric for metric in all_metrics() if metric.name not in OF_MSPROBE]
        listed += [TableColumn(name=one.label, bind=_metric(one.name)) for one in ours if one.measure is not None]
        counts = (
            ("Elements", "elements"), ("Unequal Elements", "unequal"), ("NPU NonFinite", "nonfinite_target"),
            ("Bench NonFinite", "nonfinite_golden"), ("NonFinite Disagree", "nonfinite_disagree"),
        )  # fmt: skip
        listed += [TableColumn(name=name, bind=_count(count)) for name, count in counts]
        listed += [TableColumn(name=one.label, bind=_metric(one.name)) for one in ours if one.derive is not None]
    if reference:
        listed += [TableColumn(name=name, bind=_standing(place)) for place, name in enumerate(REFERENCE)]
    return listed


def _text(value: Any) -> str:
    return "N/A" if value is None or value is MISSING else guard(value)


def _known(value: Any) -> Cell:
    return "N/A" if value is None or value is MISSING else value


def _stat(golden: bool, place: int, missing: str) -> Callable[[Table], Bound]:
    def show(value: Any) -> Cell:
        return missing if value is MISSING else cell(value, "None")

    return lambda table: (table.golden if golden else table.target).stat(place).shown(show)


def _metric(name: str) -> Callable[[Table], Bound]:
    words = ("N/A", "shape unmatched", "unsupported", math.nan)

    def bind(table: Table) -> Bound:
        series = table.metric(name)
        width = len(series.table)
        disagree, elements = table.count_column("nonfinite_disagree"), table.count_column("elements")
        outcome = table.row_outcome

        def codes(rows: Int64) -> Any:
            found = series.codes(rows)
            other = np.where(outcome[rows] == Outcome.SHAPE, 1, 2)
            single = np.where(elements[rows] != 1, 0, 3 if name in _OF_SCALARS else 2)
            absent = np.where(disagree[rows] > 0, single, other)
            return np.where(found == 0, width + absent, found)

        return Series(table=[*series.table, *words], codes=codes, numbers=series.numbers).shown(_known)

    return bind


def _standing(place: int) -> Callable[[Table], Bound]:
    return lambda table: table.standing()[place][1].shown(_known)


def _count(name: str) -> Callable[[Table], Bound]:
    return lambda table: table.count(name).shown(_known)


def _diff(place: int) -> Callable[[Table], Bound]:
    return lambda table: table.diff(place).shown(lambda value: cell(value, "N/A"))


def _rel(place: int) -> Callable[[Table], Bound]:
    """Relative errors in msprobe's form: 0, `12.5%`, `inf`, `nan`."""

    def bind(table: Table) -> Bound:
        series = table.rel(place)
        measured = series.numbers
        assert measured is not None
        zero = len(series.table)

        def codes(rows: Int64) -> Any:
            found = series.codes(rows)
            return np.where((found < 0) & (measured(rows) == 0), zero, found)

        return Series(table=[*series.table, 0], codes=codes, numbers=lambda rows: measured(rows) * 100).shown(
            percent, "%"
        )

    return bind


def _grads_agree(table: Table) -> Bound:
    codes = table.target.requires_grad.codes, table.golden.requires_grad.codes
    agree = Series(
        table=(False, True), codes=lambda rows: (np.maximum(codes[0](rows), 1) == np.maximum(codes[1](rows), 1)).astype(np.int32)
    )  # fmt: skip
    return agree.shown(bool)


def _accuracy(table: Table) -> Bound:
    return table.coded(list(Verdict), table.verdict).shown(lambda verdict: ACCURACY_WORDS[verdict])


def _files(table: Table) -> Bound:
    sides = (table.target.data_name, table.golden.data_name)
    return lambda rows: Texts(
        texts=[
            str([_file(target), _file(golden)])
            for target, golden in zip(*(side.values(rows) for side in sides), strict=True)
        ]
    )


def _file(name: Any) -> str:
    return "N/A" if name is MISSING else name or "-1"
