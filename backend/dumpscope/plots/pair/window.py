"""Single values of a tensor pair around one element, with all digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.errors import UsageError
from dumpscope.plots.pair.pieces import pieces
from dumpscope.plots.pair.profiles import sized
from dumpscope.texts import say

MOST: Final = 21
"""Most rows or columns of a window."""

Index = tuple[int, ...]
Box = Mapping[int, tuple[int, int]]
"""Dimension -> first index and one past the last; other dimensions are used completely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One position. target, golden, difference: digits that read back as the same number, `nan`, `inf`, `-inf`; None if the
    side has no such position; equal: the same number, or both nan"""

    target: str | None
    golden: str | None
    difference: str | None
    equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of one plane of a tensor. at: index of the requested element; axes: dimension that goes down (None for a vector) and
    across; row, column: index of the first value along them; values: by row and column"""

    at: Index
    axes: tuple[int | None, int]
    row: int
    column: int
    values: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landmarks:
    """Interesting elements, None if there is no such element. worst: largest difference; first: first that differs;
    lost: first that is not finite on one side, or not finite in different ways"""

    worst: Index | None
    first: Index | None
    lost: Index | None


def landmarks(target: NDArray[Any], golden: NDArray[Any]) -> Landmarks:
    """Find the landmarks in one pass over two arrays. Raises UsageError if their shapes differ."""
    if target.shape != golden.shape:
        raise UsageError(say("plots.shapes_differ", shape=list(target.shape), shape2=list(golden.shape)))
    worst, most = -1, 0.0
    first = lost = -1
    for piece in pieces(target, golden):
        change = piece.change()
        bad = np.isnan(change)
        size = np.where(bad, 0.0, np.abs(change))
        place = int(size.argmax())
        if size[place] > most:
            worst, most = piece.start + place, float(size[place])
        if first < 0 and (differs := np.flatnonzero(bad | (size > 0))).size:
            first = piece.start + int(differs[0])
        if lost < 0 and bad.any():
            lost = piece.start + int(bad.argmax())
    return Landmarks(
        worst=_index(worst, target.shape), first=_index(first, target.shape), lost=_index(lost, target.shape)
    )


def worst_within(target: NDArray[Any], golden: NDArray[Any], box: Box) -> Index:
    """The element of a box that is not finite on one side, else the one with the largest difference, else the first.

    Two arrays of one shape. Raises UsageError for a box that holds no element of theirs.
    """
    shape = sized(target.shape)
    ranges = [box.get(dimension, (0, size)) for dimension, size in enumerate(shape)]
    inside = all(0 <= start < stop <= size for (start, stop), size in zip(ranges, shape, strict=True))
    if not inside or any(dimension >= len(shape) for dimension in box):
        asked = ", ".join(f"{dimension}:{start}-{stop}" for dimension, (start, stop) in box.items())
        raise UsageError(
            say("plots.tensor_shape_has_no_part", shape=list(shape), asked=asked),
            hint=say("plots.name_dimension_start_stop_dimensions_counted", count=len(shape)),
        )
    part = tuple(slice(start, stop) for start, stop in ranges)
    found = landmarks(target.reshape(shape)[part], golden.reshape(shape)[part])
    place = found.lost or found.worst or (0,) * len(shape)
    return tuple(start + one for (start, _), one in zip(ranges, place, strict=True))


def _index(flat: int, shape: tuple[int, ...]) -> Index | None:
    if flat < 0:
        return None
    return tuple(int(one) for one in np.unravel_index(flat, sized(shape)))


