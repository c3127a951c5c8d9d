"""Which calls received something that a wrong call made, directly or through others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import find_makers
from dumpscope.domain.records import Bool, Direction, Int64, Kind, NodeKind, State
from dumpscope.verdict.score import is_exact_kind

Fingerprint = tuple[float, ...]


def fingerprints(case: Case, rows: Int64) -> list[Fingerprint]:
    """Identity of the target's tensor of each item pair: its statistics and size, or its hash if there are none. A view has the
    same."""
    context, items = case.context, case.target.items
    state = context.t_state[rows]
    numbers = np.where(state == State.FINITE, context.t_stats[rows], -state.astype(np.float64))
    found: list[Fingerprint] = list(
        map(tuple, np.column_stack([numbers, context.elements[rows].astype(np.float64)]).tolist())
    )
    for place in np.flatnonzero((state == State.ABSENT).all(axis=1)).tolist():
        row = int(rows[place])
        code = int(items.hash[context.target[row]]) if context.target[row] >= 0 else -1
        found[place] = (float(code), -1.0) if code >= 0 else (float(row), -2.0)
    return found


def drop_tainted(case: Case, first: int, suspects: list[int], causes: Iterable[int] = ()) -> list[int]:
    """Those suspects that received nothing made by a wrong call, directly or through others.

    Walks the calls from the first difference on. A call passes its taint to whatever it makes; a received tensor that was
    read and found bit-equal is clean, whoever made it. Equal statistics prove nothing, and what differs and has no
    known maker may come from anywhere. causes: further calls at which something went wrong
    """
    columns, context, facts = case.columns, case.context, case.facts
    last = max(suspects)
    with np.errstate(invalid="ignore"):
        wrong = columns.argument | (columns.out_score > columns.threshold) | (columns.data_score > columns.threshold)
    wrong[:first] = False
    wrong[list(causes)] = True
    sources: dict[int, list[int]] = {}
    for maker in (
        find_makers(case),
        find_makers(case, golden=True),
    ):  # the sides may have stored more or less of the flow
        rows = np.flatnonzero((maker >= first) & (facts.unequal != 0) & ~context.unread & (context.pair <= last))
        for pair, made_by in zip(context.pair[rows].tolist(), maker[rows].tolist(), strict=True):
            sources.setdefault(pair, []).append(made_by)
    tainted = wrong.tolist()
    received = np.zeros(last + 1, bool)
    received[context.pair[_find_untraced(case, maker) & (context.pair <= last)]] = True
    received[: first + 1] = False
    by_call: dict[tuple[str, str], bool] = {}
    by_module: dict[str, bool] = {}
    again: dict[str, bool] = {}
    after_wrong = False
    gradient = (columns.kind == NodeKind.GRADIENT).tolist()
    turn = (
        int(np.argmax(columns.direction == Direction.BACKWARD))
        if (columns.direction == Direction.BACKWARD).any()
        else last
    )
    backward = (columns.direction == Direction.BACKWARD).tolist()
    forward = (columns.direction == Direction.FORWARD).tolist()
    for pair in range(first, last + 1):
        name, label = columns.names[pair], columns.labels[pair]
        received[pair] |= any(tainted[one] for one in sources.get(pair, ()))
        if gradient[pair]:
            received[pair] |= by_module.get(label, False) or after_wrong
        if backward[pair] and (again.get(label) or by_call.get((label, name.removesuffix(".backward")))):
            received[pair] = True
        tainted[pair] = tainted[pair] or received[pair]
        if forward[pair]:
            by_call[label, name.removesuffix(".forward")] = tainted[pair]
            if pair > turn:  # run again by a checkpoint, under a new number
                again[label] = again.get(label, False) or tainted[pair]
        by_module[label] = by_module.get(label, False) or tainted[pair]
        if backward[pair] and columns.leaf[pair] and not gradient[pair]:
            after_wrong = tainted[pair]
    return [pair for pair in suspects if not received[pair]]


def _find_untraced(case: Case, maker: Int64) -> Bool:
    """By item pair: a received tensor that differs and has no known maker. Equal statistics of a gradient prove nothing, nor do
    those of a mask, which do not tell where its elements are; weights and data have no maker."""
    context, facts = case.context, case.facts
    between = (context.t_state[:, :2] == State.FINITE).all(axis=1)
    between &= (context.t_stats[:, 0] == 1) & (context.t_stats[:, 1] == 0)
    hashes = case.target.items.hash
    hashed = (hashes[context.target] >= 0) & (context.target >= 0) if len(hashes) else np.zeros(len(context), bool)
    mask = is_exact_kind(context) & between & (facts.unequal < 0) & ~hashed
    gradient = case.columns.direction[context.pair] == Direction.BACKWARD
    doubtful = ((facts.equal == 0) & ~context.unread) | (gradient & (facts.unequal != 0)) | mask
    found: Bool = case.received & (maker < 0) & (context.kind == Kind.TENSOR) & doubtful
    return found
