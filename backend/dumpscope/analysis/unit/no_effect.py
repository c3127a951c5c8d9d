"""What differs between two programs and changes nothing: an argument, or a tensor beside None, of a call whose results agree; and
calls of one side that only prepare an argument."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.gather_columns import classify_nodes
from dumpscope.domain.facts import ItemOpinions, Method, Outcome, Verdict
from dumpscope.domain.records import Bool, Direction, Int64, Kind, NodeKind, Role, State
from dumpscope.domain.result import MeasuredUnit
from dumpscope.match.forms import is_added
from dumpscope.match.operators.operations import operation
from dumpscope.match.sides import ARITHMETIC
from dumpscope.verdict.rules import CODES

COMMUNICATION = "Distributed."
_TAKEN: Final = (Role.INPUT, Role.KWARG)
_MEASURED: Final = tuple(CODES[rule] for rule in ("T-2", "M-2"))


def excuse_without_effect(case: Case, opinions: ItemOpinions, named: Iterable[int]) -> ItemOpinions:
    """The opinions with a warning for each No of an argument, or of a tensor that the other side has as None, at a call whose
    results agree.

    The results of an API call must be equal. Those of a module may be as far apart as the noise of the pair: calls inside it
    are judged by themselves. In a noisy pair without a cause, a tensor of a later step may differ where the results agree within
    their floors: an optimizer makes other biases of keys, which attention takes away again. named: node pairs of findings
    """
    columns, context = case.columns, case.context
    named = list(named)
    argument = (opinions.rule == CODES["V-1"]) & case.received
    bare = (context.kind == Kind.NONE) | context.kind_differs
    beside_none = (opinions.rule == CODES["S-2"]) & bare & _one_is_none(case)
    later = (
        np.isin(opinions.rule, _MEASURED) & case.received & (case.history.differs and not columns.quiet and not named)
    )
    bad = (opinions.verdict == Verdict.NO) & (argument | beside_none | later)
    if not bad.any():
        return opinions
    module = columns.kind == NodeKind.MODULE
    with np.errstate(invalid="ignore"):
        worst = _worst_output(case, opinions)
        agrees = worst <= np.where(module, columns.threshold, 0.0)
    agrees[named] = False
    excused = bad & agrees[context.pair] & (argument | module[context.pair])
    excused |= bad & later & (worst <= 1)[context.pair]
    return replace(
        opinions,
        verdict=np.where(excused, int(Verdict.WARNING), opinions.verdict).astype(np.int8),
        rule=np.where(excused, CODES["V-3"], opinions.rule).astype(np.int8),
    )


def excuse_beside_none(unit: MeasuredUnit, opinions: ItemOpinions) -> ItemOpinions:
    """The opinions with a warning for each tensor that one side of a module takes and the other has as None, such as a mask that
    hides nothing it sees, where all results of the module are within their floors: then it is no cause of anything."""
    context = unit.context
    bad = (opinions.verdict == Verdict.NO) & (opinions.rule == CODES["S-2"]) & np.isin(context.role, _TAKEN)
    bad &= _one_is_none(unit)
    if not bad.any():
        return opinions
    kind, direction = classify_nodes(unit.target, unit.golden, unit.pairs)
    bad &= ((kind == NodeKind.MODULE) & (direction == Direction.FORWARD))[context.pair]
    made = (context.role == Role.OUTPUT) & (unit.facts.outcome == Outcome.COMPARED) & ~np.isnan(opinions.score)
    worst = np.full(context.nodes, np.inf)
    worst[context.pair[made]] = 0.0
    np.fmax.at(worst, context.pair[made], opinions.score[made])
    excused = bad & (worst <= 1)[context.pair]
    return replace(
        opinions,
        verdict=np.where(excused, int(Verdict.WARNING), opinions.verdict).astype(np.int8),
        rule=np.where(excused, CODES["V-3"], opinions.rule).astype(np.int8),
        score=np.where(excused, np.nan, opinions.score),
    )


def _one_is_none(case: Case | MeasuredUnit) -> Bool:
    """By item pair: one side holds None."""
    context = case.context
    found = np.zeros(len(context), bool)
    for dump, items in ((case.target, context.target), (case.golden, context.golden)):
        if len(dump.items):
            found |= (items >= 0) & (dump.items.kind[items] == Kind.NONE)
    return found


def _worst_output(case: Case, opinions: ItemOpinions) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """By node pair: the largest score of a tensor that both sides made, nan where there is none."""
    made = (case.facts.outcome == Outcome.COMPARED) | (
        (case.facts.outcome == Outcome.FORM) & (case.context.kind == Kind.TENSOR)
    )
    rows = ~case.received & made & ~np.isnan(opinions.score)
    out = np.full(len(case.columns), np.nan)
    np.fmax.at(out, case.context.pair[rows], opinions.score[rows])
    return out


def only_prepares(case: Case) -> Bool:
    """By node pair: a call without a partner that means nothing where all values agree, since the other side needed none.

    It makes nothing but positions, truth values and masks; it is a dropout that drops nothing, or a product with 1 of
    what a fused call takes or makes; it prepares what a fused call takes whose result is that of the calls of the other side, as
    a mask or a scaled query; it communicates; or it is a module, whose calls speak for themselves.
    """
    columns, context = case.columns, case.context
    if np.isnan(case.opinions.score).all():
        return np.zeros(len(columns), bool)
    mask = is_added(context, golden=False) | is_added(context, golden=True)
    other = ~(mask | _one_sided_exact(case)) & (context.kind == Kind.TENSOR)
    makes, computes = np.zeros(len(columns), bool), np.zeros(len(columns), bool)
    makes[context.pair[context.role == Role.OUTPUT]] = True
    computes[context.pair[other & (context.role == Role.OUTPUT)]] = True
    talks = np.array([label.startswith(COMMUNICATION) for label in columns.labels], bool)
    found: Bool = columns.alone & ((makes & ~computes) | talks | _holds_calls(case))
    drops = np.array(["dropout" in label.rpartition(".")[2].lower() for label in columns.labels], bool)
    scales = np.array([operation(label) in ARITHMETIC for label in columns.labels], bool)
    fused = case.pairs.method == Method.FUSED
    for pair in np.flatnonzero(columns.alone & columns.extra & drops & ~found).tolist():
        found[pair] = _gives_back(case, pair)
    if fused.any():
        rows = np.flatnonzero(fused[context.pair])
        taken = {golden: _contents(case, rows, golden=golden) for golden in (False, True)}
        for pair in np.flatnonzero(columns.alone & columns.extra & scales & ~found).tolist():
            made = _contents(case, case.outputs_of(pair), golden=case.pairs.target[pair] < 0)
            found[pair] = _gives_back(case, pair) and made <= taken[bool(case.pairs.target[pair] < 0)]
        found |= _prepares_fused(case, fused)
    return found


def _prepares_fused(case: Case, fused: Bool) -> Bool:
    """By node pair: a call without a partner, all of whose results go into fused calls that have the result of the other side's
    run, directly or through other such calls; and its backward call. fused: by node pair"""
    columns = case.columns
    with np.errstate(invalid="ignore"):
        agrees = fused & (columns.out_score <= 1)
    rows = np.flatnonzero(agrees[case.context.pair] & case.received)
    taken = {golden: _contents(case, rows, golden=golden, finite=False) for golden in (False, True)}
    found = np.zeros(len(columns), bool)
    lone = columns.alone & columns.extra & columns.leaf & (columns.direction == Direction.FORWARD)
    for pair in np.flatnonzero(lone)[::-1].tolist():  # what is taken is made before
        golden = bool(case.pairs.target[pair] < 0)
        made = _contents(case, case.outputs_of(pair), golden=golden, finite=False)
        if made and made <= taken[golden]:
            found[pair] = True
            taken[golden] |= _contents(case, case.inputs_of(pair), golden=golden, finite=False)
    calls = {(columns.names[pair], bool(case.pairs.target[pair] < 0)) for pair in np.flatnonzero(found).tolist()}
    back = columns.alone & columns.extra & (columns.direction == Direction.BACKWARD)
    for pair in np.flatnonzero(back).tolist() if calls else []:
        forward = columns.names[pair].replace("backward", "forward")
        found[pair] = (forward, bool(case.pairs.target[pair] < 0)) in calls
    return found


def _holds_calls(case: Case) -> Bool:
    """By node pair: a module inside which calls of modules or functions were recorded."""
    found: Bool = case.columns.kind == NodeKind.MODULE
    for dump, nodes in ((case.target, case.pairs.target), (case.golden, case.pairs.golden)):
        parents = dump.tree.parent[: len(dump.nodes)][dump.nodes.kind != NodeKind.GRADIENT]
        around = np.zeros(len(dump.tree) + 1, bool)
        around[parents] = True
        found &= (nodes < 0) | around[nodes]
    return found


def _gives_back(case: Case, pair: int) -> bool:
    """All tensors that a call made have the statistics and the size of one that it took."""
    golden = bool(case.pairs.target[pair] < 0)
    made = _contents(case, case.outputs_of(pair), golden=golden)
    return bool(made) and made <= _contents(case, case.inputs_of(pair), golden=golden)


def _contents(case: Case, rows: Int64, *, golden: bool, finite: bool = True) -> set[tuple[int, bytes, bytes]]:
    """Sizes and statistics of the tensors among these item pairs, as one side stored them. finite: only of those that hold no NaN
    and no infinity; a mask of the lowest numbers has an infinite norm"""
    context = case.context
    stats, state = (context.g_stats, context.g_state) if golden else (context.t_stats, context.t_state)
    known = state[rows] == State.FINITE if finite else state[rows] != State.ABSENT
    tensors = rows[(context.kind[rows] == Kind.TENSOR) & known.all(axis=1)]
    held = np.where(state[tensors] == State.FINITE, stats[tensors], 0.0)
    return {
        (int(context.elements[row]), own.tobytes(), state[row].tobytes())
        for row, own in zip(tensors.tolist(), held, strict=True)
    }


def _one_sided_exact(case: Case) -> Bool:
    """By item pair: the dtype of the side that has it is one of whole numbers or truth values."""
    context = case.context
    exact = np.array([not any(word in name for word in ("float", "complex")) for name in context.dtypes] + [False])
    dtype = np.where(context.t_dtype >= 0, context.t_dtype, context.g_dtype)
    found: Bool = exact[dtype] & (dtype >= 0)
    return found
