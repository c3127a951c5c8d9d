"""O-1: a call whose inputs agree and whose output does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.bits import BITS, describe_bits, doubt_hashes, find_other_bits
from dumpscope.analysis.rules.evidence import (
    SATURATED,
    advise_by_kind,
    describe_birth,
    describe_items,
    is_backward,
    name_in_call,
)
from dumpscope.analysis.rules.masked_rows import check_masked_rows, describe_masked_rows
from dumpscope.analysis.rules.ordering import (
    OTHERS,
    check_order,
    describe_wrong,
    is_order_only,
    is_wrong,
    reaches_values,
)
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import find_makers
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.analysis.unit.noise import JUMP
from dumpscope.analysis.unit.taint import drop_tainted
from dumpscope.domain.facts import MaskedRows, Outcome
from dumpscope.domain.limits import LIMITS, at_limit, limits
from dumpscope.domain.picking import PickCheck
from dumpscope.domain.records import Bool, Direction, Float64, Int64, Kind, NodeKind, Role, State
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.score import is_exact_kind, overflow_differs

TIES: Final = "ties"
RANDOM: Final = "random"
MASKED: Final = "masked"
"""Variants of a configuration: only the order of equal elements differs; a random call; rows that see no position."""
UNJUDGED: Final = "unjudged"
"""Variant of a computation: one of several calls, of which only the result of the last could be compared."""
WRONG_PICK: Final = "wrong_pick"
"""Variant of a computation: an index that the values disprove."""
HASHES: Final = {"": 1.0, "alone": 0.7, "kernels": 0.4}
"""What is left of the confidence where only hashes differ, by the reason that this may be rounding."""
SEEN_ROWS: Final = 0.95
"""Confidence where tensors show that results differ in rows alone that see no position."""
STEEP: Final = 10.0
"""An output this many times worse than inputs below the threshold does not follow from them."""
RANDOM_CALLS: Final = frozenset(
    {
        "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_",
        "uniform_", "random_", "bernoulli", "bernoulli_", "multinomial", "exponential_", "dropout", "dropout_",
        "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout",
        "native_dropout", "poisson", "gumbel_softmax", "rrelu", "cauchy_", "geometric_", "log_normal_",
    }
)  # fmt: skip


class Computation(Rule):
    """Inputs agree and the output does not. The kind is that of the call or of the difference: a communication, a random call, a
    new NaN or infinity..."""

    id: ClassVar = "O-1"
    kinds: ClassVar = ("computation", "overflow", "communication", "configuration", "input")
    shown_by: ClassVar = "made"

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return _find(case, [one.pair for one in found if one.kind == "weight"])

    def find_last(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return [] if found else find_other_bits(case)

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        if finding.variant == UNJUDGED and isinstance(finding.detail, int):
            seen = case.columns.names[finding.detail]
            return [phrase("origin.unjudged", call=seen), *describe_items(case, finding.items, finding.pair)]
        word = "overflow" if finding.kind == "overflow" and finding.variant != SATURATED else "computation"
        if word == "overflow" and _is_finite(case, finding.items):
            word = "overflow_golden"
        elif is_backward(case, finding):
            word += "_backward"
        if finding.variant == TIES:
            special = [phrase("origin.ties" if isinstance(finding.detail, PickCheck) else "origin.ties_unseen")]
        elif finding.variant == WRONG_PICK and isinstance(finding.detail, (PickCheck, str)):
            special = [describe_wrong(finding.detail)]
        elif finding.variant == BITS:
            special = [describe_bits(case, finding)]
        elif finding.variant == MASKED and isinstance(finding.detail, (MaskedRows, str)):
            special = [describe_masked_rows(finding.detail)]
        elif finding.variant == SATURATED:
            special = [_describe_limit(case, finding)]
        else:
            special = describe_birth(case, finding)
        places = [name_in_call(case, row) for row in _half_known_inputs(case, finding.pair)]
        doubt = "" if finding.variant == BITS else doubt_hashes(case, finding)
        return [
            phrase(f"origin.{word}", inputs=[_describe_inputs(case, finding.pair)]),
            *special,
            *describe_items(case, finding.items, finding.pair),
            *([phrase(f"origin.hashes_{doubt}")] if doubt else []),
            *([phrase("origin.blind", places=", ".join(places[:5]))] if places else []),
            *(
                _count_unjudged(case, finding.pair)
                if finding.kind == "overflow" and finding.variant != SATURATED
                else []
            ),
        ]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        if finding.detail == OTHERS or (finding.variant == TIES and finding.detail is None):
            return [phrase("advice.ties_unseen", call=_call_of(case, finding.pair))]
        if finding.variant == MASKED:
            seen = isinstance(finding.detail, MaskedRows)
            unseen = [] if seen else [phrase("advice.masked_rows_unseen", call=_call_of(case, finding.pair))]
            return [phrase("advice.masked_rows"), *unseen]
        own = finding.variant if finding.variant in (TIES, RANDOM, SATURATED, BITS) else ""
        return [phrase(f"advice.{own}")] if own else advise_by_kind(case, finding)

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        """Lower for inputs that were not or half compared, a score near the floor, and calls of one side only just before."""
        columns, pair = case.columns, finding.pair
        if isinstance(finding.detail, MaskedRows):
            return SEEN_ROWS
        if finding.variant in (TIES, UNJUDGED):
            limit *= 0.5
        if finding.detail == OTHERS:  # a tie at the border of what is picked cannot be ruled out
            limit *= 0.7
        if np.isnan(columns.in_score[pair]) or _half_known_inputs(case, pair) or columns.sequence:
            limit *= 0.7
        if not columns.quiet and columns.out_score[pair] < 3:
            limit *= 0.7
        limit *= HASHES[doubt_hashes(case, finding)]
        alone = np.flatnonzero(columns.alone[:pair])
        if len(alone) and pair - alone[-1] < 5:
            limit *= 0.8
        return limit


def _find(case: Case, causes: Sequence[int]) -> list[Finding]:
    """Leaf calls at which something went wrong. causes: calls with another weight, whether it shows there or not

    Where something went wrong in an earlier step all weights differ, and only bit-equal inputs are clean.
    """
    columns = case.columns
    broken = overflow_differs(case.context, case.facts)
    new_nonfinite = _nodes_with(case, broken, outputs=True) & ~_nodes_with(case, broken, outputs=False)
    with np.errstate(invalid="ignore"):
        # A weight that differs is a cause of its own, or left so by the step before.
        wrong = columns.argument | (columns.out_score > columns.threshold) | (columns.own_data > columns.threshold)
        run_again = _find_run_again(columns)
        wrong &= ~run_again  # what was wrong before them was recorded after them
        first = min([int(np.flatnonzero(wrong)[0]) if wrong.any() else len(columns), *causes])
        noise = np.minimum(_largest_before(np.fmax(columns.out_score, columns.own_in), first), columns.threshold / JUMP)
        clean = ~(columns.in_score > np.maximum(0.5 * columns.threshold, noise))
        clean |= (columns.in_score <= columns.threshold) & (columns.out_score > STEEP * columns.in_score)
        clean |= new_nonfinite & ~np.isinf(columns.in_score)
        jump = (
            np.isnan(columns.in_score)
            | (columns.out_score > columns.growth * np.maximum(columns.in_score, noise))
            | new_nonfinite
        )
        suspects = columns.leaf & clean & jump & (columns.out_score > columns.threshold) & ~columns.argument
    suspects &= ~(columns.excused > 0)
    suspects &= ~run_again
    backward = np.flatnonzero(columns.direction == Direction.BACKWARD)
    if not columns.quiet and len(backward):  # an optimizer lifts gradients that are pure rounding to any size
        suspects[int(backward[-1]) + 1 :] &= (new_nonfinite | ~(columns.inexact > 0))[int(backward[-1]) + 1 :]
    if case.history.went_wrong:
        suspects &= ~(columns.inexact > 0)
    findings = []
    for pair in _drop_dependent(case, np.flatnonzero(suspects), first, noise, causes):
        items = case.different(case.outputs_of(pair))
        ties = is_order_only(case, pair, items)
        order = check_order(case, pair) if ties else None
        reaching = not ties or reaches_values(case, pair)
        if ties and is_wrong(order) and (reaching or order != OTHERS):
            findings.append(
                Finding(
                    pair=pair,
                    kind="computation",
                    rule="O-1",
                    items=tuple(items.tolist()),
                    variant=WRONG_PICK,
                    detail=order,
                )
            )
            continue
        if not reaching:
            continue
        clipped = not broken[items].any() and bool(_stands_at_limit(case, items).any())
        kind = "configuration" if ties else _kind_of(case, pair, bool(broken[items].any()) or clipped)
        masked = check_masked_rows(case, pair, items) if kind in ("computation", "overflow") else None
        if masked is not None:
            shown = tuple(items.tolist())
            findings.append(
                Finding(pair=pair, kind="configuration", rule="O-1", items=shown, variant=MASKED, detail=masked)
            )
            continue
        variant = ""
        if kind == "configuration":
            variant = TIES if ties else RANDOM
        elif kind == "overflow" and clipped:
            variant = SATURATED
        shown = tuple(items.tolist())
        begin = _find_unjudged_begin(case, pair) if kind == "computation" else None
        if begin is not None:
            findings.append(Finding(pair=begin, kind=kind, rule="O-1", items=shown, variant=UNJUDGED, detail=pair))
            continue
        findings.append(Finding(pair=pair, kind=kind, rule="O-1", items=shown, variant=variant, detail=order))
    return findings


def _count_unjudged(case: Case, pair: int) -> list[Phrase]:
    """How many calls behind this one are not judged."""
    lost = find_unjudged(case, pair)
    return [phrase("origin.unjudged_behind", count=int(lost.sum()))] if lost.any() else []


def find_unjudged(case: Case, pair: int) -> Bool:
    """By node pair, whether it is a call behind this one that received NaN or infinity on one side only: what else is wrong
    in it is not seen."""
    columns = case.columns
    lost: Bool = (
        columns.leaf & (columns.kind == NodeKind.API) & np.isinf(columns.own_in) & (np.arange(len(columns)) > pair)
    )
    lost &= _nodes_with(case, overflow_differs(case.context, case.facts), outputs=False)
    return lost


def _find_unjudged_begin(case: Case, pair: int) -> int | None:
    """The earliest of the calls whose results, up to what `pair` received, hold nothing that could be compared. None where all
    that `pair` received was judged. What nobody is known to have made may come from the first such result of its size."""
    context, maker = case.context, find_makers(case)
    unjudged = (
        context.both
        & (case.facts.outcome == Outcome.NO_DATA)
        & (context.kind == Kind.TENSOR)
        & ~is_exact_kind(context)
        & ~context.unread
    )
    made_here = unjudged & (context.role == Role.OUTPUT) & case.columns.leaf[context.pair]
    begin, todo, seen = pair, [pair], {pair}
    while todo:
        one = todo.pop()
        begin = min(begin, one)
        for row in case.inputs_of(one):
            if not unjudged[row]:
                continue
            made = int(maker[row])
            if made < 0:
                alike = context.pair[made_here & (context.elements == context.elements[row]) & (context.pair < one)]
                made = int(alike.min()) if len(alike) else -1
            if 0 <= made < one and made not in seen:
                seen.add(made)
                todo.append(made)
    return begin if begin != pair else None


def _call_of(case: Case, pair: int) -> str:
    """Name of a call as `list` of a capture's config takes it."""
    return case.columns.names[pair].removesuffix(".forward")


