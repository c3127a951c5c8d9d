"""Calls that sort or pick: whether other indices are only another order of equal elements, or wrong ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import find_makers
from dumpscope.analysis.unit.learned_noise import uses_halves
from dumpscope.analysis.unit.left_over import identify
from dumpscope.domain.facts import ItemOpinions, Verdict
from dumpscope.domain.picking import SORTING, PickCheck, WrongPick, picking_of
from dumpscope.domain.records import Bool, Direction, Int64, Kind, RankDump, State
from dumpscope.domain.stored_counts import counts_of
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.rules import CODES
from dumpscope.verdict.score import MEAN, is_exact_kind

ORDERING: Final = frozenset(
    {
        "argmax", "argmin", "argsort", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "msort",
        "nanmedian", "sort", "topk",
    }
)  # fmt: skip
"""Calls whose indices depend on which of several equal elements comes first."""
NO_PERMUTATION: Final = "sum"
"""Said of indices that cannot be a permutation, by their sum."""

OTHERS: Final = "others"
"""Said of indices by which other elements were picked, of data in which equal elements are rare."""
_FINE: Final = ("torch.float32", "torch.float64")


def is_order_only(case: Case, pair: int, items: Int64) -> bool:
    """A call that sorts or picks returns other indices and, if it returns values too, equal ones. `max` and `min` of two tensors,
    or without indices, pick nothing."""
    label, direction = _label(case, pair), case.columns.direction[pair]
    context = case.context
    integers = bool(is_exact_kind(context, items).all())
    if label in ("max", "min"):
        tensors, made = case.inputs_of(pair), case.outputs_of(pair)
        if (context.kind[tensors] == Kind.TENSOR).sum() != 1 or (context.kind[made] == Kind.TENSOR).sum() < 2:
            return False
    return label in ORDERING and direction == Direction.FORWARD and integers


def find_order_only(case: Case) -> Bool:
    """By node: only integers differ, and it or a call before it put equal values in another order."""
    columns = case.columns
    with np.errstate(invalid="ignore"):
        differs = (case.opinions.score > case.threshold) & (case.context.kind == Kind.TENSOR)
    values = np.zeros(len(columns), bool)
    values[case.context.pair[differs & ~is_exact_kind(case.context)]] = True
    wrong: list[int] = np.flatnonzero(columns.wrong & columns.leaf).tolist()
    for pair in wrong:
        items = case.different(case.outputs_of(pair))
        if len(items) and is_order_only(case, pair, items):
            return ~values & (np.arange(len(columns)) >= pair)
    return np.zeros(len(columns), bool)


def reaches_values(case: Case, pair: int) -> bool:
    """A tensor that does not hold integers differs later on."""
    rows = (case.context.pair > pair) & (case.context.kind == Kind.TENSOR) & ~is_exact_kind(case.context)
    with np.errstate(invalid="ignore"):
        return bool((case.opinions.score[rows] > case.threshold[rows]).any())


def check_order(case: Case, pair: int) -> PickCheck | str | None:
    """What is known of the indices of a picking call: from its tensors; else NO_PERMUTATION where those of a sort cannot be a
    permutation, OTHERS where equal elements are unlikely; None where nothing tells."""
    checked = case.check_picks(pair)
    if checked is not None:
        return checked
    sides = (case.target, case.pairs.target), (case.golden, case.pairs.golden)
    sums = [_has_sum_of_permutation(dump, int(nodes[pair])) for dump, nodes in sides]
    if sorted(sums, key=str) == [False, True]:
        return NO_PERMUTATION
    return OTHERS if _picks_others(case, pair) else None


def _picks_others(case: Case, pair: int) -> bool:
    """By statistics alone, other elements were picked, and hardly because some are equal.

    The same elements in another order have the same statistics, as all of a sort have. Another element of equal size may stand
    for one only at the border of what is picked. Two numbers of 32 bits are rarely equal there, unless they are zeros or come
    from 16 bits; and runs that agree to the bit before have the same kernels, which take the same of equal elements.
    """
    context, columns = case.context, case.columns
    picking = picking_of(case.target, int(case.pairs.target[pair])) if case.pairs.target[pair] >= 0 else None
    if picking is None or picking.api in SORTING or not columns.quiet or columns.argument[pair] or uses_halves(context):
        return False
    given, made = case.inputs_of(pair), case.outputs_of(pair)
    tensors = np.concatenate([given, made])
    tensors = tensors[context.kind[tensors] == Kind.TENSOR]
    numbers = tensors[~is_exact_kind(context, tensors)]
    seen = case.facts.unequal[tensors] >= 0
    stored = (context.t_state[tensors] == State.FINITE).all() and (context.g_state[tensors] == State.FINITE).all()
    if seen.any() or not stored or not (case.facts.equal[numbers] == 1).all():
        return False
    sources = tensors[context.target[tensors] == picking.source]
    fine = [context.dtypes[int(code)] in _FINE for code in context.t_dtype[sources].tolist()]
    return fine == [True] and not counts_of(case.target.items, picking.source)


def is_wrong(checked: PickCheck | str | None) -> bool:
    """A pick is disproved on one side at least, or can hardly be right."""
    if isinstance(checked, PickCheck):
        return checked.target is not None or checked.golden is not None
    return checked is not None


def excuse_ties(case: Case, opinions: ItemOpinions, named: Iterable[int]) -> ItemOpinions:
    """The opinions with a warning for each No of indices that point to the right values on both sides, as their tensors show, and
    of integers that follow from these alone. named: node pairs of findings"""
    context = case.context
    bad = (opinions.verdict == Verdict.NO) & is_exact_kind(context) & (context.kind == Kind.TENSOR) & context.both
    some = np.unique(context.pair[bad])
    if not any(_label(case, pair) in ORDERING for pair in some.tolist()):
        return opinions
    known, excused = set(named), np.zeros(len(context), bool)
    maker, tied, same = find_makers(case), set[int](), set[int]()
    codes = identify(context).tolist()
    for pair in some.tolist():
        given, made = case.inputs_of(pair), case.outputs_of(pair)
        received = given[bad[given]]
        follows = [int(maker[row]) in tied or codes[row] in same for row in received.tolist()]
        excused[received[np.array(follows, bool)]] = True
        if pair in known or (opinions.verdict[given] == Verdict.NO)[~excused[given]].any():
            continue
        wrong = made[opinions.verdict[made] == Verdict.NO]
        repeated = np.array([codes[row] in same for row in wrong.tolist()], bool)
        if not len(wrong) or not bad[wrong].all():
            continue
        if not len(received) and not repeated.all():
            checked = case.check_picks(pair) if is_order_only(case, pair, wrong) else None
            if checked is None or is_wrong(checked):
                continue
        excused[wrong] = True
        tied.add(pair)
        same.update(codes[row] for row in wrong.tolist())
    return replace(
        opinions,
        verdict=np.where(excused, int(Verdict.WARNING), opinions.verdict).astype(np.int8),
        rule=np.where(excused, CODES["C-3"], opinions.rule).astype(np.int8),
    )


def _label(case: Case, pair: int) -> str:
    return case.columns.labels[pair].rpartition(".")[2]


def describe_wrong(checked: PickCheck | str) -> Phrase:
    """Which index is wrong, and why."""
    if isinstance(checked, str):
        return phrase("origin.other_picks" if checked == OTHERS else "origin.no_permutation")
    side, wrong = ("target", checked.target) if checked.target is not None else ("golden", checked.golden)
    assert isinstance(wrong, WrongPick)
    numbers = (
        {"picked": f"{wrong.picked:.6g}", "expected": f"{wrong.expected:.6g}"} if wrong.reason != "outside" else {}
    )
    if wrong.reason == "repeated":
        numbers = {}
    where = str(list(wrong.at))
    return phrase(
        f"origin.pick_{wrong.reason}", side=[phrase(f"side.{side}")], index=str(wrong.index), at=where, **numbers
    )


def _has_sum_of_permutation(dump: RankDump, node: int) -> bool | None:
    """Whether the mean of the indices of a sort is that of 0 to n - 1; None where that is not known."""
    picking = picking_of(dump, node) if node >= 0 else None
    if picking is None or picking.api not in SORTING:
        return None
    items = dump.items
    state, mean = items.stat_state[picking.indices, MEAN], items.stats[picking.indices, MEAN]
    if state != State.FINITE:
        return None
    middle = (picking.count - 1) / 2
    return bool(abs(mean - middle) <= 1e-6 * max(middle, 1.0))
