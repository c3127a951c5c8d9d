"""Pictures of two tensors say where and how they differ, whatever their dtype, size and layout."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from dumpscope.errors import UsageError
from dumpscope.export.number_csv import plain_csv
from dumpscope.plots.pair.density import (
    pair_density_data,
    pair_density_figure,
    pair_density_phrases,
    pair_density_table,
)
from dumpscope.plots.pair.difference_map import (
    COLUMNS,
    ROWS,
    difference_map_data,
    difference_map_figure,
    difference_map_phrases,
    difference_map_table,
)
from dumpscope.plots.pair.histogram import (
    pair_histogram_data,
    pair_histogram_figure,
    pair_histogram_phrases,
    pair_histogram_table,
)
from dumpscope.plots.pair.pieces import BLOCK, difference, pieces
from dumpscope.plots.pair.quantiles import SAMPLED
from dumpscope.plots.signed_log_axis import Magnitudes, axis_of
from dumpscope.texts import english

LIMIT = 190_000
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
DTYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.complex64, np.complex128, np.bool_,
    np.int8, np.int64, np.uint64,
]  # fmt: skip


def strict(figure: object) -> str:
    return json.dumps(figure, allow_nan=False, separators=(",", ":"))


def any_pair() -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
    anything = st.floats(width=64)

    def two(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
        one = hnp.arrays(np.float64, shape, elements=anything)
        return st.tuples(one, one | st.just(None)).map(lambda pair: (pair[0], pair[0] if pair[1] is None else pair[1]))

    return shapes.flatmap(two)


@given(pair=any_pair(), log=st.booleans())
@settings(max_examples=120, deadline=None)
def test_no_numbers_and_no_shape_break_a_picture(pair: tuple[np.ndarray, np.ndarray], log: bool) -> None:
    target, golden = pair
    histogram = pair_histogram_data(target, golden, log=log)
    density = pair_density_data(target, golden, log=log)
    places = difference_map_data(target, golden, log=log)
    figures = pair_histogram_figure(histogram), pair_density_figure(density), difference_map_figure(places)
    assert all(strict(figure) for figure in figures)
    for said in (pair_histogram_phrases(histogram), pair_density_phrases(density), difference_map_phrases(places)):
        assert english(said)
    for found in (pair_histogram_table(histogram), pair_density_table(density), difference_map_table(places)):
        assert plain_csv(found.columns, found.rows).count("\r\n") == len(found.rows) + 1
    assert density.counts.sum() + density.skipped == target.size
    assert density.on + density.below + density.above + density.skipped == target.size
    equal = (target == golden) | (np.isnan(target) & np.isnan(golden))
    assert (places.lost.sum() == 0 and places.cells.max(initial=0) == 0) == bool(equal.all())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_drawn_and_equal_tensors_are_called_equal(dtype: Any) -> None:
    golden = (np.arange(60).reshape(3, 4, 5) % 7).astype(dtype)
    target = golden.copy()
    assert "All elements are equal." in english(difference_map_phrases(difference_map_data(target, golden)))
    assert pair_density_data(target, golden).on == 60
    assert pair_histogram_data(target, golden).equal == 60
    target[1, 2, 3] = 0 if golden[1, 2, 3] else 1
    found = difference_map_data(target, golden)
    assert [one.only.tolist() for one in found.profiles] == [[1], [2], [3]]
    assert pair_density_data(target, golden).on == 59
    for figure in (difference_map_figure(found), pair_density_figure(pair_density_data(target, golden))):
        assert strict(figure)


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.T, lambda a: a[::2, ::-1], np.asfortranarray])
def test_strided_tensors_are_read_in_their_own_order(make: Any) -> None:
    base = np.arange(6 * 9, dtype=np.float32).reshape(6, 9)
    target, golden = make(base), make(base) + 0
    seen = np.concatenate([piece.target.copy() for piece in pieces(target, golden)])
    assert seen.tolist() == target.reshape(-1).tolist()


def test_only_rows_1_and_5_differ_is_said_and_seen() -> None:
    golden = np.random.default_rng(0).normal(size=(8, 40)).astype(np.float32)
    target = golden.copy()
    target[[1, 5]] *= 1.5
    data = difference_map_data(target, golden)
    assert "Only rows 1, 5 of 8 differ (dim 0)." in english(difference_map_phrases(data))
    assert data.axes == (0, 1)
    assert np.flatnonzero(data.cells.any(axis=1)).tolist() == [1, 5]
    figure = difference_map_figure(data)
    assert [any(cell is not None for cell in row) for row in figure["data"][0]["z"]] == [
        row in (1, 5) for row in range(8)
    ]
    np.testing.assert_allclose(data.cells, np.abs(target.astype(np.float64) - golden), rtol=1e-12)


def test_rows_that_stand_out_of_noise_are_named() -> None:
    random = np.random.default_rng(1)
    golden = random.normal(size=(64, 33))
    target = golden + random.normal(size=golden.shape) * 1e-6
    target[[7, 40, 41]] += 0.1
    assert "Of the 64 rows of dim 0, numbers 7, 40–41 stand out" in english(
        difference_map_phrases(difference_map_data(target, golden))
    )


def test_the_map_opens_with_the_dimensions_that_tell_most() -> None:
    golden = np.random.default_rng(2).normal(size=(2, 6, 5, 4))
    target = golden.copy()
    target[:, 3] += 1.0
    data = difference_map_data(target, golden)
    assert 1 in data.axes
    assert "Only indices 3 of 6 differ (dim 1)." in english(difference_map_phrases(data))
    chosen = difference_map_data(target, golden, axes=(-1, 0))
    assert chosen.axes == (3, 0)
    assert chosen.cells.shape == (4, 2)


@pytest.mark.parametrize("axes", [(0, 0), (4,), (-5,), (0, 1, 2)])
def test_dimensions_that_are_not_there_are_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="no dimensions"):
        difference_map_data(np.zeros((2, 3, 4)), np.zeros((2, 3, 4)), axes=axes)


@given(
    shape=hnp.array_shapes(min_dims=1, max_dims=4, max_side=7),
    seed=st.integers(0, 1000),
    limit=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    data=st.data(),
)
@settings(max_examples=80, deadline=None)
def test_a_cell_holds_the_largest_and_the_rms_difference_of_its_elements(
    shape: tuple[int, ...], seed: int, limit: tuple[int, int], data: st.DataObject
) -> None:
    random = np.random.default_rng(seed)
    golden, target = random.normal(size=shape), random.normal(size=shape)
    count = min(2, len(shape))
    axes = data.draw(st.permutations(range(len(shape))).map(lambda order: tuple(order[:count])))
    gap = np.abs(target - golden)
    for reduce in ("max", "rms"):
        found = difference_map_data(target, golden, axes=axes, reduce=reduce, cells=limit)  # type: ignore[arg-type]
        down, across = found.axes
        for row in range(len(found.down) - 1):
            for column in range(len(found.across) - 1):
                part = gap
                for axis, edges, place in ((down, found.down, row), (across, found.across, column)):
                    if axis is not None:
                        part = np.take(part, range(edges[place], edges[place + 1]), axis=axis)
                wanted = part.max() if reduce == "max" else np.sqrt(np.mean(np.square(part)))
                assert found.cells[row, column] == pytest.approx(wanted)


def test_nan_on_one_side_is_a_cell_of_its_own_and_nan_on_both_is_none() -> None:
    golden = np.ones((4, 4))
    target = golden.copy()
    golden[0, 0] = target[0, 0] = np.nan
    golden[1, 1] = target[1, 1] = -np.inf
    target[2, 3], golden[3, 3], target[3, 3] = np.nan, np.inf, -np.inf
    data = difference_map_data(target, golden)
    assert np.argwhere(data.lost).tolist() == [[2, 3], [3, 3]]
    assert not data.cells.any()
    assert "NaN or infinite on one side only, or different kinds of them: 2." in english(difference_map_phrases(data))
    assert difference_map_figure(data)["data"][1]["z"][2] == [None, None, None, 1]


def test_neighbours_past_2_to_53_differ_by_one() -> None:
    golden = np.array([2**53, 2**63 - 1, -(2**63), 5], dtype=np.int64)
    target = np.array([2**53 + 1, -(2**63), 2**63 - 1, 5], dtype=np.int64)
    assert difference(target, golden).tolist() == [1.0, -(2.0**64), 2.0**64, 0.0]
    assert difference(np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)).tolist() == [1.0]
    assert pair_histogram_data(target, golden).equal == 1


def test_complex_numbers_of_equal_size_and_other_phase_differ() -> None:
    golden = np.array([1 + 0j, 0 + 2j], dtype=np.complex64)
    target = np.array([0 + 1j, 0 + 2j], dtype=np.complex64)
    assert pair_histogram_data(target, golden).equal == 1
    assert "Different only in phase: 1." in english(pair_density_phrases(pair_density_data(target, golden)))


def test_quantiles_are_right_and_their_gap_is_told() -> None:
    golden = np.arange(1001, dtype=np.float64)
    found = pair_histogram_data(golden * 2, golden).quantiles
    assert found.golden[found.levels == 0.5] == 500
    assert found.target[found.levels == 0.5] == 1000
    assert (found.golden[0], found.golden[-1], found.target[-1]) == (0, 1000, 2000)
    assert "Quantiles part most at 1: target 2000, golden 1000." in english(
        pair_histogram_phrases(pair_histogram_data(golden * 2, golden))
    )


@given(values=hnp.arrays(np.float64, st.integers(1, 50), elements=FINITE), log=st.booleans())
@settings(max_examples=150, deadline=None)
def test_an_axis_of_decades_holds_every_value_in_order_and_gives_it_back(values: np.ndarray, log: bool) -> None:
    scale = axis_of(Magnitudes().and_of(values), log=log)
    places = scale.place(np.sort(values))
    assert (np.diff(places) >= 0).all()
    assert places.min() >= scale.start - 1e-9
    assert places.max() <= scale.stop + 1e-9
    seen = np.abs(values) >= 10.0**scale.unit * 1e-3
    np.testing.assert_allclose(scale.value(scale.place(values))[seen], values[seen], rtol=1e-9)
    strict(scale.ticks())


def test_mixed_signs_share_an_axis_with_zero_in_its_place() -> None:
    scale = axis_of(Magnitudes().and_of(np.array([-100.0, 0.0, 0.01])), log=True)
    ticks = dict(zip(scale.ticks()["ticktext"], scale.ticks()["tickvals"], strict=True))
    assert ticks["0"] == 0
    assert ticks["-1e2"] == -ticks["1e2"] if "1e2" in ticks else ticks["-1e2"] < 0
    positive = axis_of(Magnitudes().and_of(np.array([0.5, 20.0])), log=True)
    assert "0" not in positive.ticks()["ticktext"]


class TestFiveMillionPoints:
    """What a tensor of five million elements becomes: small, exact at its ends, made without memory of its size."""

    SIZE = (5, 1000, 1000)

    @pytest.fixture(scope="class")
    @classmethod
    def pair(cls) -> tuple[np.ndarray, np.ndarray]:
        golden = np.random.default_rng(3).normal(size=cls.SIZE).astype(np.float32)
        target = golden.copy()
        target[4, 999, 998] = np.float32(1234.5)
        target[0, 0, 1] = np.float32(-4321.25)
        target[2, 500, 500] = np.nan
        return target, golden

    def test_ends_and_nan_are_exact(self, pair: tuple[np.ndarray, np.ndarray]) -> None:
        data = pair_histogram_data(*pair)
        assert (data.target.low, data.target.high, data.target.nan) == (-4321.25, 1234.5, 1)
        assert (data.quantiles.target[0], data.quantiles.target[-1]) == (-4321.25, 1234.5)
        assert data.target.counts.sum() == 5_000_000 - 1
        text = english(pair_histogram_phrases(data))
        assert "between -4321 and 1234" in text
        assert "1 nan" in text
        assert data.quantiles.sampled is not None
        assert data.quantiles.sampled <= SAMPLED
        median = data.quantiles.golden[data.quantiles.levels == 0.5][0]
        assert median == pytest.approx(float(np.median(pair[1])), abs=5e-3)

    def test_each_picture_is_small_and_needs_little_memory(self, pair: tuple[np.ndarray, np.ndarray]) -> None:
        for make, draw in (
            (pair_histogram_data, pair_histogram_figure),
            (pair_density_data, pair_density_figure),
            (difference_map_data, difference_map_figure),
        ):
            tracemalloc.start()
            data = make(*pair)  # type: ignore[operator]
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 64 << 20
            assert len(strict(draw(data))) < LIMIT  # type: ignore[operator]

    def test_the_three_places_are_found(self, pair: tuple[np.ndarray, np.ndarray]) -> None:
        data = difference_map_data(*pair)
        assert [one.only.tolist() for one in data.profiles] == [[0, 2, 4], [0, 500, 999], [1, 500, 998]]
        assert (len(data.down) - 1, len(data.across) - 1) <= (ROWS, COLUMNS)


def test_long_last_dimensions_are_read_in_parts() -> None:
    golden = np.zeros((3, 2 * BLOCK + 7))
    target = golden.copy()
    target[1, 2 * BLOCK + 5] = 2.0
    data = difference_map_data(target, golden)
    assert [one.only.tolist() for one in data.profiles] == [[1], [2 * BLOCK + 5]]
    assert data.cells.max() == 2.0
