"""Weights that differ: parameters are loaded, not computed, so in the first step they must agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.analysis.node_columns import Story
from dumpscope.analysis.rules.weight_arguments import holds_weight
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, ItemOpinions
from dumpscope.domain.records import Direction, Kind, RankDump, Role
from dumpscope_format.naming import item_name

RUNNING_NORMS: Final = ("batch_norm", "instance_norm")
RUNNING: Final = ("1", "2", "running_mean", "running_var")
"""Their arguments that every call in training changes."""
SHARE: Final = 0.05
"""A weight counts as different from this share of its floor on: it is loaded, so hardware noise is no excuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFinding:
    """name: parameter path ("layers.1.mlp.fc1.weight") or the item's name; pair: node where it is first felt."""

    name: str
    pair: int
    items: tuple[int, ...]


def find_weights(
    target: RankDump, context: Context, facts: Facts, opinions: ItemOpinions, story: Story
) -> list[WeightFinding]:
    """Differing weights in the order in which the forward meets them; each weight once."""
    parameter = context.role == Role.PARAMETER
    bar = story.threshold[context.pair]
    # What a call gets as an argument may be computed (running statistics), and is then as noisy as all else.
    loaded = (parameter & (context.t_dtype == context.g_dtype)) | (bar <= 1)
    limit = np.where(loaded, np.minimum(SHARE, bar), bar)
    with np.errstate(invalid="ignore"):
        suspects = np.flatnonzero(
            (context.kind == Kind.TENSOR)
            & context.both
            & (opinions.score > limit)
            & (facts.equal == 0)
            & (story.direction[context.pair] == Direction.FORWARD)
            & holds_weight(target, context, story.kind)
        )
    named: dict[tuple[float, ...], str] = {}
    felt: dict[tuple[float, ...], list[int]] = {}
    repeated = _repeated_norms(target, context)
    for row in suspects.tolist():
        path = _path(target, context, row)
        pair = context.pair[row]
        if path in RUNNING and int(pair) in repeated:
            continue
        key = _fingerprint(context, row)
        felt.setdefault(key, []).append(row)
        if parameter[row]:
            named.setdefault(key, f"{_module(story.labels[pair])}.{path}")
    findings = []
    for key, rows in felt.items():
        rows.sort(key=lambda row: (not story.leaf[context.pair[row]], int(context.pair[row])))
        first = rows[0]
        name = named.get(key) or item_name(story.names[context.pair[first]], "input", _path(target, context, first))
        findings.append(WeightFinding(name=name, pair=int(context.pair[first]), items=tuple(rows)))
    return sorted(findings, key=lambda finding: finding.pair)


def _repeated_norms(target: RankDump, context: Context) -> set[int]:
    """Calls of norms that ran before with the same weight (micro-batches, checkpoints): their running statistics were
    computed by then, not loaded."""
    norms = np.isin(context.api[context.pair], [c for c, api in enumerate(context.apis) if api in RUNNING_NORMS])
    seen: set[tuple[float, ...]] = set()
    repeated = set()
    for row in np.flatnonzero(norms & (context.role == Role.INPUT) & (context.target >= 0)).tolist():
        if _path(target, context, row) == "3":
            key = _fingerprint(context, row)
            if key in seen:
                repeated.add(int(context.pair[row]))
            seen.add(key)
    return repeated


def _fingerprint(context: Context, row: int) -> tuple[float, ...]:
    """Identity of a tensor by its statistics and size: the module's parameter and the API's argument are the same one."""
    stats, state = context.t_stats[row], context.t_state[row]
    numbers = np.where(state == 1, stats, -state.astype(float)).tolist()
    if not state.any():
        return (float(context.target[row]),)
    return (*numbers, float(context.elements[row]))


def _path(target: RankDump, context: Context, row: int) -> str:
    item = int(context.target[row])
    return target.items.paths[int(target.items.path[item])]


def _module(label: str) -> str:
    return label.rpartition(".")[0] or label
