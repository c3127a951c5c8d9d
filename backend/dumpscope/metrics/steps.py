"""Functions that jump (`sign`, `floor`, `>`, `%`, a cast to integers...), computed again from what a call was given.

Two runs whose inputs differ by rounding alone stand on other sides of a jump here and there. Where the result of each run follows
from its own input, no kernel is at fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BY_ELEMENT: Final[Mapping[str, Callable[[Array], Array]]] = {
    "ceil": np.ceil, "fix": np.trunc, "floor": np.floor, "frac": lambda given: given - np.trunc(given), "round": np.round,
    "sgn": np.sign, "sign": np.sign, "signbit": np.signbit, "trunc": np.trunc,
}  # fmt: skip
COMPARED: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "eq": np.equal, "ge": np.greater_equal, "greater": np.greater, "greater_equal": np.greater_equal, "gt": np.greater,
    "le": np.less_equal, "less": np.less, "less_equal": np.less_equal, "lt": np.less, "ne": np.not_equal,
    "not_equal": np.not_equal,
}  # fmt: skip
DIVIDED: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "floor_divide": np.floor_divide, "floordiv": np.floor_divide, "fmod": np.fmod, "mod": np.remainder,
    "remainder": np.remainder,
}  # fmt: skip
PLACED: Final = ("bucketize", "searchsorted")
CASTS: Final = ("bool", "byte", "char", "int", "long", "short", "to", "type", "type_as")
"""Those that make integers or truth values of other numbers."""
STEPS: Final = frozenset({*BY_ELEMENT, *COMPARED, *DIVIDED, *PLACED, *CASTS})
_NAMES: Final = ("input", "other")
_UNITS: Final = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""What rounding makes of a result that is not exact, relative to the larger operand; 2**-22 in longer dtypes."""


def follows(word: str, given: Mapping[str, Any], made: Array, dtype: str) -> bool | None:
    """Whether what a call made is what the function makes of what it was given. None where that cannot be told: other arguments,
    a number that the dtype does not hold.

    word: of STEPS; given: arrays and numbers, by place or name; dtype: of the floating input ("torch.bfloat16")
    """
    first = given.get("0", given.get(_NAMES[0], given.get("self")))
    if not isinstance(first, np.ndarray):
        return None
    if word in CASTS:
        if made.dtype.kind not in "iub":
            return None
        expected = first != 0 if made.dtype.kind == "b" else np.trunc(first)
        return _agree(expected, made, 0.0)
    if word in BY_ELEMENT:
        if any(given.get(name) for name in ("1", "decimals")):
            return None
        return _agree(BY_ELEMENT[word](first), made, 0.0)
    second = given.get("1", given.get(_NAMES[1]))
    if word in PLACED:
        return _check_places(word, given, first, made)
    short = dtype.removeprefix("torch.")
    if isinstance(second, bool | int | float):
        second = np.asarray(second, np.float64 if short == "float64" else np.float32)
        if short in _UNITS and not _holds(short, float(second)):
            return None
    if not isinstance(second, np.ndarray):
        return None
    with np.errstate(all="ignore"):
        if word in COMPARED:
            return _agree(COMPARED[word](first, second), made, 0.0)
        unit = _UNITS.get(short, 2.0**-22)
        size = np.maximum(np.abs(first), np.abs(second))
        return _agree(DIVIDED[word](first, second), made, unit * size)


def _check_places(word: str, given: Mapping[str, Any], first: Array, made: Array) -> bool | None:
    second = given.get("1", given.get("boundaries", given.get("values", given.get(_NAMES[0]))))
    bounds, values = (first, second) if word == "searchsorted" else (second, first)
    known = isinstance(bounds, np.ndarray) and bounds.ndim == 1 and isinstance(values, np.ndarray)
    if not known or given.get("sorter") is not None:
        return None
    right = bool(given.get("right")) or given.get("side") == "right"
    return _agree(np.searchsorted(bounds, values, side="right" if right else "left"), made, 0.0)


def _holds(short: str, number: float) -> bool:
    """The dtype holds this number exactly."""
    if short == "float16":
        return float(np.float16(number)) == number
    return float((np.float32(number).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)) == number


def _agree(expected: Array, made: Array, within: Array | float) -> bool | None:
    if expected.shape != made.shape:
        return None
    with np.errstate(invalid="ignore"):
        apart = np.abs(expected.astype(np.float64) - made.astype(np.float64))
    return bool(((apart <= within) | (np.isnan(expected) & np.isnan(made))).all())
