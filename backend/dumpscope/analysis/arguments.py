"""O-3: a call gets another argument."""

from __future__ import annotations

import numpy as np

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.story import differing_arguments
from dumpscope.domain.records import Int64, NodeKind


def find_arguments(case: Case, *, alone: bool) -> list[Finding]:
    """Calls whose argument and output differ. A number may be computed from bad data, so it counts only beside clean tensors.

    alone: nothing else was found; then a text or flag that differs at a call before the first difference is the cause even
    where the output's statistics hide it (coarse dtypes round them).
    """
    story = case.story
    with np.errstate(invalid="ignore"):
        dirty = story.out_score > story.threshold
        wrong = np.flatnonzero(dirty | (story.own_in > story.threshold))
    suspects = story.argument & dirty
    faint = np.zeros(len(story), bool)
    if alone and not suspects.any() and len(wrong):
        faint = story.argument & ~dirty & (np.arange(len(story)) <= wrong[0])
    findings: dict[tuple[str, str], Finding] = {}
    for pair in np.flatnonzero(suspects | faint).tolist():
        items = case.inputs_of(pair)
        items = items[differing_arguments(case.context, case.facts)[items]]
        if faint[pair] or not story.clean(pair):
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
