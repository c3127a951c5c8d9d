"""O-3: a call gets another argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.evidence import count_group
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.gather_columns import find_differing_arguments
from dumpscope.domain.records import Int64, NodeKind, Role
from dumpscope.texts import Phrase, phrase

FAINT: Final = "faint"
"""Variant: the call's own output shows nothing."""
NEAR: Final = 0.01
"""Relative difference up to which a number may have been computed from noisy data."""
FOLLOWS: Final = 0.1
"""The same from data that is wrong, of numbers with more digits than anyone writes."""
DIGITS: Final = 9


class Arguments(Rule):
    """An argument differs between the sides, and so does the output of its call."""

    id: ClassVar = "O-3"
    kinds: ClassVar = ("configuration",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return _find(case, alone=not any(one.rule == "O-1" for one in found))

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        word = "origin.argument_faint" if finding.variant == FAINT else "origin.argument"
        return [phrase(word, arguments=_describe_arguments(case, finding)), *count_group(finding)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return [phrase("advice.configuration")]

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        return 0.5 * limit if finding.variant == FAINT else limit


def _find(case: Case, *, alone: bool) -> list[Finding]:
    """Calls whose argument and output differ. A number may be computed from bad data, so it counts only where the tensors of
    the call are clean.

    alone: nothing else was found; then an argument that differs at a call before the first difference is the cause even where
    its effect is below what counts (coarse dtypes round it away). A number must differ by more than a computed one would.
    """
    columns = case.columns
    with np.errstate(invalid="ignore"):
        differs = columns.out_score > columns.threshold
        wrong = np.flatnonzero(differs | (columns.own_in > columns.threshold))
    suspects = columns.argument & differs
    faint = np.zeros(len(columns), bool)
    if alone and not suspects.any():
        first = int(wrong[0]) if len(wrong) else len(columns)
        faint = columns.argument & ~differs & (np.arange(len(columns)) <= first)
        if not len(wrong):  # without an effect it is a difference of the scripts, and no cause
            faint &= columns.out_score > 0
    findings: dict[tuple[str, str], Finding] = {}
    for pair in np.flatnonzero(suspects | faint).tolist():
        items = case.inputs_of(pair)
        items = items[find_differing_arguments(case.context, case.facts)[items]]
        if faint[pair]:
            items = np.array([i for i in items.tolist() if not _are_close(case, i)], np.int64)
        elif not columns.received_clean(pair):
            items = np.array([i for i in items.tolist() if not _is_number(case, i)], np.int64)
        elif wrong[0] < pair:
            items = np.array([i for i in items.tolist() if not _may_follow(case, i)], np.int64)
        if not len(items) or (not columns.leaf[pair] and columns.kind[pair] == NodeKind.MODULE):
            continue
        key = (
            columns.labels[pair] if columns.kind[pair] == NodeKind.API else columns.names[pair],
            _join_values(case, items),
        )
        known = findings.get(key)
        first, group = (known.pair, (*known.group, pair)) if known else (pair, ())
        shown = known.items if known else tuple(items.tolist())
        findings[key] = Finding(
            pair=first,
            kind="configuration",
            rule="O-3",
            items=shown,
            group=group,
            variant=FAINT if faint[first] else "",
        )
    return list(findings.values())


def _are_close(case: Case, row: int) -> bool:
    """The item pair is two numbers that noise may have made different."""
    if not _is_number(case, row):
        return False
    try:
        t, g = (float(_value_of(case, row, target=side)) for side in (True, False))
    except ValueError:
        return False
    return abs(t - g) <= NEAR * max(abs(t), abs(g))


def _may_follow(case: Case, row: int) -> bool:
    """The item pair is two numbers that the program may have computed from wrong data (`x.item()`)."""
    words = [_value_of(case, row, target=side) for side in (True, False)]
    if not _is_number(case, row) or any(len(word.strip("-0.").replace(".", "")) < DIGITS for word in words):
        return False
    t, g = map(float, words)
    return abs(t - g) <= FOLLOWS * max(abs(t), abs(g))


def _is_number(case: Case, row: int) -> bool:
    item, side = int(case.context.target[row]), case.target.items
    if item < 0:
        item, side = int(case.context.golden[row]), case.golden.items
    return side.types[side.type[item]] in ("int", "float")


def _join_values(case: Case, rows: Int64) -> str:
    return " ".join(
        f"{_value_of(case, row, target=True)}/{_value_of(case, row, target=False)}" for row in rows.tolist()
    )


def _value_of(case: Case, row: int, *, target: bool) -> str:
    """An argument's value as text, "absent" where the side does not pass it."""
    item, side = (case.context.target[row], case.target) if target else (case.context.golden[row], case.golden)
    if item < 0:
        return "absent"
    code = side.items.value[item]
    return side.items.values[code] if code >= 0 else "None"


def _describe_arguments(case: Case, finding: Finding) -> list[Phrase]:
    out = []
    for row in finding.items[:3]:
        item, side = case.context.target[row], case.target.items
        if item < 0:
            item, side = case.context.golden[row], case.golden.items
        word = "argument.kwarg" if case.context.role[row] == Role.KWARG else "argument.place"
        left, right = _value_of(case, row, target=True), _value_of(case, row, target=False)
        out.append(phrase(word, name=side.paths[side.path[item]], target=left, golden=right))
    return out
