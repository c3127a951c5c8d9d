"""Measure every item pair of one rank: statistics at once as columns, tensors file by file where both sides have them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import TENSOR_METRICS, Facts, Outcome, TensorFacts
from dumpscope.domain.records import Bool, Float64, Int8, Int32, Items, Kind, RankDump, State, UInt8
from dumpscope.errors import CancelledError, TensorError
from dumpscope.metrics import compare_statistics, compare_tensors, prepare
from dumpscope.readers import tensorfile

Progress = Callable[[float, str], None]
Cancelled = Callable[[], bool]

LARGE: Final = 32 << 20
"""Bytes from which one tensor pair is split over all threads; smaller ones are spread one per thread."""
ALONE: Final = 512 << 10
"""Bytes below which tensor pairs are compared by one thread: a second one would wait for the interpreter, not for data."""
CHUNK: Final = 32
"""Small tensor pairs per task."""


def mode_of(target: RankDump, golden: RankDump) -> str:
    """tensor, md5, statistics or structure: the strongest comparison that both sides allow."""
    if not len(target.items) and not len(golden.items):
        return "structure"
    if all(dump.header.data_dir and len(dump.items.data_names) for dump in (target, golden)):
        return "tensor"
    if target.header.summary in ("md5", "xor") and target.header.summary == golden.header.summary:
        return "md5"
    return "statistics"


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
        nonfinite_target=np.full(n, -1, np.int64),
        nonfinite_golden=np.full(n, -1, np.int64),
        nonfinite_disagree=np.full(n, -1, np.int64),
    )
    if mode == "tensor":
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
    usable &= context.both & (context.kind == Kind.TENSOR)
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
    rows = np.flatnonzero(readable & context.both & (context.kind == Kind.TENSOR)).tolist()
    jobs = [job for row in rows if (job := _job(target, golden, context, row))]
    sizes = [_size(job.target) for job in jobs]
    classes = np.searchsorted((ALONE, LARGE), sizes, side="right").tolist()
    tiny, small, large = ([job for job, found in zip(jobs, classes, strict=True) if found == one] for one in range(3))
    prepare(2 * sum(sizes))
    done = 0

    def note(chunk: Iterable[tuple[int, TensorFacts | str]]) -> None:
        nonlocal done
        for row, result in chunk:
            _note(facts, row, result)
            done += 1
        progress(done / len(jobs), f"{done} of {len(jobs)} tensors")
        if cancelled():
            raise CancelledError("cancelled while comparing tensors")

    for chunk in _chunks(tiny):
        note(_compare_chunk(chunk))
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        try:
            for results in pool.map(_compare_chunk, _chunks(small)):
                note(results)
        except CancelledError:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for job in large:
        note([(job.row, _compare(job, threads))])


def _chunks(jobs: list[_Job]) -> list[list[_Job]]:
    return [jobs[start : start + CHUNK] for start in range(0, len(jobs), CHUNK)]


@dataclass(frozen=True, slots=True)
class _Job:
    """One pair of tensor files; a root is the folder that a file must not leave."""

    row: int
    target: str
    target_root: str
    golden: str
    golden_root: str


def _job(target: RankDump, golden: RankDump, context: Context, row: int) -> _Job | None:
    t_root, g_root = target.header.data_dir, golden.header.data_dir
    t = int(target.items.data_name[context.target[row]])
    g = int(golden.items.data_name[context.golden[row]])
    if t < 0 or g < 0 or t_root is None or g_root is None:
        return None
    t_path = os.path.join(t_root, target.items.data_names[t])
    return _Job(row, t_path, t_root, os.path.join(g_root, golden.items.data_names[g]), g_root)


def _compare_chunk(chunk: list[_Job]) -> list[tuple[int, TensorFacts | str]]:
    return [(job.row, _compare(job, 1)) for job in chunk]


def _compare(job: _Job, threads: int) -> TensorFacts | str:
    """Facts of two tensor files, or why they could not be read."""
    try:
        left = tensorfile.load(job.target, root=job.target_root)
        right = tensorfile.load(job.golden, root=job.golden_root)
        if left.shape != right.shape:
            shapes = f"shape {list(left.shape)}, the golden file {list(right.shape)}"
            return f"{Path(job.target).name}: the file holds {shapes}"
        return compare_tensors(left.array, right.array, threads=threads)
    except TensorError as error:
        return str(error)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _note(facts: Facts, row: int, result: TensorFacts | str) -> None:
    if isinstance(result, str):
        facts.errors[row] = result
        if facts.outcome[row] == Outcome.NO_DATA:
            facts.outcome[row] = Outcome.UNREADABLE
        return
    facts.outcome[row] = Outcome.COMPARED
    for column, name in enumerate(TENSOR_METRICS):
        facts.tensor[row, column], facts.tensor_state[row, column] = _stored(getattr(result, name))
    facts.elements[row] = result.elements
    facts.unequal[row] = result.unequal
    facts.nonfinite_target[row] = result.nonfinite_target
    facts.nonfinite_golden[row] = result.nonfinite_golden
    facts.nonfinite_disagree[row] = result.nonfinite_disagree
    facts.equal[row] = result.unequal == 0
    facts.details[row] = result


def _stored(value: float | None) -> tuple[float, int]:
    if value is None:
        return np.nan, State.ABSENT
    if math.isnan(value):
        return np.nan, State.NAN
    if math.isinf(value):
        return value, State.POS_INF if value > 0 else State.NEG_INF
    return value, State.FINITE
