"""Where the golden itself is wrong, by its distance from an absolute reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dumpscope.analysis.origins import find_origins
from dumpscope.analysis.ranks.origins import DescribedFinding
from dumpscope.analysis.reference import find_deciding_items, golden_at_fault, hide_target_faults
from dumpscope.analysis.unit.calls import stack_of
from dumpscope.analysis.unit.case import Case, History
from dumpscope.domain.distances import FARTHER, MEASURE_WORDS
from dumpscope.domain.facts import Facts, ItemOpinions
from dumpscope.domain.records import Header, join_words
from dumpscope.domain.result import GoldenOff, Reference, Side, Unit
from dumpscope.texts import english
from dumpscope.verdict.sentences import describe_distances

MakeCase = Callable[[Unit, Facts, ItemOpinions], Case]


class GoldenFaults:
    """Takes in the units of a comparison by step and rank; says who is farther from the reference and where the golden is off."""

    def __init__(self) -> None:
        self._heads: list[Header] = []
        self._step: int | None = None  # of the first fault: those of later steps follow from it
        self._names: set[str] = set()
        self._found: list[GoldenOff] = []
        self._counts = {"target_farther": 0, "golden_farther": 0, "alike": 0, "not_measured": 0}

    def add(self, unit: Unit, make_case: MakeCase) -> None:
        """Take in the next unit."""
        self._heads += [unit.reference] if unit.reference is not None else []
        standing = unit.item_opinions.standing
        both = (unit.items.target >= 0) & (unit.items.golden >= 0)
        if standing is None:
            self._counts["not_measured"] += int(both.sum())
            return
        with np.errstate(invalid="ignore"):
            unknown = np.isnan(standing.ratio)
            target, golden = standing.ratio > FARTHER, standing.inverse > FARTHER
        for name, rows in (
            ("target_farther", target), ("golden_farther", golden & ~target), ("alike", ~(target | golden | unknown)),
            ("not_measured", unknown & both),
        ):  # fmt: skip
            self._counts[name] += int(rows.sum())
        if self._step in (None, unit.step) and (golden_at_fault(unit.facts, unit.item_opinions)).any():
            self._look(unit, make_case(unit, *hide_target_faults(unit.facts, unit.item_opinions)))

    def answer(self, side: Side | None) -> Reference | None:
        """What is known over all units taken in; None where there is no reference."""
        if side is None:
            return None
        side = replace(
            side,
            framework=join_words(head.framework for head in self._heads) or side.framework,
            task=join_words(head.task for head in self._heads) or side.task,
            level=join_words(head.level for head in self._heads) or side.level,
        )
        return Reference(side=side, golden_off=self._found, **self._counts)

    def _look(self, unit: Unit, case: Case) -> None:
        at_fault = golden_at_fault(unit.facts, unit.item_opinions)
        rows = find_deciding_items(unit.items, case.context.role, unit.item_opinions, len(unit.pairs))
        for finding in find_origins(replace(case, history=History())):
            name = case.columns.names[finding.pair]
            shown = [row for row in finding.items if at_fault[row]]
            if not shown or name in self._names:
                continue
            row = int(rows[finding.pair]) if rows[finding.pair] in shown else shown[0]
            self._step = unit.step
            self._names.add(name)
            self._found.append(_describe_fault(unit, finding.pair, name, row))


def add_reference_words(unit: Unit, described: DescribedFinding) -> DescribedFinding:
    """A finding of the target with what the reference says of the item that shows it best."""
    standing = unit.item_opinions.standing
    if standing is None or not described.finding.items:
        return described
    row = max(described.finding.items, key=lambda item: np.nan_to_num(standing.ratio[item], nan=-1.0, posinf=np.inf))
    said = describe_distances(unit.facts, unit.item_opinions, row)
    origin = described.origin
    evidence = " ".join([origin.evidence, *([english(said)] if said else [])])
    return replace(described, origin=replace(origin, evidence=evidence, evidence_said=[*origin.evidence_said, *said]))


def _describe_fault(unit: Unit, pair: int, name: str, row: int) -> GoldenOff:
    standing, distances = unit.item_opinions.standing, unit.facts.distances
    assert standing is not None
    assert distances is not None
    measure = int(standing.measure[row])
    target, golden = (int(side[pair]) for side in (unit.pairs.target, unit.pairs.golden))
    stack: Sequence[str] = stack_of(unit.golden, golden) or stack_of(unit.target, target)
    return GoldenOff(
        step=unit.step,
        rank=unit.rank,
        node=name,
        target=float(distances.target[row, measure]),
        golden=float(distances.golden[row, measure]),
        ratio=float(standing.inverse[row]),
        measure=MEASURE_WORDS[measure],
        stack=list(stack),
        pair=pair,
    )
