"""Calls of one side that only make a mask, or another argument, in the form that this side uses."""

from __future__ import annotations

import numpy as np

from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import find_makers
from dumpscope.domain.facts import Outcome
from dumpscope.domain.records import Bool, Direction


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
