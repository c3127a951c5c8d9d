"""Pictures of many calls: all APIs side by side, one call over steps and ranks, linear axes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from dumpscope.plots.error_axis import lanes
from dumpscope.plots.run.apis import SHOWN, all_apis_data, all_apis_figure, all_apis_phrases, all_apis_table
from dumpscope.plots.run.distribution import api_distribution_data, api_distribution_figure
from dumpscope.plots.run.order import error_order_data, error_order_figure
from dumpscope.plots.run.steps_and_ranks import (
    call_over_runs_data,
    call_over_runs_figure,
    call_over_runs_phrases,
    call_over_runs_table,
)
from dumpscope.texts import english

ERRORS = hnp.arrays(np.float64, st.integers(0, 40), elements=st.floats(0) | st.just(float("nan")))


def strict(figure: object) -> str:
    return json.dumps(figure, allow_nan=False, separators=(",", ":"))


@given(values=ERRORS)
@settings(max_examples=80, deadline=None)
def test_a_linear_axis_holds_every_error_with_infinity_above(values: np.ndarray) -> None:
    scale = lanes(values, log=False)
    low, high = scale.range
    placed = scale.place(values)
    known = ~np.isnan(values)
    assert (np.isnan(placed) == ~known).all()
    assert ((placed[known] >= low) & (placed[known] <= high)).all()
    assert len(scale.ticks()) <= 12
    strict(scale.axis())


def test_linear_figures_place_errors_as_they_are() -> None:
    for figure in (
        api_distribution_figure(api_distribution_data("a", [0, 1], [0.5, 8.0], ["a", "b"], log=False)),
        error_order_figure(error_order_data([0, 1], [0.0, 0.0], [0.5, 8.0], ["a", "b"], log=False)),
    ):
        assert figure["layout"]["yaxis"]["type"] == "linear"
        points = next(trace for trace in figure["data"] if trace["name"] in ("calls", "output error"))
        assert points["y"] == [0.5, 8.0]


def test_apis_stand_side_by_side_worst_first_with_the_current_one_marked() -> None:
    api = np.array([0, 1, 0, 1, 2, -1])
    error = np.array([1.0, 5.0, 3.0, np.inf, np.nan, 99.0])
    names = [f"n{number}" for number in range(6)]
    data = all_apis_data(["relu", "softmax", "rand"], api, error, names, current=0)
    assert [(one.api, one.largest, one.worst) for one in data.shown] == [("softmax", np.inf, 3), ("relu", 3.0, 2)]
    assert (data.unseen, data.above, data.rank) == (1, 2, 2)
    figure = all_apis_figure(data)
    assert figure["layout"]["yaxis"]["ticktext"] == ["softmax", "relu"]
    assert figure["data"][-1]["y"] == [1]
    assert figure["layout"]["meta"]["inView"] == 1
    strict(figure)
    text = english(all_apis_phrases(data))
    assert "Worst: softmax with inf at n3." in text
    assert "number 2 by largest error" in text
    assert [row[0] for row in all_apis_table(data).rows] == ["softmax", "relu"]


def test_of_very_many_apis_the_worst_and_the_current_are_drawn() -> None:
    count = 500
    error = np.linspace(1, 2, count)
    data = all_apis_data([f"api{one}" for one in range(count)], np.arange(count), error, ["n"] * count, current=3)
    assert len(data.shown) == SHOWN + 1
    assert data.shown[0].api == "api499"
    assert data.shown[-1].api == "api3"
    assert data.rank == count - 3
    assert f"{count - SHOWN - 1} with smaller errors are not drawn" in english(all_apis_phrases(data))
    assert len(strict(all_apis_figure(data))) < 190_000


@given(error=ERRORS, data=st.data())
@settings(max_examples=80, deadline=None)
def test_no_errors_break_the_picture_of_all_apis(error: np.ndarray, data: st.DataObject) -> None:
    api = data.draw(hnp.arrays(np.int64, len(error), elements=st.integers(-1, 3)))
    current = data.draw(st.none() | st.integers(0, len(error) - 1)) if len(error) else None
    for log in (True, False):
        found = all_apis_data(list("abcd"), api, error, ["n"] * len(error), current=current, log=log)
        strict(all_apis_figure(found))
        assert english(all_apis_phrases(found))
        compared = {one for one, value in zip(api.tolist(), error.tolist(), strict=True) if value >= 0 and one >= 0}
        assert len(found.shown) == len(compared)


def test_a_call_over_steps_has_a_line_per_rank_and_says_where_it_went_wrong() -> None:
    steps, ranks = np.repeat(np.arange(10), 2), np.tile([0, 1], 10)
    error = np.where((ranks == 1) & (steps >= 6), 50.0, 0.1)
    data = call_over_runs_data("f", steps[::-1], ranks[::-1], error[::-1], current=(8, 0))
    figure = call_over_runs_figure(data)
    assert [trace["name"] for trace in figure["data"]] == ["rank 0", "rank 1", "this call"]
    assert figure["data"][1]["x"] == list(range(10))
    text = english(call_over_runs_phrases(data))
    assert "First above 1 in step 6 on rank 1." in text
    assert "f, steps: 10, ranks: 2." in text
    assert len(call_over_runs_table(data).rows) == 20


def test_with_one_step_ranks_go_across() -> None:
    data = call_over_runs_data("f", [4, 4, 4], [0, 1, 2], [0.1, np.nan, 9.0], current=(4, 2))
    figure = call_over_runs_figure(data)
    assert figure["layout"]["xaxis"]["title"]["text"] == "rank"
    assert figure["data"][0]["x"] == [0, 1, 2]
    strict({**figure, "data": figure["data"][1:]})


def test_many_steps_and_ranks_stay_small_and_keep_the_worst() -> None:
    steps, ranks = np.repeat(np.arange(5000), 64), np.tile(np.arange(64), 5000)
    error = np.full(len(steps), 0.5)
    error[(steps == 1234) & (ranks == 50)] = 77.0
    data = call_over_runs_data("f", steps, ranks, error, current=(17, 3))
    figure = call_over_runs_figure(data)
    assert {50, 3} <= set(data.drawn)
    assert len(strict(figure)) < 300_000
    worst = next(trace for trace in figure["data"] if trace["name"] == "rank 50")
    assert 1234 in worst["x"]
    assert "Largest error 77 in step 1234 on rank 50." in english(call_over_runs_phrases(data))


@pytest.mark.parametrize("values", [[np.nan], [0.0], [np.inf]])
def test_a_call_seen_once_is_drawn_or_said(values: list[float]) -> None:
    data = call_over_runs_data("f", [0], [0], values, current=(0, 0))
    assert english(call_over_runs_phrases(data))
    assert call_over_runs_figure(data)["data"]
