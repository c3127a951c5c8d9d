"""Item pairs with the columns of both sides gathered next to each other: what measuring and judging compute on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dumpscope.domain.facts import ItemPairs, Method, NodePairs
from dumpscope.domain.records import (
    STATISTICS,
    Bool,
    Direction,
    Float64,
    Int8,
    Int32,
    Int64,
    Items,
    Kind,
    RankDump,
    State,
    UInt8,
)
from dumpscope.domain.unread.memory import unread

_NORM = STATISTICS.index("Norm")
_ATTENTION = "scaled_dot_product_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One row per item pair. Columns of a missing side hold -1 (codes), 0 (State.ABSENT) and nan.

    pair: node pair number; role: Role of the item; both: the item exists on both sides
    t_dtype, g_dtype: codes into `dtypes` (shared by both sides), -1 absent
    elements: product of the target's shape (golden's where the target has none), -1 without a shape
    reshaped: the same number of elements in another shape, compared in order: dimensions of size 1 apart, or at a boundary
        where a view may stand between, or queries of attention that share a head taken as more queries of fewer heads
    unread: content that nobody reads, on either side (`domain.unread`)
    same_hash: both sides hold a hash of the same kind and dtype, and the hashes are equal
    unrecorded: missing on a side whose dump format does not record all arguments, where the other side has another format
    api: per node pair, code into `apis`: last part of an API's label ("softmax") or a module's class
    end: number of the node pair behind the last backward one; what follows it is an optimizer's
    """

    pair: Int32
    target: Int32
    golden: Int32
    both: Bool
    role: Int8
    kind: Int8
    kind_differs: Bool
    dtypes: list[str]
    t_dtype: Int64
    g_dtype: Int64
    shape_differs: Bool
    reshaped: Bool
    requires_grad_differs: Bool
    elements: Int64
    t_stats: Float64
    t_state: UInt8
    g_stats: Float64
    g_state: UInt8
    apis: list[str]
    api: Int64
    nodes: int
    end: int
    unread: Bool
    unrecorded: Bool
    same_hash: Bool

    def __len__(self) -> int:
        return len(self.pair)


def gather(target: RankDump, golden: RankDump, pairs: NodePairs, items: ItemPairs) -> Context:
    """Gather both sides' columns by item pair."""
    t, g = items.target, items.golden
    has_t, has_g = t >= 0, g >= 0
    dtypes = list(dict.fromkeys([*target.items.dtypes, *golden.items.dtypes]))
    shapes = {shape: code for code, shape in enumerate(dict.fromkeys([*target.items.shapes, *golden.items.shapes]))}
    sizes = np.array([_elements(shape) for shape in shapes], dtype=np.int64)
    t_shape = _recode(target.items.shape, [shapes[s] for s in target.items.shapes], t)
    g_shape = _recode(golden.items.shape, [shapes[s] for s in golden.items.shapes], g)
    shape = np.where(t_shape >= 0, t_shape, g_shape)
    differs = has_t & has_g & (t_shape != g_shape)
    reshaped = differs & (t_shape >= 0) & (g_shape >= 0) & (pairs.method[items.pair] == Method.FUSED)
    if reshaped.any():
        reshaped &= sizes[t_shape] == sizes[g_shape]
    if differs.any():
        bare = {shape: code for code, shape in enumerate(dict.fromkeys(map(_without_ones, shapes)))}
        squeezed = np.array([bare[_without_ones(shape)] for shape in shapes], np.int64)
        reshaped |= differs & (t_shape >= 0) & (g_shape >= 0) & (squeezed[t_shape] == squeezed[g_shape])
    apis, api = _apis(target, golden, pairs)
    if differs.any() and _ATTENTION in apis:
        heads = {shape: code for code, shape in enumerate(dict.fromkeys(map(_without_heads, shapes)))}
        grouped = np.array([heads[_without_heads(shape)] for shape in shapes], np.int64)
        at_attention = differs & (api[items.pair] == apis.index(_ATTENTION))
        reshaped |= at_attention & (t_shape >= 0) & (g_shape >= 0) & (grouped[t_shape] == grouped[g_shape])
    kind_t = _take(target.items.kind, t, -1)
    kind_g = _take(golden.items.kind, g, -1)
    t_state, g_state = _states(target.items, t), _states(golden.items, g)
    if target.ref.traits.magnitude_sum != golden.ref.traits.magnitude_sum:
        t_state[:, _NORM] = g_state[:, _NORM] = State.ABSENT
    codes = {name: code for code, name in enumerate(dtypes)}
    t_unread = unread(target)
    g_unread = t_unread if golden is target else unread(golden)
    return Context(
        pair=items.pair,
        target=t,
        golden=g,
        both=has_t & has_g,
        role=np.where(has_t, _take(target.items.role, t, 0), _take(golden.items.role, g, 0)).astype(np.int8),
        kind=np.where(has_t, kind_t, kind_g).astype(np.int8),
        kind_differs=has_t & has_g & ((kind_t == Kind.TENSOR) != (kind_g == Kind.TENSOR)),
        dtypes=dtypes,
        t_dtype=_recode(target.items.dtype, [codes[d] for d in target.items.dtypes], t),
        g_dtype=_recode(golden.items.dtype, [codes[d] for d in golden.items.dtypes], g),
        shape_differs=differs & ~reshaped,
        reshaped=reshaped,
        requires_grad_differs=has_t
        & has_g
        & (_take(target.items.requires_grad, t, -1) != _take(golden.items.requires_grad, g, -1)),
        elements=np.where(shape >= 0, sizes[shape] if len(sizes) else -1, -1),
        t_stats=_rows(target.items, t),
        t_state=t_state,
        g_stats=_rows(golden.items, g),
        g_state=g_state,
        apis=apis,
        api=api,
        nodes=len(pairs),
        end=_end(target, pairs),
        unread=_flags(t_unread, t) | _flags(g_unread, g),
        unrecorded=_unrecorded(target, golden, ~has_t) | _unrecorded(golden, target, ~has_g),
        same_hash=_have_same_hash(target, golden, items) & (kind_t == Kind.TENSOR),
    )


