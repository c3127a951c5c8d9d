"""Compares two checkpoints from start to end: pairs, measurements, order, the sentence that sums it up."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.checkpoints.differences import STATES, CheckpointDiff, TensorDifference
from dumpscope.domain.checkpoints.tensors import Checkpoint, CheckpointTensor
from dumpscope.domain.facts import TensorFacts
from dumpscope.errors import Problem
from dumpscope.match.checkpoints.joining import stored_elements
from dumpscope.match.renames.rename_rules import parse_renames
from dumpscope.metrics.native.loader import load_kernel
from dumpscope.pipeline.checkpoints.measure import Measured, measure
from dumpscope.pipeline.checkpoints.pairing import TensorPair, pair_tensors
from dumpscope.readers.checkpoints.opening import open_checkpoint
from dumpscope.readers.tensors.arrays import ELEMENT_TYPES
from dumpscope.texts import say

Progress = Callable[[float, str], None]
_ORDER: Final = {state: place for place, state in enumerate(STATES)}
MOST_PROBLEMS: Final = 1000


def compare_checkpoints(
    target: Path | str,
    golden: Path | str,
    *,
    renames: Sequence[str] = (),
    threads: int = 0,
    roots: tuple[str, str] = (os.sep, os.sep),
    progress: Progress = lambda done, message: None,
) -> CheckpointDiff:
    """Compare two checkpoints tensor by tensor, piece by piece.

    renames: PATTERN=REPLACEMENT over the target's names; threads: that share the work of a large tensor, 0 for one per core
    roots: for each side, the folder that no link of the checkpoint may lead out of
    progress: gets the share done and a sentence; what it raises ends the work
    Raises UnreadableError, NotFoundError, UsageError.
    """
    rules = parse_renames(renames)
    progress(0.0, say("checkpoints.reading_lists"))
    first, second = open_checkpoint(target, root=roots[0]), open_checkpoint(golden, root=roots[1])
    pairs, found_rules = pair_tensors(first, second, rules)
    total = sum(_bytes(pair) for pair in pairs) or 1
    load_kernel(total)
    done = 0
    lines: list[TensorDifference] = []
    for number, pair in enumerate(pairs):
        sentence = say("checkpoints.comparing", number=number + 1, count=len(pairs))
        begun = done

        def tick(more: int, sentence: str = sentence) -> None:
            nonlocal done
            done += more
            progress(min(done / total, 1.0), sentence)

        lines.append(_line(pair, threads or usable_cores(), tick))
        done = begun + _bytes(pair)
        progress(min(done / total, 1.0), sentence)
    lines.sort(key=lambda line: (_ORDER[line.state], -line.severity, line.name))
    return CheckpointDiff(
        target=first.path,
        golden=second.path,
        target_kind=first.kind,
        golden_kind=second.kind,
        tensors=tuple(lines),
        problems=_problems(first, second),
        rules=tuple(found_rules),
        bytes_read=done,
        counts=dict(Counter(line.state for line in lines)),
    )


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _problems(first: Checkpoint, second: Checkpoint) -> tuple[Problem, ...]:
    """Problems of both sides, whose files are named by the side's path."""
    return tuple(
        Problem(loc=f"{side.path}: {one.loc}", kind=one.kind, message=one.message, said=one.said)
        for side in (first, second)
        for one in side.problems[:MOST_PROBLEMS]
    )


def _bytes(pair: TensorPair) -> int:
    if pair.target is None or pair.golden is None:
        return 0
    return sum(map(_stored_bytes, (pair.target, pair.golden)))


def _stored_bytes(tensor: CheckpointTensor) -> int:
    element = ELEMENT_TYPES.get(tensor.dtype)
    return stored_elements(tensor) * (element.size if element else 1)


def _line(pair: TensorPair, threads: int, tick: Callable[[int], None]) -> TensorDifference:
    one, other = pair.target, pair.golden
    if one is None or other is None:
        only = one or other
        assert only is not None
        found = Measured(state="target_only" if other is None else "golden_only", detail=only.problem or "")
        return _described(pair, found)
    return _described(pair, measure(one, other, fused=pair.match == "fused", threads=threads, tick=tick))


def _described(pair: TensorPair, found: Measured) -> TensorDifference:
    one, other = pair.target, pair.golden
    named = one or other
    assert named is not None
    facts = found.facts
    numbers: dict[str, Any] = {} if facts is None else _numbers(facts)
    shapes = found.shapes if found.shapes != ((), ()) else (one.shape if one else (), other.shape if other else ())
    return TensorDifference(
        name=named.name,
        golden=pair.golden_name if other is not None else "",
        section=named.section,
        state=found.state,
        match=pair.match,
        form=found.form,
        target_dtype=one.dtype if one else None,
        golden_dtype=other.dtype if other else None,
        target_shape=shapes[0] if one else None,
        golden_shape=shapes[1] if other else None,
        target_source=one.source if one else "",
        golden_source=other.source if other else "",
        note=found.detail,
        severity=_severity(found.state, facts, named),
        **numbers,
    )


def _numbers(facts: TensorFacts) -> dict[str, Any]:
    return {
        "elements": facts.elements,
        "unequal": facts.unequal,
        "max_abs": facts.max_abs,
        "max_rel": facts.max_rel,
        "cosine": facts.cosine,
        "rel_l2": facts.rel_l2,
        "max_ulp": facts.max_ulp,
        "nonfinite_target": facts.nonfinite_target,
        "nonfinite_golden": facts.nonfinite_golden,
        "index": facts.worst_index,
        "target_value": facts.worst_target,
        "golden_value": facts.worst_golden,
        "histogram": facts.abs_histogram if facts.unequal else (),
    }


def _severity(state: str, facts: TensorFacts | None, tensor: CheckpointTensor) -> float:
    """What orders tensors of one state: differing infinities first, then the error relative to the tensor's size."""
    if facts is None:
        return float(math.prod(tensor.shape)) if state.endswith("_only") else 0.0
    if facts.nonfinite_disagree:
        return math.inf
    return facts.rel_l2 if facts.rel_l2 is not None and not math.isnan(facts.rel_l2) else math.inf
