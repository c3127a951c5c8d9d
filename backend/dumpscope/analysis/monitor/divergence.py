"""Where one monitored run leaves another: the first step, and in it the first series.

The distance of two numbers is their difference over the larger of both. Runs that are bit-equal at first are quiet: any
difference beyond rounding counts. Otherwise the floor is the largest distance of any series in the steps before, times ten: noise
that grows slowly and everywhere is no departure, one series that jumps is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from dumpscope.domain.monitor.findings import Departure, Divergence
from dumpscope.domain.monitor.tables import Float32, Float64, Int64, MetricTable

ROUNDING: Final = 1e-6
"""Distance of two float32 numbers that says nothing."""
TIMES: Final = 10.0
WARM_UP: Final = 3
"""Steps of a noisy pair that show its noise before anything counts."""
FIRST: Final = 0.01
"""Distance in the very first step that is no noise."""
APART: Final = 0.5
"""Distance of the median series from which two runs have nothing in common."""
_STATISTICS: Final = ("norm", "ratio")
_STAGES: Final[Mapping[str, int]] = {
    "actv": 0, "loss": 1, "actv_grad": 2, "grad_unreduced": 3, "grad_unclipped": 4, "grad_reduced": 5,
    "exp_avg": -1, "exp_avg_sq": -1, "param_origin": -2, "update": 6, "param_updated": 7,
}  # fmt: skip
"""Order in which a step computes them; weights and moments are those that the step finds."""
_WORDS: Final = frozenset({"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


@dataclass(frozen=True, slots=True)
class _Stage:
    """One statistic of both runs over the common steps: shape (steps, series), NaN where one of them has no number."""

    metric: str
    statistic: str
    names: tuple[str, ...]
    target: Float64
    golden: Float64
    distance: Float64


def bare_name(name: str) -> str:
    """A name without the words of wrappers: data parallel, compile, checkpoint."""
    return ".".join(word for word in name.split(".") if word not in _WORDS) or name


def compare_runs(
    target: Mapping[str, MetricTable],
    golden: Mapping[str, MetricTable],
    scalars: tuple[Mapping[str, tuple[Int64, Float64]], Mapping[str, tuple[Int64, Float64]]] = ({}, {}),
) -> Divergence | None:
    """Compare two runs by their tables of each metric, and their losses. None where they have no step or series in common."""
    both = [metric for metric in target if metric in golden]
    losses = [side.get("loss") for side in scalars]
    sides = [
        [table.steps for metric in both for table in (side[metric],)] + ([loss[0]] if loss is not None else [])
        for side, loss in zip((target, golden), losses, strict=True)
    ]
    if not all(sides):
        return None
    steps = np.intersect1d(np.concatenate(sides[0]), np.concatenate(sides[1]))
    if not len(steps):
        return None
    stages: list[_Stage] = []
    only = [0, 0]
    for metric in both:
        pairs, lone = pair_names(target[metric].names, golden[metric].names)
        only = [only[0] + lone[0], only[1] + lone[1]]
        for statistic in _STATISTICS:
            stage = _stage(statistic, target[metric], golden[metric], pairs, steps)
            if stage is not None:
                stages.append(stage)
    if losses[0] is not None and losses[1] is not None:
        stages.append(_losses(losses[0], losses[1], steps))
    if not stages:
        return None
    stages.sort(key=lambda stage: _STAGES.get(stage.metric, 5))
    return _judge(stages, steps, only)


def _judge(stages: Sequence[_Stage], steps: Int64, only: Sequence[int]) -> Divergence:
    largest = np.stack([_largest(stage.distance) for stage in stages])
    worst = largest.max(axis=0)
    plain = Divergence(
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        steps=len(steps),
        series=sum(len(stage.names) for stage in stages),
        only_target=only[0],
        only_golden=only[1],
        apart_from=_apart(stages, steps),
    )
    row, quiet, floor = _first_row(worst)
    if row is None:
        return replace(plain, quiet=bool((worst == 0).all()), floor=float(worst.max()))
    limit = noise_limit(floor)
    place = int(np.argmax(largest[:, row] > limit))
    stage = stages[place]
    found = np.nan_to_num(stage.distance[row], nan=-1.0)
    at = int(np.argmax(found))
    first = Departure(
        metric=stage.metric,
        name=stage.names[at],
        statistic=stage.statistic,
        target=float(stage.target[row, at]),
        golden=float(stage.golden[row, at]),
        distance=float(found[at]),
    )
    others = int((found > limit).sum()) - 1
    return replace(plain, step=int(steps[row]), first=first, others=others, quiet=quiet, floor=floor)


def noise_limit(floor: float) -> float:
    """The distance above which a number leaves. floor: the largest one before; 0 where runs are equal, or apart from the start"""
    return max(ROUNDING, TIMES * floor)


def _first_row(worst: Float64) -> tuple[int | None, bool, float]:
    """The row in which the runs part, whether all before it are equal, and the largest distance before it."""
    differ = np.flatnonzero(worst > ROUNDING)
    if not len(differ):
        return None, False, float(worst.max(initial=0.0))
    start = int(differ[0])
    before = np.maximum.accumulate(np.concatenate([[0.0], worst[:-1]]))
    if start and before[start] == 0.0:
        return start, True, 0.0
    if start == 0 and worst[0] > FIRST:
        return 0, False, 0.0
    jumps = np.flatnonzero((worst > TIMES * np.maximum(before, ROUNDING / TIMES)) & (np.arange(len(worst)) >= WARM_UP))
    if not len(jumps):
        return None, False, float(worst.max())
    return int(jumps[0]), False, float(before[jumps[0]])


def _apart(stages: Sequence[_Stage], steps: Int64) -> int | None:
    whole = np.concatenate([stage.distance for stage in stages], axis=1)
    found = next((at for at, row in enumerate(whole) if np.isfinite(row).any() and np.nanmedian(row) > APART), None)
    return int(steps[found]) if found is not None else None


def _largest(distance: Float64) -> Float64:
    found: Float64 = np.nan_to_num(distance, nan=0.0).max(axis=1, initial=0.0)
    return found


def pair_names(target: Sequence[str], golden: Sequence[str]) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Places of the same series on both sides, and how many each side has alone."""
    plain = set(target) & set(golden)
    places = {name: at for at, name in enumerate(golden)}
    pairs = [(at, places[name]) for at, name in enumerate(target) if name in plain]
    left = {bare_name(name): at for at, name in enumerate(golden) if name not in plain}
    for at, name in enumerate(target):
        other = left.pop(bare_name(name), None) if name not in plain else None
        if other is not None:
            pairs.append((at, other))
    return sorted(pairs), (len(target) - len(pairs), len(golden) - len(pairs))