def _find_run_again(columns: NodeColumns) -> Bool:
    """Backward calls inside which a checkpoint ran forward calls again, one of which went wrong. These are recorded after the
    backward call, which used their results. Calls after the last backward call belong to an optimizer."""
    found = np.zeros(len(columns), bool)
    leaf = np.flatnonzero(columns.leaf & (columns.kind != NodeKind.GRADIENT) & ~columns.alone)
    backward = columns.direction[leaf] == Direction.BACKWARD
    calls = np.flatnonzero(backward)
    wrong = np.append(0, np.cumsum((columns.out_score > columns.threshold)[leaf] & ~backward))
    found[leaf[calls[:-1]]] = wrong[calls[1:]] > wrong[calls[:-1]]
    return found


def _stands_at_limit(case: Case, rows: Int64) -> Bool:
    """Which of these item pairs stand at the limit of their dtype on one side only."""
    context = case.context
    table = limits(context.dtypes)
    target = at_limit(context.t_stats[rows], context.t_state[rows], table[context.t_dtype[rows]])
    golden = at_limit(context.g_stats[rows], context.g_state[rows], table[context.g_dtype[rows]])
    compared = case.facts.outcome[rows] == Outcome.COMPARED
    found: Bool = ((target[0] ^ golden[0]) | (target[1] ^ golden[1])) & compared
    return found


