"""Runs that took other amounts of the same data: another number of rows (micro-batches too), or longer texts (a prefill too).

Known from shapes: what the first call received differs in its first two dimensions, and what follows differs in the same
proportions. Tensors tell which rows both took.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Bool, Direction, Int32, Int64, Kind, RankDump, Role

Array = NDArray[Any]
Shape = tuple[int, ...]

EXPLAINED: Final = 0.9
"""Share of the shapes of the forward pass that differ and must follow from the amounts."""
_FIRST: Final = ("0", "input", "input_ids", "inputs_embeds", "pixel_values", "x")
"""Where a call receives data."""
_LOOK_UP: Final = ("embedding", "Embedding")
"""What receives words; other whole numbers may be positions."""
_END: Final = ("flip", "pad", "roll")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """row: item pair of the data; rows, length: its first and second size, of the target and of the golden"""

    row: int
    rows: tuple[int, int]
    length: tuple[int, int]

    def explain(self, target: int, golden: int) -> bool:
        """A size of the two sides follows from the amounts: it is one of them, or a multiple, or shorter by the same."""
        (t_rows, g_rows), (t_length, g_length) = self.rows, self.length
        return (
            target * g_rows == golden * t_rows
            or (t_length != g_length and target - golden == t_length - g_length)
            or target * g_length == golden * t_length
            or target * g_rows * g_length == golden * t_rows * t_length
            or self._shortened(target, golden)
            or (t_length != g_length and (target, golden) in ((1, g_length), (t_length, 1)))  # the last position alone
        )

    def _shortened(self, target: int, golden: int) -> bool:
        """Rows in a row, each of them shorter by the same on both sides."""
        if 0 in self.rows or target % self.rows[0] or golden % self.rows[1]:
            return False
        return target // self.rows[0] - golden // self.rows[1] == self.length[0] - self.length[1] != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Which part of the larger side both took. larger: "target" or "golden"; rows: for each row of the other side its row there,
    None where texts are longer: then both begin alike
    """

    larger: str
    rows: tuple[int, ...] | None


def find_amounts(target: RankDump, golden: RankDump, context: Context) -> Amounts | None:
    """The amounts of data that the two runs took; None where they are equal, or shapes differ for another reason."""
    differs = context.shape_differs & (context.kind == Kind.TENSOR) & ~context.kind_differs & ~context.unread
    forward = differs & _in_direction(target, context, Direction.FORWARD)
    rows = np.flatnonzero(forward)
    if len(rows) < 2:
        return None
    first = _find_data(target, golden, context, rows)
    if first is None:
        return None
    t, g = shapes_of(target, golden, context, first)
    if len(t) != len(g) or not t or t[2:] != g[2:]:
        return None
    length = (t[1], g[1]) if len(t) > 1 else (1, 1)
    found = Amounts(row=first, rows=(t[0], g[0]), length=length)
    explained = sum(is_explained(found, *shapes_of(target, golden, context, row)) for row in rows.tolist())
    return found if explained >= EXPLAINED * len(rows) else None


def _find_data(target: RankDump, golden: RankDump, context: Context, rows: Int64) -> int | None:
    """The first of these item pairs that a call received as data, and that no dumped call made: texts rather than tables of
    positions. None where a call before it made another shape from what it received: then that call is at fault."""
    found: list[int] = []
    taken = np.zeros(context.nodes, bool)
    received = np.isin(context.role, (Role.INPUT, Role.KWARG)) & (context.kind == Kind.TENSOR)
    taken[context.pair[received]] = True
    named = target.items.producer[context.target] >= 0
    tables: set[bytes] = set()
    for row in rows.tolist():
        if not received[row]:
            if taken[context.pair[row]] and not tables and not found:
                return None
            tables.add(_numbers(context, row))
            continue
        path = target.items.paths[target.items.path[context.target[row]]].rpartition(".")[2]
        if not named[row] and _numbers(context, row) not in tables and path in _FIRST:
            found.append(row)
    many = [row for row in found if len(shapes_of(target, golden, context, row)[0]) > 1]
    words = [row for row in many if "int" in context.dtypes[int(context.t_dtype[row])]]
    looked_up = [row for row in words if context.apis[context.api[context.pair[row]]] in _LOOK_UP]
    return next(iter([*looked_up, *words, *many, *found]), None)


