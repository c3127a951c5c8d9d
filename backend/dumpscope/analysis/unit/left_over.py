"""Gradients of which a norm's backward pass takes nearly all away: what is left is rounding, and so is all that is made of it."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts
from dumpscope.domain.records import Bool, Direction, Float64, Int8, Int64, Kind, NodeKind, Role, State
from dumpscope.verdict.score import NORM

NORMS: Final = frozenset(
    {
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
        "LayerNorm", "RMSNorm", "batch_norm", "group_norm", "instance_norm", "layer_norm", "native_batch_norm",
        "native_group_norm", "native_layer_norm", "npu_rms_norm", "rms_norm",
    }
)  # fmt: skip
"""Calls whose backward pass takes away the parts of a gradient along the mean and along the result."""
LEFT: Final = 0.1
"""Share of a gradient that is left, at most, for errors to be measured against the whole."""


Numbers = tuple[int, bytes, bytes]


def numbers_of(context: Context, row: int) -> Numbers:
    """What both sides stored of an item, by which the same tensors are known again; without statistics none is."""
    if not context.t_state[row].any():
        return -1 - row, b"", b""
    return int(context.elements[row]), context.t_stats[row].tobytes(), context.g_stats[row].tobytes()


def find_left_over(context: Context, facts: Facts, names: list[str], kind: Int8, direction: Int8) -> Float64:
    """By item pair: the share that a norm's backward pass left of a gradient, for what it put out, for what holds the same
    numbers later, and for what the backward calls behind it made of these; 1 elsewhere.

    An error of such a gradient is an error of the whole, of which little is left, so it is as many times larger beside it.
    names, kind, direction: by node pair
    """
    share = np.ones(len(context))
    norms = np.array([api in NORMS for api in context.apis] + [False])[context.api]
    begun = norms & (direction == Direction.BACKWARD)
    if not begun.any() or not (facts.equal == 0).any():
        return share
    first = np.searchsorted(context.pair, np.arange(context.nodes + 1))
    size = _norms(context)
    received = np.isin(context.role, (Role.INPUT, Role.KWARG))
    forward = {names[one]: one for one in np.flatnonzero(norms & (direction == Direction.FORWARD)).tolist()}
    left: dict[Numbers, float] = {}
    for pair in np.flatnonzero(begun).tolist():
        call = forward.get(names[pair].replace("backward", "forward"))
        if call is None:
            continue
        takes, makes = _largest(size, received, first, call)
        arrives, _ = _largest(size, received, first, pair)
        whole = arrives * makes / takes if takes else 0.0
        for row in _made(context, received, first, pair):
            if size[row] < LEFT * whole and context.elements[row] == _most(context, received, first, pair):
                share[row] = size[row] / whole
                left[numbers_of(context, row)] = share[row]
    if left:
        _pass_on(context, share, left, kind, direction, first, received)
    return share


def _pass_on(
    context: Context,
    share: Float64,
    left: dict[Numbers, float],
    kind: Int8,
    direction: Int8,
    first: Int64,
    received: Bool,
) -> None:
    """Give every later backward call that received such a gradient, and the parameters' gradients made of it, its share."""
    last = 1.0
    for pair in np.flatnonzero((direction == Direction.BACKWARD) | (kind == NodeKind.GRADIENT)).tolist():
        rows = np.arange(first[pair], first[pair + 1])
        tensors = rows[context.kind[rows] == Kind.TENSOR].tolist()
        known = {row: left[numbers] for row in tensors if (numbers := numbers_of(context, row)) in left}
        if kind[pair] == NodeKind.GRADIENT:
            for row in tensors:
                share[row] = min(share[row], known.get(row, last))
            continue
        taken = [known.get(row, 1.0) for row in tensors if received[row]]
        last = max(taken, default=1.0)
        for row in tensors:
            share[row] = min(share[row], known.get(row, 1.0) if received[row] else last)
            if share[row] < 1 and not received[row]:
                left.setdefault(numbers_of(context, row), share[row])


def _made(context: Context, received: Bool, first: Int64, pair: int) -> list[int]:
    rows = np.arange(first[pair], first[pair + 1])
    found: list[int] = rows[~received[rows] & (context.kind[rows] == Kind.TENSOR)].tolist()
    return found


def _most(context: Context, received: Bool, first: Int64, pair: int) -> int:
    """Elements of the largest tensor that a call received."""
    rows = np.arange(first[pair], first[pair + 1])
    return int(context.elements[rows[received[rows]]].max(initial=0))


def _largest(size: Float64, received: Bool, first: Int64, pair: int) -> tuple[float, float]:
    """Longest tensor that a call received, and that it made; 0 where none is known."""
    rows = np.arange(first[pair], first[pair + 1])
    given, made = size[rows[received[rows]]], size[rows[~received[rows]]]
    return float(np.nan_to_num(given).max(initial=0.0)), float(np.nan_to_num(made).max(initial=0.0))


def _norms(context: Context) -> Float64:
    """By item pair the larger norm of the two sides, nan where none is stored."""
    sides = [
        np.where(state[:, NORM] == State.FINITE, np.abs(stats[:, NORM]), np.nan)
        for stats, state in ((context.t_stats, context.t_state), (context.g_stats, context.g_state))
    ]
    size: Float64 = np.where(context.kind == Kind.TENSOR, np.fmax(*sides), np.nan)
    return size
