"""One side prepared for matching: tree entries with their kind, label, call index and children in order of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dumpscope.domain.records import Direction, Kind, NodeKind, RankDump, Role, State
from dumpscope.match.operators.operations import operation
from dumpscope_format import naming

Numbers = tuple[float, ...] | str
"""A tensor's statistics (nan if absent), or its hash if no statistic is stored."""
Signature = tuple[tuple[tuple[int, ...], ...], tuple[Numbers, ...], tuple[int, ...], tuple[tuple[str, str], ...]]

ARITHMETIC: Final = frozenset({"add", "div", "mul", "pow", "sub"})
TRANSFORMS: Final = "torch.func."
"""How the types of tensors inside a function transform (vmap, grad) begin. No backward of such a call is recorded."""
OTHERS: Final = 3.0
"""How much a different argument reduces the weight of a pair."""


@dataclass(slots=True, kw_only=True)
class Side:
    """kind, direction, label, index: one per tree entry (dumped nodes first, as in Tree)
    children: entry numbers below an entry in order of time; -1 is the top
    names: one per entry, all in msprobe's form and without wrappers, so that dumps of all formats match
    wrappers: entries that are calls of a wrapper that only this side has; they are no children
    wrapped: label of a module -> its label in the dump, where a wrapper's word was taken off
    """

    dump: RankDump
    kind: list[int]
    direction: list[int]
    label: list[str]
    index: list[int]
    children: dict[int, list[int]]
    first_item: list[int]
    names: list[str]
    wrappers: set[int] = field(default_factory=set)
    wrapped: dict[str, str] = field(default_factory=dict)
    _signatures: dict[int, Signature] = field(default_factory=dict)
    _backward: dict[tuple[str, int], int] | None = None
    _labelled: dict[str, list[int]] | None = None

    @property
    def dumped(self) -> int:
        return len(self.dump.nodes)

    def name(self, entry: int) -> str:
        """The node's name in msprobe's form, so that names of all formats can be compared."""
        return self.names[entry]

    def again(self, entry: int) -> bool:
        """Whether activation checkpointing made this call again, as its number says."""
        return self.index[entry] >= naming.AGAIN and self.direction[entry] == Direction.FORWARD

    def stack(self, entry: int) -> tuple[str, ...] | None:
        if entry >= self.dumped:
            return None
        code = int(self.dump.nodes.stack[entry])
        return self.dump.nodes.stacks[code] if code >= 0 else None

    def in_transforms(self) -> set[int]:
        """Calls that were made inside a function transform (vmap, grad)."""
        items = self.dump.items
        codes = [code for code, name in enumerate(items.types) if name.startswith(TRANSFORMS)]
        return set(items.node[np.isin(items.type, codes)].tolist()) if codes else set()

    def backward(self, entry: int) -> int | None:
        """Backward node of an API's forward call (for a module: of the first call inside it); None if not dumped."""
        if self.kind[entry] == NodeKind.MODULE:
            below = next((child for child in self.children.get(entry, ()) if is_call(self, child)), None)
            return None if below is None else self.backward(below)
        if self.kind[entry] != NodeKind.API:
            return None
        if self._backward is None:
            self._backward = {
                (self.label[node], self.index[node]): node
                for node in range(self.dumped)
                if self.direction[node] == Direction.BACKWARD and self.kind[node] == NodeKind.API
            }
        return self._backward.get((self.label[entry], self.index[entry]))

    def parent(self, entry: int) -> int | None:
        """The module around an entry; None at the top and if the tree is ignored."""
        parent = int(self.dump.tree.parent[entry])
        while parent in self.wrappers:
            parent = int(self.dump.tree.parent[parent])
        return parent if parent >= 0 and parent in self.children else None

    def relatives(self, module: int) -> Iterator[int]:
        """A module's call, the backward of this call, and the module's parameter gradients."""
        if self._labelled is None:
            self._labelled = {}
            for entry, label in enumerate(self.label):
                self._labelled.setdefault(label, []).append(entry)
        for entry in self._labelled[self.label[module]]:
            if self.index[entry] == self.index[module] or self.kind[entry] == NodeKind.GRADIENT:
                yield entry

    def signature(self, entry: int) -> Signature:
        """Shapes, numbers and dtypes (codes) of the inputs and parameters of a node, and the path and value of every other
        argument; all empty for a virtual entry."""
        known = self._signatures.get(entry)
        if known is None:
            known = self._signatures[entry] = self._sign(entry)
        return known

    def _sign(self, entry: int) -> Signature:
        if entry >= self.dumped:
            return (), (), (), ()
        items = self.dump.items
        shapes: list[tuple[int, ...]] = []
        stats: list[Numbers] = []
        dtypes: list[int] = []
        others: list[tuple[str, str]] = []
        for item in range(self.first_item[entry], self.first_item[entry + 1]):
            if items.role[item] in (Role.OUTPUT, Role.GRADIENT):
                continue
            if items.kind[item] != Kind.TENSOR:
                value = int(items.value[item])
                others.append((items.paths[items.path[item]], items.values[value] if value >= 0 else ""))
                continue
            code = int(items.shape[item])
            shapes.append(items.shapes[code] if code >= 0 else ())
            row, state, mark = items.stats[item], items.stat_state[item], int(items.hash[item])
            if mark >= 0 and not state.any():
                stats.append(items.hashes[mark])
            else:
                stats.append(tuple(_number(float(x), int(s)) for x, s in zip(row, state, strict=True)))
            dtypes.append(int(items.dtype[item]))
        return tuple(shapes), tuple(stats), tuple(dtypes), tuple(others)

    def dtypes(self, entry: int) -> list[str]:
        """Dtypes of the tensors that `signature` covers."""
        names = self.dump.items.dtypes
        return [names[code] if code >= 0 else "" for code in self.signature(entry)[2]]


