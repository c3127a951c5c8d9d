"""A monitored training: statistics of every step as tables, one for each rank and metric (docs/monitor.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dumpscope.errors import Problem

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

Tool = Literal["dumpscope", "msprobe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricTable:
    """One metric of one rank.

    names: of parameters or of values of modules, in the order of the model; statistics: `norm`, `min`...
    steps: ascending, shape (S,); values: shape (S, P, O); present: shape (S, P), whether a name was measured in a step: a value
    that is NaN where this is true was NaN
    lacking: shape (S, O), statistics that the run did not take in a step, as it was resumed with other settings; None for none
    """

    metric: str
    names: tuple[str, ...]
    statistics: tuple[str, ...]
    steps: Int64
    values: Float32
    present: Bool
    lacking: Bool | None = None

    def measured(self, statistic: str) -> Bool:
        """Where there is a number of one of the statistics, shape (S, P)."""
        if self.lacking is None:
            return self.present
        found: Bool = self.present & ~self.lacking[:, self.statistics.index(statistic), None]
        return found

    def column(self, statistic: str) -> Float64 | None:
        """One statistic as shape (S, P); None where the table has not got it. NaN where nothing was measured, too."""
        if statistic not in self.statistics:
            return None
        found = self.values[:, :, self.statistics.index(statistic)].astype(np.float64)
        found[~self.measured(statistic)] = np.nan
        return found


class Load(Protocol):
    """Reads the table of a metric; one statistic is enough where one is named."""

    def __call__(self, metric: str, statistic: str | None = None) -> MetricTable: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRank:
    """What one rank recorded.

    metrics: in the order in which a step computes them, each with its statistics; load: reads the table of one of them
    scalars: loss, learning rate and what else was given: steps and values of each; facts: what the file says about its run
    """

    rank: int | None
    metrics: Mapping[str, tuple[str, ...]]
    load: Load
    first_step: int
    last_step: int
    scalars: Mapping[str, tuple[Int64, Float64]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRun:
    """A run that was watched: its ranks, ascending, and what could not be read of it."""

    path: str
    tool: Tool
    ranks: tuple[MonitorRank, ...]
    problems: tuple[Problem, ...] = ()


def module_of(name: str) -> str:
    """The module of a series: the name of a parameter without its last word, that of a value without `.input` or `.output_1`."""
    return name.rpartition(".")[0] or name
