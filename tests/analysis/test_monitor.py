"""Anomalies, departures and stray ranks of monitored runs, on series with known faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.analysis.monitor.anomalies import find_anomalies
from dumpscope.analysis.monitor.divergence import compare_runs
from dumpscope.analysis.monitor.heat import map_pair, map_run, thin_curve
from dumpscope.analysis.monitor.ranks import find_stray_ranks
from dumpscope.domain.monitor.findings import Anomaly
from dumpscope.domain.monitor.tables import Float64, MetricTable

STEPS = 400
NAMES = tuple(f"layers.{number}.weight" for number in range(12))
seeds = st.integers(0, 2**32 - 1)


def norms(seed: int, *, noise: float = 0.15, steps: int = STEPS, fall: float = 2.0) -> Float64:
    """Norms as those of gradients: levels of their own, falling together, with noise."""
    draw = np.random.default_rng(seed)
    level = draw.uniform(-4, 4, len(NAMES))
    trend = -fall * np.log2(1 + np.arange(steps) / 30) / 4
    return np.asarray(2.0 ** (level + trend[:, None] + noise * draw.standard_normal((steps, len(NAMES)))))


def table(values: Float64, metric: str = "grad_reduced", names: Sequence[str] = NAMES, start: int = 0) -> MetricTable:
    return MetricTable(
        metric=metric,
        names=tuple(names),
        statistics=("norm",),
        steps=np.arange(start, start + len(values)),
        values=values[:, :, None].astype(np.float32),
        present=np.ones(values.shape, dtype=np.bool_),
    )


def only(values: Float64) -> Anomaly:
    (found,) = find_anomalies(table(values))
    return found


# -- anomalies ---------------------------------------------------------------------------------------------------------


@given(seed=seeds, noise=st.floats(0.0, 0.4), steps=st.integers(1, 500))
@settings(max_examples=40, deadline=None)
def test_a_healthy_run_has_no_anomaly(seed: int, noise: float, steps: int) -> None:
    assert find_anomalies(table(norms(seed, noise=noise, steps=steps))) == []


@given(seed=seeds, step=st.integers(20, STEPS - 1), place=st.integers(0, 11), factor=st.floats(16, 1e6))
@settings(max_examples=30, deadline=None)
def test_a_spike_is_found_with_its_step_and_series(seed: int, step: int, place: int, factor: float) -> None:
    values = norms(seed)
    values[step, place] *= factor
    found = only(values)
    assert (found.kind, found.name, found.step, found.last_step) == ("spike", NAMES[place], step, step)
    assert found.factor == pytest.approx(factor, rel=0.9)


@given(seed=seeds, step=st.integers(32, STEPS - 32), place=st.integers(0, 11))
@settings(max_examples=20, deadline=None)
def test_a_series_that_stays_zero_is_dead(seed: int, step: int, place: int) -> None:
    values = norms(seed)
    values[step:, place] = 0
    found = only(values)
    assert (found.kind, found.name, found.step, found.last_step) == ("dead", NAMES[place], step, STEPS - 1)


@given(seed=seeds, step=st.integers(1, STEPS - 1), place=st.integers(0, 11), value=st.sampled_from([np.nan, np.inf]))
@settings(max_examples=20, deadline=None)
def test_the_first_number_that_is_not_finite_is_told(seed: int, step: int, place: int, value: float) -> None:
    values = norms(seed)
    values[step:, place] = value
    found = only(values)
    assert (found.kind, found.name, found.step) == ("not_finite", NAMES[place], step)


def test_a_run_that_explodes_is_one_anomaly_of_all_series() -> None:
    values = norms(1)
    values[300:] *= 1.1 ** np.arange(STEPS - 300)[:, None]
    found = only(values)
    assert (found.kind, found.name, found.series) == ("exploding", "", len(NAMES))
    assert 300 <= found.step < 375


def test_a_series_that_leaves_the_others_drifts() -> None:
    values = norms(2)
    values[:, 5] *= np.where(np.arange(STEPS) > 150, 2.0 ** ((np.arange(STEPS) - 150) / 50), 1)
    found = find_anomalies(table(values))
    assert [(one.kind, one.name) for one in found if one.kind == "drift"] == [("drift", NAMES[5])]
    assert 150 < found[-1].step < 320


def test_a_spike_of_all_series_is_one_anomaly() -> None:
    values = norms(3)
    values[200] *= 50
    found = only(values)
    assert (found.kind, found.name, found.step, found.series) == ("spike", "", 200, len(NAMES))


# -- two runs ----------------------------------------------------------------------------------------------------------


@given(seed=seeds, step=st.integers(0, STEPS - 1), place=st.integers(0, 11))
@settings(max_examples=30, deadline=None)
def test_equal_runs_with_one_gradient_changed_part_there(seed: int, step: int, place: int) -> None:
    values = norms(seed)
    other = values.copy()
    other[step, place] *= 1.05
    other[step + 1 :] *= np.random.default_rng(seed).uniform(1.001, 1.01, other[step + 1 :].shape)
    found = compare_runs({"grad_reduced": table(other)}, {"grad_reduced": table(values)})
    assert found is not None
    assert found.first is not None
    assert (found.step, found.first.name, found.others) == (step, NAMES[place], 0)
    assert found.quiet == (step > 0)
    assert found.module == NAMES[place].removesuffix(".weight")
    assert found.first.distance == pytest.approx(0.05 / 1.05, rel=1e-3)


@given(seed=seeds, step=st.integers(10, STEPS - 1), place=st.integers(0, 11))
@settings(max_examples=30, deadline=None)
def test_in_a_noisy_pair_one_series_that_jumps_is_found(seed: int, step: int, place: int) -> None:
    values = norms(seed)
    other = values * (1 + 1e-4 * np.random.default_rng(seed + 1).uniform(-1, 1, values.shape))
    clean = compare_runs({"grad_reduced": table(other)}, {"grad_reduced": table(values)})
    assert clean is not None
    assert clean.step is None
    other[step:, place] *= 1.05
    found = compare_runs({"grad_reduced": table(other)}, {"grad_reduced": table(values)})
    assert found is not None
    assert found.first is not None
    assert (found.step, found.first.name, found.quiet) == (step, NAMES[place], False)


def test_within_a_step_the_earliest_stage_is_named() -> None:
    values = norms(4)
    other = values.copy()
    other[50:] *= 1.5
    wrapped = [f"module.{name}" for name in NAMES]
    target = {metric: table(other, metric, wrapped) for metric in ("grad_reduced", "actv", "grad_unreduced")}
    golden = {metric: table(values, metric) for metric in ("grad_reduced", "actv", "grad_unreduced")}
    found = compare_runs(target, golden)
    assert found is not None
    assert found.first is not None
    assert (found.step, found.first.metric, found.others, found.only_target) == (50, "actv", 11, 0)


def test_only_common_steps_are_compared_and_none_is_no_comparison() -> None:
    values = norms(5)
    early, late = table(values[:100]), table(values[80:], start=80)
    found = compare_runs({"grad_reduced": early}, {"grad_reduced": late})
    assert found is not None
    assert (found.first_step, found.last_step, found.steps, found.step) == (80, 99, 20, None)
    assert found.quiet
    assert compare_runs({"grad_reduced": early}, {"grad_reduced": table(values[100:], start=100)}) is None
    assert compare_runs({"grad_reduced": early}, {"exp_avg": early}) is None


def test_runs_of_other_data_are_apart_from_the_first_step() -> None:
    found = compare_runs({"grad_reduced": table(norms(6))}, {"grad_reduced": table(norms(7))})
    assert found is not None
    assert (found.step, found.apart_from) == (0, 0)


def test_a_value_that_was_not_measured_is_no_difference() -> None:
    values = norms(8)
    holes = table(values)
    holes.present[::3, 4] = False
    holes.values[::3, 4] = np.nan
    found = compare_runs({"grad_reduced": holes}, {"grad_reduced": table(values)})
    assert found is not None
    assert found.step is None


# -- ranks -------------------------------------------------------------------------------------------------------------


def test_the_rank_whose_reduced_gradient_differs_strays() -> None:
    values = norms(9)
    ranks = {rank: table(values) for rank in range(4)}
    odd = values.copy()
    odd[120:, 3] *= 1.01
    ranks[2] = table(odd)
    (found,) = find_stray_ranks(ranks)
    assert (found.rank, found.step, found.name, found.series) == (2, 120, NAMES[3], 1)
    assert find_stray_ranks({rank: ranks[rank] for rank in (0, 2)}) == []


def test_a_rank_without_a_number_does_not_stray_and_one_with_nan_does() -> None:
    values = norms(9)
    lost = values.copy()
    lost[50:, 4] = math.nan
    whole, odd = table(values), table(lost)
    present = odd.present.copy()
    present[50:, 4] = False  # an expert that got no token
    assert find_stray_ranks({0: whole, 1: whole, 2: replace(odd, present=present), 3: whole}) == []
    (found,) = find_stray_ranks({0: whole, 1: whole, 2: odd, 3: whole})
    assert (found.rank, found.step, found.name) == (2, 50, NAMES[4])


def test_ranks_that_differ_alike_do_not_stray() -> None:
    ranks = {rank: replace(table(norms(10) * (1 + 0.2 * rank)), metric="grad_unreduced") for rank in range(6)}
    assert find_stray_ranks(ranks) == []


@given(
    numbers=st.lists(st.floats(width=32) | st.just(math.nan), min_size=1, max_size=300),
    points=st.integers(10, 60),
)
def test_a_thinned_curve_keeps_its_ends_its_extremes_and_that_it_was_not_finite(
    numbers: list[float], points: int
) -> None:
    values = np.array(numbers, dtype=np.float32)
    kept = thin_curve(values, points)
    assert (kept[0], kept[-1], (np.diff(kept) > 0).all()) == (0, len(values) - 1, True)
    assert len(kept) <= max(points, 2 + 3 * (points // 2))
    finite = values[np.isfinite(values)]
    if len(finite):
        assert {finite.min(), finite.max()} <= set(values[kept].tolist())
    assert np.isfinite(values).all() == np.isfinite(values[kept]).all()


def test_a_map_shows_the_most_unusual_number_of_each_bin() -> None:
    values = np.ones((40, 3), dtype=np.float32)
    values[7, 0], values[11, 0], values[25, 1], values[31, 2] = 20.0, 0.5, 0.125, np.inf
    present = np.ones((40, 3), dtype=np.bool_)
    present[:8, 1] = False
    table = MetricTable(
        metric="grad_reduced", names=("a", "b", "c"), statistics=("norm",), steps=np.arange(100, 140),
        values=values[:, :, None], present=present,
    )  # fmt: skip
    found = map_run(table, "norm", 5)
    assert found.bins == ((100, 107), (108, 115), (116, 123), (124, 131), (132, 139))
    assert found.scores[0].tolist() == [20, 2, 1, 1, 1]
    assert found.values[0].tolist() == [20, 0.5, 1, 1, 1]
    assert np.isnan(found.scores[1, 0])
    assert (found.scores[1, 3], found.values[1, 3]) == (8, 0.125)
    assert (found.scores[2, 3], found.values[2, 3], found.worst.tolist()) == (np.inf, np.inf, [20, 8, np.inf])
    levels = [math.log(factor / 1.5) / math.log(100 / 1.5) for factor in (20, 2)]
    assert found.heat[0].tolist() == pytest.approx([*levels, 0, 0, 0])
    cut = map_run(table, "norm", 5, (125, 125))
    assert (cut.bins, cut.values[1].tolist(), found.usual.tolist()) == (((125, 125),), [0.125], [1, 1, 1])


def test_a_map_of_two_runs_is_over_the_steps_and_series_that_both_have() -> None:
    def run(names: tuple[str, ...], first: int, factor: float) -> MetricTable:
        values = np.ones((20, len(names), 1), dtype=np.float32)
        values[12 - first :, 0] *= factor
        steps = np.arange(first, first + 20)
        present = np.ones((20, len(names)), dtype=np.bool_)
        return MetricTable(metric="m", names=names, statistics=("norm",), steps=steps, values=values, present=present)

    found = map_pair(run(("module.a", "b", "c"), 0, 1.25), run(("a", "x", "b"), 4, 1.0), "norm", 16, floor=0.01)
    assert (found.names, found.bins[0], found.bins[-1]) == (("module.a", "b"), (4, 4), (19, 19))
    assert found.values[0, :8].tolist() == [0] * 8
    assert found.values[0, 8:] == pytest.approx(0.2)
    assert found.scores[0, 8] == pytest.approx(20)
    assert found.worst.tolist() == pytest.approx([20, 1])
    assert map_pair(run(("a",), 0, 1.0), run(("b",), 0, 1.0), "norm", 16).bins == ()
