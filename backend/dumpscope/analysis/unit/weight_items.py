"""Weights: which items hold one, and which weights differ.

A weight was loaded, or left by the step before. One that a call of this step made, or an update within it, is no weight here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.analysis.unit.left_over import identify
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions
from dumpscope.domain.records import Bool, Direction, Int8, Int64, Kind, NodeKind, RankDump, Role
from dumpscope_format.naming import item_name

WEIGHT_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "linear": ("1", "2", "weight", "bias"),
    "bilinear": ("2", "3", "weight", "bias"),
    "embedding": ("1", "weight"),
    "embedding_bag": ("1", "weight"),
    "conv1d": ("1", "2", "weight", "bias"),
    "conv2d": ("1", "2", "weight", "bias"),
    "conv3d": ("1", "2", "weight", "bias"),
    "conv_transpose1d": ("1", "2", "weight", "bias"),
    "conv_transpose2d": ("1", "2", "weight", "bias"),
    "conv_transpose3d": ("1", "2", "weight", "bias"),
    "layer_norm": ("2", "3", "weight", "bias"),
    "rms_norm": ("2", "weight"),
    "npu_rms_norm": ("1",),
    "group_norm": ("2", "3", "weight", "bias"),
    "batch_norm": ("1", "2", "3", "4", "running_mean", "running_var", "weight", "bias"),
    "instance_norm": ("1", "2", "3", "4", "running_mean", "running_var", "weight", "bias"),
    "prelu": ("1", "weight"),
    "npu_linear": ("1", "2"),
    "lstm": ("2",),
    "gru": ("2",),
    "rnn_tanh": ("2",),
    "rnn_relu": ("2",),
    "lstm_cell": ("2", "3", "4", "5"),
    "gru_cell": ("2", "3", "4", "5"),
    "rnn_tanh_cell": ("2", "3", "4", "5"),
    "rnn_relu_cell": ("2", "3", "4", "5"),
}
"""Arguments of an API that hold parameters or buffers, or lists of them, by position or keyword."""
RUNNING_NORMS: Final = ("batch_norm", "instance_norm")
RUNNING: Final = ("1", "2", "running_mean", "running_var")
"""Their arguments that every call in training changes."""
SHARE: Final = 0.05
"""A weight counts as different from this share of its floor on: it is loaded, so hardware noise is no excuse."""


def holds_weight(target: RankDump, context: Context, kind: Int8) -> Bool:
    """By item pair: a parameter of a module, or such an argument of an API, or what any API receives that has the content of a
    parameter: models add a bias or a position, and multiply by the weight of a norm, in code of their own. kind: by node pair"""
    wanted = [WEIGHT_ARGUMENTS.get(api, ()) for api in context.apis]
    takes = np.array([bool(places) for places in wanted] + [False])
    api = context.api[context.pair]
    argument = takes[api] & (kind[context.pair] == NodeKind.API) & (context.target >= 0)
    argument &= (context.role == Role.INPUT) | (context.role == Role.KWARG)
    first = [path.partition(".")[0] for path in target.items.paths]
    for row in np.flatnonzero(argument).tolist():
        argument[row] = first[target.items.path[context.target[row]]] in wanted[api[row]]
    parameter = context.role == Role.PARAMETER
    found: Bool = parameter | argument | _hold_parameters(context, kind, parameter)
    return found


def _hold_parameters(context: Context, kind: Int8, parameter: Bool) -> Bool:
    """By item pair: an API receives it, and on each side it has the statistics and the size of one of these parameters."""
    known = parameter & context.both & (context.elements > 1)
    if not known.any():
        return np.zeros(len(context), bool)
    codes = identify(context)
    taken = ((context.role == Role.INPUT) | (context.role == Role.KWARG)) & (kind[context.pair] == NodeKind.API)
    found: Bool = taken & context.both & (context.kind == Kind.TENSOR) & np.isin(codes, np.unique(codes[known]))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingWeight:
    """name: parameter path ("layers.1.mlp.fc1.weight") or the item's name; pair: first node pair that uses it; items: its item
    pairs"""

    name: str
    pair: int
    items: tuple[int, ...]


def find_differing_weights(
    target: RankDump, context: Context, facts: Facts, opinions: ItemOpinions, columns: NodeColumns
) -> list[DifferingWeight]:
    """Differing weights in the order in which the forward meets them; each weight once."""
    parameter = context.role == Role.PARAMETER
    threshold = columns.threshold[context.pair]
    # What a call gets as an argument may be computed (running statistics), and is then as noisy as all else.
    loaded = (parameter & (context.t_dtype == context.g_dtype)) | (threshold <= 1)
    limit = np.where(loaded, np.minimum(SHARE, threshold), threshold)
    with np.errstate(invalid="ignore"):
        suspects = np.flatnonzero(
            (context.kind == Kind.TENSOR)
            & context.both
            & (opinions.score > limit)
            & (facts.equal == 0)
            & (columns.direction[context.pair] == Direction.FORWARD)
            & holds_weight(target, context, columns.kind)
        )
    named: dict[tuple[float, ...], str] = {}
    uses: dict[tuple[float, ...], list[int]] = {}
    repeated = _find_repeated_norms(target, context)
    for row in suspects.tolist():
        path = _path_of(target, context, row)
        pair = context.pair[row]
        if path in RUNNING and int(pair) in repeated:
            continue
        key = _fingerprint(context, row)
        uses.setdefault(key, []).append(row)
        if parameter[row]:
            named.setdefault(key, name_parameter(target, context, columns, row))
    findings = []
    made = _find_made(context, facts, {row for rows in uses.values() for row in rows})
    updated = _find_updated(target, context, facts, columns, suspects[parameter[suspects]])
    for key, rows in uses.items():
        if min(context.pair[rows]) > made.get(key, context.nodes) or not updated.isdisjoint(rows):
            continue
        rows.sort(key=lambda row: (not columns.leaf[context.pair[row]], int(context.pair[row])))
        first = rows[0]
        name = named.get(key) or item_name(
            columns.names[context.pair[first]], "input", _path_of(target, context, first)
        )
        findings.append(DifferingWeight(name=name, pair=int(context.pair[first]), items=tuple(rows)))
    return sorted(findings, key=lambda finding: finding.pair)


def _find_made(context: Context, facts: Facts, weights: set[int]) -> dict[tuple[float, ...], int]:
    """By identity of a tensor the first call that put it out, for those as large as one of these item pairs."""
    sizes = np.unique(context.elements[list(weights)])
    rows = (context.role == Role.OUTPUT) & (context.kind == Kind.TENSOR) & (facts.equal == 0)
    made: dict[tuple[float, ...], int] = {}
    for row in np.flatnonzero(rows & np.isin(context.elements, sizes)).tolist():
        made.setdefault(_fingerprint(context, row), int(context.pair[row]))
    return made


def _find_updated(target: RankDump, context: Context, facts: Facts, columns: NodeColumns, weights: Int64) -> set[int]:
    """Of the item pairs of modules' parameters those that agreed in an earlier call of this step, where a gradient that differs
    came since: an optimizer updated them within the step."""
    if not len(weights):
        return set()
    with np.errstate(invalid="ignore"):
        bad = columns.out_score > columns.threshold
    bad &= (columns.direction == Direction.BACKWARD) | (columns.kind == NodeKind.GRADIENT)
    agreed: dict[tuple[str, str], int] = {}
    for row in np.flatnonzero((context.role == Role.PARAMETER) & (facts.equal == 1)).tolist():
        pair = int(context.pair[row])
        agreed.setdefault((columns.labels[pair], _path_of(target, context, row)), pair)
    found = set()
    for row in weights.tolist():
        pair = int(context.pair[row])
        first = agreed.get((columns.labels[pair], _path_of(target, context, row)), pair)
        if bad[first:pair].any():
            found.add(row)
    return found


def is_running(target: RankDump, context: Context, row: int) -> bool:
    """The item holds running statistics, which its norm writes in training."""
    api = int(context.api[context.pair[row]])
    path = _path_of(target, context, row)
    return (api >= 0 and context.apis[api] in RUNNING_NORMS and path in RUNNING) or path in RUNNING[2:]


def _find_repeated_norms(target: RankDump, context: Context) -> set[int]:
    """Calls of norms that ran before with the same weight (micro-batches, checkpoints): their running statistics were
    computed by then, not loaded."""
    norms = np.isin(context.api[context.pair], [c for c, api in enumerate(context.apis) if api in RUNNING_NORMS])
    seen: set[tuple[float, ...]] = set()
    repeated = set()
    for row in np.flatnonzero(norms & (context.role == Role.INPUT) & (context.target >= 0)).tolist():
        if _path_of(target, context, row) == "3":
            key = _fingerprint(context, row)
            if key in seen:
                repeated.add(int(context.pair[row]))
            seen.add(key)
    return repeated


def _fingerprint(context: Context, row: int) -> tuple[float, ...]:
    """Identity of a tensor by its statistics and size, the same for a module's parameter and the API's argument."""
    stats, state = context.t_stats[row], context.t_state[row]
    numbers = np.where(state == 1, stats, -state.astype(float)).tolist()
    if not state.any():
        return (float(context.target[row]),)
    return (*numbers, float(context.elements[row]))


def _path_of(target: RankDump, context: Context, row: int) -> str:
    item = int(context.target[row])
    return target.items.paths[int(target.items.path[item])]


def name_parameter(target: RankDump, context: Context, columns: NodeColumns, row: int) -> str:
    """Path of a parameter ("layers.1.mlp.fc1.weight"), from an item of it or of its gradient."""
    return f"{_module_of(columns.labels[context.pair[row]])}.{_path_of(target, context, row)}"


def _module_of(label: str) -> str:
    return label.rpartition(".")[0] or label
