"""Ranks that stray: those that differ where the others of their step agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final

FEWEST: Final = 3
"""Ranks of a step from which one can be called odd."""
SHARE: Final = 0.25
"""Share of the ranks that may stray: more are no exception."""
TIMES: Final = 4
"""How many times the others' calls that are No a rank has at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """no: calls of the rank that are No; usual: the median of the other ranks; others: how many ranks these are"""

    step: int
    rank: int
    no: int
    usual: int
    others: int


def find_strays(counts: Iterable[tuple[int, int, int]]) -> list[Stray]:
    """The odd ranks of each step, by step, most calls that are No first. counts: (step, rank, calls that are No)

    A rank strays where more than TIMES as many of its calls are No as is usual in this step, and at most a SHARE of the ranks do.
    A difference that a communication carries to all ranks makes none odd: its origin says where it began.
    """
    steps: dict[int, list[tuple[int, int]]] = {}
    for step, rank, no in counts:
        steps.setdefault(step, []).append((rank, no))
    found = []
    for step, ranks in sorted(steps.items()):
        if len(ranks) < FEWEST:
            continue
        usual = int(median(no for _, no in ranks))
        odd = [(rank, no) for rank, no in ranks if no > TIMES * usual]
        if odd and len(odd) <= max(1, SHARE * len(ranks)):
            others = len(ranks) - len(odd)
            found += [
                Stray(step=step, rank=rank, no=no, usual=usual, others=others)
                for rank, no in sorted(odd, key=lambda one: (-one[1], one[0]))
            ]
    return found
