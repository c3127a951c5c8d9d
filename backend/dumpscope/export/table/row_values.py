"""Values of one row as msprobe shows them, for every table format."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dumpscope.domain.records import Kind, Number

IN_SHAPE: Final = ("torch.Size", "slice")
"""Types whose value is shown in the shape column."""
_PLAIN: Final = ("int", "float", "bool", "str")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The cells of a record other than a tensor's numbers.

    dtype, shape: texts, None for a null record
    value: of a non-tensor, shown in place of all four statistics
    """

    dtype: Any
    shape: Any
    value: Any


def row_head(kind: Kind, type_name: str, dtype: str | None, shape: Sequence[int] | None, value: str | None) -> Head:
    """Head of one leaf. value: JSON text of a non-tensor's value."""
    if kind is Kind.TENSOR:
        return Head(dtype=dtype or type_name, shape=None if shape is None else str(list(shape)), value=None)
    if kind is Kind.NONE:
        return Head(dtype=None, shape=None, value=None)
    held = _held(value, type_name)
    if type_name in IN_SHAPE:
        return Head(dtype=type_name, shape=str(held), value=None)
    native = type(held).__name__
    return Head(
        dtype=f"<class '{native}'>" if native in _PLAIN else type_name,
        shape="[]",
        value=held if isinstance(held, bool | int | float | str) or held is None else str(held),
    )


def _held(value: str | None, type_name: str) -> Any:
    if value is None:
        return None
    try:
        held = json.loads(value)
    except ValueError:
        held = value
    if isinstance(held, str) and "float" in type_name:  # strict JSON has infinities as text
        try:
            return float(held)
        except ValueError:
            return held
    return held


def scalar_changes(target: Number, golden: Number) -> tuple[Number, Number]:
    """Difference and relative difference of two non-tensor values; None for texts."""
    if str(target) == str(golden):
        return 0, 0
    if isinstance(target, bool | str | None) or isinstance(golden, bool | str | None):
        return None, None
    try:
        diff = target - golden
        return diff, math.inf if golden == 0 else abs(diff / golden)
    except OverflowError:  # an integer beyond float64
        return (math.inf if target > golden else -math.inf), math.inf
