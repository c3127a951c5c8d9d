"""Single values, digit for digit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from dumpscope.errors import UsageError
from dumpscope.plots.pair.window import Value, digits, landmarks, starting_point, window, worst_within


@given(value=st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_the_digits_of_a_float_read_back_as_the_same_bits(value: int) -> None:
    for dtype, raw in ((np.float32, np.uint32), (np.float16, np.uint16), (ml_dtypes.bfloat16, np.uint16)):
        number = np.array([value % (1 << 8 * np.dtype(raw).itemsize)], dtype=raw).view(dtype)[0]
        text = digits(number)
        assert text is not None
        if np.isnan(np.float64(number)):
            assert text == "nan"
        else:
            again = np.array([float(text)], dtype=np.float64).astype(dtype)
            assert again.tobytes() == np.array([number]).tobytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(2**53 + 1), "9007199254740993"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.float64(0.1), "0.1"),
        (np.float32(-0.0), "-0.0"),
        (np.float32("nan"), "nan"),
        (np.float16("inf"), "inf"),
        (ml_dtypes.bfloat16("-inf"), "-inf"),
        (ml_dtypes.float8_e4m3fn(0.3), "0.3125"),
        (np.complex64(1 - 2j), "1.0-2.0j"),
        (np.bool_(True), "True"),
    ],
)
def test_every_kind_of_number_is_written_in_full(value: Any, text: str) -> None:
    assert digits(value) == text


def only(target: Any, golden: Any) -> Value:
    return window(np.array([target]), np.array([golden]), (0,)).values[0][0]


def test_differences_are_exact_and_nan_is_equal_to_nan() -> None:
    assert only(np.int64(2**63 - 1), np.int64(-(2**63))).difference == str(2**64 - 1)
    assert only(np.int64(2**53 + 1), np.float64(2**53)).difference == "1.0"
    assert only(np.float32("nan"), np.float32("nan")).equal
    assert only(np.float32("inf"), np.float32("inf")).equal
    lost = only(np.float32("nan"), np.float32(1))
    assert (lost.difference, lost.equal) == ("nan", False)
    assert only(np.float32("inf"), np.float32("-inf")).difference == "inf"
    assert only(np.float64(1.7e308), np.float64(-1.7e308)).difference == "inf"
    assert only(np.float32(0.0), np.float32(-0.0)).equal
    assert only(np.complex64(1 + 1j), np.complex64(1 - 1j)).difference == "0+2.0j"
    assert only(np.bool_(True), np.bool_(False)).difference == "1"


@given(shape=hnp.array_shapes(min_dims=0, max_dims=4, max_side=9), data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_window_holds_its_element_and_the_values_of_their_places(shape: tuple[int, ...], data: st.DataObject) -> None:
    golden = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    sized = shape or (1,)
    at = tuple(data.draw(st.integers(0, size - 1)) for size in sized)
    axes = data.draw(st.permutations(range(len(sized))).map(lambda order: tuple(order[:2])))
    seen = window(golden + 1, golden, at, axes=axes, rows=3, columns=4)
    down, across = seen.axes
    for row, line in enumerate(seen.values):
        for column, cell in enumerate(line):
            place = list(at)
            place[across] = seen.column + column
            if down is not None:
                place[down] = seen.row + row
            wanted = golden.reshape(sized)[tuple(place)]
            assert (cell.golden, cell.target, cell.difference) == (str(wanted), str(wanted + 1), "1")
    assert 0 <= at[across] - seen.column < len(seen.values[0])
    assert down is None or 0 <= at[down] - seen.row < len(seen.values)


def test_a_side_that_is_missing_or_shorter_leaves_its_places_empty() -> None:
    alone = window(np.arange(3), None, (1,)).values[0]
    assert [cell.target for cell in alone] == ["0", "1", "2"]
    assert {cell.golden for cell in alone} == {None}
    shorter = window(np.zeros((2, 3)), np.zeros((2, 2)), (1, 2)).values
    assert shorter[1][2].golden is None
    assert shorter[1][1].golden == "0.0"


@pytest.mark.parametrize(("at", "axes"), [((2,), ()), ((0, 3), ()), ((0, 0), (0, 0)), ((0, 0), (2,))])
def test_elements_and_dimensions_that_are_not_there_are_refused(at: tuple[int, ...], axes: tuple[int, ...]) -> None:
    with pytest.raises(UsageError):
        window(np.zeros((2, 3)), np.zeros((2, 3)), at, axes=axes)


def test_places_worth_looking_at_are_found_and_the_lost_one_opens() -> None:
    golden = np.ones((3, 4), dtype=np.float32)
    target = golden.copy()
    target[0, 2] += 0.5
    target[2, 1] += 3
    found = landmarks(target, golden)
    assert (found.worst, found.first, found.lost) == ((2, 1), (0, 2), None)
    assert starting_point((3, 4), found) == (2, 1)
    target[1, 1] = np.nan
    assert starting_point((3, 4), landmarks(target, golden)) == (1, 1)
    assert landmarks(golden, golden).worst is None
    assert starting_point((3, 4), landmarks(golden, golden)) == (0, 0)
    assert landmarks(np.float32(2), np.array(np.float32(1))).worst == (0,)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_worst_element_of_a_part_is_that_of_the_part_alone(seed: int, turned: bool) -> None:
    random = np.random.default_rng(seed)
    target, golden = random.standard_normal((2, 5, 6, 7))
    if turned:
        target, golden = target.transpose(2, 0, 1), golden.transpose(2, 0, 1)
    box = {}
    for dimension, size in enumerate(target.shape[:-1]):
        start = int(random.integers(0, size))
        box[dimension] = (start, int(random.integers(start + 1, size + 1)))
    found = worst_within(target, golden, box)
    part = tuple(slice(*box.get(dimension, (None,))) for dimension in range(3))
    assert np.abs(target - golden)[found] == np.abs(target - golden)[part].max()
    assert all(start <= found[dimension] < stop for dimension, (start, stop) in box.items())


@pytest.mark.parametrize("box", [{0: (1, 1)}, {0: (0, 3)}, {2: (0, 1)}, {1: (2, 1)}])
def test_a_part_that_is_not_there_is_refused(box: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(UsageError):
        worst_within(np.zeros((2, 3)), np.zeros((2, 3)), box)


def test_what_is_not_finite_on_one_side_comes_before_the_largest_difference() -> None:
    golden = np.zeros((4, 4))
    target = golden.copy()
    target[1, 1], target[2, 2], target[3, 3] = 5, np.inf, np.nan
    assert worst_within(target, golden, {0: (0, 2)}) == (1, 1)
    assert worst_within(target, golden, {0: (0, 4)}) == (2, 2)
    assert worst_within(golden, golden, {1: (2, 4)}) == (0, 2)
