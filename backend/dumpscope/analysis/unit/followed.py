"""What is made of nothing but rounding, of sums that cancel, and of what noise moved over a jump: followed from call to call."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from dumpscope.analysis.unit.left_over import identify
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts
from dumpscope.domain.picking import PLACES
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int64, Kind, Role
from dumpscope.match.operators.operations import operation
from dumpscope.verdict.score import is_exact_kind, overflow_differs

_FARTHER: Final = 10.0
"""A call makes no more of the rounding that it takes than so many times; what is more is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jumps:
    """What noise moved over a jump in a unit.

    crossed: by item pair, see `noise.find_crossed`; held: by item pair, weights, which no call made
    bulk: the floor of distances; least: up to this score an error needs no sum and no jump (`cancellation.explained_by`)
    """

    crossed: Bool
    held: Bool
    bulk: float
    least: float = 1.0

    @property
    def whole(self) -> float:
        """The score of a tensor that is wrong throughout."""
        return 1.0 / self.bulk if self.bulk else np.inf


def no_jumps(context: Context) -> Jumps:
    nothing = np.zeros(len(context), bool)
    return Jumps(crossed=nothing, held=nothing, bulk=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls of a unit, and what is known of their items. names, direction: by node pair; flat: by item pair, at most one
    dimension"""

    context: Context
    facts: Facts
    names: list[str]
    direction: Int8
    flat: Bool


def follow_rounding(calls: Calls, score: Float64, guarded: Float64, jumps: Jumps) -> Float64:
    """`guarded` with the scores of what is made of nothing but rounding, of sums that cancel: lower by as much as these were.

    An error that comes in with such a sum is as many times larger beside what is left of it as the terms were. A call is
    followed if all that it received with an error above the floor is such, and what it makes is no more than ten times worse;
    a backward call received what its forward call did, and a gradient that no recorded call made is a sum of those before it, as
    long as all errors so far are followed. Where only modules were recorded, the gradient of a matrix is made of what its module
    received.

    So is what noise moved over a jump: what is computed of it is of other numbers, so that no finite error of it means anything,
    nor do integers and shapes; and so is what no recorded call made, as long as all errors so far are followed.

    score, guarded: by item pair, before and after `cancellation.score_against_terms`
    """
    context, crossed = calls.context, jumps.crossed
    finite = score
    if crossed.any():
        finite = np.where(np.isposinf(score) & ~overflow_differs(context, calls.facts), jumps.whole, score)
    with np.errstate(invalid="ignore"):
        loud = (context.kind == Kind.TENSOR) & (finite > 1)
        guarded = np.where(loud & crossed, finite / (2 * jumps.whole), guarded)
        begun = loud & (context.role == Role.OUTPUT) & (guarded < finite)
        begun &= (calls.direction == Direction.FORWARD)[context.pair] | ~calls.flat
    begun |= crossed
    if not begun.any():
        return guarded
    lowered = _Follower(calls, finite, guarded, jumps, loud, begun).follow()
    return np.where(np.isposinf(score) & ~(lowered < finite), score, lowered)


class _Follower:
    """Goes through the calls from the first that began with rounding, in order of time.

    share: of a score, what is left of it if it is measured as the sum was in which the rounding began; by the number of a tensor
    (`left`) and by the name of a forward call or module (`forward`), which saved it for its backward pass
    """

    def __init__(self, calls: Calls, score: Float64, guarded: Float64, jumps: Jumps, loud: Bool, begun: Bool) -> None:
        context, crossed = calls.context, jumps.crossed
        numbers = identify(context)
        if (crossed & ~loud).any():  # moved, though statistics do not show it
            loud = loud | (np.isin(numbers, numbers[crossed & ~loud]) & (context.kind == Kind.TENSOR))
        self.rows = rows = np.flatnonzero(loud & (context.pair >= context.pair[begun].min()))
        self.calls, self.jumps, self.guarded = calls, jumps, guarded
        self.pairs = context.pair[rows]
        self.codes: list[int] = numbers[rows].tolist()
        self.made: list[bool] = np.isin(context.role[rows], (Role.OUTPUT, Role.GRADIENT)).tolist()
        self.starts: list[bool] = begun[rows].tolist()
        self.moved: list[bool] = crossed[rows].tolist()
        self.free: list[bool] = _find_free(context, jumps, rows).tolist()
        self.flat: list[bool] = calls.flat[rows].tolist()
        self.scores: list[float] = score[rows].tolist()
        self.lower: list[float] = guarded[rows].tolist()
        self.left: dict[int, float] = {}
        self.forward: dict[str, float] = {}
        self.worst: dict[str, float] = {}  # by name of a forward call, the largest score of what it received
        self.jumped = False
        self.sound = True  # all errors so far are followed
        self.before: float | None = None  # share of the last call that was followed

    def follow(self) -> Float64:
        """By item pair the scores, lower where they are followed."""
        bounds = np.flatnonzero(np.diff(self.pairs, prepend=-1, append=-1)).tolist()
        backward = (self.calls.direction == Direction.BACKWARD)[self.pairs].tolist()
        for first, last in pairwise(bounds):
            self._follow_call(range(first, last), self.calls.names[self.pairs[first]], backward=backward[first])
        lowered: Float64 = self.guarded.copy()
        lowered[self.rows] = self.lower
        return lowered

    def _follow_call(self, rows: range, name: str, *, backward: bool) -> None:
        self.jumped = self.jumped or any(self.moved[row] for row in rows)
        known = {row: self._share_of(row, backward=backward) for row in rows}
        share = self._share_of_received(rows, known, name, backward=backward)
        if share is not None and not backward:
            self.forward[name] = self.forward[name.rpartition(".forward")[0]] = share
        most = self._most_that_it_makes(rows, name, backward=backward)
        for row in rows:
            if self.made[row]:
                self._lower_made(row, known[row], share, most, name)
            elif share is not None and (known[row] is None or self.jumped):
                self.lower[row] = self.scores[row] * share

    def _share_of(self, row: int, *, backward: bool) -> float | None:
        """What is known of a tensor: its own share, or behind a jump, of what no recorded call made, that of the last call."""
        share = self.left.get(self.codes[row])
        if share is None and self.jumped and not backward and not self.made[row] and self.free[row]:
            return self.before
        return share

    def _share_of_received(
        self, rows: range, known: dict[int, float | None], name: str, *, backward: bool
    ) -> float | None:
        """The smallest share of what a call received; None where one of these is not followed, or all agree."""
        share: float | None = None
        for row in rows:
            same = known[row]
            needs = same is not None or self.scores[row] > self.jumps.least or self.jumps.least <= 1
            if self.made[row] or not needs:
                continue
            taken = self.before if backward and same is None else same
            if taken is None:
                return None
            share = taken if share is None else min(share, taken)
        saved = self.forward.get(name.replace("backward", "forward")) if backward else None
        if saved is None:
            return share
        return saved if share is None else min(share, saved)

    def _most_that_it_makes(self, rows: range, name: str, *, backward: bool) -> float:
        """The largest score of a result that follows from what the call received."""
        if self.jumped:
            return np.inf
        worst = max([1.0, *(self.scores[row] for row in rows if not self.made[row])])
        if backward:
            worst = max(worst, self.worst.get(name.replace("backward", "forward"), 1.0))
        else:
            self.worst[name] = worst
        return _FARTHER * worst

    def _lower_made(self, row: int, same: float | None, share: float | None, most: float, name: str) -> None:
        score = self.scores[row]
        factor = same if share is None or min(score, self.lower[row]) > most else share
        if factor is None and not self.flat[row]:
            factor = self.forward.get(name.rpartition(".parameters_grad")[0])
        if factor is not None:
            self.lower[row] = min(self.lower[row], score * factor)
        elif self.starts[row]:
            factor = 1 / (2 * self.jumps.whole) if self.moved[row] else self.lower[row] / score
        if factor is not None:
            self.left.setdefault(self.codes[row], factor)
            self.before = factor if self.sound else None
        elif score > self.jumps.least or self.jumps.least <= 1:
            self.sound, self.before = False, None


def _find_free(context: Context, jumps: Jumps, rows: Int64) -> Bool:
    """Which of these item pairs may follow from what was moved over a jump, though no recorded call made them."""
    free: Bool = ~jumps.held[rows]
    sizes = np.unique(context.elements[jumps.crossed])
    picks = np.array([operation(name) in PLACES for name in context.apis] + [False])[context.api]
    # Words that were picked stand among others later on; what was compared does not.
    if not picks[context.pair[jumps.crossed]].any():
        free &= ~is_exact_kind(context, rows) | np.isin(context.elements[rows], sizes)
    return free & _are_multiples(context.elements[rows], sizes[sizes > 0])


def _are_multiples(elements: Int64, sizes: Int64) -> Bool:
    """Which of these numbers of elements may be what was moved, cast, looked up or stretched: multiples of one of the sizes."""
    found = np.zeros(len(elements), bool)
    for size in sizes.tolist():
        found |= elements % size == 0
    return found
