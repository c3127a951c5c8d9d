"""O-7: an error that grows along the forward pass: slowly, or with a jump at one call that no other rule named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.computation import STEEP
from dumpscope.analysis.rules.evidence import advise_by_kind, describe_items
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.analysis.unit.noise import JUMP, have_other_dtypes
from dumpscope.domain.records import Direction, Int64, NodeKind
from dumpscope.texts import Phrase, phrase

SMALLEST: Final = 0.01
"""Floors that count as noise in every noisy pair: a growth from less is measured from here."""
GROWN: Final = 4.0
"""Score, in floors, from which a forward error is reported although no call stands out. Healthy noisy pairs of four models
reached 0.06 in float32 and 1.5 in bfloat16."""


STEPPED: Final = "jump"
"""Variant: the error jumps at the call, which is a computation then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """first, last: calls with the first visible and with the largest error; calls: compared forward calls between them

    steepest: the call at which the error grows most, in comparison with its inputs and all before it, and by which factor
    """

    first: int
    last: int
    calls: int
    steepest: int
    factor: float


class GrowingError(Rule):
    """Nothing else explains a noisy pair whose error grows past GROWN floors. Finding.detail: Drift"""

    id: ClassVar = "O-7"
    kinds: ClassVar = ("accumulated", "computation")

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return []

    def find_last(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        explained = any(not one.idle for one in found)
        return [] if explained or case.history.differs else _find(case)

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        drift, columns = finding.detail, case.columns
        assert isinstance(drift, Drift)
        if finding.variant == STEPPED:
            said = {"factor": _round(drift.factor), "high": f"{columns.out_score[drift.steepest]:.2g}"}
            return [phrase("origin.jump", **said), *describe_items(case, finding.items, finding.pair)]
        smooth = drift.factor <= JUMP
        more = {} if smooth else {"steepest": columns.names[drift.steepest], "factor": _round(drift.factor)}
        grown = phrase(
            "origin.accumulated" if smooth else "origin.accumulated_most",
            **more,
            first=columns.names[drift.first],
            last=columns.names[drift.last],
            calls=drift.calls,
            low=f"{columns.out_score[drift.first]:.2g}",
            high=f"{columns.out_score[drift.last]:.2g}",
        )
        return [grown, *describe_items(case, finding.items, finding.pair)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return advise_by_kind(case, finding)

    def confidence(self, case: Case, finding: Finding, limit: float) -> float:
        return 0.6 * limit


def _find(case: Case) -> list[Finding]:
    """The call at which the error of a noisy pair first passes the floor, if it grows past GROWN floors in the end."""
    drift = _measure(case.columns)
    if case.columns.quiet or drift is None or not case.columns.out_score[drift.last] > GROWN:
        return []
    forward = _forward_calls(case.columns)
    with np.errstate(invalid="ignore"):
        over = forward[case.columns.out_score[forward] > 1.0]
    jumps = drift.factor > STEEP
    if not jumps and have_other_dtypes(case.context):  # the other precision says why
        return []
    pair = drift.steepest if jumps else int(over[0])
    items = case.outputs_of(pair)
    shown = tuple(items[np.nan_to_num(case.opinions.score[items]) > 1.0].tolist())
    kind, variant = ("computation", STEPPED) if jumps else ("accumulated", "")
    return [Finding(pair=pair, kind=kind, rule="O-7", items=shown, variant=variant, detail=drift)]


def _measure(columns: NodeColumns) -> Drift | None:
    """How the error of forward outputs develops; None where none is visible."""
    forward = _forward_calls(columns)
    seen = forward[columns.out_score[forward] > 0]
    if not len(seen):
        return None
    last = int(seen[np.argmax(columns.out_score[seen])])
    first = int(seen[0])
    between = forward[(forward >= first) & (forward <= last)]
    steepest, factor = _find_steepest(columns, between)
    return Drift(first=first, last=last, calls=len(between), steepest=steepest, factor=factor)


def _find_steepest(columns: NodeColumns, forward: Int64) -> tuple[int, float]:
    """The call above the floor whose error is the largest multiple of what it received, and of all that was made before it."""
    out = columns.out_score[forward]
    before = np.maximum.accumulate(np.concatenate([[0.0], out[:-1]]))
    with np.errstate(invalid="ignore"):
        level = np.fmax(np.fmax(before, columns.in_score[forward]), SMALLEST)
        factor = np.where(out > 1.0, out / level, 0.0)
    place = int(np.argmax(factor))
    return int(forward[place]), float(factor[place])


def _round(factor: float) -> str:
    return "inf" if math.isinf(factor) else f"{factor:.2g}"


def _forward_calls(columns: NodeColumns) -> Int64:
    """Leaf forward calls whose output was compared, in order. Calls after the backward pass belong to the optimizer, which makes
    large differences of gradients that are pure rounding."""
    backward = np.flatnonzero(columns.direction == Direction.BACKWARD)
    last = int(backward[-1]) if len(backward) else len(columns)
    kind = (columns.kind == NodeKind.API) | (columns.kind == NodeKind.MODULE)
    compared = np.isfinite(columns.out_score)
    found: Int64 = np.flatnonzero(
        columns.leaf & ~columns.alone & kind & compared & (columns.direction == Direction.FORWARD)
    )
    return found[found < last]