def window(
    target: NDArray[Any] | None,
    golden: NDArray[Any] | None,
    at: Sequence[int],
    *,
    axes: Sequence[int] = (),
    rows: int = 9,
    columns: int = 5,
) -> Window:
    """Values of one or both sides around index `at`, in the plane of `axes` (the last two dimensions when left out).

    Both sides have the same number of dimensions; if a side is shorter, its positions are missing. Only these elements are read.
    Raises UsageError for an index or dimensions that the tensor does not have; it names those it has.
    """
    sides = [None if side is None else side.reshape(sized(side.shape)) for side in (target, golden)]
    shapes = [side.shape for side in sides if side is not None]
    if not shapes or len({len(shape) for shape in shapes}) > 1:
        raise UsageError(say("plots.two_tensors_have_no_positions_common"), hint=say("plots.look_one_side"))
    shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    centre = tuple(int(one) for one in at)
    if len(centre) != len(shape) or not all(0 <= one < size for one, size in zip(centre, shape, strict=True)):
        raise UsageError(
            say("plots.tensor_shape_has_no_element", shape=list(shape), centre=list(centre)),
            hint=say("plots.name_indices_counted_from_0", count=len(shape)),
        )
    chosen = tuple(axes) or tuple(range(max(0, len(shape) - 2), len(shape)))
    if len(chosen) > 2 or len(set(chosen)) < len(chosen) or not all(0 <= one < len(shape) for one in chosen):
        raise UsageError(
            say("plots.tensor_has_no_dimensions", axes=list(axes)), hint=say("plots.name_one_two", count=len(shape))
        )
    across = chosen[-1]
    down = chosen[0] if len(chosen) > 1 else None
    width, height = min(columns, MOST, shape[across]), 1 if down is None else min(rows, MOST, shape[down])
    column = _start(centre[across], width, shape[across])
    row = 0 if down is None else _start(centre[down], height, shape[down])
    values = []
    for one in range(row, row + height):
        line = []
        for other in range(column, column + width):
            place = list(centre)
            place[across] = other
            if down is not None:
                place[down] = one
            line.append(_value(*(_element(side, tuple(place)) for side in sides)))
        values.append(tuple(line))
    return Window(at=centre, axes=(down, across), row=row, column=column, values=tuple(values))


def _start(centre: int, width: int, size: int) -> int:
    return max(0, min(centre - width // 2, size - width))


def _element(side: NDArray[Any] | None, place: Index) -> Any:
    if side is None or not all(one < size for one, size in zip(place, side.shape, strict=True)):
        return None
    return side[place]


def _value(target: Any, golden: Any) -> Value:
    if target is None or golden is None:
        return Value(target=digits(target), golden=digits(golden), difference=None, equal=False)
    difference, equal = _subtract(target, golden)
    return Value(target=digits(target), golden=digits(golden), difference=difference, equal=equal)


def digits(value: Any) -> str | None:
    """The shortest decimal digits that read back as the same number of its dtype; None for None.

    Types that numpy does not have (bfloat16, float8) are written with all digits of float32, which holds them exactly.
    """
    if value is None:
        return None
    if isinstance(value, np.bool_ | bool):
        return str(bool(value))
    if isinstance(value, np.integer | int):
        return str(int(value))
    if isinstance(value, np.complexfloating | complex):
        imaginary = digits(value.imag) or ""
        return f"{digits(value.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if not isinstance(value, np.floating):
        value = np.float32(value)
    return str(value)


def _subtract(target: Any, golden: Any) -> tuple[str, bool]:
    """(target - golden rounded to float64, exact for integers; whether both are the same)"""
    if isinstance(target, np.complexfloating) or isinstance(golden, np.complexfloating):
        one, other = complex(target), complex(golden)
        parts = [_subtract(*pair) for pair in ((one.real, other.real), (one.imag, other.imag))]
        imaginary = parts[1][0]
        return f"{parts[0][0]}{'' if imaginary.startswith('-') else '+'}{imaginary}j", all(same for _, same in parts)
    first, second = _exact(target), _exact(golden)
    if isinstance(first, float) or isinstance(second, float):  # nan or infinite
        one, other = float(first), float(second)
        same = one == other or (one != one and other != other)  # noqa: PLR0124 - nan
        return ("0" if same else str(one - other)), same
    gap = first - second
    whole = gap.denominator == 1 and all(isinstance(side, np.integer | np.bool_) for side in (target, golden))
    return (str(gap.numerator) if whole or gap == 0 else _rounded(gap)), gap == 0


def _rounded(gap: Fraction) -> str:
    try:
        return repr(float(gap))
    except OverflowError:
        return "inf" if gap > 0 else "-inf"


def _exact(value: Any) -> Fraction | float:
    """The number itself, as a float if it is not finite."""
    if isinstance(value, np.integer | np.bool_):
        return Fraction(int(value))
    wide = float(value)
    return Fraction(wide) if np.isfinite(wide) else wide


def starting_point(shape: Index, found: Landmarks | None) -> Index:
    """The element to open with: the first that is lost, else the worst, else the first of all."""
    if not prod(shape):
        raise UsageError(say("plots.tensor_empty"))
    places = (found.lost, found.worst) if found is not None else ()
    return next((place for place in places if place is not None), (0,) * len(sized(shape)))
