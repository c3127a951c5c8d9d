"""Rows of attention in which the mask hides every position: what stands there depends on the form of the mask."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.domain.facts import MaskedRows, Outcome
from dumpscope.domain.records import Direction, Int64, Kind
from dumpscope.match.forms import ATTENTION, is_added
from dumpscope.texts import Phrase, phrase

UNSEEN: Final = "unseen"
"""Said of the rows where no tensors show them."""


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


def describe_masked_rows(rows: MaskedRows | str) -> Phrase:
    """Why results differ in these rows."""
    if isinstance(rows, MaskedRows):
        return phrase("origin.masked_rows", hidden=rows.hidden, count=rows.count)
    return phrase("origin.masked_rows_unseen")
