"""Nodes of a rank, collected call by call into columns; leaf records go to `leaves.Leaves`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np

from dumpscope.domain.records import Direction, Header, NodeKind, Nodes, RankDump, RankRef
from dumpscope.errors import Problem
from dumpscope.readers.records.leaves import Interned, Leaves
from dumpscope.readers.records.tree import build_tree
from dumpscope_format.naming import split

Split = Callable[[str], tuple[str, str, str, int, str]]
"""Kind, direction, label, call index and prefix that a name tells."""


class NodeTable:
    """split: reads a name of this format; msprobe's by default"""

    def __init__(self, split: Split = split) -> None:
        self._split = split
        self._names: list[str] = []
        self._kind, self._direction = array("b"), array("b")
        self._label, self._index, self._stack = array("i"), array("i"), array("i")
        self._labels, self._stacks, self._frames = Interned(), Interned(), Interned()

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str, *, written: str | None = None, stack: Iterable[str] = ()) -> int:
        """Number of the new node. written: the name as the dump has it, where `name` had to differ; stack: innermost first"""
        kind, direction, label, index, _ = self._split(name if written is None else written)
        frames = tuple(self._frames.values[self._frames.code(frame)] for frame in stack)
        self._kind.append(NodeKind[kind.upper()])
        self._direction.append(Direction[direction.upper()])
        self._label.append(self._labels.code(label))
        self._index.append(index)
        self._stack.append(self._stacks.code(frames) if frames else -1)
        self._names.append(name)
        return len(self._names) - 1

    def nodes(self) -> Nodes:
        return Nodes(
            names=self._names,
            kind=np.frombuffer(self._kind, np.int8),
            direction=np.frombuffer(self._direction, np.int8),
            label=np.frombuffer(self._label, np.int32),
            labels=self._labels.values,
            index=np.frombuffer(self._index, np.int32),
            stack=np.frombuffer(self._stack, np.int32),
            stacks=self._stacks.values,
            micro=np.full(len(self._names), -1, np.int32),
        )


def build_rank(ref: RankRef, header: Header, table: NodeTable, leaves: Leaves, problems: Iterable[Problem]) -> RankDump:
    """The rank with a module tree that is inferred from names and stacks."""
    nodes = table.nodes()
    tree, found = build_tree(nodes, None)
    more = [Problem(loc=ref.label or ref.dump_json, kind=kind, message=message) for kind, message in found]
    return RankDump(ref=ref, header=header, nodes=nodes, items=leaves.items(), tree=tree, problems=[*problems, *more])
