"""O-6: a module whose inputs agree and whose output does not, though no dumped call inside went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dumpscope.analysis.rules.evidence import advise_by_kind, describe_items
from dumpscope.analysis.rules.rule import HIDDEN, Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.texts import Phrase, phrase


class Modules(Rule):
    """The module's own code, which was not dumped, is at fault."""

    id: ClassVar = "O-6"
    kinds: ClassVar = ("computation", "overflow")

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return _find(case, {one.pair for one in found if one.kind != "weight"})

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        return [phrase("origin.module"), *describe_items(case, finding.items, finding.pair)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return advise_by_kind(case, finding)

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        return 0.5 * limit


def _find(case: Case, known: set[int]) -> list[Finding]:
    """Such modules, but for those in `known`."""
    columns, tree = case.columns, case.tree
    own = np.zeros(len(tree), bool)
    has = tree.pair >= 0
    with np.errstate(invalid="ignore"):
        touched = (columns.out_score > columns.threshold) | (columns.own_in > columns.threshold) | columns.alone
    own[has] = touched[tree.pair[has]]
    below, differs, parents = [False] * len(tree), own.tolist(), tree.parent.tolist()
    for entry in np.argsort(-tree.order.astype(np.int64)).tolist():
        if parents[entry] >= 0 and (differs[entry] or below[entry]):
            below[parents[entry]] = True
    with np.errstate(invalid="ignore", over="ignore"):
        suspects = (
            ~columns.leaf
            & ~(columns.in_score > 0.5 * columns.threshold)
            & (columns.out_score > columns.threshold)
            & (columns.out_score > 4 * np.nan_to_num(columns.in_score))
            & ~columns.alone
        )
    return [
        Finding(
            pair=p,
            kind="computation",
            rule="O-6",
            items=tuple(case.different(case.outputs_of(p)).tolist()),
            variant=HIDDEN,
        )
        for p in np.flatnonzero(suspects).tolist()
        if not below[columns.entry[p]] and p not in known
    ]
