"""Measure every item pair of one rank: statistics at once as columns, tensors file by file where both sides have them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.analysis.unit.noise import have_other_dtypes
from dumpscope.domain.context import Context
from dumpscope.domain.facts import TENSOR_METRICS, Facts, Method, NodePairs, Outcome
from dumpscope.domain.records import (
    Bool,
    Direction,
    Float64,
    Int8,
    Int32,
    Int64,
    Items,
    Kind,
    RankDump,
    Role,
    State,
    UInt8,
    item_name,
)
from dumpscope.domain.stored_counts import NOT_FINITE, ZEROS, counts_of, find_other_extras, stores_counts
from dumpscope.errors import CancelledError, TensorError
from dumpscope.match.amounts.data import cut, find_amounts, find_common, find_related, find_sizes, may_differ_at_the_end
from dumpscope.match.amounts.kept import find_kept, find_kept_masks, find_kept_sizes
from dumpscope.match.amounts.last import find_last, find_last_arguments
from dumpscope.match.forms import (
    find_causal,
    find_defaults,
    find_mapped,
    find_masking,
    find_masks,
    find_no_gradients,
    find_numbers,
    find_other_words,
    find_repeated_heads,
    find_shared_heads,
)
from dumpscope.metrics import compare_statistics, compare_tensors
from dumpscope.pipeline.compare.damage import explain_damage, is_suspicious
from dumpscope.pipeline.compare.tensor_files import FilePair, Found, compare_files
from dumpscope.readers.tensors import tensor_file
from dumpscope.texts import say
from dumpscope_format.run import TABLE_NOTE
from dumpscope_format.schema import MEASURED_KEY

Progress = Callable[[float, str], None]
Cancelled = Callable[[], bool]

_MEASURED: Final = f'"{MEASURED_KEY}"'
_DISTANCES: Final = ("euclidean", "max_abs")
MOST: Final = 1 << 26
"""Elements of a mask that is looked at; statistics tell of a larger one."""

_METRICS: Final = attrgetter(*TENSOR_METRICS)
_COUNTS: Final = attrgetter("elements", "unequal", "nonfinite_target", "nonfinite_golden", "nonfinite_disagree")


def mode_of(target: RankDump, golden: RankDump) -> str:
    """tensor, md5, statistics or structure: the strongest comparison that both sides allow."""
    if not len(target.items) or not len(golden.items):
        return "structure"
    if is_measured(target):
        return "tensor"
    if all(dump.header.data_dir and len(dump.items.data_names) for dump in (target, golden)):
        return "tensor"
    if target.header.summary in ("md5", "xor") and target.header.summary == golden.header.summary:
        return "md5"
    return "statistics"


def is_measured(dump: RankDump) -> bool:
    """Whether the dump is a side of a result table that holds distances between tensors."""
    from_table = dump.header.run is not None and TABLE_NOTE in dump.header.run.notes
    return from_table and any(_MEASURED in text for text in dump.items.values)


def measure(
    target: RankDump,
    golden: RankDump,
    context: Context,
    mode: str,
    *,
    threads: int,
    progress: Progress,
    cancelled: Cancelled,
) -> Facts:
    """Facts of every item pair. Raises CancelledError; a tensor that cannot be read is an entry of `errors`."""
    outcome = _outcomes(target.items, golden.items, context)
    equal = _scalar_equality(target.items, golden.items, context, outcome)
    dtype_differs = (context.both & (context.kind == Kind.TENSOR) & (context.t_dtype != context.g_dtype)).astype(
        np.int8
    )
    diff, diff_state, rel, rel_state = compare_statistics(
        context.t_stats, context.t_state, context.g_stats, context.g_state
    )
    _exact_wide(target.items, golden.items, context, diff, diff_state)
    _statistic_equality(context, outcome, equal, dtype_differs, diff, diff_state)
    broken = _count_equality(target, golden, context, outcome, equal, dtype_differs)
    if target.header.summary == golden.header.summary:
        _hash_equality(target.items, golden.items, context, outcome, equal, dtype_differs)
    n = len(context)
    facts = Facts(
        outcome=outcome,
        equal=equal,
        dtype_differs=dtype_differs,
        diff=diff,
        diff_state=diff_state,
        rel=rel,
        rel_state=rel_state,
        tensor=np.full((n, len(TENSOR_METRICS)), np.nan),
        tensor_state=np.zeros((n, len(TENSOR_METRICS)), np.uint8),
        elements=context.elements.copy(),
        unequal=np.full(n, -1, np.int64),
        nonfinite_target=broken[:, 0],
        nonfinite_golden=broken[:, 1],
        nonfinite_disagree=broken[:, 2],
    )
    if mode == "tensor" and is_measured(target):
        _take_distances(target, golden, context, facts)
    elif mode == "tensor":
        _read_tensors(target, golden, context, facts, threads, progress, cancelled)
    return facts


def _outcomes(target: Items, golden: Items, context: Context) -> Int8:
    outcome = np.full(len(context), int(Outcome.NO_DATA), np.int8)
    tensor = context.both & (context.kind == Kind.TENSOR) & ~context.kind_differs
    plain = context.both & ~tensor & ~context.kind_differs
    opaque = plain & (
        _gathered(target.kind, context.target, Kind.OPAQUE) | _gathered(golden.kind, context.golden, Kind.OPAQUE)
    )
    outcome[tensor] = Outcome.COMPARED
    outcome[plain & ~opaque] = Outcome.SCALAR
    outcome[tensor & (context.elements == 0)] = Outcome.EMPTY
    outcome[tensor & context.shape_differs] = Outcome.SHAPE
    outcome[context.kind_differs] = Outcome.KIND
    outcome[context.golden < 0] = Outcome.TARGET_ONLY
    outcome[context.target < 0] = Outcome.GOLDEN_ONLY
    return outcome


def _gathered(column: Int8, index: Int32, value: int) -> Bool:
    if not len(column):
        return np.zeros(len(index), bool)
    found: Bool = (index >= 0) & (column[index] == value)
    return found


def _scalar_equality(target: Items, golden: Items, context: Context, outcome: Int8) -> Int8:
    equal = np.full(len(context), -1, np.int8)
    rows = np.flatnonzero(outcome == Outcome.SCALAR)
    known: dict[tuple[int, int, int, int], bool] = {}
    t_items, g_items = context.target[rows], context.golden[rows]
    quads = zip(
        target.type[t_items].tolist() if len(target) else [],
        golden.type[g_items].tolist() if len(golden) else [],
        target.value[t_items].tolist() if len(target) else [],
        golden.value[g_items].tolist() if len(golden) else [],
        strict=True,
    )
    for row, quad in zip(rows.tolist(), quads, strict=True):
        same = known.get(quad)
        if same is None:
            t_type, g_type, t_value, g_value = quad
            same = known[quad] = _same_value(
                _text(target.types, t_type), _text(golden.types, g_type),
                _text(target.values, t_value), _text(golden.values, g_value),
            )  # fmt: skip
        equal[row] = same
    return equal


def _text(table: list[str], code: int) -> str | None:
    return table[code] if code >= 0 else None


def _same_value(t_type: str | None, g_type: str | None, t: str | None, g: str | None) -> bool:
    """Values agree as Python compares them; which device a tensor was sent to is no difference."""
    if t == g or (t_type == "torch.device" and g_type == "torch.device"):
        return True
    if t is None or g is None:
        return False
    left, right = json.loads(t), json.loads(g)
    return type(left) is not bool and type(right) is not bool and bool(left == right)


def _exact_wide(target: Items, golden: Items, context: Context, diff: Float64, diff_state: UInt8) -> None:
    """Integers that float64 cannot hold: subtract them as Python integers."""
    if not target.wide and not golden.wide:
        return
    wide_items = {item for item, _ in target.wide} | {-1}
    wide_golden = {item for item, _ in golden.wide} | {-1}
    rows = np.flatnonzero(np.isin(context.target, list(wide_items)) | np.isin(context.golden, list(wide_golden)))
    for row in rows.tolist():
        t, g = int(context.target[row]), int(context.golden[row])
        for column in range(4):
            if (t, column) not in target.wide and (g, column) not in golden.wide:
                continue
            if context.t_state[row, column] != State.FINITE or context.g_state[row, column] != State.FINITE:
                continue
            exact_t = target.wide.get((t, column), int(context.t_stats[row, column]))
            exact_g = golden.wide.get((g, column), int(context.g_stats[row, column]))
            diff[row, column] = float(exact_t - exact_g)
            diff_state[row, column] = State.FINITE


def _statistic_equality(
    context: Context, outcome: Int8, equal: Int8, dtype_differs: Int8, diff: Float64, diff_state: UInt8
) -> None:
    compared = outcome == Outcome.COMPARED
    t_known, g_known = context.t_state != State.ABSENT, context.g_state != State.ABSENT
    apart = (t_known & g_known & (context.t_state != context.g_state)).any(axis=1) | (
        (diff_state == State.FINITE) & (diff != 0)
    ).any(axis=1)
    some = (t_known & g_known).any(axis=1)
    whole = (t_known == g_known).all(axis=1) & (dtype_differs == 0)
    equal[compared & apart] = 0
    equal[compared & ~apart & some & whole] = 1
    outcome[compared & ~some] = Outcome.NO_DATA


def _count_equality(
    target: RankDump, golden: RankDump, context: Context, outcome: Int8, equal: Int8, dtype_differs: Int8
) -> Int64:
    """What the stored numbers of zeros, NaN and infinities show beyond the statistics.

    Returns, for the item pairs in which other numbers of elements are NaN or infinite: how many are so in the target and in the
    golden, and at how many places at least they disagree. -1 for all others. Shape (n, 3)
    """
    found = np.full((len(context), 3), -1, np.int64)
    if any(side.ref.joined or not stores_counts(side.items) for side in (target, golden)):
        return found
    compared = (outcome == Outcome.COMPARED) & context.both
    for row in find_other_extras(target.items, golden.items, context.target, context.golden).tolist():
        if not compared[row]:
            continue
        t, g = counts_of(target.items, int(context.target[row])), counts_of(golden.items, int(context.golden[row]))
        apart = max(abs(t.get(word, 0) - g.get(word, 0)) for word in NOT_FINITE)
        if apart:
            found[row] = *(sum(side.get(word, 0) for word in NOT_FINITE) for side in (t, g)), apart
        if apart or (t.get(ZEROS, 0) != g.get(ZEROS, 0) and not dtype_differs[row]):
            equal[row] = 0
    return found


def _hash_equality(
    target: Items, golden: Items, context: Context, outcome: Int8, equal: Int8, dtype_differs: Int8
) -> None:
    """A hash outranks statistics, but says nothing about two different dtypes."""
    if not target.hashes or not golden.hashes:
        return
    codes = {text: code for code, text in enumerate(target.hashes)}
    table = np.array([codes.get(text, -2 - i) for i, text in enumerate(golden.hashes)], np.int64)
    t_hash = np.where(context.target >= 0, target.hash[context.target], -1)
    raw = np.where(context.golden >= 0, golden.hash[context.golden], -1)
    g_hash = np.where(raw >= 0, table[raw], -1)
    usable = (t_hash >= 0) & (raw >= 0) & (dtype_differs == 0)
    usable &= (outcome == Outcome.COMPARED) | (outcome == Outcome.NO_DATA)
    usable &= context.both & (context.kind == Kind.TENSOR) & ~context.moved
    outcome[usable] = Outcome.COMPARED
    equal[usable] = (t_hash == g_hash)[usable]


def _read_tensors(
    target: RankDump,
    golden: RankDump,
    context: Context,
    facts: Facts,
    threads: int,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    readable = (facts.outcome == Outcome.COMPARED) | (facts.outcome == Outcome.NO_DATA)
    rows = np.flatnonzero(readable & context.both & (context.kind == Kind.TENSOR) & ~context.moved)
    roots = target.header.data_dir, golden.header.data_dir
    if roots[0] is None or roots[1] is None:
        return
    names = target.items.data_name[context.target[rows]], golden.items.data_name[context.golden[rows]]
    columns = (rows, *names, context.elements[rows].clip(0), context.reshaped[rows])
    pairs = [
        FilePair(row, target.items.data_names[first], golden.items.data_names[second], elements, reshaped)
        for row, first, second, elements, reshaped in zip(*(column.tolist() for column in columns), strict=True)
        if first >= 0 and second >= 0
    ]
    done = 0
    named = {pair.row: (pair.target, pair.golden) for pair in pairs}
    for found in compare_files((roots[0], roots[1]), pairs, threads):
        checked = [
            (row, explain_damage((roots[0], roots[1]), named[row], context, row) or result)
            if not isinstance(result, str) and is_suspicious(facts, row, result)
            else (row, result)
            for row, result in found
        ]
        _note(facts, checked)
        done += len(found)
        progress(done / len(pairs), say("pipeline.tensors", done=done, count=len(pairs)))
        if cancelled():
            raise CancelledError(say("pipeline.cancelled_while_comparing_tensors"))


def _take_distances(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> None:
    """Distances that a result table holds, instead of tensors, where it compared the same two items. How many elements are
    unequal is not known."""
    known = {code: json.loads(text)[MEASURED_KEY] for code, text in enumerate(target.items.values) if _MEASURED in text}
    for row in np.flatnonzero(facts.outcome == Outcome.COMPARED).tolist():
        found = known.get(int(target.items.value[context.target[row]]))
        if not found or found["golden"] != item_name(golden, int(context.golden[row])):
            continue
        present = np.array([name in found for name in TENSOR_METRICS])
        facts.tensor[row] = [float(found.get(name, np.nan)) for name in TENSOR_METRICS]
        facts.tensor_state[row] = np.where(present, _states(facts.tensor[row]), State.ABSENT)
        if any(found.get(name, 0.0) > 0 for name in _DISTANCES):
            facts.equal[row] = 0
        elif all(name in found for name in _DISTANCES) and facts.dtype_differs[row] == 0:
            facts.equal[row], facts.unequal[row] = 1, 0


def _note(facts: Facts, found: list[Found]) -> None:
    for row, result in found:
        if isinstance(result, str):
            facts.errors[row] = result
            if facts.outcome[row] == Outcome.NO_DATA:
                facts.outcome[row] = Outcome.UNREADABLE
    read = [(row, result) for row, result in found if not isinstance(result, str)]
    if not read:
        return
    facts.details.update(read)
    rows = np.array([row for row, _ in read])
    facts.outcome[rows] = Outcome.COMPARED
    numbers = [_METRICS(result) for _, result in read]
    facts.tensor[rows] = values = np.array(numbers, np.float64)  # None becomes nan
    absent = np.array([[number is None for number in row] for row in numbers])
    facts.tensor_state[rows] = np.where(absent, State.ABSENT, _states(values))
    counts = np.array([_COUNTS(result) for _, result in read], np.int64)
    columns = facts.elements, facts.unequal, facts.nonfinite_target, facts.nonfinite_golden, facts.nonfinite_disagree
    for column, count in zip(columns, counts.T, strict=True):
        column[rows] = count
    facts.equal[rows] = facts.unequal[rows] == 0


def _states(values: Float64) -> UInt8:
    states = np.full(values.shape, int(State.FINITE), np.uint8)
    states[np.isnan(values)] = State.NAN
    states[values == np.inf] = State.POS_INF
    states[values == -np.inf] = State.NEG_INF
    return states


def tell_other_words(target: RankDump, golden: RankDump, pairs: NodePairs, context: Context, facts: Facts) -> None:
    """Write Outcome.DEFAULT and Outcome.FORM into `facts`, which were just measured."""
    rows = find_defaults(target, golden, pairs, context, facts)
    facts.outcome[rows] = Outcome.DEFAULT
    facts.equal[rows] = -1
    shaped = context.reshaped & (facts.outcome == Outcome.COMPARED) & (facts.equal == 1)
    masks = [row for row in find_masks(context, facts).tolist() if _agree(target, golden, context, facts, row)]
    causal = find_causal(target, golden, pairs, context)
    triangles = [rows for mask, rows in causal.items() if _is_triangle(target, golden, context, mask)]
    other_dtypes = have_other_dtypes(context)
    repeated = find_repeated_heads(target, golden, context, facts)
    for rows in (
        *triangles,
        np.flatnonzero(shaped & _unfused(pairs, context)),
        np.array(masks, np.int64),
        find_other_words(target, golden, context, facts, other_dtypes=other_dtypes),
        find_mapped(target, golden, context, facts),
        find_masking(target, golden, context, facts),
        find_no_gradients(target, golden, pairs, context, facts),
        find_numbers(target, golden, context, facts),
        repeated,
        find_shared_heads(target, golden, context, repeated),
    ):
        facts.outcome[rows] = Outcome.FORM
        facts.equal[rows] = -1


def relate(target: RankDump, golden: RankDump, context: Context, facts: Facts, *, tensors: bool) -> None:
    """Judge nothing that only says that the runs took other amounts of data, or keep their caches in another way; and compare
    what both have, as far as tensors are there and wanted. Writes into `facts`, which were just measured."""
    if context.shape_differs.any():
        _relate_amounts(target, golden, context, facts, tensors=tensors)
        _relate_kept(target, golden, context, facts, tensors=tensors)
        _relate_last(target, golden, context, facts, tensors=tensors)


def _relate_amounts(target: RankDump, golden: RankDump, context: Context, facts: Facts, *, tensors: bool) -> None:
    """Where the runs took other amounts of the same data, compare what both took in the forward pass."""
    amounts = find_amounts(target, golden, context)
    if amounts is None:
        return
    related = find_related(target, golden, context, facts, amounts)
    sizes = find_sizes(target, golden, context, facts, amounts)
    facts.outcome[sizes] = Outcome.FORM
    facts.equal[sizes] = -1
    shaped = related[facts.outcome[related] == Outcome.SHAPE]
    facts.outcome[related] = Outcome.NO_DATA
    facts.equal[related] = -1
    if not tensors:
        return
    data = [_stored(dump, int(items[amounts.row])) for dump, items in _both(target, golden, context)]
    common = find_common(amounts, data[0], data[1]) if data[0] is not None and data[1] is not None else None
    if common is None:
        return
    for row in shaped[context.pair[shaped] < context.end].tolist():
        if (context.role[row] == Role.GRADIENT) or context.elements[row] > MOST:
            continue
        node = target.items.node[context.target[row]]
        if target.nodes.direction[node] != Direction.FORWARD:
            continue
        if common.rows is None and may_differ_at_the_end(context, row):
            continue
        sides = [_stored(dump, int(items[row])) for dump, items in _both(target, golden, context)]
        larger, other = sides if common.larger == "target" else sides[::-1]
        part = None if larger is None or other is None else cut(amounts, common, larger, other.shape)
        if part is None or other is None:
            continue
        part = np.ascontiguousarray(part)
        _note(facts, [(row, compare_tensors(*((part, other) if common.larger == "target" else (other, part))))])


def _leave(facts: Facts, rows: Int64, outcome: Outcome) -> None:
    """Say of item pairs why they are not compared."""
    facts.outcome[rows] = outcome
    facts.equal[rows] = -1


def _relate_kept(target: RankDump, golden: RankDump, context: Context, facts: Facts, *, tensors: bool) -> None:
    """Where one side keeps its cache at full length, compare the positions that both have."""
    kept = find_kept(target, golden, context)
    if kept is None:
        return
    for rows in (
        find_kept_masks(target, golden, context, facts, kept),
        find_kept_sizes(target, golden, context, facts, kept),
    ):
        _leave(facts, rows, Outcome.FORM)
    _leave(facts, kept.rows, Outcome.NO_DATA)
    if tensors:
        _compare_parts(target, golden, context, facts, kept.rows, kept.dimension, last=False)


def _relate_last(target: RankDump, golden: RankDump, context: Context, facts: Facts, *, tensors: bool) -> None:
    """Where one side computes all positions again and the other the last one, compare the last ones."""
    last = find_last(target, golden, context)
    if last is None:
        return
    _leave(facts, find_last_arguments(target, golden, context, facts, last), Outcome.FORM)
    _leave(facts, last.rows, Outcome.NO_DATA)
    if tensors:
        _compare_parts(target, golden, context, facts, last.rows, last.dimension, last=True)


def _compare_parts(
    target: RankDump, golden: RankDump, context: Context, facts: Facts, rows: Int64, dimension: Int64, *, last: bool
) -> None:
    """Compare the positions that both sides of item pairs have: the first ones, or the last ones. dimension: of the positions"""
    for row, axis in zip(rows.tolist(), dimension.tolist(), strict=True):
        if context.elements[row] > MOST:
            continue
        one, other = (_stored(dump, int(items[row])) for dump, items in _both(target, golden, context))
        if one is None or other is None or one.ndim != other.ndim:
            continue
        count = min(one.shape[axis], other.shape[axis])
        parts = [
            np.ascontiguousarray(
                np.take(side, range(side.shape[axis] - count if last else 0, side.shape[axis])[:count], axis)
            )
            for side in (one, other)
        ]
        if parts[0].shape == parts[1].shape:
            _note(facts, [(row, compare_tensors(parts[0], parts[1]))])


def _both(
    target: RankDump, golden: RankDump, context: Context
) -> tuple[tuple[RankDump, Int32], tuple[RankDump, Int32]]:
    return (target, context.target), (golden, context.golden)


def _unfused(pairs: NodePairs, context: Context) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pairs.method[context.pair] != Method.FUSED
    return found


def _agree(target: RankDump, golden: RankDump, context: Context, facts: Facts, row: int) -> bool:
    """Both tensors mask the same places and agree at the others; True where they were not read."""
    if facts.unequal[row] < 0 or context.elements[row] > MOST:
        return True
    masks = [_stored(dump, int(items[row])) for dump, items in ((target, context.target), (golden, context.golden))]
    one, other = masks
    return one is None or other is None or _same_mask(one.reshape(-1), other.reshape(-1))


def _is_triangle(target: RankDump, golden: RankDump, context: Context, row: int) -> bool:
    """The mask of this item pair, which one side has, drops what comes later and nothing else; True where it is not stored."""
    dump, item = (target, int(context.target[row])) if context.target[row] >= 0 else (golden, int(context.golden[row]))
    mask = None if context.elements[row] > MOST else _stored(dump, item)
    if mask is None or mask.ndim < 2 or mask.dtype.kind not in "bf":
        return True
    keep = mask if mask.dtype.kind == "b" else mask == 0
    return bool((keep == np.tril(np.ones(mask.shape[-2:], bool))).all())


def _stored(dump: RankDump, item: int) -> NDArray[Any] | None:
    """The tensor of an item; None where the dump holds no file of it, or none that can be read."""
    name, root = int(dump.items.data_name[item]) if item >= 0 else -1, dump.header.data_dir
    if name < 0 or root is None:
        return None
    try:
        return tensor_file.load(os.path.join(root, dump.items.data_names[name]), root=root).array
    except TensorError:
        return None


def _same_mask(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.dtype.kind not in "bf" or other.dtype.kind not in "bf" or one.shape != other.shape:
        return True
    if one.dtype.kind == "b" or other.dtype.kind == "b":
        keep, added = (one, other) if one.dtype.kind == "b" else (other, one)
        return bool(np.array_equal(keep, added == 0))
    lowest = [array <= np.finfo(array.dtype).min for array in (one, other)]
    kept = ~lowest[0]
    return bool(np.array_equal(*lowest) and np.allclose(one[kept], other[kept], rtol=1e-4, atol=0))
