"""Item pairs in which two programs say the same in other words: an argument at its default, a mask in another form, a shape with
other dimensions of size 1. Such a pair is no difference of the runs."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Method, NodePairs, Outcome
from dumpscope.domain.limits import at_limit, is_limit, limits
from dumpscope.domain.records import Bool, Direction, Int64, Items, Kind, NodeKind, RankDump, Role, State
from dumpscope.match.operators.arguments import ABSENT, argument_name, default_of
from dumpscope.match.sides import TRANSFORMS

ATTENTION: Final = "scaled_dot_product_attention"
_CLOSE: Final = 1e-6
_SHARE: Final = 1e-3
"""Relative difference of two shares of masked elements that rounding may make."""


def find_defaults(target: RankDump, golden: RankDump, pairs: NodePairs, context: Context, facts: Facts) -> Int64:
    """Arguments that one side gives, with the value that the other takes because it does not give it (or gives None)."""
    given = (context.role == Role.INPUT) | (context.role == Role.KWARG)
    plain = (context.kind == Kind.SCALAR) | (context.kind == Kind.NONE)
    made = (pairs.target >= 0) & (pairs.golden >= 0) & (pairs.method != Method.FUSED)
    lonely = (facts.outcome == Outcome.TARGET_ONLY) | (facts.outcome == Outcome.GOLDEN_ONLY)
    told = np.zeros(len(pairs), bool)  # a side that holds no item of a call holds none of its arguments either
    told[context.pair[context.both]] = True
    made &= told
    apart = (facts.outcome == Outcome.SCALAR) & (facts.equal == 0)
    found = []
    for row in np.flatnonzero(given & made[context.pair] & ((lonely & plain) | apart)).tolist():
        sides = [
            (dump, int(items[row]), int(nodes[context.pair[row]]))
            for dump, items, nodes in ((target, context.target, pairs.target), (golden, context.golden, pairs.golden))
        ]
        if sides[0][0].nodes.kind[sides[0][2]] == NodeKind.API and _is_default(sides):
            found.append(row)
    return np.array(found, np.int64)


def _is_default(sides: list[tuple[RankDump, int, int]]) -> bool:
    values: list[Any] = [_value(dump.items, item) if item >= 0 else ABSENT for dump, item, _ in sides]
    dump, item, node = next(one for one in sides if one[1] >= 0)
    label = dump.nodes.labels[dump.nodes.label[node]]
    path = dump.items.paths[dump.items.path[item]]
    name = argument_name(label, path) if dump.items.role[item] == Role.INPUT else path
    if name is None or "." in path:
        return False
    default = default_of(label, name)
    values = [default if value is ABSENT else value for value in values]
    if ABSENT in values:
        return False
    if name == "scale" and label.endswith(ATTENTION):
        values = [_attention_scale(*one) if value is None else value for one, value in zip(sides, values, strict=True)]
        if all(isinstance(value, float | int) for value in values):
            return math.isclose(values[0], values[1], rel_tol=_CLOSE)
    return isinstance(values[0], bool) == isinstance(values[1], bool) and bool(values[0] == values[1])


def _value(items: Items, item: int) -> Any:
    code = int(items.value[item])
    return json.loads(items.values[code]) if code >= 0 and items.kind[item] == Kind.SCALAR else None


def _attention_scale(dump: RankDump, _item: int, node: int) -> float | None:
    """One by the square root of the size of a head, which attention takes where no scale is given."""
    items = dump.items
    first, last = np.searchsorted(items.node, [node, node + 1]).tolist()
    for item in range(first, last):
        place = items.paths[items.path[item]]
        query = (items.role[item] == Role.INPUT and place == "0") or (
            items.role[item] == Role.KWARG and place == "query"
        )
        if query and items.shape[item] >= 0 and items.shapes[items.shape[item]]:
            return float(1 / math.sqrt(max(1, items.shapes[items.shape[item]][-1])))
    return None


def find_other_words(
    target: RankDump, golden: RankDump, context: Context, facts: Facts, *, other_dtypes: bool
) -> Int64:
    """Arguments that mean the same on both sides in another form: the lowest number of each side's dtype, or minus infinity;
    and, in runs of different dtypes, the dtype itself."""
    found = []
    for row in np.flatnonzero((facts.outcome == Outcome.SCALAR) & (facts.equal == 0)).tolist():
        values = [
            _value(dump.items, int(items[row])) for dump, items in ((target, context.target), (golden, context.golden))
        ]
        if all(_is_lowest(value) for value in values) or (
            other_dtypes and all(isinstance(value, str) and value.startswith(_FLOATS) for value in values)
        ):
            found.append(row)
    return np.array(found, np.int64)


_FLOATS: Final = ("torch.float", "torch.bfloat", "torch.complex")


def _is_lowest(value: Any) -> bool:
    if isinstance(value, str) and value == "-inf":
        return True
    return isinstance(value, float | int) and not isinstance(value, bool) and value < 0 and is_limit(float(value))


def find_causal(target: RankDump, golden: RankDump, pairs: NodePairs, context: Context) -> dict[int, Int64]:
    """Calls of attention of which one side says `is_causal` and the other gives a mask that may be the causal one: the row of
    that mask -> the rows of both arguments."""
    api = [code for code, name in enumerate(context.apis) if name == ATTENTION]
    given = (context.role == Role.INPUT) | (context.role == Role.KWARG)
    rows = np.flatnonzero(
        given & np.isin(context.api[context.pair], api) & (pairs.method != Method.FUSED)[context.pair]
    )
    found = {}
    for pair in np.unique(context.pair[rows]).tolist():
        own = rows[context.pair[rows] == pair]
        sides = [
            _masked_by(dump, context, own, golden=dump is golden)
            for dump, nodes in ((target, pairs.target), (golden, pairs.golden)) if nodes[pair] >= 0
        ]  # fmt: skip
        if len(sides) < 2 or sides[0].causal == sides[1].causal:
            continue
        says, gives = sides if sides[0].causal else sides[::-1]
        if says.mask < 0 and gives.mask >= 0 and _may_be_causal(context, gives.mask, golden=gives is sides[1]):
            found[gives.mask] = np.array(sorted({*says.rows, *gives.rows}), np.int64)
    return found


def find_masking(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> Int64:
    """What attention is told about masking, where passes of a model were put together: that follows from what a pass took."""
    if (target.ref.passes is None and golden.ref.passes is None) or ATTENTION not in context.apis:
        return np.empty(0, np.int64)
    given = (context.role == Role.INPUT) | (context.role == Role.KWARG)
    rows = np.flatnonzero(given & (context.api == context.apis.index(ATTENTION))[context.pair])
    said = {row for dump in (target, golden) for row in _masked_by(dump, context, rows, golden=dump is golden).rows}
    found = np.array(sorted(said), np.int64)
    other = np.isin(facts.outcome, (Outcome.KIND, Outcome.TARGET_ONLY, Outcome.GOLDEN_ONLY))
    other |= (facts.outcome == Outcome.SCALAR) & (facts.equal == 0)
    return found[other[found]]


@dataclass(frozen=True, slots=True)
class _Masking:
    """What one side's call of attention says about masking. mask: row of the mask, -1 without one; rows: of all that it says"""

    causal: bool
    mask: int
    rows: list[int]