def prepare(dump: RankDump, *, flat: bool = False) -> Side:
    """Build a Side. flat: ignore the tree (used if the tree was only inferred)."""
    nodes, tree = dump.nodes, dump.tree
    kind = nodes.kind.tolist()
    direction = nodes.direction.tolist()
    labels = nodes.labels
    label = [labels[code] if code >= 0 else name for code, name in zip(nodes.label.tolist(), nodes.names, strict=True)]
    index = nodes.index.tolist()
    for name in tree.names[len(nodes) :]:
        parsed = naming.parse(name)
        kind.append(int(NodeKind[parsed.kind.upper()]))
        direction.append(int(Direction[parsed.direction.upper()]))
        label.append(parsed.label)
        index.append(parsed.index)
    children: dict[int, list[int]] = {}
    parents = tree.parent.tolist()
    for entry in np.argsort(tree.order, kind="stable").tolist():
        if flat and entry >= len(nodes):
            continue
        children.setdefault(-1 if flat else parents[entry], []).append(entry)
    bounds = np.searchsorted(dump.items.node, np.arange(len(nodes) + 1)).tolist()
    return Side(
        dump=dump, kind=kind, direction=direction, label=label, index=index, children=children, first_item=bounds,
        names=common_names(dump),
    )  # fmt: skip


def common_names(dump: RankDump) -> list[str]:
    """Names of the tree's entries in msprobe's form, by which dumps of all formats match."""
    names = dump.tree.names
    return [naming.canonical(name) for name in names] if dump.ref.traits.ptdbg_names else names


def module_path(label: str) -> str:
    """Path of a module label without its class: "layers.0.mlp.Mlp" -> "layers.0.mlp"."""
    return label.rpartition(".")[0]


def relative_label(label: str, parent: str | None) -> str:
    """Label of a child module seen from its parent's label, so that a renamed parent does not rename its children."""
    path = module_path(parent) if parent else ""
    return label[len(path) + 1 :] if path and label.startswith(path + ".") else label


def is_call(side: Side, entry: int) -> bool:
    """Forward-like entries form the sequences that are aligned; backward ones follow their forward call."""
    return side.direction[entry] != Direction.BACKWARD and side.kind[entry] != NodeKind.GRADIENT


