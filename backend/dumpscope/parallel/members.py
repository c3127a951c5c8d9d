"""The ranks of one side: read and stripped of wrappers and experts on demand, so that few are in memory together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dumpscope.domain.records import RankDump
from dumpscope.parallel.collectives import without_collectives
from dumpscope.parallel.columns import lean
from dumpscope.parallel.experts import without_experts
from dumpscope.parallel.plan import SidePlan
from dumpscope.parallel.stages import join_stages
from dumpscope.parallel.wrappers import without_wrappers


@dataclass(slots=True, kw_only=True)
class Members:
    """plan: that of the side; load: reads a rank; world: all ranks of the dump
    wrappers: how many are taken off; experts: they are left out
    collectives, inside: how many calls between the joined ranks, and inside experts, were left out so far
    """

    plan: SidePlan
    load: Callable[[int], RankDump]
    world: Sequence[int]
    wrappers: int = 0
    experts: bool = False
    collectives: int = 0
    inside: int = 0
    pattern: RankDump | None = None

    def whole(self, replica: int) -> list[RankDump]:
        """The shards of a replica, each joined from all its stages, with their wrappers and experts."""
        found: list[RankDump] = []
        for place in range(self.plan.shards):
            stages = [self._load_without_shards(stage[place]) for stage in self.plan.ranks[replica]]
            found.append(lean(join_stages(stages, self.plan), found[0] if found else self.pattern))
        return found

    def without_wrappers_of(self, dumps: Sequence[RankDump]) -> list[RankDump]:
        found: list[RankDump] = []
        for dump in dumps:
            bare = without_wrappers(dump, self.wrappers)
            if self.experts:
                bare, count = without_experts(bare)
                self.inside += count
            found.append(lean(bare, found[0] if found else self.pattern))
        self.pattern = found[0] if self.pattern is None else self.pattern
        return found

    def replica(self, number: int) -> list[RankDump]:
        return self.without_wrappers_of(self.whole(number))

    def _load_without_shards(self, rank: int) -> RankDump:
        dump = with_full_paths(self.load(rank))
        ours = set(self.plan.every())
        if len(ours) > 1:
            dump, count = without_collectives(dump, ours, self.world)
            self.collectives += count
        return dump


def with_full_paths(dump: RankDump) -> RankDump:
    """The dump with full paths as data names, so that tensors of several ranks can be in one dump."""
    folder = dump.header.data_dir
    items = dump.items
    if folder is None:
        return replace(dump, items=replace(items, data_name=np.full(len(items), -1, np.int32), data_names=[]))
    names = [os.path.join(folder, name) for name in items.data_names]
    return replace(dump, items=replace(items, data_names=names))
