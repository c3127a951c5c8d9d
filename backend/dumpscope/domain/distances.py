"""How far both sides of a comparison are from an absolute reference, as columns over the item pairs of one step and rank."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from dumpscope.domain.records import Float64, Int8


class Measure(IntEnum):
    """Which distance decides; the places of the columns of `Distances`."""

    BULK = 0  # relative L2; of statistics that of Norm, or of Mean by norm/sqrt(N)
    PEAK = 1  # the largest element by the largest magnitude; of statistics that of Max and Min


MEASURE_WORDS: Final = ("bulk", "peak")

FARTHER: Final = 2.0
"""A side is farther from the reference above this ratio (`analysis.reference` tells why)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """Facts: shape (n, 2), by `Measure`, relative to the size of the reference. nan: not measured; inf: nothing excuses
    it (NaN at other places, another integer, argument or shape)."""

    target: Float64
    golden: Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Opinions: shape (n,), nan where nothing was measured on both sides.

    ratio: how many times as far from the reference the target is as the golden, distances below the floor counting as the floor
    inverse: the same with the roles swapped; measure: `Measure` that gave the larger of the two
    golden_score: the golden's distance in floors, as `ItemOpinions.score` is the target's
    """

    measure: Int8
    ratio: Float64
    inverse: Float64
    golden_score: Float64