def similarity(target: Side, golden: Side, t: int, g: int) -> float:
    """Weight of a pair with equal keys: agreeing inputs count most, because call counters shift and inputs do not. Other
    arguments (the factor of a product) distinguish calls with the same inputs; they weigh more than the call number.

    A call that was recorded by name only weighs less than any call whose inputs agree, whatever its number.
    """
    if target.kind[t] == NodeKind.API and (t >= target.dumped or g >= golden.dumped):
        return 5.0 if target.name(t) == golden.name(g) else 4.0
    if is_another_call(target, golden, t, g):
        return 0.0
    weight = 1.0
    if target.name(t) == golden.name(g):
        weight += 2.5
    t_shapes, t_stats, _, t_others = target.signature(t)
    g_shapes, g_stats, _, g_others = golden.signature(g)
    if t_shapes == g_shapes:
        weight += 2.0
    if target.dtypes(t) == golden.dtypes(g):
        weight += 0.5
    t_stack, g_stack = target.stack(t), golden.stack(g)
    if t_stack is not None and t_stack == g_stack:
        weight += 1.0
    if t_stats and len(t_stats) == len(g_stats):
        weight += 6.0 * _alike(t_stats, g_stats)
    elif not t_stats and not g_stats:
        weight += 5.0
    t_back, g_back = target.backward(t), golden.backward(g)
    if t_back is not None and g_back is not None:
        weight += 3.0 * (_alike(target.signature(t_back)[1], golden.signature(g_back)[1]) - 0.5)
    return weight if t_others == g_others or _unrecorded(target, golden, t, g) else max(weight - OTHERS, 0.1)


def is_another_call(target: Side, golden: Side, t: int, g: int) -> bool:
    """Whether two calls of plain arithmetic take another number of tensors, of which no two in the same place have one shape: a
    product with a number is not the product of two other tensors."""
    if target.kind[t] != NodeKind.API or t >= target.dumped or g >= golden.dumped:
        return False
    if operation(target.label[t]) not in ARITHMETIC:
        return False
    shapes = target.signature(t)[0], golden.signature(g)[0]
    if not all(shapes):
        return False
    if len(shapes[0]) == len(shapes[1]):
        return _takes_other_number(target, golden, t, g) and all(
            len(one) != len(other) or one[-1:] != other[-1:] for one, other in zip(*shapes, strict=True)
        )
    return not any(one == other for one, other in zip(*shapes, strict=False))


def _takes_other_number(target: Side, golden: Side, t: int, g: int) -> bool:
    """Whether both calls take a number beside one tensor, and another one."""
    t_shapes, _, _, t_others = target.signature(t)
    g_others = golden.signature(g)[3]
    return len(t_shapes) == 1 and bool(t_others) and bool(g_others) and t_others != g_others


def takes_same(target: Side, golden: Side, t: int, g: int) -> bool:
    """Whether two calls take tensors of the same shapes and close statistics, and at least one."""
    t_shapes, t_stats, *_ = target.signature(t)
    g_shapes, g_stats, *_ = golden.signature(g)
    return bool(t_shapes) and t_shapes == g_shapes and _alike(t_stats, g_stats) == 1


def _unrecorded(target: Side, golden: Side, t: int, g: int) -> bool:
    """Whether the other arguments that both dumps recorded agree (two formats do not record the same arguments)."""
    if target.dump.header.layout == golden.dump.header.layout:
        return False
    one, other = dict(target.signature(t)[3]), dict(golden.signature(g)[3])
    return all(one[path] == other[path] for path in one.keys() & other.keys())


def _alike(t_stats: tuple[Numbers, ...], g_stats: tuple[Numbers, ...]) -> float:
    """Share of tensors whose statistics are close."""
    if not t_stats or len(t_stats) != len(g_stats):
        return 0.5
    return sum(_agree(x, y) for x, y in zip(t_stats, g_stats, strict=True)) / len(t_stats)


def _agree(x: Numbers, y: Numbers) -> bool:
    if isinstance(x, str) or isinstance(y, str):
        return x == y
    known = [(a, b) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    return close(*zip(*known, strict=True)) if known else math.isnan(x[0]) == math.isnan(y[0])


def close(x: Iterable[float], y: Iterable[float]) -> bool:
    """Whether the statistics of two tensors agree within 2 %."""
    return all(a == b or abs(a - b) <= 0.02 * max(abs(a), abs(b)) for a, b in zip(x, y, strict=True))


def _number(value: float, state: int) -> float:
    """A statistic to compare: NaN and infinities as numbers that no other is near to."""
    return value if state == State.FINITE else math.nan if state == State.ABSENT else -float(state)
