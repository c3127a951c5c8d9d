"""The node pairs of one unit as columns: what each received and made, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dumpscope.domain.records import Bool, Float64, Int8, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeColumns:
    """One row per node pair.

    own_in: worst score of tensor inputs and parameters; nan where nothing was compared
    in_score: the same, for a backward node also of its forward call (saved values); inf for a parameter gradient of which no
        input is known. seen_in: the same, but nan for such a gradient
    own_data, data_score: as own_in and in_score, without weights where an optimizer may have made them differ
    out_score: worst score of outputs (or parameter gradients); nan where nothing was compared
    inexact: 1 where a bit of what in_score covers differs, whatever its score; excused: 1 where such a difference is too
        small for a score, and large beside what the tensor holds. Neither proves that an input is clean
    cancels: what the call made is a sum that cancels, or was made of one: its error is large and means nothing
    argument: a non-tensor argument differs
    leaf: the tree holds no other node with a partner below it; alone: without a partner
    extra: made by one side only, as far as the dumps show (alone, and not merely left out of the other dump)
    entry: its entry in the result tree; labels: its API or module, as "Functional.linear"
    threshold: by node, the score above which a value counts as different in this pair of runs
    growth: by node, how many times larger one call may make an error that comes in, before it counts as its own
    quiet: the two runs are bit-equal up to the first difference, so any visible difference is a finding
    sequence: no call has a tensor argument that was recorded; all that was made before a call stands for what it received
    """

    kind: Int8
    direction: Int8
    in_score: Float64
    seen_in: Float64
    own_data: Float64
    data_score: Float64
    out_score: Float64
    own_in: Float64
    inexact: Float64
    excused: Float64
    cancels: Bool
    argument: Bool
    leaf: Bool
    alone: Bool
    extra: Bool
    entry: Int64
    names: list[str]
    labels: list[str]
    threshold: Float64
    growth: Float64
    quiet: bool
    sequence: bool

    def __len__(self) -> int:
        return len(self.names)

    @property
    def wrong(self) -> Bool:
        """Nodes that received or made something different."""
        with np.errstate(invalid="ignore"):
            found: Bool = (self.out_score > self.threshold) | (self.own_in > self.threshold) | self.argument
        return found

    def received_clean(self, pair: int) -> bool:
        return not self.in_score[pair] > 0.5 * self.threshold[pair]

    def made_different(self, pair: int) -> bool:
        return bool(self.out_score[pair] > self.threshold[pair])
