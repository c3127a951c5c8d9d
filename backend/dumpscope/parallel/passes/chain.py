"""Steps of a record that are passes of one request, one after the other in one dump."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dumpscope.domain.records import RankDump, Tree
from dumpscope.parallel.columns import pool
from dumpscope.parallel.members import with_full_paths
from dumpscope_format import naming


def chain_steps(dumps: Sequence[RankDump]) -> RankDump:
    """One dump of these, in their order; calls are numbered on from one to the next."""
    if len(dumps) == 1:
        return dumps[0]
    full = [with_full_paths(dump) for dump in dumps]
    together = pool(full)
    total = len(together.nodes)
    begun: Counter[tuple[str, str, str]] = Counter()
    names: list[list[str]] = []
    indices = together.nodes.index.copy()
    for dump, first in zip(full, together.first_node, strict=True):
        parsed = [naming.parse(name) for name in dump.tree.names]
        moved = [one.index + begun[_key(one)] if one.index >= 0 else one.index for one in parsed]
        names.append([naming.build(replace(one, index=at)) for one, at in zip(parsed, moved, strict=True)])
        indices[first : first + len(dump.nodes)] = moved[: len(dump.nodes)]
        for one, at in zip(parsed, moved, strict=True):
            begun[_key(one)] = max(begun[_key(one)], at + 1)
    parents, orders, virtual = [np.empty(0, np.int64)] * len(full), [np.empty(0, np.int64)] * len(full), total
    late = 0
    for number, (dump, first) in enumerate(zip(full, together.first_node, strict=True)):
        own = len(dump.nodes)
        place = np.append(np.arange(len(dump.tree)), -1)
        place[:own] += first
        place[own:-1] += virtual - own
        parents[number], orders[number] = place[dump.tree.parent], dump.tree.order.astype(np.int64) + late
        virtual += len(dump.tree) - own
        late += int(dump.tree.order.max(initial=-1)) + 1
    ends = [len(dump.nodes) for dump in full]

    def placed(
        columns: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]],
    ) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        nodes = [column[:end] for column, end in zip(columns, ends, strict=True)]
        others = [column[end:] for column, end in zip(columns, ends, strict=True)]
        return np.concatenate([*nodes, *others]).astype(np.int32)

    listed = [name for own, end in zip(names, ends, strict=True) for name in own[:end]]
    others = [name for own, end in zip(names, ends, strict=True) for name in own[end:]]
    return replace(
        full[0],
        nodes=replace(together.nodes, names=listed, index=indices),
        items=together.items,
        tree=Tree(
            names=[*listed, *others],
            parent=placed(parents),
            order=placed(orders),
            inferred=any(dump.tree.inferred for dump in full),
        ),
        problems=[problem for dump in dumps for problem in dump.problems],
    )


def _key(one: naming.NodeName) -> tuple[str, str, str]:
    return one.kind, one.label, one.direction
