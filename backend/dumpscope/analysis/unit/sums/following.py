"""What is made of sums that cancel, and of what noise moved over a jump, followed from call to call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.analysis.unit.left_over import identify
from dumpscope.analysis.unit.noise import JUMP
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts
from dumpscope.domain.picking import PLACES
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int64, Kind, Role
from dumpscope.match.operators.operations import operation
from dumpscope.verdict.score import is_exact_kind, overflow_differs

_FARTHER: Final = 10.0
"""A call makes no more of the rounding that it takes than so many times; what is more is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Scores by item pair, for judging and for the search for causes.

    given: those asked about; score: of gradients against the whole of which they are left
    measured: of sums against their terms; guarded: also of what is made of such sums; flat: at most one dimension
    left: the part of its terms that is left of a gradient, reduced (`terms_of_reduced`) or a sum of two (`terms_of_parts`), 1
        elsewhere
    """

    facts: Facts
    given: Float64
    score: Float64
    measured: Float64
    guarded: Float64
    flat: Bool
    left: Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Jumps:
    """What noise moved over a jump, for `follow_rounding`.

    crossed: by item pair, see `noise.find_crossed`; held: weights, which no call made; bulk: the floor of distances
    least: up to this score an error needs no sum and no jump (`explained_by`)
    """

    crossed: Bool
    held: Bool
    bulk: float
    least: float = 1.0


def follow_rounding(
    context: Context, sums: Sums, names: list[str], direction: Int8, jumps: Jumps | None = None
) -> Float64:
    """`sums.measured` with the scores of what is made of nothing but rounding, of sums that cancel: lower by as much as these.

    An error that comes in with such a sum is as many times larger beside what is left of it as the terms were. A call is
    followed if all that it received with an error above the floor is such; a backward call received what its forward call did,
    and a gradient that no recorded call made is a sum of those before it, as long as all errors so far are followed. Where only
    modules were recorded, the gradient of a matrix is made of what its module received.

    So is what noise moved over a jump: what is computed of it is of other numbers, so that no finite error of it means anything,
    nor do integers and shapes; and so is what no recorded call made, as long as all errors so far are followed.

    names, direction: by node pair
    """
    crossed = jumps.crossed if jumps else np.zeros(len(context), bool)
    score, guarded = sums.score, sums.measured
    whole = 1.0 / jumps.bulk if jumps and jumps.bulk else np.inf
    finite = np.where(np.isposinf(score) & crossed.any() & ~overflow_differs(context, sums.facts), whole, score)
    with np.errstate(invalid="ignore"):
        loud = (context.kind == Kind.TENSOR) & (score > 1)
        guarded = np.where(loud & crossed, finite / (2 * whole), guarded)
        begun = loud & (context.role == Role.OUTPUT) & (guarded < finite)
        begun &= (direction == Direction.FORWARD)[context.pair] | ~sums.flat
    tensor = context.kind == Kind.TENSOR
    begun |= crossed | ((sums.left < 1) & tensor & ~(loud & (context.role == Role.OUTPUT)))
    if not begun.any():
        return guarded
    numbers = identify(context)
    if (begun & ~loud).any():  # statistics do not show it
        loud |= np.isin(numbers, numbers[begun & ~loud]) & tensor
    # Numbers too small for a score, which what follows may make large again.
    loud |= tensor & (score == 0) & (sums.facts.equal == 0)
    rows = np.flatnonzero(loud & (context.pair >= context.pair[begun].min()))
    lowered: Float64 = guarded.copy()
    lowered[rows] = _Followed(context, sums, finite, guarded, begun, rows, jumps).follow(names, direction)
    return np.where(np.isposinf(score) & ~(lowered < finite), score, lowered)


class _Followed:
    """What `follow_rounding` knows while it goes from call to call. rows: the item pairs with errors, in the order of calls

    early: gradients of parameters that were recorded before the call that made them
    left: by the numbers of an item what is left of its terms; forward: of what forward calls received, by name
    sound: all errors so far are followed; before: what was left for the last call that was followed
    """

    def __init__(
        self,
        context: Context,
        sums: Sums,
        score: Float64,
        guarded: Float64,
        begun: Bool,
        rows: Int64,
        jumps: Jumps | None,
    ) -> None:
        self.pairs = context.pair[rows]
        self.codes = identify(context)[rows].tolist()
        self.made = np.isin(context.role, (Role.OUTPUT, Role.GRADIENT))[rows].tolist()
        self.starts, self.lines = begun[rows].tolist(), sums.flat[rows].tolist()
        self.scores: list[float] = score[rows].tolist()
        self.lower: list[float] = guarded[rows].tolist()
        gradient = (context.role == Role.GRADIENT)[rows]
        put_out = identify(context)[rows][(context.role == Role.OUTPUT)[rows]]
        self.early = set(np.flatnonzero(gradient & np.isin(identify(context)[rows], put_out)).tolist())
        self.begins_with: list[float] = _begin_with(sums.left[rows], score[rows], guarded[rows], jumps, rows).tolist()
        self.least = max(1.0, jumps.least if jumps else 1.0)
        self.moved = (jumps.crossed[rows] if jumps else np.zeros(len(rows), bool)).tolist()
        self.loose = _are_loose(context, rows, jumps).tolist() if jumps else [False] * len(rows)
        # Sums that no recorded call made come in as they are.
        sums_known = ((sums.left < 1) & ~np.isin(context.role, (Role.OUTPUT, Role.GRADIENT)))[rows]
        self.left = {self.codes[row]: float(sums.left[rows[row]]) for row in np.flatnonzero(sums_known).tolist()}
        self.forward: dict[str, float] = {}
        self.sound, self.jumped = True, False
        self.before: float | None = None

    def follow(self, names: list[str], direction: Int8) -> list[float]:
        """The scores of `rows`."""
        bounds = np.flatnonzero(np.diff(self.pairs, prepend=-1, append=-1)).tolist()
        calls = self.pairs[bounds[:-1]].tolist()
        backward = (direction == Direction.BACKWARD)[calls].tolist()
        for pair, back, first, last in zip(calls, backward, bounds[:-1], bounds[1:], strict=True):
            self._follow_call(names[pair], range(first, last), back=back)
        for row in self.early:
            self.lower[row] = min(self.lower[row], self.scores[row] * self.left.get(self.codes[row], 1.0))
        return self.lower

    def _follow_call(self, name: str, rows: range, *, back: bool) -> None:
        self.jumped = self.jumped or any(self.moved[row] for row in rows)
        known = [self.left.get(self.codes[row]) for row in rows]
        if self.jumped and not back:
            known = [
                self.before if one is None and not self.made[row] and self.loose[row] else one
                for row, one in zip(rows, known, strict=True)
            ]
        share = self._share_of_received(name, rows, known, back=back)
        if share is not None and not back:
            self.forward[name] = self.forward[name.rpartition(".forward")[0]] = share
        most = np.inf if back or self.jumped else self._most_that_follows(rows)
        for row, same in zip(rows, known, strict=True):
            if row in self.early and same is None:
                continue
            if self.made[row]:
                follows = share is not None and min(self.scores[row], self.lower[row]) <= most
                self._lower_result(name, row, share if follows else same)
            elif share is not None:
                self.lower[row] = self.scores[row] * share

    def _most_that_follows(self, rows: range) -> float:
        """The largest score of a result that follows from what a forward call received, unless that is too small for a score."""
        received = [self.scores[row] for row in rows if not self.made[row]]
        return _FARTHER * max([1.0, *received]) if all(received) else np.inf

    def _share_of_received(self, name: str, rows: range, known: list[float | None], *, back: bool) -> float | None:
        """The smallest share of what a call received, None where one of these is not followed."""
        share: float | None = None
        for row, same in zip(rows, known, strict=True):
            if self.made[row] or (same is None and not self._counts(row)):
                continue
            taken = self.before if back and same is None else same
            if taken is None:
                return None
            share = taken if share is None else min(share, taken)
        saved = self.forward.get(name.replace("backward", "forward")) if back else None
        if saved is None:
            return share
        return saved if share is None else min(share, saved)

    def _lower_result(self, name: str, row: int, factor: float | None) -> None:
        if factor is None and not self.lines[row]:
            factor = self.forward.get(name.rpartition(".parameters_grad")[0])
        if factor is not None:
            self.lower[row] = min(self.lower[row], self.scores[row] * factor)
        elif self.starts[row]:
            factor = self.begins_with[row]
        if factor is not None:
            self.left.setdefault(self.codes[row], factor)
            self.before = factor if self.sound else None
        elif self._counts(row):
            self.sound, self.before = False, None

    def _counts(self, row: int) -> bool:
        """An error that weights do not explain."""
        return self.scores[row] > self.least


def _begin_with(left: Float64, score: Float64, guarded: Float64, jumps: Jumps | None, rows: Int64) -> Float64:
    """By row what is left of the terms of a sum that cancels; next to nothing of what noise moved over a jump."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Float64 = np.where(score > 1, guarded / score, left)
    return np.where(jumps.crossed[rows], jumps.bulk / 2, share) if jumps else share


def _are_loose(context: Context, rows: Int64, jumps: Jumps) -> Bool:
    """Which of these may be made of what noise moved over a jump, by code that was not recorded."""
    picks = np.array([operation(name) in PLACES for name in context.apis] + [False])[context.api]
    sizes = np.unique(context.elements[jumps.crossed])
    loose: Bool = ~jumps.held[rows]
    # Words that were picked stand among others later on; what was compared does not.
    if not picks[context.pair[jumps.crossed]].any():
        loose &= ~is_exact_kind(context, rows) | np.isin(context.elements[rows], sizes)
    return loose & _are_multiples(context.elements[rows], sizes[sizes > 0])


def _are_multiples(elements: Int64, sizes: Int64) -> Bool:
    """Which of these numbers of elements may be what was moved, cast, looked up or stretched: multiples of one of the sizes."""
    found = np.zeros(len(elements), bool)
    for size in sizes.tolist():
        found |= elements % size == 0
    return found


def explained_by(score: Float64, weight: Bool) -> float:
    """The largest score that weights explain which an optimizer made different; 1 where there are none."""
    return float(max(1.0, JUMP * score[weight & np.isfinite(score)].max(initial=0.0)))
