"""Figures of one tensor alone, against what numpy says of it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from dumpscope.plots.pair.pieces import BLOCK, pieces, zeros
from dumpscope.plots.pair.window import landmarks
from dumpscope.plots.tensor.histogram import (
    tensor_histogram_data,
    tensor_histogram_figure,
    tensor_histogram_phrases,
    tensor_histogram_table,
)
from dumpscope.plots.tensor.statistics import spread_figure, spread_of, spread_phrases
from dumpscope.plots.tensor.value_map import value_map_data, value_map_figure, value_map_phrases, value_map_table
from dumpscope.readers.tensors.tensor_file import load
from dumpscope.texts import english

FLOATS = hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=6), elements=st.floats(width=32))


@given(tensor=FLOATS)
@settings(max_examples=150, deadline=None)
def test_every_element_is_counted_once(tensor: np.ndarray[Any, Any]) -> None:
    data = tensor_histogram_data(tensor)
    counted = data.counted
    assert int(counted.counts.sum()) + counted.nonfinite == tensor.size == data.elements
    assert counted.nan == int(np.isnan(tensor).sum())
    assert counted.positive_infinite == int(np.isposinf(tensor).sum())
    assert counted.negative_infinite == int(np.isneginf(tensor).sum())
    assert data.zeros == int((tensor == 0).sum())
    finite = tensor[np.isfinite(tensor)]
    if finite.size:
        assert (counted.low, counted.high) == (finite.min(), finite.max())


def test_counts_are_those_of_numpy_whatever_the_layout() -> None:
    tensor = np.random.default_rng(1).normal(size=(3, BLOCK // 2 + 7)).astype(np.float32)
    for layout in (tensor, tensor[:, ::-1], np.asfortranarray(tensor)):
        data = tensor_histogram_data(layout, bins=40)
        counts, _edges = np.histogram(tensor.astype(np.float64), bins=data.counted.edges)
        assert np.abs(data.counted.counts - counts).max() <= 1  # a number on an edge
    rows = tensor_histogram_table(data).rows
    assert sum(int(row[3] or 0) for row in rows if row[0] == "histogram") == tensor.size


def test_the_words_name_range_zeros_and_what_is_not_drawn() -> None:
    tensor = np.array([[-1.5, 0, 0, 2], [np.nan, np.inf, np.inf, -np.inf]], dtype=np.float16)
    data = tensor_histogram_data(tensor, log=True)
    assert english(tensor_histogram_phrases(data)) == (
        "8 elements, finite values from -1.5 to 2. Zeros: 2. Not drawn: 1 NaN, 2 inf, 1 -inf."
    )
    assert tensor_histogram_figure(data)["layout"]["yaxis"]["type"] == "log"
    sound = tensor_histogram_data(np.arange(4))
    assert english(tensor_histogram_phrases(sound)) == (
        "4 elements, finite values from 0 to 3. Zeros: 1. No NaN, no infinity."
    )
    assert english(tensor_histogram_phrases(tensor_histogram_data(np.zeros((0, 2))))) == "The tensor is empty."


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16])
def test_the_map_holds_the_largest_magnitude_of_each_cell(dtype: Any) -> None:
    tensor = np.zeros((4, 3, 5)).astype(dtype)
    tensor[2, 1, 3] = 1
    data = value_map_data(tensor, axes=(0, 2))
    expected = np.abs(tensor.astype(np.complex128)).max(axis=1)
    np.testing.assert_allclose(data.cells, expected)
    assert not data.lost.any()
    words = english(value_map_phrases(data))
    assert words.startswith("Largest magnitude 1. Only indices 2 of 4 hold anything but zero (dim 0).")
    assert value_map_data(tensor).axes == (0, 2)  # it chooses those that confine most
    assert value_map_table(data).columns[-2:] == ("max magnitude", "not finite")


def test_cells_with_nan_or_infinity_are_counted_apart() -> None:
    tensor = np.ones((3, 4), dtype=np.float32)
    tensor[1, 2], tensor[2, 2] = np.nan, -np.inf
    data = value_map_data(tensor, reduce="rms")
    assert data.lost.tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]
    assert "NaN or infinite: 2." in english(value_map_phrases(data))
    names = [trace["name"] for trace in value_map_figure(data)["data"]]
    assert names == ["rms magnitude", "not finite"]
    assert english(value_map_phrases(value_map_data(np.zeros((2, 2))))) == "All elements are zero."


def test_one_tensor_is_read_against_zeros_without_their_memory() -> None:
    tensor = np.arange(6, dtype=np.int64).reshape(2, 3)
    nothing = zeros((2, 3))
    assert nothing.strides == (0, 0)
    (piece,) = pieces(tensor, nothing)
    assert piece.target.tolist() == [0, 1, 2, 3, 4, 5]
    assert piece.change().tolist() == [0, 1, 2, 3, 4, 5]
    tensor = np.array([1.0, -7.0, np.nan, np.inf])
    found = landmarks(tensor, zeros(tensor.shape))
    assert (found.worst, found.lost) == ((1,), (2,))


def test_a_large_tensor_needs_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "big.npy"
    np.save(file, np.random.default_rng(3).normal(size=(5, 1000, 1000)))
    loaded = load(file, root=tmp_path)
    for read in (tensor_histogram_data, value_map_data, lambda array: landmarks(array, zeros(array.shape))):
        tracemalloc.start()
        read(loaded.array)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < loaded.nbytes / 8, read


def test_a_side_that_is_one_number_everywhere_is_compared_as_such() -> None:
    expanded = np.broadcast_to(np.array([2.5], dtype=np.float32), (3, 4))
    other = np.full((3, 4), 2.5, dtype=np.float32)
    other[1, 1] = 3
    for piece in pieces(other, expanded):
        assert piece.change().tolist() == (other - 2.5).reshape(-1).tolist()


def test_statistics_give_the_deviation_that_the_tensor_has() -> None:
    tensor = np.random.default_rng(2).normal(3, 0.5, size=4000)
    norm = float(np.linalg.norm(tensor))
    data = spread_of(tensor.size, high=tensor.max(), low=tensor.min(), mean=tensor.mean(), norm=norm)
    assert data is not None
    assert data.deviation == pytest.approx(tensor.std(), rel=1e-9)
    assert [trace["name"] for trace in spread_figure(data)["data"]] == [
        "minimum and maximum",
        "mean ± standard deviation",
        "mean",
    ]
    assert "Mean 3.0" in english(spread_phrases(data)) or "Mean 2.9" in english(spread_phrases(data))
    assert spread_of(3, high=None, low=1.0, mean=None, norm=None) is None
    lost = spread_of(3, high=np.inf, low=1.0, mean=np.inf, norm=np.inf)
    assert lost is not None
    assert not lost.finite
    assert "not both finite" in english(spread_phrases(lost))
    only = spread_of(3, high=2.0, low=1.0, mean=None, norm=None)
    assert only is not None
    assert len(spread_figure(only)["data"]) == 1
