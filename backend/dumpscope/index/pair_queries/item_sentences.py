"""Sentences and derived metrics of a page of item pairs: the same as a comparison in memory has for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import TENSOR_METRICS, Facts, ItemOpinions, TensorFacts
from dumpscope.domain.records import STATISTICS
from dumpscope.index.comparisons.distances import some_distances
from dumpscope.index.dumps.leaves import Leaf
from dumpscope.index.store.codec import numbers, scores, states_of, unpack_states, with_phrases
from dumpscope.metrics import derive_metrics
from dumpscope.texts import Phrase
from dumpscope.verdict.sentences import describe_verdicts

WIDTH = len(STATISTICS)
_measured = attrgetter(*(f"{kind}_{name.lower()}" for kind in ("diff", "rel") for name in STATISTICS))
_metrics = attrgetter(*TENSOR_METRICS)
_NO_METRICS = (None,) * len(TENSOR_METRICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What follows from a row of item_pair. said: why it has its verdict; derived: metrics by name, without absent ones"""

    said: list[Phrase]
    derived: dict[str, float]


def explain(
    rows: Sequence[Any],
    facts: Sequence[TensorFacts | None],
    targets: Sequence[Leaf | None],
    goldens: Sequence[Leaf | None],
    far: Sequence[Any],
) -> list[Explained]:
    """Explain each row of item_pair (joined with its failure), given what belongs to it. far: its row of `distance` or None"""
    size = len(rows)
    states = unpack_states(np.array([row.states for row in rows], dtype=np.int64), 2 * WIDTH)
    values = numbers(list(zip(*(_measured(row) for row in rows), strict=True)), states)
    metrics = [_NO_METRICS if fact is None else _metrics(fact) for fact in facts]
    tensor = np.array([[_or_nan(value) for value in own] for own in metrics]).reshape(size, len(TENSOR_METRICS))
    absent = np.array([[value is None for value in own] for own in metrics]).reshape(tensor.shape)

    def counts(name: str) -> Any:
        return np.array([getattr(fact, name) if fact else -1 for fact in facts], dtype=np.int64)

    distances, standing = some_distances(far)
    measured = Facts(
        outcome=np.array([row.outcome for row in rows], dtype=np.int8),
        equal=np.zeros(size, np.int8),
        dtype_differs=np.zeros(size, np.int8),
        diff=values[:, :WIDTH],
        diff_state=states[:, :WIDTH],
        rel=values[:, WIDTH:],
        rel_state=states[:, WIDTH:],
        tensor=tensor,
        tensor_state=states_of(tensor, absent),
        elements=np.array([-1 if row.elements is None else row.elements for row in rows], dtype=np.int64),
        unequal=counts("unequal"),
        nonfinite_target=counts("nonfinite_target"),
        nonfinite_golden=counts("nonfinite_golden"),
        nonfinite_disagree=counts("nonfinite_disagree"),
        errors={number: with_phrases(row.failure, row.failure_said) for number, row in enumerate(rows) if row.failure},
        distances=distances,
    )
    opinions = ItemOpinions(
        verdict=np.array([row.verdict for row in rows], dtype=np.int8),
        rule=np.array([row.rule for row in rows], dtype=np.int8),
        score=scores(np.array([row.severity for row in rows], dtype=np.float64)),
        standing=standing,
    )
    context = _context(rows, targets, goldens)
    derived = {name: column.tolist() for name, column in derive_metrics(context, measured).items()}
    return [
        Explained(
            said=said,
            derived={name: column[number] for name, column in derived.items() if not math.isnan(column[number])},
        )
        for number, said in enumerate(describe_verdicts(context, measured, opinions, range(size)))
    ]


def _context(rows: Sequence[Any], targets: Sequence[Leaf | None], goldens: Sequence[Leaf | None]) -> Context:
    """What sentences look at: the statistics of both sides; the rest is left blank."""
    size = len(rows)
    t_stats, t_absent = _stats(targets)
    g_stats, g_absent = _stats(goldens)
    none, no = np.zeros(size, np.int64), np.zeros(size, bool)
    return Context(
        pair=none.astype(np.int32),
        target=none.astype(np.int32),
        golden=none.astype(np.int32),
        both=no,
        role=none.astype(np.int8),
        kind=none.astype(np.int8),
        kind_differs=no,
        dtypes=[],
        t_dtype=none,
        g_dtype=none,
        shape_differs=no,
        reshaped=no,
        moved=no,
        other_shape=no,
        requires_grad_differs=no,
        elements=none,
        t_stats=t_stats,
        t_state=states_of(t_stats, t_absent),
        g_stats=g_stats,
        g_state=states_of(g_stats, g_absent),
        apis=[],
        api=none,
        nodes=0,
        end=0,
        unread=no,
        unrecorded=no,
        same_hash=np.array([_have_same_hash(*sides) for sides in zip(targets, goldens, strict=True)], dtype=bool),
    )


def _have_same_hash(target: Leaf | None, golden: Leaf | None) -> bool:
    return target is not None and golden is not None and target.hash is not None and target.hash == golden.hash


def _stats(sides: Sequence[Leaf | None]) -> tuple[Any, Any]:
    numbers_of = [leaf.stats if leaf else (None,) * WIDTH for leaf in sides]
    values = np.array([[_or_nan(value) for value in stats] for stats in numbers_of]).reshape(len(sides), WIDTH)
    absent = np.array([[value is None for value in stats] for stats in numbers_of]).reshape(values.shape)
    return values, absent


def _or_nan(value: Any) -> float:
    if value is None or isinstance(value, str):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
