"""One unit (a rank of a step, compared) as the rules look at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.analysis.unit.weight_items import DifferingWeight, find_differing_weights
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions, MaskedRows, NodePairs, Outcome
from dumpscope.domain.picking import PickCheck
from dumpscope.domain.records import Bool, Float64, Int64, Kind, RankDump, Role
from dumpscope.domain.result import ResultTree
from dumpscope.verdict.score import is_exact_kind

RECEIVED: Final = (Role.INPUT, Role.KWARG, Role.PARAMETER)
"""Roles of what a call received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """What is kept of a unit when its step is over.

    noise: largest finite score of the unit; gradients: recorded and compared
    lifted: names of the parameters whose gradients are pure rounding; updates: see learned_noise.find_updates; bulk: see Case
    gradient: the first node whose gradient differs, in any bit, after a forward that does not; "" where there is none
    """

    step: int
    noise: float
    gradients: bool
    gradient: str
    lifted: frozenset[str] = frozenset()
    updates: frozenset[int] = frozenset()
    bulk: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the steps before this one leave to it.

    differs: some bit of an earlier step differs, so an optimizer may have made weights differ; went_wrong: an earlier step has a
        finding; before: end of the last step on this rank, None in the first; noisy: an earlier step was noisy for a known reason
        (`learned_noise.are_noisy`), so that weights made there carry its rounding, whatever this step computes in
    """

    step: int = 0
    differs: bool = False
    went_wrong: bool = False
    before: StepEnd | None = None
    noisy: bool = False


def _know_nothing(*_numbers: int) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that the rules look at. first_item: first item pair of each node pair, and the number of item pairs at the end

    crossed: by item pair, what noise moved over a jump (`noise.find_crossed`); none in a quiet pair
    bulk: the floor of distances that rules the unit
    check_picks: what the tensors of a node pair that sorts or picks show, None where they cannot be read
    check_masked_rows: what those of attention show, by the item pairs of its mask and its result; None as there
    makers: what `dataflow.find_makers` found, by whether for the golden
    """

    target: RankDump
    golden: RankDump
    pairs: NodePairs
    tree: ResultTree
    context: Context
    facts: Facts
    opinions: ItemOpinions
    columns: NodeColumns
    first_item: Int64 = field(repr=False)
    history: History = field(default_factory=History)
    crossed: Bool = field(repr=False)
    bulk: float = 0.0
    check_picks: Callable[[int], PickCheck | None] = field(default=_know_nothing, repr=False)
    check_masked_rows: Callable[[int, int], MaskedRows | None] = field(default=_know_nothing, repr=False)
    makers: dict[bool, Int64] = field(default_factory=dict, repr=False)

    @cached_property
    def received(self) -> Bool:
        """By item pair: whether the call received it."""
        return np.isin(self.context.role, RECEIVED)

    @cached_property
    def exact(self) -> Bool:
        """By item pair: integers or truth values on both sides, which must be equal."""
        return is_exact_kind(self.context)

    @cached_property
    def threshold(self) -> Float64:
        """By item pair: the threshold of its node."""
        return self.columns.threshold[self.context.pair]

    @cached_property
    def is_different(self) -> Bool:
        """By item pair: it holds a tensor whose score is above the threshold."""
        tensor = (self.context.kind == Kind.TENSOR) | (self.facts.outcome == Outcome.KIND)
        found: Bool = tensor & (self.opinions.score > self.threshold)
        return found

    @cached_property
    def weights(self) -> list[DifferingWeight]:
        """Differing weights in the order in which the forward meets them."""
        return find_differing_weights(self.target, self.context, self.facts, self.opinions, self.columns)

    def items_of(self, pair: int) -> Int64:
        return np.arange(self.first_item[pair], self.first_item[pair + 1])

    def inputs_of(self, pair: int) -> Int64:
        first, last = self.first_item[pair], self.first_item[pair + 1]
        items: Int64 = np.flatnonzero(self.received[first:last]) + first
        return items

    def outputs_of(self, pair: int) -> Int64:
        first, last = self.first_item[pair], self.first_item[pair + 1]
        items: Int64 = np.flatnonzero(~self.received[first:last]) + first
        return items

    def different(self, items: Int64) -> Int64:
        """Those of these item pairs that hold a tensor whose score is above the threshold."""
        found: Int64 = items[self.is_different[items]]
        return found
