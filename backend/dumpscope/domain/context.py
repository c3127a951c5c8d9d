"""Item pairs with the columns of both sides gathered next to each other: what measuring and judging compute on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

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
_LOSSES = frozenset({"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"})
"""Losses that take classes in one of two layouts."""
_Shape = tuple[int, ...]
_ATTENTION = "scaled_dot_product_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One row per item pair. Columns of a missing side hold -1 (codes), 0 (State.ABSENT) and nan.

    pair: node pair number; role: Role of the item; both: the item exists on both sides
    t_dtype, g_dtype: codes into `dtypes` (shared by both sides), -1 absent
    elements: product of the target's shape (golden's where the target has none), -1 without a shape
    reshaped: the same number of elements in another shape, compared in order: dimensions of size 1 apart, or some that one
        side holds as one, or at a boundary where a view may stand between, or queries of attention that share a head taken as
        more queries of fewer heads
    moved: reshaped, and their elements stand at other places, so that statistics alone compare them
    other_shape: their shapes differ in any way, and no fused call stands between
    unread: content that nobody reads, on either side (`domain.unread`)
    same_hash: both sides hold a hash of the same kind and dtype, and the hashes are equal
    unrecorded: missing on a side whose dump format does not record all arguments, where the other side has another format
    api: per node pair, code into `apis`: last part of an API's label ("softmax") or a module's class
    end: number of the node pair behind the last backward one; what follows it is an optimizer's
    memo: what was worked out of these columns alone and is asked for again, by its type or by the function that does it
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
    moved: Bool
    other_shape: Bool
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
    memo: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)

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
    shaped = differs & (t_shape >= 0) & (g_shape >= 0)
    reshaped = shaped & (pairs.method[items.pair] == Method.FUSED)
    if reshaped.any():
        reshaped &= sizes[t_shape] == sizes[g_shape]
    if shaped.any():
        reshaped |= _are(_is_view, list(shapes), t_shape, g_shape, shaped)
    apis, api = _apis(target, golden, pairs)
    moved = np.zeros(len(items), bool)
    if (shaped & ~reshaped).any():
        losses = np.array([name in _LOSSES for name in apis] + [False])[api][items.pair] if len(api) else moved
        moved = _are(_has_classes_apart, list(shapes), t_shape, g_shape, shaped & ~reshaped & losses)
    reshaped |= moved
    if (shaped & ~reshaped).any() and _ATTENTION in apis:
        at_attention = shaped & ~reshaped & (api[items.pair] == apis.index(_ATTENTION))
        reshaped |= _are(_share_heads, list(shapes), t_shape, g_shape, at_attention)
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
        moved=moved,
        other_shape=differs & (pairs.method[items.pair] != Method.FUSED),
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


def _are(
    holds: Callable[[_Shape, _Shape], bool], shapes: list[_Shape], target: Int64, golden: Int64, where: Bool
) -> Bool:
    """By item pair of `where`, whether something holds of its two shapes. target, golden: codes into shapes"""
    found = np.zeros(len(where), bool)
    rows = np.flatnonzero(where)
    codes, place = np.unique(target[rows] * len(shapes) + golden[rows], return_inverse=True)
    held = [holds(shapes[code // len(shapes)], shapes[code % len(shapes)]) for code in codes.tolist()]
    found[rows] = np.array(held, bool)[place]
    return found


def _is_view(one: _Shape, other: _Shape) -> bool:
    """One shape becomes the other if dimensions that follow each other are made one, those of size 1 apart."""
    ends = [set(accumulate((size for size in shape if size != 1), mul)) for shape in (one, other)]
    if 0 in ends[0] | ends[1]:
        return [size for size in one if size != 1] == [size for size in other if size != 1]
    return max(ends[0], default=1) == max(ends[1], default=1) and (ends[0] <= ends[1] or ends[1] <= ends[0])


def _has_classes_apart(one: _Shape, other: _Shape) -> bool:
    """A loss takes the classes of each place behind its rows, (N, C, T), or rows and places in one, (N * T, C)."""
    flat, apart = sorted((one, other), key=len)
    return len(flat) == 2 < len(apart) and flat[1] == apart[1] and _elements(flat) == _elements(apart)


def _share_heads(one: _Shape, other: _Shape) -> bool:
    """The shapes are equal with heads and their queries as one: of queries that share a head, either may be told."""
    return _without_heads(one) == _without_heads(other)


def _without_heads(shape: _Shape) -> _Shape:
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
