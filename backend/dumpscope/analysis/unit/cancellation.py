"""Gradients that are sums: their scores measured against the terms. Where the terms cancel, only rounding is left."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int32, Int64, Items, Kind, NodeKind, Role, State
from dumpscope.verdict.score import MAX, MIN, NORM

_WRITTEN_MEANS: Final = ("written.input.1", "written.running_mean", "written.buffers.running_mean")


def score_against_terms(
    context: Context, score: Float64, kind: Int8, direction: Int8, label: Int64, flat: Bool, mean: Bool
) -> Float64:
    """Scores, by item pair, with those of sums measured against their terms where these are larger than the sum.

    A sum is a vector that a backward call computes from a gradient with more elements (as for a bias): its terms have the norm
    of the gradient that arrives. So is a parameter's gradient: its terms have the norm of what arrives at its module, times the
    largest input of the module's forward for a parameter of more than one dimension. A running mean that a norm writes is the
    mean of what the norm takes.

    kind, direction, label: by node pair; nodes with the same label are one API or module
    flat: by item pair, at most one dimension; mean: by item pair, such a running mean
    """
    norm = _largest_magnitude(context, [NORM])
    peak = _largest_magnitude(context, [MAX, MIN])
    backward, forward = direction == Direction.BACKWARD, direction == Direction.FORWARD
    module, gradient = kind == NodeKind.MODULE, kind == NodeKind.GRADIENT
    received = ((context.role == Role.INPUT) | (context.role == Role.KWARG)) & (context.kind == Kind.TENSOR)
    arriving = _fold_largest(context, norm, received & backward[context.pair])
    count = _fold_largest(context, context.elements.astype(np.float64), received & backward[context.pair])
    entering = _fold_largest(context, peak, received & forward[context.pair])
    factor = np.where(flat, 1.0, np.nan_to_num(_share_largest(label, entering, module), nan=1.0)[context.pair])
    of_module = _share_largest(label, arriving, module)[context.pair] * factor
    sums = (context.role == Role.OUTPUT) & backward[context.pair] & flat & (context.elements < count[context.pair])
    terms = np.where(gradient[context.pair], of_module, np.where(sums, arriving[context.pair], np.nan))
    if mean.any():
        taken = received & forward[context.pair]
        whole = _fold_largest(context, norm, taken)[context.pair]
        length = _fold_largest(context, context.elements.astype(np.float64), taken)[context.pair]
        terms = np.where(mean, whole * np.sqrt(np.maximum(context.elements, 0) / np.maximum(length, 1)), terms)
    with np.errstate(invalid="ignore", divide="ignore"):
        cancels = np.isfinite(score) & (terms > norm)
        return np.where(cancels, score * norm / terms, score)


def are_running_means(items: Items, rows: Int32) -> Bool:
    """By item number, -1 for none: what a norm wrote as its running mean."""
    written = np.array([path in _WRITTEN_MEANS for path in items.paths] + [False])
    found: Bool = written[np.where(rows >= 0, items.path[rows] if len(items) else -1, -1)]
    return found


def _largest_magnitude(context: Context, columns: list[int]) -> Float64:
    """Largest finite magnitude of some statistics on either side; nan where there is none."""
    sides = [
        np.where(state[:, columns] == State.FINITE, np.abs(stats[:, columns]), np.nan)
        for stats, state in ((context.t_stats, context.t_state), (context.g_stats, context.g_state))
    ]
    size: Float64 = np.fmax.reduce(np.concatenate(sides, axis=1), axis=1)
    return size


def _fold_largest(context: Context, size: Float64, rows: Bool) -> Float64:
    out = np.full(context.nodes, np.nan)
    np.fmax.at(out, context.pair[rows], size[rows])
    return out


def _share_largest(key: Int64, value: Float64, rows: Bool) -> Float64:
    """For every node the largest value of those in `rows` that have its key, nan where there is none."""
    keys, code = np.unique(key, return_inverse=True)
    best = np.full(len(keys), np.nan)
    np.fmax.at(best, code[rows], value[rows])
    found: Float64 = best[code]
    return found
