"""What a recorded call is: its call stack, and the forward call behind a backward one."""

from __future__ import annotations

import numpy as np

from dumpscope.domain.records import Direction, NodeKind, Nodes, RankDump, module_around


def forward_of(nodes: Nodes, node: int) -> int:
    """Node of the forward call whose backward `node` is; -1 where there is none, or it is unknown."""
    label = nodes.label[node]
    backward = nodes.direction[node] == Direction.BACKWARD or nodes.kind[node] == NodeKind.GRADIENT
    if label < 0 or not backward:
        return -1
    calls = np.flatnonzero((nodes.label == label) & (nodes.direction == Direction.FORWARD))
    exact = calls[nodes.index[calls] == nodes.index[node]]
    picked = exact if len(exact) else calls if nodes.kind[node] == NodeKind.GRADIENT else exact
    return int(picked[0]) if len(picked) else -1


def module_of(dump: RankDump, node: int) -> str:
    """Path and class of the innermost module around a node, as "layers.1.attn.Attn"; its own where it is one, that of the forward
    call where a backward one stands outside; "" where there is none."""
    if node < 0:
        return ""
    if dump.nodes.kind[node] == NodeKind.GRADIENT and dump.nodes.label[node] >= 0:
        return dump.nodes.labels[int(dump.nodes.label[node])]
    return module_around(dump, node) or module_around(dump, forward_of(dump.nodes, node))


def stack_of(dump: RankDump, node: int) -> list[str]:
    """Call stack of a node, or of its forward call where a backward node has none; empty where none was stored."""
    if node < 0:
        return []
    nodes = dump.nodes
    code = int(nodes.stack[node])
    if code < 0:
        label, index = nodes.label[node], nodes.index[node]
        same = np.flatnonzero((nodes.label == label) & (nodes.stack >= 0))
        exact = same[nodes.index[same] == index]
        pick = exact if len(exact) else same
        code = int(nodes.stack[pick[0]]) if len(pick) and label >= 0 else -1
    return list(nodes.stacks[code]) if code >= 0 else []