def shapes_of(target: RankDump, golden: RankDump, context: Context, row: int) -> tuple[Shape, Shape]:
    t, g = target.items, golden.items
    return t.shapes[t.shape[context.target[row]]], g.shapes[g.shape[context.golden[row]]]


def is_explained(amounts: Amounts, target: Shape, golden: Shape) -> bool:
    return len(target) == len(golden) and all(
        t == g or amounts.explain(t, g) for t, g in zip(target, golden, strict=True)
    )


def find_related(target: RankDump, golden: RankDump, context: Context, facts: Facts, amounts: Amounts) -> Int64:
    """Item pairs whose difference only says that the amounts differ: shapes that follow from these; what the forward pass made of
    all rows (a loss), and all that the backward pass and the optimizer made."""
    forward = _in_direction(target, context, Direction.FORWARD) & (context.pair < context.end)
    tensor = context.both & (context.kind == Kind.TENSOR) & ~context.kind_differs
    differs = (facts.outcome == Outcome.COMPARED) & (facts.equal == 0)
    told = (facts.outcome == Outcome.SCALAR) & (facts.equal == 0) & (context.role == Role.OUTPUT)
    related = np.zeros(len(context), bool)
    for row in np.flatnonzero(facts.outcome == Outcome.SHAPE).tolist():
        related[row] = is_explained(amounts, *shapes_of(target, golden, context, row))
    related |= tensor & ~forward & (differs | (facts.outcome == Outcome.SHAPE))
    beside_none = (facts.outcome == Outcome.KIND) & forward & ~(context.role == Role.OUTPUT)
    related |= beside_none & (_is_none(target, context.target) | _is_none(golden, context.golden))
    related |= (facts.outcome == Outcome.SHAPE) & _may_be_left_out(target, golden, context, facts)
    sized = np.zeros(context.nodes, bool)
    sized[context.pair[find_sizes(target, golden, context, facts, amounts)]] = True
    _follow(context, related, ((differs & tensor) | told) & forward, sized)
    return np.flatnonzero(related)


def find_sizes(target: RankDump, golden: RankDump, context: Context, facts: Facts, amounts: Amounts) -> Int64:
    """Arguments that are the two sizes of something, or by which each side divides what several passes add up to."""
    rows = np.flatnonzero((facts.outcome == Outcome.SCALAR) & (facts.equal == 0) & (context.role != Role.OUTPUT))
    other_form = _may_be_left_out(target, golden, context, facts)
    found = []
    for row in rows.tolist():
        values = [
            whole_numbers(dump, int(items[row])) for dump, items in ((target, context.target), (golden, context.golden))
        ]
        if other_form[row]:
            found.append(row)
            continue
        split = len(values[0]) == len(values[1]) == 1 and (
            values[0][0] * amounts.rows[0] == values[1][0] * amounts.rows[1]
        )
        if values[0] and values[1] and (split or is_explained(amounts, values[0], values[1])):
            found.append(row)
    return np.array(found, np.int64)


def may_differ_at_the_end(context: Context, row: int) -> bool:
    """Of texts that begin alike: labels that are moved by one place, and what calls put at the end."""
    dtype = context.dtypes[int(context.t_dtype[row])]
    return (
        not any(word in dtype for word in ("float", "complex")) or context.apis[context.api[context.pair[row]]] in _END
    )


def find_common(amounts: Amounts, target: Array, golden: Array) -> Common | None:
    """Which part of the data both took; None where that is none, or stands at other places."""
    if amounts.rows[0] != amounts.rows[1] and amounts.length[0] == amounts.length[1]:
        larger = "target" if amounts.rows[0] > amounts.rows[1] else "golden"
        many, few = (target, golden) if larger == "target" else (golden, target)
        rows = [next((at for at, one in enumerate(many) if np.array_equal(one, wanted)), -1) for wanted in few]
        return Common(larger=larger, rows=tuple(rows)) if min(rows, default=-1) >= 0 else None
    if amounts.rows[0] == amounts.rows[1] and amounts.length[0] != amounts.length[1]:
        larger = "target" if amounts.length[0] > amounts.length[1] else "golden"
        many, few = (target, golden) if larger == "target" else (golden, target)
        return Common(larger=larger, rows=None) if np.array_equal(many[:, : few.shape[1]], few) else None
    return None


