"""For each row of a module tree: the NaN and infinities in it and below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dumpscope.analysis.overflow.births import NodeOverflow, Part
from dumpscope.domain.records import Tree

WORST_FIRST: Final[tuple[Part, ...]] = (
    "origin",
    "input",
    "saturated",
    "growth",
    "propagated",
    "contains",
    "absorbed",
    "intended",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """part: the worst that a tree row or anything below it did; calls: how many of these rows saw such a number"""

    part: Part
    calls: int


def roll_up(tree: Tree, findings: Sequence[NodeOverflow]) -> dict[int, Below]:
    """Tree entry -> what it and the rows below it saw; entries that saw nothing are left out."""
    calls: dict[int, int] = {}
    worst: dict[int, int] = {}
    for finding in findings:
        calls[finding.ordinal] = 1
        worst[finding.ordinal] = WORST_FIRST.index(finding.part)
    parent = tree.parent.tolist()
    for entry in (-tree.order).argsort(kind="stable").tolist():  # children before their parents
        above = parent[entry]
        if entry not in calls or above < 0:
            continue
        calls[above] = calls.get(above, 0) + calls[entry]
        worst[above] = min(worst.get(above, len(WORST_FIRST)), worst[entry])
    return {entry: Below(part=WORST_FIRST[worst[entry]], calls=count) for entry, count in calls.items()}
