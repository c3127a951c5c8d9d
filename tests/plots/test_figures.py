"""Figures hold the finding, stay small, and are strict JSON whatever the numbers are."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from dumpscope.domain.facts import ERROR_BINS
from dumpscope.errors import UsageError
from dumpscope.plots.error_axis import lanes
from dumpscope.plots.pair.errors import (
    error_histogram_data,
    error_histogram_figure,
    error_histogram_phrases,
    error_labels,
)
from dumpscope.plots.pair.histogram import pair_histogram_data, pair_histogram_figure, pair_histogram_phrases
from dumpscope.plots.pair.pieces import BLOCK
from dumpscope.plots.run.distribution import api_distribution_data, api_distribution_figure, api_distribution_phrases
from dumpscope.plots.run.order import error_order_data, error_order_figure, error_order_phrases
from dumpscope.plots.svg import api_distribution_svg, error_order_svg
from dumpscope.plots.template import shorten
from dumpscope.texts import english

LIMIT = 200_000
LONG = "Module.module.language_model.encoder.layers.{}.self_attention.query_key_value.ColumnParallelLinear.forward.0"


def strict(figure: object) -> str:
    return json.dumps(figure, allow_nan=False)


def big_run(nodes: int = 100_000) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    random = np.random.default_rng(1)
    output = 10 ** random.uniform(-8, -2, nodes)
    inputs = output / 2
    inputs[::7] = np.nan
    output[40_000] = 700.0
    output[50_001] = np.inf
    output[60_000:60_100] = 0.0
    return np.arange(nodes), inputs, output, [LONG.format(number) for number in range(nodes)]


def test_error_order_of_a_hundred_thousand_nodes_is_small_and_keeps_every_spike() -> None:
    order, inputs, output, names = big_run()
    data = error_order_data(order, inputs, output, names, selected=77_777, origins=[40_000], backward=50_000)
    assert len(data.inputs.order) + len(data.outputs.order) <= 2000
    assert {40_000, 50_001} <= set(data.outputs.order.tolist())
    assert len(strict(error_order_figure(data))) < LIMIT
    text = english(error_order_phrases(data))
    assert names[40_000] in text
    assert "place 50000" in text
    assert "worst of 100 nodes" in text
    assert names[77_777] in text


def test_error_order_marks_selected_node_and_boundary_at_their_places() -> None:
    data = error_order_data([5, 3, 4], [0.1, np.nan, 0.2], [2.0, 0.0, np.inf], ["c", "a", "b"], selected=0, backward=4)
    figure = error_order_figure(data)
    assert [shape["x0"] for shape in figure["layout"]["shapes"] if shape["xref"] == "x"] == [5, 4]
    assert data.outputs.order.tolist() == [3, 4, 5]
    assert data.outputs.names == ("a", "b", "c")
    assert data.inputs.order.tolist() == [4, 5]
    assert (
        dict(zip(figure["layout"]["yaxis"]["ticktext"], figure["layout"]["yaxis"]["tickvals"], strict=True))["inf"]
        in (figure["data"][1]["y"])
    )


def test_zeros_and_infinities_get_lanes_of_their_own_outside_the_ordinary_range() -> None:
    values = np.asarray([0.0, 1e-6, 3.0, np.inf, np.nan])
    scale = lanes(values)
    placed = scale.place(values)
    assert placed[0] < placed[1] < placed[2] < placed[3]
    assert np.isnan(placed[4])
    labels = [label for _, label in scale.ticks()]
    assert labels[0] == "0"
    assert labels[-1] == "inf"


@given(values=hnp.arrays(np.float64, st.integers(0, 40), elements=st.floats(0) | st.just(float("nan"))))
@settings(max_examples=60, deadline=None)
def test_no_error_can_break_the_axis_or_the_drawing(values: np.ndarray) -> None:
    names = [f"n{number}" for number in range(len(values))]
    order = error_order_data(np.arange(len(values)), values, values, names)
    calls = api_distribution_data("Torch.x", np.arange(len(values)), values, names, current=0 if len(values) else None)
    for figure in (error_order_figure(order), api_distribution_figure(calls)):
        strict(figure)
        assert all(value > 0 for trace in figure["data"] if "y" in trace for value in trace["y"])
    assert "nan" not in error_order_svg(order).split("<title>")[0]
    api_distribution_svg(calls)
    english(api_distribution_phrases(calls))
    english(error_order_phrases(order))


def test_api_distribution_of_a_hundred_thousand_calls_is_small_and_keeps_the_worst() -> None:
    order, _, output, names = big_run()
    data = api_distribution_data("Functional.softmax", order, output, names, current=12_345)
    assert {40_000, 50_001} <= set(data.order.tolist())
    figure = api_distribution_figure(data)
    assert len(strict(figure)) < LIMIT
    assert figure["data"][-1]["x"] == [12_345]
    assert data.above == 2
    assert names[12_345] in english(api_distribution_phrases(data))


def test_quartiles_are_values_that_occurred_and_the_median_is_right() -> None:
    data = api_distribution_data("a", range(5), [1.0, 2.0, 3.0, 4.0, np.inf], list("abcde"))
    assert data.quartiles is not None
    assert data.quartiles[1:4] == (2.0, 3.0, 4.0)
    assert data.compared == 5


def test_an_api_without_compared_calls_says_so() -> None:
    data = api_distribution_data("a", [0], [np.nan], ["a.0"], current=0)
    assert "None of the 1 calls" in english(api_distribution_phrases(data))
    strict(api_distribution_figure(data))


def test_pair_histogram_counts_every_element_once_and_non_finite_apart() -> None:
    random = np.random.default_rng(2)
    golden = random.normal(size=3 * BLOCK + 17).astype(np.float32)
    target = golden.copy()
    target[5] += 1.0
    target[7], target[9], golden[11] = np.nan, np.inf, -np.inf
    data = pair_histogram_data(target, golden)
    assert data.target.counts.sum() + data.target.nonfinite == target.size
    assert data.golden.counts.sum() + data.golden.nonfinite == target.size
    assert (data.target.nan, data.target.positive_infinite, data.golden.negative_infinite) == (1, 1, 1)
    assert data.skipped == 3
    assert data.equal == target.size - 4
    assert np.array_equal(data.target.edges, data.golden.edges)
    finite = golden[np.isfinite(golden)]
    wanted, _ = np.histogram(finite, bins=data.golden.edges)
    assert np.abs(data.golden.counts - wanted).max() <= 1  # an element on an edge may fall either way
    assert "1 nan" in english(pair_histogram_phrases(data))
    assert len(strict(pair_histogram_figure(data))) < LIMIT


def test_shares_rise_from_nothing_to_all_at_values_of_the_tensor() -> None:
    random = np.random.default_rng(3)
    golden = random.normal(size=5000).astype(np.float32)
    target = golden * np.float32(1.1)
    figure = pair_histogram_figure(pair_histogram_data(target, golden), ecdf=True)
    for trace, side in zip(figure["data"], (target, golden), strict=False):
        x, y = np.array(trace["x"]), np.array(trace["y"])
        assert (y[0], y[-1]) == (0.0, 1.0)
        assert (np.diff(y) > 0).all()
        wanted = [np.count_nonzero(side <= value + 1e-5) / side.size for value in x]
        assert np.abs(y - wanted).max() < 2e-3
    assert figure["layout"]["yaxis"]["title"]["text"] == "share up to the value"


def test_difference_histogram_puts_equality_in_its_middle_bin() -> None:
    golden = np.arange(100.0)
    target = golden.copy()
    target[3] += 1e-9
    data = pair_histogram_data(target, golden)
    middle = len(data.difference.counts) // 2
    assert data.difference.counts[middle] == 99
    assert data.difference.counts[-1] == 1


@pytest.mark.parametrize(
    "dtype",
    [np.bool_, np.int64, np.uint8, np.float16, np.float64, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn],
)
def test_pair_histogram_takes_every_dtype(dtype: type) -> None:
    golden = np.asarray([0, 1, 1, 0, 1]).astype(dtype)
    data = pair_histogram_data(golden, golden[::-1])
    assert data.target.counts.sum() == 5
    strict(pair_histogram_figure(data))


@given(
    pair=st.integers(0, 30).flatmap(lambda size: st.tuples(hnp.arrays(np.float64, size), hnp.arrays(np.float64, size))),
    log=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_pair_histogram_survives_any_numbers(pair: tuple[np.ndarray, np.ndarray], log: bool) -> None:
    data = pair_histogram_data(*pair, log=log)
    assert data.target.counts.sum() + data.target.nonfinite == pair[0].size
    assert data.golden.counts.sum() + data.golden.nonfinite == pair[1].size
    strict(pair_histogram_figure(data))
    english(pair_histogram_phrases(data))


def test_pair_histogram_refuses_different_sizes() -> None:
    with pytest.raises(UsageError, match=r"\[2\] and \[3\]"):
        pair_histogram_data(np.zeros(2), np.zeros(3))


def test_error_histogram_labels_follow_the_stored_bins() -> None:
    labels = error_labels()
    assert len(labels) == len(ERROR_BINS) + 2
    assert (labels[0], labels[1], labels[2], labels[-1]) == ("0", "<1e-16", "1e-16", "≥1e4")
    counts = [0] * len(labels)
    counts[0], counts[10] = 7, 3
    data = error_histogram_data(counts, counts)
    assert data.labels[10] == "1e-8"
    assert error_histogram_figure(data)["data"][0]["y"][10] == 3
    assert "7 of 10 elements are equal" in english(error_histogram_phrases(data))
    with pytest.raises(UsageError):
        error_histogram_data([1], [1])


def test_markup_in_names_reaches_neither_figure_nor_drawing() -> None:
    name = "Module.<img src=x onerror=alert(1)>.forward.0"
    data = error_order_data([0], [0.1], [5.0], [name], selected=0, origins=[0])
    assert "<img" not in json.dumps(error_order_figure(data))
    assert "<img" not in error_order_svg(data)
    calls = api_distribution_data("<img src=x>", [0], [5.0], [name], current=0)
    assert "<img" not in json.dumps(api_distribution_figure(calls))
    assert "<img" not in api_distribution_svg(calls)


def test_long_names_keep_both_ends() -> None:
    name = LONG.format(3)
    cut = shorten(name, 40)
    assert len(cut) == 40
    assert cut.startswith("Module.module")
    assert cut.endswith("forward.0")


def test_the_zero_tick_stands_where_zeros_are_drawn() -> None:
    values = np.asarray([0.0, 1e-3, 10.0, np.inf])
    scale = lanes(values)
    ticks = {label: float(scale.height(np.asarray([place]))[0]) for place, label in scale.ticks()}
    drawn = scale.fraction(values)
    assert ticks["0"] == pytest.approx(drawn[0])
    assert ticks["1e-3"] == pytest.approx(drawn[1])
    assert ticks["inf"] == pytest.approx(drawn[3])
    assert len(set(ticks.values())) == len(ticks)