def _masked_by(dump: RankDump, context: Context, rows: Int64, *, golden: bool) -> _Masking:
    causal, mask, said = False, -1, []
    items = dump.items
    for row in rows.tolist():
        item = int((context.golden if golden else context.target)[row])
        if item < 0:
            continue
        path = items.paths[items.path[item]]
        name = argument_name(f"Functional.{ATTENTION}", path) if items.role[item] == Role.INPUT else path
        if name == "is_causal":
            causal = bool(_value(items, item))
        elif name != "attn_mask":
            continue
        elif items.kind[item] == Kind.TENSOR:
            mask = row
        said.append(row)
    return _Masking(causal, mask, said)


def _may_be_causal(context: Context, row: int, *, golden: bool) -> bool:
    """As far as statistics tell: it keeps some and drops some, and where its mean is known, as many as a triangle does."""
    stats, state = (context.g_stats, context.g_state) if golden else (context.t_stats, context.t_state)
    dtype = int((context.g_dtype if golden else context.t_dtype)[row])
    if dtype >= 0 and context.dtypes[dtype] == "torch.bool":
        return bool((stats[row, :2] == (1, 0)).all())
    if not is_added(context, golden=golden)[row] or stats[row, 0] != 0:
        return False
    if state[row, 1] != State.FINITE or state[row, 2] != State.FINITE:
        return True
    return bool(0 < stats[row, 2] / stats[row, 1] < 0.5)


