"""One row of a result: an item pair with everything known about it, whatever the format it is written in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dumpscope.domain.facts import TENSOR_METRICS, Outcome, Verdict
from dumpscope.domain.records import STATISTICS, Kind, State

Number = float | int | str | bool | None
"""A stored number; text where a non-tensor is compared; None where there is none. nan and infinities are floats."""

Four = tuple[Number, Number, Number, Number]

NOTHING: Final[Four] = (None, None, None, None)
_INTEGERS: Final = ("int", "uint", "short", "long", "torch.int", "torch.uint", "torch.short", "torch.long")
IN_SHAPE: Final = ("torch.Size", "slice")
"""Types whose value stands in the shape column."""
_PLAIN: Final = ("int", "float", "bool", "str")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCells:
    """One side of a row as msprobe shows it. dtype, shape: None for a null record.

    stats: Max, Min, Mean, Norm; for a scalar its value four times
    hash: recorded hash of a tensor, or None
    data_name: tensor file, or None
    """

    name: str
    dtype: str | None
    shape: str | None
    requires_grad: bool | None
    stats: Four
    hash: str | None
    data_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRow:
    """One item pair.

    node, golden_node: names of the calls, None on the side that has none
    stack: frames, innermost first, in the first row of a node that has one; else None
    diff, rel: per statistic, target - golden and abs(diff / golden); None where a side lacks it
    tensor: in the order of TENSOR_METRICS; counts are None where not known
    rule, message: why our verdict is what it is; result, errors: what msprobe's own rules say
    """

    step: int
    rank: int
    node: str | None
    golden_node: str | None
    role: str
    target: SideCells | None
    golden: SideCells | None
    match: str
    confidence: float
    outcome: Outcome
    diff: Four
    rel: Four
    tensor: tuple[float | None, ...]
    elements: int | None
    unequal: int | None
    nonfinite_target: int | None
    nonfinite_golden: int | None
    nonfinite_disagree: int | None
    verdict: Verdict
    rule: str
    score: float | None
    message: str
    cls: str
    result: str
    errors: tuple[str, ...]
    stack: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one step and rank. stacks: the target has call stacks, so the table has a column for them."""

    step: int
    rank: int
    mode: str
    stacks: bool
    rows: Iterable[ExportRow]


def side_cells(
    *,
    name: str,
    kind: Kind,
    type_name: str,
    dtype: str | None,
    shape: Sequence[int] | None,
    requires_grad: bool | None,
    stats: Four,
    digest: str | None,
    value: str | None,
    data_name: str | None,
) -> SideCells:
    """Cells of one leaf. stats: as stored (see `stored`); value: JSON text of a non-tensor's value."""
    if kind is Kind.TENSOR:
        return SideCells(
            name=name,
            dtype=dtype or type_name,
            shape=None if shape is None else str(list(shape)),
            requires_grad=requires_grad,
            stats=stats,
            hash=digest,
            data_name=data_name,
        )
    held = _held(value, type_name)
    if kind is Kind.NONE:
        dtype_cell, shape_cell, cells = None, None, NOTHING
    elif type_name in IN_SHAPE:
        dtype_cell, shape_cell, cells = type_name, str(held), NOTHING
    else:
        native = type(held).__name__
        dtype_cell, shape_cell = (f"<class '{native}'>" if native in _PLAIN else type_name), "[]"
        cell = held if isinstance(held, bool | int | float | str) or held is None else str(held)
        cells = (cell, cell, cell, cell)
    return SideCells(
        name=name, dtype=dtype_cell, shape=shape_cell, requires_grad=None, stats=cells, hash=digest, data_name=data_name
    )


def _held(value: str | None, type_name: str) -> Any:
    if value is None:
        return None
    try:
        held = json.loads(value)
    except ValueError:
        held = value
    if isinstance(held, str) and "float" in type_name:  # strict JSON writes infinities as text
        try:
            return float(held)
        except ValueError:
            return held
    return held


def stored(value: float, state: int, dtype: str | None, wide: int | None = None) -> Number:
    """A stored statistic as it was before it became a float64: exact integers, truth values, infinities, or None."""
    if state == FINITE:
        if wide is not None:
            return wide
        if dtype is None or not float(value).is_integer():
            return value
        if dtype.endswith("bool"):
            return bool(value)
        return int(value) if dtype.startswith(_INTEGERS) else value
    return UNUSUAL[state]


FINITE: Final = int(State.FINITE)
UNUSUAL: Final[dict[int, float | None]] = {
    int(State.ABSENT): None, int(State.NAN): math.nan, int(State.POS_INF): math.inf, int(State.NEG_INF): -math.inf,
}  # fmt: skip


def scalar_changes(target: Number, golden: Number) -> tuple[Four, Four]:
    """Difference and relative difference of two non-tensor values, four times as msprobe shows them; None for text."""
    if str(target) == str(golden):
        return (0, 0, 0, 0), (0, 0, 0, 0)
    if isinstance(target, bool | str | None) or isinstance(golden, bool | str | None):
        return NOTHING, NOTHING
    diff = target - golden
    rel = math.inf if golden == 0 else abs(diff / golden)
    return (diff, diff, diff, diff), (rel, rel, rel, rel)


def metrics(row: ExportRow) -> dict[str, Number]:
    """Every number measured for a pair, by name; what does not apply is left out."""
    found: dict[str, Number] = {
        name: value for name, value in zip(TENSOR_METRICS, row.tensor, strict=True) if value is not None
    }
    for place, name in enumerate(STATISTICS):
        if row.diff[place] is not None:
            found[f"{name.lower()}_diff"] = row.diff[place]
        if row.rel[place] is not None:
            found.setdefault(f"{name.lower()}_rel", row.rel[place])  # a tensor's own max_rel says more
    for name in ("elements", "unequal", "nonfinite_target", "nonfinite_golden", "nonfinite_disagree"):
        count = getattr(row, name)
        if count is not None:
            found[name] = count
    if row.score is not None:
        found["score"] = row.score
    return found
