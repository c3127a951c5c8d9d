"""Measures one pair of tensors and says what it comes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dumpscope.domain.checkpoints.differences import AGREE, Form, State
from dumpscope.domain.checkpoints.tensors import CheckpointTensor, Raw, Shape
from dumpscope.domain.facts import TensorFacts
from dumpscope.errors import TensorError
from dumpscope.match.checkpoints.joining import is_replica, join_shards, replicas_of
from dumpscope.metrics.tensors import compare_blocks
from dumpscope.metrics.ulps import is_float
from dumpscope.pipeline.checkpoints.stream import Whole, blocks
from dumpscope.texts import say

SAME_STEPS: Final = 1
"""Steps of the coarser dtype that rounding explains."""
_FINE: Final = (np.dtype(np.float32), np.dtype(np.float64))
"""Dtypes in which one step is noise between two tensors of that dtype: one step of a 16-bit number is what training changes."""
_TRANSPOSED_BELOW: Final = 0.5
"""Cosine below which a square matrix is also compared with the other one turned round."""
WAYS: Final = 6

Tick = Callable[[int], None]
"""Called with the bytes that were compared; raises CancelledError to end the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a pair comes to. facts: None where nothing could be compared; detail: why, or what else is to be known"""

    state: State
    form: Form | None = None
    facts: TensorFacts | None = None
    detail: str = ""
    shapes: tuple[Shape, Shape] = ((), ())


def measure(
    target: CheckpointTensor, golden: CheckpointTensor, *, fused: bool = False, threads: int = 1, tick: Tick
) -> Measured:
    """Compare two tensors, in every way in which their shards can be joined until one agrees."""
    problem = target.problem or golden.problem
    shapes = target.shape, golden.shape
    if problem is not None:
        return Measured(state="unreadable", detail=problem, shapes=shapes)
    best: Measured | None = None
    try:
        for one, other in _ways(target, golden):
            found = _compare(one, other, fused=fused, threads=threads, tick=tick)
            found = _with_replicas(found, (one, target), (other, golden), threads)
            if best is None or _distance(found) < _distance(best):
                best = found
            if found.state in ("equal", "equal_cast", "rounding"):
                break
    except TensorError as error:
        detail = say("error.at", where=error.where, what=error.detail) if error.where else error.detail
        return Measured(state="unreadable", detail=detail, shapes=shapes)
    assert best is not None
    return best


def _ways(target: CheckpointTensor, golden: CheckpointTensor) -> Iterator[tuple[CheckpointTensor, CheckpointTensor]]:
    """Ways to join both sides to tensors of one shape; the first ones alone where no two shapes agree."""
    mine, theirs = join_shards(target, golden), join_shards(golden, target)
    pairs = [(one, other) for one in mine for other in theirs]
    alike = [pair for pair in pairs if pair[0].shape == pair[1].shape]
    if target.sharded and golden.sharded and len(target.pieces) == len(golden.pieces):
        alike = alike[:1]  # cut alike: any way to join them is right
    yield from (alike or pairs[:1])[:WAYS]


def _with_replicas(
    found: Measured,
    target: tuple[CheckpointTensor, CheckpointTensor],
    golden: tuple[CheckpointTensor, CheckpointTensor],
    threads: int,
) -> Measured:
    """A pair of which one side has copies on several ranks: it differs if they do."""
    for joined, shards in (target, golden):
        if found.state not in AGREE or not is_replica(joined, shards):
            continue
        for other in replicas_of(shards):
            facts = _facts(Whole(joined), Whole(other), threads, lambda more: None)
            if facts.unequal or facts.nonfinite_disagree:
                detail = say("checkpoints.replicas_differ", file=other.source, first=joined.source)
                return replace(found, state="differs", facts=facts, detail=detail)
    return found


def _distance(found: Measured) -> float:
    facts = found.facts
    if facts is None:
        return math.inf
    distance = facts.rel_l2 if facts.rel_l2 is not None else math.inf
    return distance if distance == distance else math.inf  # noqa: PLR0124


def _compare(target: CheckpointTensor, golden: CheckpointTensor, *, fused: bool, threads: int, tick: Tick) -> Measured:
    shapes = target.shape, golden.shape
    first, second = Whole(target), Whole(golden)
    if not _comparable(first.dtype, second.dtype):
        return Measured(state="form", form="shape", detail=say("checkpoints.dtypes_not_comparable"), shapes=shapes)
    if target.shape == golden.shape:
        facts = _facts(first, second, threads, tick)
        state = judge(facts, first.dtype, second.dtype)
        turned = _turned(target, golden, facts, threads, tick) if state == "differs" else None
        if turned is not None:
            return Measured(state="form", form="transposed", facts=turned, shapes=shapes)
        if state == "differs" and fused:
            return Measured(state="form", form="fused", facts=facts, shapes=shapes)
        return Measured(state=state, facts=facts, form="fused" if fused else None, shapes=shapes)
    if len(shapes[0]) == 2 and shapes[0] == shapes[1][::-1] and shapes[0] != shapes[1]:
        return Measured(
            state="form",
            form="transposed",
            facts=_facts(first, Whole(golden, turned=True), threads, tick),
            shapes=shapes,
        )
    if math.prod(shapes[0]) == math.prod(shapes[1]):
        flat = first.flat() is not None and second.flat() is not None
        laid_out = _facts(first, second, threads, tick) if flat else None
        return Measured(state="form", form="reshaped", facts=laid_out, shapes=shapes)
    if len(shapes[0]) == len(shapes[1]) and shapes[0][1:] == shapes[1][1:]:
        rows = min(shapes[0][0], shapes[1][0])
        return Measured(
            state="form",
            form="padded",
            facts=_facts(_Top(first, rows), _Top(second, rows), threads, tick),
            shapes=shapes,
        )
    return Measured(state="form", form="shape", shapes=shapes)


class _Top(Whole):
    """The first rows of a tensor."""

    def __init__(self, whole: Whole, rows: int) -> None:
        super().__init__(whole.tensor)
        self.shape = (rows, *whole.shape[1:])

    def flat(self) -> Raw | None:
        found = super().flat()
        return None if found is None else found[: math.prod(self.shape)]


def _facts(first: Whole, second: Whole, threads: int, tick: Tick) -> TensorFacts:
    def give() -> Iterator[tuple[Raw, Raw]]:
        for one, other in blocks(first, second):
            yield one, other
            tick(one.nbytes + other.nbytes)

    return compare_blocks(give, (first.dtype, second.dtype), first.shape, threads=threads)


def _turned(
    target: CheckpointTensor, golden: CheckpointTensor, facts: TensorFacts, threads: int, tick: Tick
) -> TensorFacts | None:
    """The facts of a square matrix against the other one turned round, if it agrees with that."""
    shape = target.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2 or target.sharded or golden.sharded:
        return None
    if facts.cosine is not None and facts.cosine > _TRANSPOSED_BELOW:
        return None
    first, second = Whole(target), Whole(golden, turned=True)
    rows = slice(0, 1), slice(0, shape[1])
    if not np.allclose(
        first.block(rows).astype(np.float64), second.block(rows).astype(np.float64), rtol=0.02, equal_nan=True
    ):
        return None
    turned = _facts(first, second, threads, tick)
    return turned if judge(turned, first.dtype, second.dtype) != "differs" else None


def _comparable(first: np.dtype[Any], second: np.dtype[Any]) -> bool:
    return (first.kind == "c") == (second.kind == "c")


def judge(facts: TensorFacts, first: np.dtype[Any], second: np.dtype[Any]) -> State:
    """State of a pair of one shape, by its facts and both dtypes."""
    if facts.unequal == 0 and facts.nonfinite_disagree == 0:
        return "equal" if first == second else "equal_cast"
    if facts.nonfinite_disagree or facts.max_ulp is None or not (is_float(first) and is_float(second)):
        return "differs"
    if (first != second or first in _FINE) and facts.max_ulp <= SAME_STEPS:
        return "rounding"
    return "differs"
