"""What was found in monitored runs: anomalies of series, where two runs part, ranks that stray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from dumpscope.domain.monitor.tables import module_of

Kind = Literal["not_finite", "exploding", "dead", "spike", "drift"]
KINDS: Final[tuple[Kind, ...]] = ("not_finite", "exploding", "dead", "spike", "drift")
"""The gravest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One anomaly. name: of the series, "" where most of the metric's series have it

    step, last_step: first and last step; value: the number there (the largest of a spike); usual: what it was before
    factor: value over usual; series: how many series have it
    """

    kind: Kind
    metric: str
    name: str
    statistic: str
    step: int
    last_step: int
    value: float
    usual: float
    series: int = 1

    @property
    def factor(self) -> float:
        """The number over what is usual; infinite where that is zero."""
        return self.value / self.usual if self.usual else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A series that leaves in the first step of a divergence. distance: |a - b| over the larger of both"""

    metric: str
    name: str
    statistic: str
    target: float
    golden: float
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Two runs compared.

    first_step, last_step, steps: the steps that both have; series: how many series both have
    step: the first in which they part, None where they do not; first: what leaves first; others: how many more leave in this
    step in the same stage; quiet: bit-equal up to there; floor: the largest distance before
    apart_from: first step from which the median of all series is farther apart than half, None where it never is
    """

    first_step: int
    last_step: int
    steps: int
    series: int
    only_target: int = 0
    only_golden: int = 0
    step: int | None = None
    first: Departure | None = None
    others: int = 0
    quiet: bool = False
    floor: float = 0.0
    apart_from: int | None = None

    @property
    def module(self) -> str:
        """The module that leaves first, "" where none does."""
        return module_of(self.first.name) if self.first is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayRank:
    """A rank that strays in one metric. step, name: where it does first; series: how many series of it do in that step

    value: its number there; usual: the median of all ranks; steps: in how many steps it strays
    """

    rank: int
    metric: str
    name: str
    step: int
    series: int
    steps: int
    value: float
    usual: float