def _stage(
    statistic: str, target: MetricTable, golden: MetricTable, pairs: Sequence[tuple[int, int]], steps: Int64
) -> _Stage | None:
    numbers = [table.column(statistic) for table in (target, golden)]
    found = [column for column in numbers if column is not None]
    if not pairs or len(found) < 2:
        return None
    sides: list[Float64] = []
    present = np.ones((len(steps), len(pairs)), dtype=np.bool_)
    for side, (table, column) in enumerate(zip((target, golden), found, strict=True)):
        columns = [pair[side] for pair in pairs]
        rows = np.searchsorted(table.steps, steps)
        rows = np.minimum(rows, len(table.steps) - 1)
        there = table.steps[rows] == steps
        sides.append(column[rows][:, columns])
        present &= there[:, None] & table.measured(statistic)[rows][:, columns]
    names = tuple(target.names[pair[0]] for pair in pairs)
    distance = np.where(present, distances(sides[0], sides[1]), np.nan)
    return _Stage(target.metric, statistic, names, sides[0], sides[1], distance)


def _losses(target: tuple[Int64, Float64], golden: tuple[Int64, Float64], steps: Int64) -> _Stage:
    sides = []
    for side_steps, values in (target, golden):
        column = np.full((len(steps), 1), np.nan)
        _, here, there = np.intersect1d(steps, side_steps, return_indices=True)
        column[here, 0] = values[there]
        sides.append(column)
    present = np.isin(steps, target[0]) & np.isin(steps, golden[0])
    distance = np.where(present[:, None], distances(*sides), np.nan)
    return _Stage("loss", "norm", ("loss",), sides[0], sides[1], distance)


Floats = TypeVar("Floats", Float32, Float64)


def distances(one: Floats, other: Floats) -> Floats:
    """|a - b| over the larger of both; 0 where both are equal or both NaN, 1 where only one is finite."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        found = np.abs(one - other) / np.maximum(np.abs(one), np.abs(other))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.where(same, 0.0, np.where(np.isfinite(found), found, 1.0)).astype(found.dtype, copy=False)
