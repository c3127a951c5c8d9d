"""Rules that see an anomaly as soon as the numbers of a step are on the host.

    not_finite  NaN or infinite, where it was not in the step before
    spike       far above the median of the last steps
    exploding   the median of the last steps is far above that of the first ones

`dumpscope monitor` knows the whole run when it judges, and has more rules (docs/monitor.md); the limits are the same. What is
usual is settled once in a block of steps, so most steps cost a few operations on one row.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import torch

from dumpscope_capture.context import Unobserved
from dumpscope_format.monitor import Layout

RULES: Final = ("not_finite", "spike", "exploding")
BLOCK: Final = 16
"""Steps after which it is settled anew what is usual."""
HISTORY: Final = 64
"""Steps that tell what is usual."""
FEWEST: Final = 2 * BLOCK
"""Steps before anything is called unusual."""
DEVIATIONS: Final = 8.0
SPIKE: Final = 3.0
EXPLODED: Final = 256.0
_SIGMA: Final = 1.4826
_WATCHED: Final = frozenset(("grad_unreduced", "grad_unclipped", "grad_reduced", "actv", "actv_grad"))
_TOLD: Final = 3


class Step(NamedTuple):
    """One recorded step on the host. scalars: in the order of the layout; groups: little-endian float32 of each group"""

    step: int
    layout: Layout
    scalars: Sequence[float]
    groups: Sequence[bytes]


class Finding(NamedTuple):
    """An anomaly that begins in a step. name: of the series, or of a scalar; usual: what it was before, NaN if nothing was"""

    rule: str
    name: str
    value: float
    usual: float

    def __str__(self) -> str:
        if self.rule == "not_finite":
            return f"{self.name} is {self.value:g}"
        return f"{self.rule}: {self.name} is {self.value:g}, {self.usual:g} is usual"


class Rules:
    """Judges steps one after the other. wanted: of RULES"""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = frozenset(wanted)
        self._series: dict[Any, _Series] = {}
        self._signed: set[str] = set()

    def judge(self, step: Step) -> list[Finding]:
        """The anomalies that begin in this step, the gravest rule first."""
        found: list[Finding] = []
        with Unobserved():
            for group, data in zip(step.layout.groups, step.groups):
                if group.metric in _WATCHED and "norm" in group.statistics:
                    width = len(group.statistics)
                    numbers = struct.unpack(f"<{len(data) // 4}f", data)[group.statistics.index("norm") :: width]
                    names = [f"{group.metric} of {name}" for name in group.names]
                    found += self._judge((group.metric, group.names), names, numbers)
            for name, value in zip(step.layout.scalars, step.scalars):
                if name == "lr":
                    continue
                if value <= 0:
                    self._signed.add(name)
                of_scalar = self._judge(name, [name], [value])
                found += [one for one in of_scalar if one.rule == "not_finite" or name not in self._signed]
        wanted = [one for one in found if one.rule in self._wanted]
        return sorted(wanted, key=lambda one: RULES.index(one.rule))

    def _judge(self, key: Any, names: Sequence[str], numbers: Sequence[float]) -> list[Finding]:
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= 256:  # names that change from step to step
                self._series.clear()
            series = self._series[key] = _Series(len(names))
        return [Finding(rule, names[place], numbers[place], usual) for rule, place, usual in series.judge(numbers)]


class _Series:
    """Numbers of the same names, step by step, as logarithms of base 2 on the CPU; one that is zero or not finite counts as the
    one before it."""

    def __init__(self, count: int) -> None:
        self._logs = _full((HISTORY, count), math.nan)
        self._last = _full((count,), math.nan)
        self._steps = 0
        self._usual: torch.Tensor | None = None
        self._limit: torch.Tensor | None = None
        self._first: torch.Tensor | None = None
        self._lost, self._high, self._exploded = (torch.zeros(count, dtype=torch.bool, device="cpu") for _ in range(3))

    def judge(self, numbers: Sequence[float]) -> list[tuple[str, int, float]]:
        """Rule, place and usual number of the anomalies that begin in this step."""
        values = torch.tensor(numbers, dtype=torch.float64, device="cpu").abs()
        finite = torch.isfinite(values)
        sound = finite & (values > 0)
        logs = torch.where(sound, torch.log2(values), self._last)
        found = self._begun("not_finite", ~finite, self._lost)
        self._lost = ~finite
        if self._usual is not None and self._limit is not None:
            high = sound & (logs - self._usual > self._limit)
            found += self._begun("spike", high, self._high)
            self._high = high
        self._last = logs
        self._logs[self._steps % HISTORY] = logs
        self._steps += 1
        if self._steps % BLOCK == 0:
            found += self._settle()
        return found

    def _begun(self, rule: str, now: torch.Tensor, before: torch.Tensor) -> list[tuple[str, int, float]]:
        places = torch.nonzero(now & ~before).flatten().tolist()
        if not places:
            return []
        usual = self._last if self._usual is None else self._usual
        return [(rule, place, float(2.0 ** usual[place])) for place in places]

    def _settle(self) -> list[tuple[str, int, float]]:
        """What is usual from now on, and which series have exploded."""
        known = self._logs[: min(self._steps, HISTORY)]
        usual = known.nanmedian(0).values
        spread = (known - usual).abs().nanmedian(0).values
        floor = torch.maximum(spread, spread.nanmedian())  # a few steps may lie close together by chance
        if self._steps >= FEWEST:
            self._usual = usual
            self._limit = torch.clamp(DEVIATIONS * _SIGMA * floor, min=math.log2(SPIKE))
        if self._first is None:
            self._first = usual if self._steps >= HISTORY else None
            return []
        end = self._steps % HISTORY or HISTORY
        recent = self._logs[end - BLOCK : end].nanmedian(0).values
        exploded = recent > self._first + math.log2(EXPLODED)
        found = [
            ("exploding", place, float(2.0 ** self._first[place]))
            for place in torch.nonzero(exploded & ~self._exploded).flatten().tolist()
        ]
        self._exploded = self._exploded | exploded
        return found


def describe(found: Sequence[Finding], step: int) -> list[str]:
    """The first findings of a step as texts, and how many more there are."""
    told = [f"step {step}: {found[0]}", *map(str, found[1:_TOLD])]
    return told if len(found) <= _TOLD else [*told, f"and {len(found) - _TOLD} more"]


def _full(shape: tuple[int, ...], value: float) -> torch.Tensor:
    return torch.full(shape, value, dtype=torch.float64, device="cpu")
