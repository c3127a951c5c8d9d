"""Buckets of steps and growth rates."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from dumpscope.analysis.trends import fit_growth, make_buckets


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=200), st.integers(1, 100))
def test_every_step_lies_in_exactly_one_bucket_and_there_are_not_too_many(steps: set[int], most: int) -> None:
    edges = make_buckets(sorted(steps), most)
    assert len(edges) <= most
    assert all(sum(edge.first <= step <= edge.last for edge in edges) == 1 for step in steps)


@given(st.floats(0.5, 2.0), st.floats(1e-6, 1e3), st.integers(3, 40))
def test_the_growth_of_a_geometric_row_is_its_factor(factor: float, start: float, count: int) -> None:
    found = fit_growth(range(count), [start * factor**step for step in range(count)])
    assert found == pytest.approx(factor, rel=1e-6)


def test_values_that_are_not_finite_or_zero_tell_no_growth() -> None:
    assert fit_growth([0, 1, 2, 3], [0.0, math.inf, math.nan, 1.0]) is None
    assert fit_growth([0, 1, 2, 3], [1.0, math.inf, 4.0, 8.0]) == pytest.approx(2.0)
