"""Which rows ptdbg_ascend colours: red for numbers that cannot be right, yellow for what grew from input to output."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dumpscope.domain.records import Bool, Float64, Int64, Role
from dumpscope.export.table.cells import MISSING, Series
from dumpscope.export.table.unit_table import Table

PLAIN, YELLOW, RED = 0, 1, 2
HUGE: Final = 1e10


def row_marks(table: Table) -> Any:
    """PLAIN, YELLOW or RED per row. Rows of outputs are held against every input row of the same call."""
    rows = np.arange(len(table))
    marks = np.zeros(len(rows), np.int8)
    if table.mode not in ("tensor", "statistics"):
        return marks
    top, low = (as_floats(table.target.stat(place), rows) for place in (0, 1))
    known_top, known_low = (has_value(table.target.stat(place), rows) for place in (0, 1))
    difference = as_floats(table.metric("max_abs") if table.mode == "tensor" else table.diff(0), rows)
    bench = as_floats(table.golden.stat(0), rows)
    marks[(known_top & ~np.isfinite(top)) | (known_low & ~np.isfinite(low))] = RED
    marks[difference > HUGE] = RED
    able = np.isfinite(top) & np.isfinite(bench) & np.isfinite(difference)
    output = table.role == Role.OUTPUT
    given = able & np.isin(table.role, (Role.INPUT, Role.KWARG))
    asked = able & output & (marks != RED)
    red, yellow = np.zeros(len(rows), bool), _grows_by_an_order(table.pair, given, difference)
    if table.mode == "tensor":
        ratio, cosine = (as_floats(table.metric(name), rows) for name in ("ratio_1e3", "cosine"))
        best = _largest(table.pair, given, ratio)
        red |= (best > 0.9) & (ratio < 0.6)
        yellow |= best - ratio > 0.1
        yellow |= _largest(table.pair, given, cosine) - cosine > 0.1
    else:
        share = np.abs(difference / np.maximum(0.01, bench))
        red |= share > 0.5
        yellow |= (share > 0.1) & (-_largest(table.pair, given, -share) < 0.01)
        red &= _has_given(table.pair, given)
    marks[asked & yellow] = YELLOW
    marks[asked & red] = RED
    return marks


def _grows_by_an_order(pair: Int64, given: Bool, difference: Float64) -> Bool:
    """Whether a difference is of a higher order of magnitude than that of some input; below 1 the order is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.floor(np.log10(np.abs(difference)))
    order = np.where(np.abs(difference) < 1, 0.0, order)
    found: Bool = order + _largest(pair, given, -order) >= 1
    return found


def _largest(pair: Int64, given: Bool, values: Float64) -> Float64:
    """Per row the largest value of the call's chosen rows, -inf where there is none."""
    usable = given & ~np.isnan(values)
    out = np.full(int(pair.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(out, pair[usable], values[usable])
    return out[pair]


def _has_given(pair: Int64, given: Bool) -> Bool:
    found: Bool = _largest(pair, given, np.zeros(len(pair))) == 0
    return found


def has_value(series: Series, rows: Int64) -> Any:
    """Per row: whether the series holds something there."""
    codes = series.codes(rows)
    held = np.array([value is not None and value is not MISSING for value in series.table] or [False])
    return (codes < 0) | held[codes.clip(0)]


def as_floats(series: Series, rows: Int64) -> Float64:
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
