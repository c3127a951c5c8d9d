"""Sizes of outputs in call order and by API."""

from __future__ import annotations

import numpy as np

from dumpscope.plots.run.values import (
    api_values_data,
    api_values_figure,
    api_values_phrases,
    value_order_data,
    value_order_figure,
    value_order_phrases,
    value_order_table,
)
from dumpscope.texts import english

NAMES = ["a.0.forward", "b.0.forward", "a.1.forward", "b.0.backward"]
VALUES = np.array([1.0, 20.0, np.nan, 3.0])
LOST = np.array([False, False, True, False])
BACKWARD = np.array([False, False, False, True])


def test_every_call_has_a_point_and_nan_a_lane_of_its_own() -> None:
    data = value_order_data(NAMES, VALUES, LOST, BACKWARD, measure="norm", selected=2, first=2)
    drawn = {trace["name"]: trace for trace in value_order_figure(data)["data"]}
    assert drawn["forward"]["x"] == [0, 1, 2]
    assert drawn["forward"]["y"] == [1, 20, None]
    assert drawn["backward"]["customdata"] == [3]
    assert (drawn["NaN/Inf"]["x"], drawn["first not asked for"]["x"]) == ([2], [2])
    assert "NaN/Inf" in value_order_figure(data)["layout"]["yaxis"]["ticktext"]
    assert english(value_order_phrases(data)) == (
        "Norm of the first output of 4 calls, in call order. Largest finite value 20 at b.0.forward, place 1."
        " Calls with NaN or infinity in an output: 1, the first is a.1.forward at place 2."
        " The backward pass starts at place 3. Selected: a.1.forward, NaN or infinity."
    )
    assert [row[1] for row in value_order_table(data).rows] == [0, 1, 2, 3]


def test_of_many_calls_the_largest_of_each_stretch_and_every_stretch_with_nan_is_drawn() -> None:
    count = 10_000
    names = [f"call.{number}" for number in range(count)]
    values = np.ones(count)
    values[5000] = 7
    lost = np.zeros(count, dtype=np.bool_)
    lost[[123, 9999]] = True
    data = value_order_data(names, values, lost, np.zeros(count, dtype=np.bool_), measure="max", points=200)
    assert len(data.forward.order) == 100
    assert {123, 5000, 9999} <= set(data.forward.order.tolist())
    assert "Each point is the largest of 100 calls." in english(value_order_phrases(data))


def test_apis_are_boxes_with_those_that_hold_nan_named() -> None:
    api = np.array([0, 1, 0, 2])
    data = api_values_data(["a", "b", "b backward"], api, NAMES, VALUES, LOST, measure="norm", current=1)
    assert data.lost == ("a",)
    assert [one.api for one in data.all.shown] == ["a", "b", "b backward"]
    assert english(api_values_phrases(data)) == (
        "Norm of the first output of all calls of 3 APIs, the largest first."
        " APIs with NaN or infinity in an output: 1, among them a. Largest of the others: b with 20 at b.0.forward."
        " This call is of b, number 2 by largest value."
    )
    largest = next(trace for trace in api_values_figure(data)["data"] if trace["name"] == "largest call")
    assert largest["customdata"] == [2, 1, 3]
