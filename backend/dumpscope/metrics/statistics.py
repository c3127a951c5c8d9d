"""Compares recorded statistics (Max, Min, Mean, Norm) of many items at once."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dumpscope.domain.records import Float64, State, UInt8

_VALUES = np.array([np.nan, 0.0, np.nan, np.inf, -np.inf])
"""The number that each State stands for; FINITE uses the stored number."""


def compare_statistics(
    target_stats: Float64,
    target_state: UInt8,
    golden_stats: Float64,
    golden_state: UInt8,
    *,
    wide: Mapping[tuple[int, int], tuple[int, int]] | None = None,
) -> tuple[Float64, UInt8, Float64, UInt8]:
    """`(diff, diff_state, rel, rel_state)`, each of the given shape (n, 4).

    diff = target - golden; rel = abs(diff / golden), a plain ratio. nan on both sides and the same infinity on both sides are
    agreement (0, 0); nan on one side gives NAN; different infinities, or infinity against a number, give an infinite diff
    with its sign and an infinite rel. A golden 0 gives rel 0 where diff is 0, else infinity. ABSENT on a side gives ABSENT.
    If a state is not FINITE, its value is that nan or infinity (nan for ABSENT).

    wide: (row, column) -> exact target and golden, for integers that float64 cannot hold
    """
    target = np.where(target_state == State.FINITE, target_stats, _VALUES[target_state])
    golden = np.where(golden_state == State.FINITE, golden_stats, _VALUES[golden_state])
    with np.errstate(all="ignore"):
        diff = target - golden
        rel = np.abs(diff / golden)
        # abs(t - g) may overflow although the ratio does not
        overflown = np.isinf(diff) & np.isfinite(target) & np.isfinite(golden)
        if overflown.any():
            small, large = target[overflown] * 0.5, golden[overflown] * 0.5
            rel[overflown] = np.abs((small - large) / large)
    same = ((target_state == golden_state) & (target_state != State.FINITE)) | (diff == 0)
    diff[same] = 0.0
    rel[same] = 0.0
    rel[(golden == 0) & ~same & ~np.isnan(diff)] = np.inf
    rel[np.isinf(target) & ~same & ~np.isnan(diff)] = np.inf
    rel[np.isinf(golden) & ~same & ~np.isnan(diff)] = np.inf
    for place, (one, other) in (wide or {}).items():
        diff[place], rel[place] = exact_integer_diff(one, other)
    absent = (target_state == State.ABSENT) | (golden_state == State.ABSENT)
    diff[absent] = np.nan
    rel[absent] = np.nan
    return diff, _states(diff, absent), rel, _states(rel, absent)


def exact_integer_diff(target: int, golden: int) -> tuple[float, float]:
    """`(target - golden, abs(diff / golden))` of integers of any size, each rounded once; (inf, ...) beyond float64."""
    diff = target - golden
    if diff == 0:
        return 0.0, 0.0
    return _divide(diff, 1), abs(_divide(diff, golden)) if golden else math.inf


def _divide(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator < 0) == (denominator < 0) else -math.inf


def _states(values: Float64, absent: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> UInt8:
    state: UInt8 = np.full(values.shape, State.FINITE, dtype=np.uint8)
    finite = np.isfinite(values)
    if finite.all():
        return state
    state[np.isnan(values)] = State.NAN
    state[values == np.inf] = State.POS_INF
    state[values == -np.inf] = State.NEG_INF
    state[absent] = State.ABSENT
    return state
