"""O-10: elements in another order, which statistics hide but for the last digits of a sum, before the call that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.evidence import advise_by_kind, describe_item
from dumpscope.analysis.rules.rule import HIDDEN, Finding, Rule
from dumpscope.analysis.rules.sources import find_hiding_module
from dumpscope.analysis.unit.case import Case
from dumpscope.domain.facts import Method
from dumpscope.domain.records import Bool, Int64, Kind, NodeKind, State
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.score import MAX, MEAN, MIN, NORM, is_exact_kind

LAST_DIGITS: Final = 1e-6
"""What the order of a sum of 32-bit numbers changes at most, of the norm, or of a mean against the size of an element."""
MODULE: Final = "module"
"""Variant: the module inside which the order changed, where no dumped call changed it."""


class Exchanged(Rule):
    """Words what `find_exchanged` finds. Finding.detail: node pair at which numbers differ by more than an order does

    items: the first one is what shows the other order
    """

    id: ClassVar = "O-10"
    kinds: ClassVar = ("computation",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return []

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        row, shown = finding.items[0], finding.detail
        word = {"": "origin.exchanged", MODULE: "origin.exchanged_inside"}.get(
            finding.variant, "origin.exchanged_before"
        )
        assert isinstance(shown, int)
        return [phrase(word, node=case.columns.names[shown]), describe_item(case, row, finding.pair)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return [phrase("advice.exchanged")] if finding.variant else advise_by_kind(case, finding)

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        """Nobody has seen the order itself."""
        return limit * (0.7 if not finding.variant else 0.5)


def find_exchanged(case: Case, finding: Finding) -> Finding | None:
    """Where elements changed places before the call of `finding`, which takes them; None where nothing shows it.

    All that differs before must have the same Max and Min and nearly the same Mean and Norm: what computes with other numbers,
    or with other kernels, changes the extremes as well. The call is named that put out the first of them; else the module inside
    which that happened, or the call that received it.
    """
    context, columns = case.context, case.columns
    # In a noisy pair all sums differ in the last digits: behind a pick, and behind what one side fused.
    fused = (case.pairs.method[: finding.pair] == Method.FUSED).any()
    if not columns.quiet and (finding.kind == "configuration" or fused):
        return None
    rows = np.flatnonzero((case.facts.equal == 0) & (context.kind == Kind.TENSOR) & ~context.unread)
    rows = rows[(context.pair[rows] < finding.pair) | np.isin(rows, case.inputs_of(finding.pair))]
    rows = rows[columns.leaf[context.pair[rows]] & (columns.kind[context.pair[rows]] != NodeKind.GRADIENT)]
    if not len(rows) or not _have_equal_elements(case, rows).all():
        return None
    pair = int(context.pair[rows].min())
    own = rows[context.pair[rows] == pair]
    if pair < finding.pair and not case.received[own].any():
        return Finding(pair=pair, kind="computation", rule=Exchanged.id, items=tuple(own.tolist()), detail=finding.pair)
    module = find_hiding_module(case, pair, own.tolist())
    place, variant = (pair, HIDDEN) if module is None else (module, MODULE)
    return Finding(
        pair=place,
        kind="computation",
        rule=Exchanged.id,
        items=tuple(own.tolist()),
        variant=variant,
        detail=finding.pair,
    )


def _have_equal_elements(case: Case, rows: Int64) -> Bool:
    """By item pair: the statistics are those of the same numbers in another order, and no tensor was read."""
    context = case.context
    t, g = context.t_stats[rows], context.g_stats[rows]
    finite = ((context.t_state[rows] == State.FINITE) & (context.g_state[rows] == State.FINITE)).all(axis=1)
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.abs(t[:, NORM]), np.abs(g[:, NORM]))
        each = size / np.sqrt(np.maximum(context.elements[rows], 1))
        same = (t[:, [MAX, MIN]] == g[:, [MAX, MIN]]).all(axis=1) & (t[:, MAX] > t[:, MIN])
        same &= np.abs(t[:, NORM] - g[:, NORM]) <= LAST_DIGITS * size
        same &= np.abs(t[:, MEAN] - g[:, MEAN]) <= LAST_DIGITS * each
    found: Bool = finite & same & (case.facts.unequal[rows] < 0) & ~is_exact_kind(context, rows)
    return found
