"""O-6: a module whose inputs agree and whose output does not, though no dumped call inside went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dumpscope.analysis.rules.evidence import advise_by_kind, describe_items
from dumpscope.analysis.rules.rule import HIDDEN, Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.domain.facts import Outcome
from dumpscope.domain.records import Kind, Role
from dumpscope.texts import Phrase, phrase
from dumpscope.verdict.score import is_exact_kind


class Modules(Rule):
    """The module's own code, which was not dumped, is at fault, or a call inside it of which nothing could be compared."""

    id: ClassVar = "O-6"
    kinds: ClassVar = ("computation", "overflow")

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return _find(case, {one.pair for one in found if one.kind != "weight"})

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        said = phrase("origin.module")
        if isinstance(finding.detail, int):
            said = phrase("origin.module_unjudged", call=case.columns.names[finding.detail])
        return [said, *describe_items(case, finding.items, finding.pair)]

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
        name_module(case, pair, case.different(case.outputs_of(pair)).tolist())
        for pair in np.flatnonzero(suspects).tolist()
        if not below[columns.entry[pair]] and pair not in known
    ]


def name_module(case: Case, pair: int, items: Sequence[int]) -> Finding:
    """The finding that a module hides the cause of what differs in `items`: its own code, or a call inside it of which nothing
    could be compared (`detail`)."""
    inside = next((one for one in _find_unjudged(case) if is_inside(case, one, pair)), None)
    found = Finding(pair=pair, kind="computation", rule="O-6", items=tuple(items))
    return replace(found, variant=HIDDEN) if inside is None else replace(found, detail=inside)


def _find_unjudged(case: Case) -> list[int]:
    """Calls without calls inside whose results both sides hold, and of which nothing could be compared."""
    context, columns = case.context, case.columns
    tensor = context.both & (context.kind == Kind.TENSOR) & (context.role == Role.OUTPUT)
    tensor &= ~is_exact_kind(context) & columns.leaf[context.pair]
    lost = tensor & (case.facts.outcome == Outcome.NO_DATA)
    found: list[int] = np.setdiff1d(context.pair[lost], context.pair[tensor & ~lost]).tolist()
    return found


def is_inside(case: Case, call: int, module: int) -> bool:
    """A call, or a module, lies inside another module. Node pairs."""
    entry, around = int(case.columns.entry[call]), int(case.columns.entry[module])
    while entry >= 0 and entry != around:
        entry = int(case.tree.parent[entry])
    return entry >= 0
