"""Experts that are shared by ranks: each rank holds some experts, and tokens are sent to the rank of their expert."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.records import RankDump
from dumpscope.parallel.columns import keep_nodes
from dumpscope_format import naming

_WORDS: Final = frozenset({"experts", "local_experts", "expert"})
"""Words in the path of a module that holds experts, in Megatron, MindSpeed and transformers."""


def without_experts(dump: RankDump) -> tuple[RankDump, int]:
    """The dump without the nodes inside experts, and the number of removed nodes.

    A rank numbers its experts from 0, and processes tokens of all ranks in its own order. So neither its weights nor its
    activations are a part of the whole tensor along a dimension.
    """
    tree = dump.tree
    inside = np.zeros(len(tree) + 1, bool)  # the extra last entry is for -1
    for entry, name in enumerate(tree.names):
        parsed = naming.parse(name)
        if parsed.kind in ("module", "gradient"):
            inside[entry] = not _WORDS.isdisjoint(parsed.label.split(".")[:-1])
    while True:
        below = inside[:-1] | inside[tree.parent]
        if (below == inside[:-1]).all():
            break
        inside[:-1] = below
    keep = ~inside[: len(dump.nodes)]
    return keep_nodes(dump, keep), int((~keep).sum())
