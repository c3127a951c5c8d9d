"""O-8: from some call on, a tensor has another dtype than on the other side, and values differ later because of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.evidence import describe_items, name_in_call
from dumpscope.analysis.rules.modules import is_inside
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.dataflow import find_makers
from dumpscope.analysis.unit.noise import have_other_dtypes
from dumpscope.domain.facts import Outcome
from dumpscope.domain.records import Bool, Int64, Kind
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.score import is_exact_kind

TRACED: Final = ("O-1", "O-4", "O-6")
"""Rules whose findings may follow from another dtype: a call that is named, data that nothing recorded made, and a module inside
which no number of a call differs by more than the coarser dtype explains."""


class Dtypes(Rule):
    """Words what `trace_to_dtype` finds. Finding.detail: node pair at which the numbers differ"""

    id: ClassVar = "O-8"
    kinds: ClassVar = ("configuration",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return []

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        row, shown = finding.items[0], finding.detail
        context = case.context
        word = "origin.dtype_given" if case.received[row] else "origin.dtype_made"
        dtypes = {
            "target": context.dtypes[int(context.t_dtype[row])],
            "golden": context.dtypes[int(context.g_dtype[row])],
        }
        said = [phrase(word, place=name_in_call(case, row), **dtypes)]
        if isinstance(shown, int) and shown != finding.pair:
            said.append(phrase("origin.dtype_shows", node=case.columns.names[shown]))
        return [*said, *describe_items(case, finding.items[1:], finding.pair)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return [phrase("advice.dtype")]


def trace_to_dtype(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those that follow from another dtype at the first call that has it. In runs of two precisions every call has
    one, which the settings tell."""
    other = _find_other_dtypes(case)
    if have_other_dtypes(case.context) or not other.any():
        return list(findings)
    kept: dict[int, Finding] = {}
    out: list[Finding] = []
    for finding in findings:
        first = _find_first(case, finding, other)
        if first is None:
            out.append(finding)
            continue
        rows = case.items_of(first)
        rows = rows[other[rows]]
        pair = finding.pair
        shown = (int(rows[0]), *(finding.items if pair != first else ()))
        known = kept.setdefault(
            first, Finding(pair=first, kind="configuration", rule=Dtypes.id, items=shown, detail=pair)
        )
        if known.detail != pair:
            kept[first] = replace(known, group=(*known.group, pair))
    return [*out, *kept.values()]


def _find_other_dtypes(case: Case) -> Bool:
    """By item pair: floating-point tensors of two dtypes, of a leaf call that both sides made. A mask of truth values beside one
    that is added is another form of it."""
    context = case.context
    found: Bool = (
        context.both
        & (context.kind == Kind.TENSOR)
        & (context.t_dtype >= 0)
        & (context.g_dtype >= 0)
        & (context.t_dtype != context.g_dtype)
        & ~is_exact_kind(context)
        & ~context.unread
        & (case.facts.outcome != Outcome.FORM)
        & case.columns.leaf[context.pair]
    )
    return found


def _find_first(case: Case, finding: Finding, other: Bool) -> int | None:
    """The first call whose dtype differs and from which the finding follows; None where none does.

    It is followed through the calls that made what the finding's call received; where these are not known, the first such
    call of the run is taken, since casts and views are not recorded."""
    if finding.rule not in TRACED or finding.kind in ("communication", "input"):
        return None
    if finding.rule == "O-6":
        return next(
            (pair for pair in np.unique(case.context.pair[other]).tolist() if is_inside(case, pair, finding.pair)),
            None,
        )
    if finding.rule == "O-1" and not other[case.items_of(finding.pair)].any():
        return None
    if finding.rule == "O-4" and not other[: int(case.first_item[finding.pair + 1])].any():
        return None
    maker = find_makers(case)
    first = _walk_back(case, finding.pair, other, maker)
    if first == finding.pair:
        rows = np.flatnonzero(other[: int(case.first_item[finding.pair + 1])])
        first = int(case.context.pair[rows[0]])
    return first


def _walk_back(case: Case, pair: int, other: Bool, maker: Int64) -> int:
    """The earliest call that a chain of tensors of two dtypes leads back to; `pair` itself where none leads on."""
    first, reached, waiting = pair, {pair}, [pair]
    while waiting:
        rows = case.inputs_of(waiting.pop())
        for before in maker[rows[other[rows]]].tolist():
            if before >= 0 and before not in reached and other[case.items_of(before)].any():
                reached.add(before)
                waiting.append(before)
                first = min(first, before)
    return first
