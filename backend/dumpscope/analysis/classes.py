"""The class of every node: equal, different because of others, or a cause itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dumpscope.analysis.rules.evidence import SATURATED
from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.domain.facts import Class, ItemPairs, NodeOpinions
from dumpscope.domain.records import Int8


def classify(columns: NodeColumns, verdict: Int8, exact: Int8) -> NodeOpinions:
    """Classes before any finding is marked.

    exact: 1 where every compared item of the node is bit-equal, 0 where one differs, -1 where none was compared
    """
    n = len(columns)
    cls = np.full(n, int(Class.UNKNOWN), np.int8)
    limit = columns.threshold
    with np.errstate(invalid="ignore"):
        out_differs, in_differs = columns.out_score > limit, columns.in_score > 0.5 * limit
        known = ~np.isnan(columns.out_score) | ~np.isnan(columns.own_in)
        cls[known] = Class.BENIGN
        cls[exact == 1] = Class.EXACT
        cls[out_differs & in_differs] = Class.PROPAGATED
        cls[out_differs & in_differs & columns.leaf & (columns.out_score > 10 * columns.in_score)] = Class.AMPLIFIER
        cls[out_differs & ~in_differs] = Class.CONTAINS
        cls[out_differs & ~in_differs & columns.leaf] = Class.PROPAGATED
    cls[columns.alone] = Class.UNKNOWN
    cls[columns.extra] = Class.STRUCTURAL
    return NodeOpinions(verdict=verdict, cls=cls, in_score=columns.seen_in, out_score=columns.out_score)


def mark_causes(cls: Int8, findings: Sequence[Finding]) -> None:
    """Write the classes of the nodes that caused something into `cls`."""
    for finding in findings:
        cls[finding.pair] = cause_class(finding)


def cause_class(finding: Finding) -> Class:
    """Class of the node that a finding names."""
    return Class.NONFINITE if finding.kind == "overflow" and finding.variant != SATURATED else Class.ORIGIN


def fold_equality(items: ItemPairs, equal: Int8, nodes: int) -> Int8:
    """By node: 1 where all compared items are equal, 0 where one is not, -1 where none was compared."""
    out = np.full(nodes, -1, np.int8)
    known = equal >= 0
    out[items.pair[known]] = 1
    out[items.pair[equal == 0]] = 0
    return out
