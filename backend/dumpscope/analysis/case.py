"""One unit as the rules look at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dumpscope.analysis.node_columns import Story
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions, NodePairs, Outcome
from dumpscope.domain.records import Bool, Float64, Int64, Kind, RankDump, Role
from dumpscope.domain.result import ResultTree

RECEIVED: Final = (Role.INPUT, Role.KWARG, Role.PARAMETER)
"""Roles of what a call received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything the rules look at."""

    target: RankDump
    golden: RankDump
    pairs: NodePairs
    tree: ResultTree
    context: Context
    facts: Facts
    opinions: ItemOpinions
    story: Story
    floor: float  # bulk floor that most float tensors of this unit have
    first_item: Int64 = field(repr=False)
    received: Bool = field(init=False, repr=False)  # by item: whether the call received it
    bar: Float64 = field(init=False, repr=False)  # by item: the threshold of its node

    def __post_init__(self) -> None:
        received = np.isin(self.context.role, RECEIVED)
        object.__setattr__(self, "received", received)
        object.__setattr__(self, "bar", self.story.threshold[self.context.pair])

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

    def dirty_items(self, items: Int64) -> Int64:
        tensor = (self.context.kind[items] == Kind.TENSOR) | (self.facts.outcome[items] == Outcome.KIND)
        dirty: Int64 = items[tensor & (self.opinions.score[items] > self.bar[items])]
        return dirty
