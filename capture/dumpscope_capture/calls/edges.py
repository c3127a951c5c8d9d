"""Edges of the autograd graph: where the gradient of a tensor goes, and which edges a set of results leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch.autograd.graph import Node

if TYPE_CHECKING:
    from typing import TypeAlias

Edge: TypeAlias = "tuple[Node, int]"
"""A node, and the index of the gradient it receives."""

WALK_LIMIT: Final = 200_000
"""Largest number of nodes visited for one call or module."""


def sequence_number() -> int:
    """Autograd sequence number of the next node in this thread."""
    return int(torch._C._autograd._get_sequence_nr())


def node_of(tensor: torch.Tensor) -> Node | None:
    """The node that made a tensor; None for leaves and for tensors inside function transforms."""
    if not tensor.requires_grad or torch._C._functorch.maybe_get_level(tensor) != -1:
        return None
    return tensor.grad_fn


def edge_of(tensor: torch.Tensor) -> Edge | torch.Tensor | None:
    """Where a tensor's gradient goes; the tensor itself for a leaf, whose node `leaf_edge` finds after the call."""
    if not tensor.requires_grad or torch._C._functorch.maybe_get_level(tensor) != -1:
        return None
    node = tensor.grad_fn
    return tensor if node is None else (node, tensor.output_nr)


def leaf_edge(leaf: torch.Tensor) -> Edge | None:
    """Where a leaf's gradient goes. The graph of a call that used the leaf keeps its node alive, and nothing else must: a node
    that is made or held while a sharding wrapper has put other memory behind the leaf has the wrong shape for the graph."""
    node = accumulator_of(leaf)
    return None if node is None else (node, 0)


def accumulator_of(tensor: torch.Tensor) -> Node | None:
    """The AccumulateGrad node of a leaf."""
    if torch.is_inference(tensor):
        return None
    with torch.enable_grad():
        node = tensor.view_as(tensor).grad_fn
    return node.next_functions[0][0] if node is not None else None


def is_new(node: Node, first: int) -> bool:
    return first <= node._sequence_nr() < _ACCUMULATOR


_CAST: Final = "ToCopyBackward0"
_ACCUMULATOR: Final = 1 << 63
"""AccumulateGrad nodes have the highest sequence number."""


def leaf_type(edge: Edge) -> torch.dtype:
    """The type of the leaf whose gradient goes there."""
    leaf: torch.Tensor = edge[0].variable  # type: ignore[attr-defined]
    return leaf.dtype


def behind_cast(node: Node) -> Edge | None:
    """Where the gradient of a leaf goes, if this node is the cast of one to another type."""
    if node.name() != _CAST:
        return None
    ((target, slot),) = node.next_functions
    return (target, slot) if target is not None and target._sequence_nr() >= _ACCUMULATOR else None


def walk(
    roots: list[Node], wanted: dict[Edge, list[int]], made: dict[Edge, int], first: int
) -> tuple[list[tuple[Node, int, Edge]], list[tuple[Node, int, Edge]]]:
    """Nodes made since `first`, depth first in slot order: (node, slot, edge) where a slot's gradient goes to a wanted edge, and
    where it goes to one of the results in `made`. The way to a weight that autocast casts ends at the cast: torch keeps the copy
    for all calls that take this weight, and behind the cast only the sum of their gradients is seen."""
    found: list[tuple[Node, int, Edge]] = []
    inner: list[tuple[Node, int, Edge]] = []
    seen: set[Node] = set(roots)
    todo = list(reversed(list(dict.fromkeys(roots))))
    while todo and len(seen) < WALK_LIMIT:
        node = todo.pop()
        below: list[Node] = []
        for slot, edge in enumerate(node.next_functions):
            target = edge[0]
            if target is None:
                continue
            if edge in wanted:
                found.append((node, slot, edge))
                continue
            weight = behind_cast(target)
            if weight in wanted:
                found.append((node, slot, weight))
                continue
            if edge in made:
                inner.append((node, slot, edge))
            if target not in seen and is_new(target, first):
                seen.add(target)
                below.append(target)
        todo.extend(reversed(below))
    return found, inner
