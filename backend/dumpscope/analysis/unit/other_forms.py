"""What another form of a mask, or of another argument, makes: calls of one side, and rows of attention that see no position."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import find_makers
from dumpscope.domain.facts import MaskedRows, Outcome
from dumpscope.domain.records import Bool, Direction, Int64, Kind
from dumpscope.match.forms import ATTENTION, is_added

UNSEEN: Final = "unseen"
"""Said of the rows where no tensors show them."""


def makes_other_form(case: Case) -> Bool:
    """By node pair: a call without a partner whose results all end in an item that means the same on both sides."""
    columns, context = case.columns, case.context
    found = np.zeros(len(columns), bool)
    form = case.facts.outcome == Outcome.FORM
    if not form.any() or not columns.alone.any():
        return found
    for golden in (False, True):
        nodes = case.pairs.golden if golden else case.pairs.target
        maker = find_makers(case, golden=golden)
        readers: dict[int, list[int]] = {}
        for row in np.flatnonzero(maker >= 0).tolist():
            readers.setdefault(int(maker[row]), []).append(row)
        alone = columns.alone & (nodes >= 0) & (columns.direction != Direction.BACKWARD)
        for pair in np.flatnonzero(alone)[::-1].tolist():  # readers before makers
            rows = readers.get(pair, [])
            found[pair] = bool(rows) and all(form[row] or found[context.pair[row]] for row in rows)
    return found


def check_masked_rows(case: Case, pair: int, items: Int64) -> MaskedRows | str | None:
    """Whether rows that see no position explain a difference in the result of attention whose mask has another form on each side.

    MaskedRows where the tensors show that they do, UNSEEN where nothing is known; None where they do not.
    items: the results that differ
    """
    columns = case.columns
    if not columns.labels[pair].endswith(ATTENTION) or columns.direction[pair] != Direction.FORWARD:
        return None
    mask = _find_mask(case, pair)
    if mask is None or not len(items):
        return None
    rows = case.check_masked_rows(mask, int(items[0]))
    if rows is None:
        return UNSEEN
    return rows if rows.hidden and rows.others_agree else None


def _find_mask(case: Case, pair: int) -> int | None:
    """The item pair with the mask, where it has two forms: truth values and numbers that are added, or two such numbers."""
    context = case.context
    rows = case.inputs_of(pair)
    rows = rows[context.both[rows] & (context.kind[rows] == Kind.TENSOR) & (case.facts.outcome[rows] == Outcome.FORM)]
    boolean = np.array([name == "torch.bool" for name in context.dtypes] + [False])
    masks = (boolean[context.t_dtype] | is_added(context, golden=False)) & (
        boolean[context.g_dtype] | is_added(context, golden=True)
    )
    found = rows[masks[rows]]
    return int(found[0]) if len(found) else None
