"""O-3: a call gets another argument."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.node_columns import differing_arguments
from dumpscope.domain.records import Int64, NodeKind

NEAR: Final = 0.01
"""Relative difference up to which a number may have been computed from noisy data."""


def find_arguments(case: Case, *, alone: bool) -> list[Finding]:
    """Calls whose argument and output differ. A number may be computed from bad data, so it counts only beside clean tensors.

    alone: nothing else was found; then an argument that differs at a call before the first difference is the cause even where
    its effect is below what counts (coarse dtypes round it away). A number must differ by more than a computed one would.
    """
    story = case.story
    with np.errstate(invalid="ignore"):
        dirty = story.out_score > story.threshold
        wrong = np.flatnonzero(dirty | (story.own_in > story.threshold))
    suspects = story.argument & dirty
    faint = np.zeros(len(story), bool)
    if alone and not suspects.any():
        first = int(wrong[0]) if len(wrong) else len(story)
        faint = story.argument & ~dirty & (np.arange(len(story)) <= first)
        if not len(wrong):  # without an effect it is a difference of the scripts, and no cause
            faint &= story.out_score > 0
    findings: dict[tuple[str, str], Finding] = {}
    for pair in np.flatnonzero(suspects | faint).tolist():
        items = case.inputs_of(pair)
        items = items[differing_arguments(case.context, case.facts)[items]]
        if faint[pair]:
            items = np.array([i for i in items.tolist() if not _nearly(case, i)], np.int64)
        elif not story.clean(pair):
            items = np.array([i for i in items.tolist() if not _is_number(case, i)], np.int64)
        if not len(items) or (not story.leaf[pair] and story.kind[pair] == NodeKind.MODULE):
            continue
        key = (story.labels[pair] if story.kind[pair] == NodeKind.API else story.names[pair], _values(case, items))
        known = findings.get(key)
        first, group = (known.pair, (*known.group, pair)) if known else (pair, ())
        shown = known.items if known else tuple(items.tolist())
        findings[key] = Finding(
            pair=first, kind="configuration", rule="O-3", items=shown, group=group, faint=bool(faint[first])
        )
    return list(findings.values())


def _nearly(case: Case, row: int) -> bool:
    """Two numbers that noise may set apart."""
    if not _is_number(case, row):
        return False
    try:
        t, g = (float(value_of(case, row, target=side)) for side in (True, False))
    except ValueError:
        return False
    return abs(t - g) <= NEAR * max(abs(t), abs(g))


def _is_number(case: Case, row: int) -> bool:
    item, side = int(case.context.target[row]), case.target.items
    if item < 0:
        item, side = int(case.context.golden[row]), case.golden.items
    return side.types[side.type[item]] in ("int", "float")


def _values(case: Case, rows: Int64) -> str:
    return " ".join(f"{value_of(case, row, target=True)}/{value_of(case, row, target=False)}" for row in rows.tolist())


def value_of(case: Case, row: int, *, target: bool) -> str:
    """An argument's value as text, "absent" where the side does not pass it."""
    item, side = (case.context.target[row], case.target) if target else (case.context.golden[row], case.golden)
    if item < 0:
        return "absent"
    code = side.items.value[item]
    return side.items.values[code] if code >= 0 else "None"