def _have_same_hash(target: RankDump, golden: RankDump, items: ItemPairs) -> Bool:
    if not target.items.hashes or not golden.items.hashes or target.header.summary != golden.header.summary:
        return np.zeros(len(items), bool)
    codes = {text: code for code, text in enumerate(target.items.hashes)}
    t = _recode(target.items.hash, list(range(len(target.items.hashes))), items.target)
    g = _recode(golden.items.hash, [codes.get(text, -1) for text in golden.items.hashes], items.golden)
    same: Bool = (t >= 0) & (t == g)
    return same


def _unrecorded(side: RankDump, other: RankDump, missing: Bool) -> Bool:
    return missing & (not side.ref.traits.all_arguments and side.header.layout != other.header.layout)


def _end(target: RankDump, pairs: NodePairs) -> int:
    has = np.flatnonzero(pairs.target >= 0)
    backward = has[target.nodes.direction[pairs.target[has]] == Direction.BACKWARD]
    return int(backward[-1]) + 1 if len(backward) else len(pairs)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of the dimensions that hold more than one place."""
    return tuple(size for size in shape if size != 1)


def _without_heads(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes with heads and their queries as one: of a group of queries that share a head, either may be told."""
    return (*shape[:-3], shape[-3] * shape[-2], shape[-1]) if len(shape) > 3 else shape


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return min(count, np.iinfo(np.int64).max)


def _take(column: Int8, index: Int32, absent: int) -> Int64:
    if not len(column):
        return np.full(len(index), absent, np.int64)
    return np.where(index >= 0, column[index], absent).astype(np.int64)


def _recode(column: Int32, table: list[int], index: Int32) -> Int64:
    if not len(column) or not table:
        return np.full(len(index), -1, np.int64)
    code = np.where(index >= 0, column[index], -1)
    return np.where(code >= 0, np.array(table, np.int64)[code], -1)


def _flags(column: Bool, index: Int32) -> Bool:
    found: Bool = column[index] & (index >= 0) if len(column) else np.zeros(len(index), bool)
    return found


def _rows(items: Items, index: Int32) -> Float64:
    if not len(items):
        return np.full((len(index), 4), np.nan)
    rows = items.stats[index]
    rows[index < 0] = np.nan
    return rows


def _states(items: Items, index: Int32) -> UInt8:
    if not len(items):
        return np.zeros((len(index), 4), np.uint8)
    rows = items.stat_state[index]
    rows[index < 0] = State.ABSENT
    return rows


def _apis(target: RankDump, golden: RankDump, pairs: NodePairs) -> tuple[list[str], Int64]:
    last_t = [label.rpartition(".")[2] for label in target.nodes.labels]
    last_g = [label.rpartition(".")[2] for label in golden.nodes.labels]
    codes = {name: code for code, name in enumerate(dict.fromkeys([*last_t, *last_g]))}
    from_t = _recode(target.nodes.label, [codes[name] for name in last_t], pairs.target)
    from_g = _recode(golden.nodes.label, [codes[name] for name in last_g], pairs.golden)
    return list(codes), np.where(from_t >= 0, from_t, from_g)
