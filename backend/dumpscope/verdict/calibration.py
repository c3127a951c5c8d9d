"""Floors from a healthy pair: two runs of correct code show how much noise there is, and where."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import yaml

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Outcome
from dumpscope.domain.records import Direction, Float64, NodeKind, RankDump
from dumpscope.domain.result import Unit
from dumpscope.verdict.policy import FLOORS, Policy
from dumpscope.verdict.score import scores

QUANTILE: Final = 0.99
"""Share of a dtype's forward tensors that its floor has to cover; the rest, and what is louder in the backward, is widened
call by call."""
MARGIN: Final = 2.0
"""What the next healthy run may show beyond this one."""
FINEST: Final = 0.1
"""Floors are never made finer than this share of the default ones: one pair shows only some of the noise there is."""
FEWEST: Final = 20
"""Compared tensors of a dtype below which its default floor stays."""
MOST: Final = 500
"""Widened calls that are written; with more the pair is hardly healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Of one dtype's forward. tensors: compared ones; equal: bit-equal ones; level: the QUANTILE of their scores under the
    default floors, 1.0 being the floor; factor: what its floors are multiplied by"""

    tensors: int
    equal: int
    level: float
    factor: float


@dataclass(slots=True, kw_only=True)
class Calibration:
    """noise: by dtype; widened: patterns of calls above their dtype's floor, with the factor they need, largest first; never:
    patterns of calls that differ outside every floor (other integers, NaN at other places, shapes, arguments): they are not
    healthy, or random"""

    noise: dict[str, Noise] = field(default_factory=dict)
    widened: list[tuple[str, float]] = field(default_factory=list)
    never: list[str] = field(default_factory=list)

    @property
    def policy(self) -> str:
        """Text of a policy file (docs/verdicts.md) under which this pair has no difference but `never`."""
        floors = {
            name.removeprefix("torch."): {
                "bulk": _round_up(FLOORS[name].bulk * noise.factor),
                "peak": _round_up(FLOORS[name].peak * noise.factor),
            }
            for name, noise in sorted(self.noise.items())
        }
        data: dict[str, Any] = {"name": "calibrated", "base": "default", "floors": floors}
        if self.widened:
            data["scale"] = {pattern: _round_up(factor) for pattern, factor in self.widened[:MOST]}
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=140)


def calibrate(units: Iterable[Unit]) -> Calibration:
    """Measure the noise of a healthy pair that was compared (under any policy)."""
    forward: dict[str, list[float]] = {}
    found: list[tuple[list[str], list[str], Float64]] = []  # per unit: pattern and dtype of each compared item, score
    never: dict[str, None] = {}
    for unit in units:
        context = unit.context
        score = scores(context, unit.facts, Policy(), np.zeros(0))
        patterns, ahead = _name_patterns(unit)
        rows = np.flatnonzero((unit.facts.outcome == Outcome.COMPARED) & np.isfinite(score))
        dtypes = [_coarser_dtype(context, row) for row in rows.tolist()]
        pairs = context.pair[rows].tolist()
        found.append(([patterns[pair] for pair in pairs], dtypes, score[rows]))
        for pair, dtype, value in zip(pairs, dtypes, score[rows].tolist(), strict=True):
            if ahead[pair]:
                forward.setdefault(dtype, []).append(value)
        for pair in context.pair[np.isposinf(score)].tolist():
            never[patterns[pair]] = None
    calibration = Calibration(never=list(never))
    for dtype, values in forward.items():
        if dtype in FLOORS:
            calibration.noise[dtype] = _measure_noise(np.array(values))
    worst: dict[str, float] = {}
    for names, dtypes, score in found:
        for name, dtype, value in zip(names, dtypes, score.tolist(), strict=True):
            noise = calibration.noise.get(dtype)
            if noise is not None and value > noise.factor:
                worst[name] = max(worst.get(name, 0.0), MARGIN * value / noise.factor)
    calibration.widened = sorted(worst.items(), key=lambda entry: (-entry[1], entry[0]))
    return calibration


def _measure_noise(values: Float64) -> Noise:
    level = float(np.quantile(values, QUANTILE))
    factor = 1.0
    if len(values) >= FEWEST and level > 0:  # what the default floor covers is no reason to widen it
        factor = MARGIN * level if level > 1 else min(1.0, max(FINEST, MARGIN * level))
    return Noise(tensors=len(values), equal=int((values == 0).sum()), level=level, factor=factor)


def _coarser_dtype(context: Context, row: int) -> str:
    names = [context.dtypes[code] for code in (context.t_dtype[row], context.g_dtype[row]) if code >= 0]
    known = [name for name in names if name in FLOORS]
    return max(known, key=lambda name: FLOORS[name].bulk, default=names[0] if names else "")


def _name_patterns(unit: Unit) -> tuple[list[str], list[bool]]:
    """Of every node pair the pattern that names all calls of its API or module in its direction, and whether it is a forward."""
    patterns, ahead = [], []
    for target, golden in zip(unit.pairs.target.tolist(), unit.pairs.golden.tolist(), strict=True):
        dump: RankDump = unit.target if target >= 0 else unit.golden
        nodes, node = dump.nodes, target if target >= 0 else golden
        name, code = nodes.names[node], int(nodes.label[node])
        direction = Direction(int(nodes.direction[node]))
        if nodes.kind[node] == NodeKind.GRADIENT:
            pattern = f"^{re.escape(name.partition('.parameters_grad')[0])}\\.parameters_grad"
        elif code < 0 or direction == Direction.NONE:
            pattern = f"^{re.escape(name)}$"
        elif nodes.kind[node] == NodeKind.API:
            pattern = f"^{re.escape(nodes.labels[code])}\\.\\d+\\.{direction.name.lower()}"
        else:
            family = re.escape(name.partition(".")[0])
            pattern = f"^{family}\\.{re.escape(nodes.labels[code])}\\.{direction.name.lower()}"
        patterns.append(pattern)
        ahead.append(direction == Direction.FORWARD)
    return patterns, ahead


def _round_up(number: float) -> float:
    """To two digits."""
    if number <= 0 or not math.isfinite(number):
        return number
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return float(f"{math.ceil(number / unit - 1e-9) * unit:.6g}")
