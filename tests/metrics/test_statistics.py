from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.records import State
from dumpscope.metrics import compare_statistics, exact_integer_diff

NUMBER = st.one_of(
    st.floats(),
    st.floats(min_value=-10, max_value=10),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324]),
    st.none(),
)


def state_of(number: float | None) -> State:
    if number is None:
        return State.ABSENT
    if math.isnan(number):
        return State.NAN
    if math.isinf(number):
        return State.POS_INF if number > 0 else State.NEG_INF
    return State.FINITE


def columns(numbers: list[float | None]) -> tuple[np.ndarray, np.ndarray]:
    """Values and states, with garbage in the value where the state is not FINITE."""
    stats = np.array([n if state_of(n) is State.FINITE else 123.0 for n in numbers]).reshape(-1, 4)
    return stats, np.array([state_of(n) for n in numbers], dtype=np.uint8).reshape(-1, 4)


def expected(target: float | None, golden: float | None) -> tuple[float | None, float | None]:
    if target is None or golden is None:
        return None, None
    if target == golden or (math.isnan(target) and math.isnan(golden)):
        return 0.0, 0.0
    if math.isnan(target) or math.isnan(golden):
        return math.nan, math.nan
    if math.isinf(target) or math.isinf(golden):
        return target - golden, math.inf
    if golden == 0:
        return target - golden, math.inf
    ratio = abs((Fraction(target) - Fraction(golden)) / Fraction(golden))
    try:
        return target - golden, float(ratio)
    except OverflowError:
        return target - golden, math.inf


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=4, max_size=4))
def test_each_difference_follows_the_rules(pairs: list[tuple[float | None, float | None]]) -> None:
    results = compare_statistics(*columns([t for t, _ in pairs]), *columns([g for _, g in pairs]))
    diff, diff_state, rel, rel_state = (column.reshape(-1) for column in results)
    for place, (target, golden) in enumerate(pairs):
        want_diff, want_rel = expected(target, golden)
        assert diff_state[place] == state_of(want_diff)
        assert rel_state[place] == state_of(want_rel)
        if diff_state[place] == State.FINITE:
            assert diff[place] == want_diff
        if rel_state[place] == State.FINITE:
            assert rel[place] == pytest.approx(want_rel, rel=1e-12, abs=1e-300)


def test_values_beside_a_state_say_the_same_as_the_state() -> None:
    target, golden = columns([math.inf, math.nan, None, 1.0]), columns([1.0, 1.0, 1.0, math.inf])
    diff, state, rel, _ = compare_statistics(*target, *golden)
    assert diff[0, 0] == math.inf
    assert np.isnan(diff[0, 1:3]).all()
    assert diff[0, 3] == -math.inf
    assert rel[0, 3] == math.inf
    assert state[0].tolist() == [State.POS_INF, State.NAN, State.ABSENT, State.NEG_INF]


def test_integers_too_wide_for_float64_are_subtracted_exactly() -> None:
    stats, state = columns([2.0**63, 0.0, 1.0, 1.0])
    wide = {(0, 0): (2**63 - 1, 2**63 - 2)}
    diff, diff_state, rel, _ = compare_statistics(stats, state, stats, state, wide=wide)
    assert diff[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert diff_state[0].tolist() == [State.FINITE] * 4
    assert rel[0, 0] == 1 / (2**63 - 2)


@given(st.integers(), st.integers())
def test_an_exact_integer_difference_is_rounded_once(target: int, golden: int) -> None:
    diff, rel = exact_integer_diff(target, golden)
    assert diff == float(target - golden)
    if golden:
        assert rel == float(abs(Fraction(target - golden, golden)))
    else:
        assert rel == (math.inf if target else 0.0)


def test_integers_beyond_float64_give_infinity_with_a_sign() -> None:
    assert exact_integer_diff(10**400, 1) == (math.inf, math.inf)
    assert exact_integer_diff(-(10**400), 10**400) == (-math.inf, 2.0)


def test_no_rows_give_no_rows() -> None:
    empty, state = np.zeros((0, 4)), np.zeros((0, 4), dtype=np.uint8)
    assert [column.shape for column in compare_statistics(empty, state, empty, state)] == [(0, 4)] * 4


def test_four_hundred_thousand_rows_take_a_fraction_of_a_second() -> None:
    stats = np.random.default_rng(0).standard_normal((400_000, 4))
    state = np.full(stats.shape, State.FINITE, dtype=np.uint8)
    state[::100, 3] = State.ABSENT
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        compare_statistics(stats, state, stats + 1, state)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