def _nodes_with(case: Case, rows: Bool, *, outputs: bool) -> Bool:
    """Nodes that have one of `rows` among their outputs (or inputs)."""
    side = np.isin(case.context.role, (Role.OUTPUT, Role.GRADIENT)) == outputs
    out = np.zeros(len(case.columns), bool)
    out[case.context.pair[rows & side]] = True
    return out


def _largest_before(worst: Float64, first: int) -> float:
    """Largest score before the first difference: what this pair of runs shows where nothing is wrong."""
    before = worst[:first]
    return float(np.nanmax(before)) if len(before) and not np.isnan(before).all() else 0.0


def _drop_dependent(case: Case, suspects: Int64, first: int, noise: Float64, causes: Sequence[int]) -> list[int]:
    """The first suspect, and those after it that do not follow from it.

    Statistics can hide an error in one call and show it again in the next, and a difference too small for a score can grow. So
    after the first difference a suspect must be as clean as everything was before it (bit-equal in a quiet pair), and
    nothing that it received may come from a call that was wrong.
    """
    columns = case.columns
    with np.errstate(invalid="ignore"):
        clean = np.isnan(columns.in_score) & (columns.kind != NodeKind.GRADIENT) | (columns.in_score <= 2 * noise)
        if columns.quiet:
            clean &= ~(columns.inexact > 0)
    early = [pair for pair in suspects.tolist() if pair <= first]
    late = [pair for pair in suspects.tolist() if pair > first and clean[pair]]
    return early + (drop_tainted(case, first, late, causes) if late else [])


