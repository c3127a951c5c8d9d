"""O-7: an error that grows slowly along the forward pass, with no call at which it jumps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dumpscope.analysis.rules.evidence import describe_items
from dumpscope.analysis.rules.rule import Finding, Rule
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.domain.records import Direction, Int64, NodeKind
from dumpscope.texts import Phrase, phrase

GROWN: Final = 4.0
"""Score, in floors, from which a forward error is reported although no call stands out. Healthy noisy pairs of four models
reached 0.06 in float32 and 1.5 in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """first, last: calls with the first visible and with the largest error; calls: compared forward calls between them"""

    first: int
    last: int
    calls: int


class GrowingError(Rule):
    """Nothing else explains a noisy pair whose error grows past GROWN floors. Finding.detail: Drift"""

    id: ClassVar = "O-7"
    kinds: ClassVar = ("accumulated",)

    def find(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        return []

    def find_last(self, case: Case, found: Sequence[Finding]) -> list[Finding]:
        explained = any(not one.idle for one in found)
        return [] if explained or case.history.differs else _find(case)

    def evidence(self, case: Case, finding: Finding) -> list[Phrase]:
        drift, columns = finding.detail, case.columns
        assert isinstance(drift, Drift)
        grown = phrase(
            "origin.accumulated",
            first=columns.names[drift.first],
            last=columns.names[drift.last],
            calls=drift.calls,
            low=f"{columns.out_score[drift.first]:.2g}",
            high=f"{columns.out_score[drift.last]:.2g}",
        )
        return [grown, *describe_items(case, finding.items)]

    def advice(self, case: Case, finding: Finding) -> list[Phrase]:
        return [phrase("advice.accumulated")]

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
    pair = int(over[0])
    items = case.outputs_of(pair)
    shown = items[np.nan_to_num(case.opinions.score[items]) > 1.0]
    return [Finding(pair=pair, kind="accumulated", rule="O-7", items=tuple(shown.tolist()), detail=drift)]


def _measure(columns: NodeColumns) -> Drift | None:
    """How the error of forward outputs develops; None where none is visible."""
    forward = _forward_calls(columns)
    seen = forward[columns.out_score[forward] > 0]
    if not len(seen):
        return None
    last = int(seen[np.argmax(columns.out_score[seen])])
    first = int(seen[0])
    between = int(((forward >= first) & (forward <= last)).sum())
    return Drift(first=first, last=last, calls=between)


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