def cut(amounts: Amounts, common: Common, larger: Array, shape: Shape) -> Array | None:
    """The common part of a tensor of the larger side, in the shape of the other side's; None where it is none."""
    side = 0 if common.larger == "target" else 1
    rows, length = amounts.rows[side], (amounts.length[side], amounts.length[1 - side])
    for place, size in enumerate(shape):
        own = larger.shape[place]
        if own == size:
            continue
        if common.rows is not None:
            if own % rows:
                return None
            parts = larger.reshape(*larger.shape[:place], rows, own // rows, *larger.shape[place + 1 :])
            larger = np.take(parts, common.rows, axis=place).reshape(
                *larger.shape[:place], -1, *larger.shape[place + 1 :]
            )
        elif own - size == length[0] - length[1]:
            larger = np.take(larger, range(size), axis=place)
        elif own % rows == 0 and own // rows - size / rows == length[0] - length[1]:
            parts = larger.reshape(*larger.shape[:place], rows, own // rows, *larger.shape[place + 1 :])
            larger = np.take(parts, range(size // rows), axis=place + 1).reshape(
                *larger.shape[:place], -1, *larger.shape[place + 1 :]
            )
        elif own % length[0] == 0 and own // length[0] * length[1] == size:
            parts = larger.reshape(*larger.shape[:place], own // length[0], length[0], *larger.shape[place + 1 :])
            larger = np.take(parts, range(length[1]), axis=place + 1).reshape(
                *larger.shape[:place], -1, *larger.shape[place + 1 :]
            )
    return larger if larger.shape == shape else None


def _follow(context: Context, related: Bool, differs: Bool, sized: Bool) -> None:
    """Mark what a forward call made that received something related, or (`sized`, by node pair) a size as an argument, and what
    holds the same numbers later."""
    received = np.isin(context.role, (Role.INPUT, Role.KWARG))
    first = np.searchsorted(context.pair, np.arange(context.nodes + 1))
    known: set[bytes] = set()
    for pair in np.unique(context.pair[related | differs]).tolist():
        rows = np.arange(first[pair], first[pair + 1])
        again = np.array([differs[row] and _numbers(context, row) in known for row in rows.tolist()], bool)
        related[rows[again]] = True
        if not related[rows[received[rows]]].any() and not sized[pair]:
            continue
        for row in rows[differs[rows] & ~received[rows]].tolist():
            related[row] = True
            if context.t_state[row].any():
                known.add(_numbers(context, row))


def _numbers(context: Context, row: int) -> bytes:
    both: bytes = context.t_stats[row].tobytes() + context.g_stats[row].tobytes()
    return both


def _in_direction(target: RankDump, context: Context, direction: Direction) -> Bool:
    if not len(target.items):
        return np.zeros(len(context), bool)
    found: Bool = (target.nodes.direction[target.items.node[context.target]] == direction) & (context.target >= 0)
    return found


def _may_be_left_out(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> Bool:
    """Items of a call that takes a mask on one side only, or one of another form: a program chooses the form of attention by
    whether its rows need a mask."""
    masks = np.array(["mask" in path for path in target.items.paths] + [False])[target.items.path[context.target]]
    masks &= context.target >= 0
    other = np.isin(facts.outcome, (Outcome.KIND, Outcome.TARGET_ONLY, Outcome.SHAPE, Outcome.FORM))
    lone = np.array(["mask" in path for path in golden.items.paths] + [False])[golden.items.path[context.golden]]
    lone &= (context.golden >= 0) & (facts.outcome == Outcome.GOLDEN_ONLY)
    calls = np.zeros(context.nodes, bool)
    calls[context.pair[(masks & other) | lone]] = True
    found: Bool = calls[context.pair]
    return found


def _is_none(dump: RankDump, items: Int32) -> Bool:
    """A mask that a program leaves out where the rows that it took need none."""
    if not len(dump.items):
        return np.zeros(len(items), bool)
    found: Bool = (items >= 0) & (dump.items.kind[items] == Kind.NONE)
    return found


def whole_numbers(dump: RankDump, item: int) -> Shape:
    """The whole numbers that an argument holds; none for other arguments."""
    code = int(dump.items.value[item]) if item >= 0 and dump.items.kind[item] == Kind.SCALAR else -1
    value = json.loads(dump.items.values[code]) if code >= 0 else None
    values: list[Any] = value if isinstance(value, list) else [value]
    return tuple(values) if values and all(type(one) is int for one in values) else ()
