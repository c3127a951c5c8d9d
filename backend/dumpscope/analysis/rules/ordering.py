"""Calls that sort or pick: whether other indices are only another order of equal elements, or wrong ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.domain.picking import SORTING, PickCheck, WrongPick, picking_of
from dumpscope.domain.records import Bool, Direction, Int64, Kind, RankDump, State
from dumpscope.texts import Phrase, phrase
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


def is_order_only(case: Case, pair: int, items: Int64) -> bool:
    """A call that sorts or picks returns other indices and, if it returns values too, equal ones. `max` and `min` of two tensors,
    or without indices, pick nothing."""
    label, direction = case.columns.labels[pair].rpartition(".")[2], case.columns.direction[pair]
    context = case.context
    integers = bool(is_exact_kind(context)[items].all())
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
    permutation; None where nothing tells."""
    checked = case.check_picks(pair)
    if checked is not None:
        return checked
    sides = (case.target, case.pairs.target), (case.golden, case.pairs.golden)
    sums = [_has_sum_of_permutation(dump, int(nodes[pair])) for dump, nodes in sides]
    return NO_PERMUTATION if sorted(sums, key=str) == [False, True] else None


def is_wrong(checked: PickCheck | str | None) -> bool:
    """A pick is disproved on one side at least."""
    if isinstance(checked, PickCheck):
        return checked.target is not None or checked.golden is not None
    return checked is not None


def describe_wrong(checked: PickCheck | str) -> Phrase:
    """Which index is wrong, and why."""
    if isinstance(checked, str):
        return phrase("origin.no_permutation")
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