def _kind_of(case: Case, pair: int, broken: bool) -> str:
    columns = case.columns
    if columns.labels[pair].startswith("Distributed."):
        return "communication"
    if columns.labels[pair].rpartition(".")[2] in RANDOM_CALLS and columns.direction[pair] != Direction.BACKWARD:
        return "configuration"
    if broken:
        return "overflow"
    if np.isnan(columns.in_score[pair]) and columns.direction[pair] == Direction.FORWARD:
        return "input"
    return "computation"


def _describe_inputs(case: Case, pair: int) -> Phrase:
    """How far the inputs agree: what each says of them follows from their scores, verdicts and what was stored of them."""
    rows = case.inputs_of(pair)
    rows = rows[~np.isnan(case.opinions.score[rows])]
    scores = case.opinions.score[rows]
    count = len(rows)
    if not count:
        return phrase("inputs.before" if case.columns.sequence else "inputs.none")
    number = {1: "_one", 2: "_both"}.get(count, "")
    worst = float(scores.max())
    if worst > 1:
        return phrase("inputs.near", worst=f"{worst:.2g}")
    if worst > 0:
        return phrase(f"inputs.agree{number}", count=count, worst=f"{worst:.2g}")
    if (
        case.facts.equal[rows] < 0
    ).any() and case.facts.distances is not None:  # the golden's own error, see `reference.hide_golden_faults`
        return phrase(f"inputs.as_near{number}", count=count)
    if (case.facts.equal[rows] == 0).any():  # by less than what rounding makes of numbers near 0
        return phrase(f"inputs.agree{number}", count=count, worst="0")
    known = _are_known(case, rows).all() and (case.facts.equal[rows] == 1).all()
    return phrase(f"inputs.{'equal' if known else 'alike'}{number}", count=count)


def _are_known(case: Case, rows: Int64) -> Bool:
    """Which of these items are known to the last element: by their tensors, a hash, or as one number. Statistics say nothing of
    the order of elements."""
    context, items = case.context, case.target.items
    hashed = items.hash[context.target[rows]] >= 0 if len(items.hash) else np.zeros(len(rows), bool)
    found: Bool = (
        (case.facts.unequal[rows] >= 0) | hashed | (context.kind[rows] != Kind.TENSOR) | (context.elements[rows] <= 2)
    )
    return found


def _is_finite(case: Case, rows: Sequence[int]) -> bool:
    """In the target all of these items are finite, as far as stored."""
    states = case.context.t_state[list(rows), :2]
    return bool((states == State.FINITE).all()) and not (case.facts.nonfinite_target[list(rows)] > 0).any()


def _half_known_inputs(case: Case, pair: int) -> list[int]:
    """Inputs with only Max and Min to compare: msprobe stores no more for integers, masks and float64."""
    context = case.context
    rows = case.inputs_of(pair)
    stored = (context.t_state[rows] != State.ABSENT) & (context.g_state[rows] != State.ABSENT)
    extremes = stored[:, :2].all(axis=1) & ~stored[:, 2:].any(axis=1) & (context.elements[rows] > 2)
    otherwise = (case.facts.unequal[rows] >= 0) | (case.target.items.hash[context.target[rows]] >= 0)
    found: list[int] = rows[extremes & ~otherwise].tolist()
    return found


def _describe_limit(case: Case, finding: Finding) -> Phrase:
    """Where a result stands at the limit of its dtype."""
    rows = np.array(finding.items, np.int64)
    row = int(rows[_stands_at_limit(case, rows)][0])
    context = case.context
    code = context.t_dtype[[row]]
    at_target = any(
        one[0] for one in at_limit(context.t_stats[[row]], context.t_state[[row]], limits(context.dtypes)[code])
    )
    dtype = context.dtypes[int(code[0] if at_target else context.g_dtype[row])]
    said = [phrase("side.target" if at_target else "side.golden")]
    limit = f"{LIMITS[dtype]:.6g}"
    return phrase("origin.saturated", side=said, place=name_in_call(case, row), dtype=dtype, limit=limit)
