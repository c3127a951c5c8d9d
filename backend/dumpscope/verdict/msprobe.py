"""msprobe's Result column: pass, warning or error per row, judged per API group, by the rules of msprobe 26.2.0.

Facts only; the wording of the messages is ours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Bool, Float64, Int8, Kind, Role, State, UInt8

PASS, WARNING, ERROR = 0, 1, 2
WORDS: Final = ("pass", "warning", "error")

IGNORED: Final = frozenset(
    {"empty", "empty_like", "numpy", "to", "__setitem__", "empty_with_format", "new_empty_strided", "new_empty", "empty_strided"}
)  # fmt: skip
IGNORED_INPUTS: Final = frozenset(
    {"_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"}
)

MESSAGES: Final = (
    "error: the target's maximum or minimum is NaN or infinite, the golden's is not",
    "error: requires_grad differs",
    "error: the value of an argument differs",
    "error: dtypes differ",
    "error: shapes differ",
    "error: inputs agree to 10 % in norm, this output differs by more than 50 %",
    "error: more than 90 % of every input agrees to one thousandth, less than 10 % of an output does",
    "warning: the norm error of the outputs is more than ten times that of the inputs",
    "warning: the cosine of the outputs is more than 0.1 below that of the inputs",
    "error: hashes differ",
    "warning: no partner to compare with",
)


def find_levels(context: Context, facts: Facts, mode: str) -> Int8:
    """PASS, WARNING or ERROR per item pair."""
    level = np.zeros(len(context), np.int8)
    for code, where in find_marks(context, facts, mode):
        level[where] = np.maximum(level[where], ERROR if MESSAGES[code].startswith("error") else WARNING)
    return level


def find_marks(context: Context, facts: Facts, mode: str) -> list[tuple[int, Bool]]:
    """(message number, rows it marks), in the order in which messages are listed."""
    if mode == "md5":
        differs = context.both & (facts.equal == 0) & (facts.outcome != Outcome.NO_DATA)
        return [(9, differs), (10, ~context.both & (context.kind != Kind.NONE))]
    ignored = np.array([name in IGNORED for name in context.apis] + [False])
    no_inputs = np.array([name in IGNORED_INPUTS for name in context.apis] + [False])
    node_ignored, node_no_inputs = ignored[context.api], no_inputs[context.api]
    is_output = (context.role == Role.OUTPUT) | (context.role == Role.GRADIENT)
    live = context.both & ~node_ignored[context.pair] & ~(node_no_inputs[context.pair] & ~is_output)
    tensor = context.kind == Kind.TENSOR
    bad = (State.NAN, State.POS_INF, State.NEG_INF)
    infinite = np.isin(context.t_state[:, :2], bad).any(axis=1) & ~np.isin(context.g_state[:, :2], bad).any(axis=1)
    out = [
        (0, live & infinite),
        (1, live & tensor & context.requires_grad_differs),
        (2, live & ~is_output & (facts.outcome == Outcome.SCALAR) & (facts.equal == 0)),
        (3, live & tensor & (facts.dtype_differs == 1)),
        (4, live & context.other_shape),
    ]
    if mode == "tensor":
        out += _find_tensor_marks(context, facts, live, is_output)
    else:
        out += _find_statistic_marks(context, facts, live, is_output)
    return out


def _find_statistic_marks(context: Context, facts: Facts, live: Bool, is_output: Bool) -> list[tuple[int, Bool]]:
    norm = _with_infinities(facts.rel[:, 3], facts.rel_state[:, 3])
    inputs = _fold_to_nodes(context, norm, live & ~is_output, np.fmax)
    outputs = _fold_to_nodes(context, norm, live & is_output, np.fmax)
    with np.errstate(all="ignore"):
        error = live & is_output & (inputs < 0.1)[context.pair] & (norm > 0.5)
        grown = np.where(inputs > 0, outputs / inputs > 10, outputs > 0.1) & ~np.isnan(inputs)
    return [(5, error), (7, _first_of_nodes(context, live & is_output, grown))]


def _find_tensor_marks(context: Context, facts: Facts, live: Bool, is_output: Bool) -> list[tuple[int, Bool]]:
    ratio = _metric(facts, "ratio_1e3")
    cosine = _metric(facts, "cosine")
    low_in, low_out = (_fold_to_nodes(context, ratio, live & side, np.fmin) for side in (~is_output, is_output))
    cos_in, cos_out = (_fold_to_nodes(context, cosine, live & side, np.fmin) for side in (~is_output, is_output))
    with np.errstate(invalid="ignore"):
        error = (low_in > 0.9) & (low_out < 0.1)
        warning = (cos_in > 0.9) & (cos_in - cos_out > 0.1)
    outputs = live & is_output
    return [(6, _first_of_nodes(context, outputs, error)), (8, _first_of_nodes(context, outputs, warning))]


def _metric(facts: Facts, name: str) -> Float64:
    return _with_infinities(facts.metric(name), facts.metric_state(name))


def _with_infinities(values: Float64, state: UInt8) -> Float64:
    out = np.where(state == State.FINITE, values, np.nan)
    return np.where(state == State.POS_INF, np.inf, out)


def _fold_to_nodes(context: Context, values: Float64, where: Bool, fold: np.ufunc) -> Float64:
    """Largest (or smallest) value per node over the rows in `where`, nan where there is none."""
    out = np.full(context.nodes, np.nan)
    fold.at(out, context.pair[where], values[where])
    return out


def _first_of_nodes(context: Context, rows: Bool, nodes: Bool) -> Bool:
    """First of `rows` in every node of `nodes`."""
    found = np.flatnonzero(rows & nodes[context.pair])
    _, first = np.unique(context.pair[found], return_index=True)
    out = np.zeros(len(context), bool)
    out[found[first]] = True
    return out
