"""All metrics of a pair of tensors: name, label, unit, formula, and how to compute each from sums or stored numbers.

A new metric needs one entry here (or in another package, under the entry point `dumpscope.metrics`) and a line in
docs/metrics.md; tables, REST, exports and screens take it from here by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np

from dumpscope import extensions
from dumpscope.domain.context import Context
from dumpscope.domain.facts import COUNTS, TENSOR_METRICS, Facts
from dumpscope.domain.records import STATISTICS, Bool, Float64, Int64, State, UInt8
from dumpscope.errors import DumpscopeError
from dumpscope.texts import say


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Results of one pass over each of n pairs of tensors: columns of shape (n,), t the target, g the golden, d = t - g.

    excluded: positions not finite on at least one side; disagree: those of them whose non-finite values differ
    products: sum of t*g; target, golden, difference: norms of t, g and d. Each is divided by its own power of two:
    `powers`, shape (3, n), for t, g and d (products by those of t and g), None if all are 1
    below_1e3, below_5e3: relative errors below 0.001 and 0.005, positions that are not finite in the same way included
    max_ulp, median_ulp: nan if no steps were counted
    """

    elements: Int64
    excluded: Int64
    disagree: Int64
    products: Float64
    target: Float64
    golden: Float64
    difference: Float64
    powers: Int64 | None
    max_abs: Float64
    max_rel: Float64
    below_1e3: Int64
    below_5e3: Int64
    max_ulp: Float64
    median_ulp: Float64

    @cached_property
    def compared(self) -> Int64:
        """Positions finite on both sides, or not finite in the same way."""
        return self.elements - self.disagree

    @cached_property
    def unmeasured(self) -> Bool:
        """Pairs in which every position disagrees."""
        return self.compared <= 0

    @cached_property
    def too_few(self) -> Bool:
        """Unmeasured pairs, and pairs of one element, which have no angle and no ratios."""
        return self.unmeasured | (self.elements <= 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """Stored numbers of n pairs of items, by name: float64 columns of shape (n,), nan if a number does not apply."""

    context: Context
    facts: Facts

    def metric(self, name: str) -> Float64:
        """One of the measured metrics, such as "euclidean"; may hold infinities."""
        return _known(self.facts.metric(name), self.facts.metric_state(name))

    def count(self, name: str) -> Float64:
        """One of the counts: elements, unequal, nonfinite_target, nonfinite_golden, nonfinite_disagree."""
        column: Int64 = getattr(self.facts, name)
        return np.where(column < 0, np.nan, column)

    def target(self, statistic: str) -> Float64:
        """A statistic that the target's dump recorded: max, min, mean or norm."""
        place = _STATISTICS.index(statistic)
        return _known(self.context.t_stats[:, place], self.context.t_state[:, place])

    def golden(self, statistic: str) -> Float64:
        """A statistic that the golden dump recorded: max, min, mean or norm."""
        place = _STATISTICS.index(statistic)
        return _known(self.context.g_stats[:, place], self.context.g_state[:, place])


_STATISTICS: Final = tuple(name.lower() for name in STATISTICS)
_VALUES: Final = np.array([np.nan, 0.0, np.nan, np.inf, -np.inf])
"""The number that each State stands for; FINITE uses the stored number."""


def _known(values: Float64, states: UInt8) -> Float64:
    return np.where(states == State.FINITE, values, _VALUES[states])


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of a pair of tensors. Exactly one of `measure` and `derive` is given.

    name: its key in REST and JSON; label, label_zh: its heading in tables and on screens; unit: "" for a ratio or the data's own
    formula: in terms of t, g and d = t - g, in symbols: screens in every language show it
    measure: computes it from the sums of the pass, when tensors are compared; it is stored as a column of TENSOR_METRICS
    derive: computes it from stored numbers whenever it is read, also for comparisons made before the metric existed
    Both return shape (n,), nan if the metric does not apply; warnings about numbers are off.
    """

    name: str
    label: str
    formula: str
    higher_is_worse: bool
    label_zh: str = ""
    unit: str = ""
    measure: Callable[[Sums], Float64] | None = None
    derive: Callable[[Measured], Float64] | None = None


def _some(sums: Sums, values: Float64) -> Float64:
    """nan if every position disagrees."""
    return _without(values, sums.unmeasured)


def _several(sums: Sums, values: Float64) -> Float64:
    """nan if every position disagrees, or there is only one."""
    return _without(values, sums.too_few)


def _without(values: Float64, absent: Bool) -> Float64:
    out = values.astype(np.float64)
    out[absent] = np.nan
    return out


def _cosine(sums: Sums) -> Float64:
    """1 for two zero vectors, nan if exactly one is zero (no angle exists)."""
    cosine = np.minimum(1.0, np.maximum(-1.0, sums.products / sums.target / sums.golden))
    cosine[(sums.target == 0.0) | (sums.golden == 0.0)] = np.nan
    cosine[sums.difference == 0.0] = 1.0
    return _several(sums, cosine)


def _euclidean(sums: Sums) -> Float64:
    distance = sums.difference if sums.powers is None else np.ldexp(sums.difference, sums.powers[2])
    return _several(sums, distance)


def _rel_l2(sums: Sums) -> Float64:
    """0 for two zero vectors, inf if only the golden is zero."""
    ratio = sums.difference / sums.golden
    if sums.powers is not None:
        ratio = np.ldexp(ratio, sums.powers[2] - sums.powers[1])
    ratio[sums.difference == 0.0] = 0.0
    return _some(sums, ratio)


def _share(sums: Sums, below: Int64) -> Float64:
    return _several(sums, below / sums.compared)


def _max_ulp(sums: Sums) -> Float64:
    return _without(sums.max_ulp, sums.elements <= sums.excluded)


METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        name="cosine", label="Cosine", label_zh="余弦", higher_is_worse=False,
        formula="sum(t g) / (norm(t) norm(g))", measure=_cosine,
    ),
    Metric(
        name="euclidean", label="EucDist", label_zh="欧氏距离", higher_is_worse=True,
        formula="norm(d)", measure=_euclidean,
    ),
    Metric(
        name="max_abs", label="MaxAbsErr", label_zh="最大绝对误差", higher_is_worse=True,
        formula="max abs(d)", measure=lambda sums: _some(sums, sums.max_abs),
    ),
    Metric(
        name="max_rel", label="MaxRelativeErr", label_zh="最大相对误差", higher_is_worse=True,
        formula="max abs(d) / abs(g)", measure=lambda sums: _some(sums, sums.max_rel),
    ),
    Metric(
        name="ratio_1e3", label="One Thousandth Err Ratio", label_zh="千分之一误差占比", higher_is_worse=False,
        formula="count(abs(d) / abs(g) < 0.001) / count", measure=lambda sums: _share(sums, sums.below_1e3),
    ),
    Metric(
        name="ratio_5e3", label="Five Thousandths Err Ratio", label_zh="千分之五误差占比", higher_is_worse=False,
        formula="count(abs(d) / abs(g) < 0.005) / count", measure=lambda sums: _share(sums, sums.below_5e3),
    ),
    Metric(
        name="rel_l2", label="Relative L2", label_zh="相对 L2 误差", higher_is_worse=True,
        formula="norm(d) / norm(g)", measure=_rel_l2,
    ),
    Metric(
        name="max_ulp", label="Max ULP", label_zh="最大 ULP", unit="ULP", higher_is_worse=True,
        formula="max steps(t, g)", measure=_max_ulp,
    ),
    Metric(
        name="median_ulp", label="Median ULP", label_zh="ULP 中位数", unit="ULP", higher_is_worse=True,
        formula="median steps(t, g)", measure=lambda sums: sums.median_ulp,
    ),
)  # fmt: skip
"""The metrics of this package, in the order of display."""

_MEASURES: Final[Mapping[str, Callable[[Sums], Float64]]] = {
    metric.name: metric.measure for metric in METRICS if metric.measure is not None
}
_TAKEN: Final = {*COUNTS, "score", *(f"{name}_{kind}" for name in _STATISTICS for kind in ("diff", "rel"))}
"""Names of other numbers of a pair in REST and JSON."""


@cache
def all_metrics() -> tuple[Metric, ...]:
    """METRICS, then the metrics of other packages. Raises DumpscopeError for a metric that cannot be used."""
    found = list(METRICS)
    for metric in extensions.load(extensions.METRICS):
        _check(metric, {one.name for one in found})
        found.append(metric)
    return tuple(found)


def _check(metric: object, names: set[str]) -> None:
    if not isinstance(metric, Metric):
        raise DumpscopeError(say("extensions.no_metric", group=extensions.METRICS, object=f"{metric!r}"))
    if metric.derive is None or metric.measure is not None:
        raise DumpscopeError(say("extensions.metric_must_derive", name=f"{metric.name!r}"))
    if metric.name in names or metric.name in _TAKEN:
        raise DumpscopeError(
            say("extensions.metric_name_taken", name=f"{metric.name!r}"), hint=say("extensions.rename_metric")
        )


def measure_metrics(sums: Sums) -> Float64:
    """TENSOR_METRICS of n pairs, shape (n, len(TENSOR_METRICS)), nan if one does not apply."""
    found = np.empty((len(sums.elements), len(TENSOR_METRICS)))
    with np.errstate(all="ignore"):
        for place, name in enumerate(TENSOR_METRICS):
            found[:, place] = _MEASURES[name](sums)
    return found


def derive_metrics(context: Context, facts: Facts) -> dict[str, Float64]:
    """The metrics that are derived from stored numbers: columns of shape (n,), nan if one does not apply.

    Raises DumpscopeError for a metric that returns anything else.
    """
    measured = Measured(context, facts)
    found = {}
    for metric in all_metrics():
        if metric.derive is None:
            continue
        try:
            with np.errstate(all="ignore"):
                column = np.asarray(metric.derive(measured), dtype=np.float64)
        except Exception as error:
            raise DumpscopeError(
                say("extensions.metric_failed", name=f"{metric.name!r}", error=f"{error!r}")
            ) from error
        if column.shape != (len(facts),):
            raise DumpscopeError(
                say("extensions.metric_shape", name=f"{metric.name!r}", shape=f"{column.shape}", count=len(facts))
            )
        found[metric.name] = column
    return found
