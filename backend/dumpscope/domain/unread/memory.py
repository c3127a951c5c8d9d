"""What a call holds but nobody reads: content that a comparison must not judge.

Memory from `empty` and its kin holds what was left there, and an argument that a call overwrites wholly is no input. Both differ
between two healthy runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Bool, Direction, Int64, Kind, RankDump, Role, State
from dumpscope.domain.unread import communication

UNINITIALISED: Final = frozenset(
    {
        "empty", "empty_like", "empty_permuted", "empty_strided", "empty_strided_with_format", "empty_with_format",
        "empty_with_swapped_memory", "new_empty", "new_empty_strided", "resize_", "resize_as_",
    }
)  # fmt: skip
"""Calls that return memory as it is."""
OVERWRITING: Final = frozenset(
    {
        "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_", "log_normal_", "normal_", "one_", "random_",
        "resize_", "resize_as_", "uniform_", "zero_", "_foreach_copy_", "_foreach_zero_",
    }
)  # fmt: skip
"""Calls that replace all that their first argument held."""
PARTLY: Final = frozenset(
    {"__setitem__", "fill_diagonal_", "index_copy_", "index_fill_", "index_put_", "masked_scatter_", "put_", "scatter_"}
)
"""Calls that replace a part of what their first argument held, and leave the rest."""
RESULT: Final = "out"
"""Keyword of the argument that takes a call's result."""
MARK: Final = '"uninitialised":'
"""Key of our own capture in the record of a tensor: nothing, or only parts, had been written to this memory before the call."""

Words = NDArray[np.uint64]

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


def unread(dump: RankDump) -> Bool:
    """Per item: whether it is uninitialised memory, an argument that its call overwrites wholly, or a buffer of a communication
    whose content is undefined."""
    found = communication.unread(dump)
    if not len(dump.items):
        return found
    found |= _find_overwritten(dump)
    found |= _find_uninitialised(dump)
    return found


@lru_cache(1 << 16)
def operation(label: str) -> str:
    """Last word of a call's label; of an aten operator the word before its overload, "copy_" of "Aten.copy_.default"."""
    parts = label.split(".")
    return parts[1] if parts[0] == "Aten" and len(parts) > 1 else parts[-1]


def _find_overwritten(dump: RankDump) -> Bool:
    items = dump.items
    first = [path.partition(".")[0] for path in items.paths]
    target = (items.role == Role.INPUT) & np.array([word == "0" for word in first] + [False])[items.path]
    result = (items.role == Role.KWARG) & np.array([word == RESULT for word in first] + [False])[items.path]
    whole = _calls(dump, OVERWRITING)
    whole |= _sets_everything(dump, np.array([path == "1" for path in items.paths] + [False]))
    tensor = items.kind == Kind.TENSOR
    found: Bool = tensor & ((target & whole[items.node]) | (result & _forward(dump)[items.node]))
    return found


def _sets_everything(dump: RankDump, index: Bool) -> Bool:
    """Per node: `x[:] = y` or `x[...] = y`. index: by path, whether it is that of an index"""
    items = dump.items
    found = np.zeros(len(dump.nodes) + 1, bool)
    calls = _calls(dump, frozenset({"__setitem__"}))
    if calls.any():
        everything = np.array([text in ("[null,null,null]", '"..."') for text in items.values] + [False])
        rows = calls[items.node] & (items.role == Role.INPUT) & index[items.path] & everything[items.value]
        found[items.node[rows]] = True
    return found


def _find_uninitialised(dump: RankDump) -> Bool:
    """Memory that nothing was written to: what calls such as `empty` return, what is still the same wherever it is received, and
    what is only partly overwritten, before and, where less is written than it holds, after the call."""
    items = dump.items
    found = np.zeros(len(items), bool)
    tensor = items.kind == Kind.TENSOR
    makers = _calls(dump, UNINITIALISED)
    made = tensor & (items.role == Role.OUTPUT) & makers[items.node]
    marked = tensor & np.array([MARK in text.replace(" ", "") for text in items.values] + [False])[items.value]
    partly = _calls(dump, PARTLY)
    targets = (items.role == Role.INPUT) & np.array([path == "0" for path in items.paths] + [False])[items.path]
    written = np.flatnonzero(tensor & targets & partly[items.node])
    found |= made | marked
    if not len(written) and not found.any():
        return found
    sizes = np.array([_count(shape) for shape in items.shapes] + [-1], np.int64)[items.shape]
    content = _contents(dump, sizes)
    known = tensor & (content != 0)
    garbage = set(content[(made | marked) & known].tolist())
    seen = _first_places(content)
    masks = np.array([name == "torch.bool" for name in items.dtypes] + [False])[items.dtype]
    edges = np.searchsorted(items.node, np.arange(len(dump.nodes) + 1))
    for row in written.tolist():
        own = int(content[row])
        inside = own in garbage or bool(marked[row])
        orphan = own != 0 and int(items.producer[row]) < 0 and seen[own] == row
        if not inside and not orphan:
            continue
        found[row] = True
        node = int(items.node[row])
        rows = np.arange(edges[node], edges[node + 1])
        given = (items.role[rows] != Role.OUTPUT) & tensor[rows] & ~masks[rows] & (rows != row)
        values = sizes[rows[given]]
        filled = len(values) > 0 and int(values[-1]) >= sizes[row]
        if inside and not filled:
            left = rows[(items.role[rows] == Role.OUTPUT) & tensor[rows] & (sizes[rows] == sizes[row])]
            found[left] = True
            garbage.update(content[left][content[left] != 0].tolist())
    if garbage:
        found |= known & np.isin(content, np.array(sorted(garbage), np.uint64))
    return found


def _calls(dump: RankDump, names: frozenset[str]) -> Bool:
    """Per node, and one entry more for none: a forward call of one of these."""
    chosen = np.array([operation(label) in names for label in dump.nodes.labels] + [False])
    found: Bool = chosen[dump.nodes.label] & _forward(dump)[:-1]
    return np.append(found, False)


def _forward(dump: RankDump) -> Bool:
    return np.append(dump.nodes.direction != Direction.BACKWARD, False)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return min(count, np.iinfo(np.int64).max)


def _contents(dump: RankDump, sizes: Int64) -> Words:
    """Per item a number for what it holds: its statistics and size, or its hash; 0 where nothing tells it from others (no number
    was stored, or it is the same number throughout)."""
    items = dump.items
    state = items.stat_state
    mixed = sizes.view(np.uint64) * _MIX
    for column in range(4):
        value = np.where(state[:, column] == State.FINITE, items.stats[:, column] + 0.0, 0.0).view(np.uint64)
        for part in (value, state[:, column].astype(np.uint64)):
            mixed = (mixed ^ part) * _MIX
            mixed ^= mixed >> np.uint64(29)
    absent = (state == State.ABSENT).all(axis=1)
    mixed = np.where(absent, (mixed ^ items.hash.astype(np.int64).view(np.uint64)) * _MIX, mixed)
    finite = (state[:, :2] == State.FINITE).all(axis=1)
    constant = np.where(absent, items.hash < 0, finite & (items.stats[:, 0] == items.stats[:, 1]))
    found: Words = np.where(constant, np.uint64(0), mixed | np.uint64(1))
    return found


def _first_places(content: Words) -> dict[int, int]:
    """The first item that holds each content."""
    values, places = np.unique(content, return_index=True)
    return dict(zip(values.tolist(), places.tolist(), strict=True))