def find_numbers(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> Int64:
    """A number on one side and a tensor of one element, which is that number, on the other."""
    found = []
    for row in np.flatnonzero(facts.outcome == Outcome.KIND).tolist():
        sides = [
            (target.items, int(context.target[row]), context.t_stats[row], context.t_state[row]),
            (golden.items, int(context.golden[row]), context.g_stats[row], context.g_state[row]),
        ]
        tensor, number = sides if sides[0][0].kind[sides[0][1]] == Kind.TENSOR else sides[::-1]
        value, shape = _value(number[0], number[1]), tensor[0].shape[tensor[1]]
        if type(value) not in (int, float) or shape < 0 or math.prod(tensor[0].shapes[shape]) != 1:
            continue
        if tensor[3][0] == State.FINITE and math.isclose(float(tensor[2][0]), value, rel_tol=_CLOSE):
            found.append(row)
    return np.array(found, np.int64)


def find_repeated_heads(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> Int64:
    """Keys and values of attention, and their gradients, of which one side has each head once and the other as often as queries
    share it (`enable_gqa`)."""
    api = [code for code, name in enumerate(context.apis) if name == ATTENTION]
    rows = np.flatnonzero((facts.outcome == Outcome.SHAPE) & np.isin(context.api[context.pair], api))
    found = []
    for row in rows.tolist():
        shapes = [
            dump.items.shapes[dump.items.shape[int(items[row])]]
            for dump, items in ((target, context.target), (golden, context.golden))
        ]
        few, many = sorted(shapes, key=lambda shape: (len(shape), shape))
        apart = [place for place, sizes in enumerate(zip(few, many, strict=False)) if sizes[0] != sizes[1]]
        if len(few) != len(many) or apart != [len(few) - 3] or not few[-3] or many[-3] % few[-3]:
            continue
        ends = context.t_stats[row, :3], context.g_stats[row, :3]
        known = (context.t_state[row, :3] == State.FINITE) & (context.g_state[row, :3] == State.FINITE)
        gradient = context.role[row] == Role.OUTPUT
        if gradient or np.allclose(ends[0][known][:2], ends[1][known][:2], rtol=_SHARE, atol=0):
            found.append(row)
    return np.array(found, np.int64)


def find_shared_heads(target: RankDump, golden: RankDump, context: Context, repeated: Int64) -> Int64:
    """The argument `enable_gqa` of attention whose keys, or queries, one side gives in another form: each key once for a group of
    queries, or the queries of a group as more queries of one head. repeated: what `find_repeated_heads` found"""
    if ATTENTION not in context.apis:
        return np.empty(0, np.int64)
    calls = np.zeros(context.nodes, bool)
    calls[context.pair[repeated]] = True
    calls[context.pair[context.reshaped]] = True
    calls &= context.api == context.apis.index(ATTENTION)
    own, other = (
        np.array([path == "enable_gqa" for path in dump.items.paths] + [False])[dump.items.path[items]] & (items >= 0)
        for dump, items in ((target, context.target), (golden, context.golden))
    )
    found: Int64 = np.flatnonzero((own | other) & calls[context.pair])
    return found


def find_masks(context: Context, facts: Facts) -> Int64:
    """Pairs that hold one mask in two forms, as their statistics tell: True against 0 and False against the lowest number of a
    dtype (or minus infinity), or two such numbers."""
    both = context.both & (context.kind == Kind.TENSOR) & ~context.kind_differs & (facts.equal != 1) & ~context.unread
    both &= (facts.outcome == Outcome.COMPARED) | (facts.outcome == Outcome.NO_DATA)
    boolean = np.array([name == "torch.bool" for name in context.dtypes] + [False])
    kinds = boolean[context.t_dtype], boolean[context.g_dtype]
    bottoms = _has_lowest(context, golden=False), _has_lowest(context, golden=True)
    added = _is_below(context, golden=False) & bottoms[0], _is_below(context, golden=True) & bottoms[1]
    stats, states = (context.t_stats, context.g_stats), (context.t_state, context.g_state)
    found = np.zeros(len(context), bool)
    for own, other in ((0, 1), (1, 0)):
        known = (states[own][:, :2] == State.FINITE).all(axis=1)
        keeps, drops = stats[own][:, 0] == 1, stats[own][:, 1] == 0
        zero = (states[other][:, 0] == State.FINITE) & (stats[other][:, 0] == 0)
        agree = (keeps == zero) & (drops == added[other])
        found |= kinds[own] & ~kinds[other] & known & (added[other] | (zero & ~drops)) & agree
    lowest = bottoms[0] & bottoms[1]
    with np.errstate(all="ignore"):
        top = np.abs(context.t_stats[:, 0] - context.g_stats[:, 0]) <= _CLOSE * np.abs(context.t_stats[:, 0])
        shares = [np.where(state[:, 1:3].min(axis=1) == State.FINITE, stat[:, 2] / stat[:, 1], np.nan)
                  for stat, state in zip(stats, states, strict=True)]  # fmt: skip
        finite = [(state[:, 1:3] == State.FINITE).all(axis=1) for state in states]
        alike = ~(finite[0] & finite[1]) | (np.abs(shares[0] - shares[1]) <= _SHARE * np.abs(shares[0]))
    same_state = context.t_state[:, 0] == context.g_state[:, 0]
    forms = (context.t_state[:, 1] != context.g_state[:, 1]) | (context.t_stats[:, 1] != context.g_stats[:, 1])
    found |= ~kinds[0] & ~kinds[1] & lowest & same_state & top & alike & forms
    rows: Int64 = np.flatnonzero(both & found)
    return rows


def is_added(context: Context, *, golden: bool) -> Bool:
    """A mask that is added: nothing above zero, and the lowest number of its dtype or minus infinity."""
    return _is_below(context, golden=golden) & _has_lowest(context, golden=golden)


def _is_below(context: Context, *, golden: bool) -> Bool:
    """Nothing is above zero."""
    stats, state = (context.g_stats, context.g_state) if golden else (context.t_stats, context.t_state)
    found: Bool = ((state[:, 0] == State.FINITE) & (stats[:, 0] <= 0)) | (state[:, 0] == State.NEG_INF)
    return found


def _has_lowest(context: Context, *, golden: bool) -> Bool:
    stats, state = (context.g_stats, context.g_state) if golden else (context.t_stats, context.t_state)
    dtype = context.g_dtype if golden else context.t_dtype
    _, bottom = at_limit(stats, state, limits(context.dtypes)[dtype])
    found: Bool = bottom | (state[:, 1] == State.NEG_INF)
    return found


def find_mapped(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> Int64:
    """Tensors of another shape because one side ran the call inside a function transform (vmap): it shows no mapped dimension."""
    rows = np.flatnonzero((facts.outcome == Outcome.SHAPE) | (facts.outcome == Outcome.NO_DATA))
    found = [
        row
        for row in rows.tolist()
        if any(
            dump.items.types[dump.items.type[int(items[row])]].startswith(TRANSFORMS)
            for dump, items in ((target, context.target), (golden, context.golden))
        )
    ]
    return np.array(found, np.int64)


def find_no_gradients(target: RankDump, golden: RankDump, pairs: NodePairs, context: Context, facts: Facts) -> Int64:
    """Gradients that a backward pass gives for what no loss uses: zeros of another shape on the two sides, or none on one."""
    rows = np.flatnonzero(
        np.isin(facts.outcome, (Outcome.SHAPE, Outcome.KIND)) & np.isin(context.role, (Role.INPUT, Role.KWARG))
    )
    nodes = pairs.target[context.pair[rows]]
    rows = rows[(nodes >= 0) & (target.nodes.direction[nodes] == Direction.BACKWARD)]
    none = np.ones(len(rows), bool)
    for dump, items, dtype, stats, state in (
        (target, context.target, context.t_dtype, context.t_stats, context.t_state),
        (golden, context.golden, context.g_dtype, context.g_stats, context.g_state),
    ):
        zeros = (state[rows, :2] == State.FINITE).all(axis=1) & (stats[rows, :2] == 0).all(axis=1)
        none &= np.where(dtype[rows] >= 0, zeros, dump.items.kind[items[rows]] == Kind.NONE)
    found: Int64 = rows[none]
    return found
