"""The forward call behind a backward one, or behind a parameter's gradient."""

from __future__ import annotations

import numpy as np

from dumpscope.domain.records import Direction, NodeKind, Nodes


def forward_of(nodes: Nodes, node: int) -> int:
    """Node of the forward call whose backward `node` is; -1 where there is none, or nothing tells which."""
    label = nodes.label[node]
    backward = nodes.direction[node] == Direction.BACKWARD or nodes.kind[node] == NodeKind.GRADIENT
    if label < 0 or not backward:
        return -1
    calls = np.flatnonzero((nodes.label == label) & (nodes.direction == Direction.FORWARD))
    exact = calls[nodes.index[calls] == nodes.index[node]]
    picked = exact if len(exact) else calls if nodes.kind[node] == NodeKind.GRADIENT else exact
    return int(picked[0]) if len(picked) else -1
