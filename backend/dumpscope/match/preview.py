"""Preview of a matching, without any measurement: pairs by method and by rename rule, and calls without a partner."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from dumpscope.domain.facts import LEFTOVER_WORDS, METHOD_WORDS, Method, NodePairs
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.match import match_nodes
from dumpscope.match.matching import Matching


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """labels: target labels for which this is the first matching rule; pairs: calls whose partner has the new label"""

    rule: str
    labels: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A call without a partner. side: target or golden; leftover, beside: see NodePairs"""

    name: str
    side: str
    leftover: str
    beside: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """pairs: calls with a partner; methods: their methods; inside: calls inside fused calls (not counted as left)"""

    step: int
    rank: int
    pairs: int
    methods: dict[str, int]
    inside: int
    rules: list[RuleCount]
    left: list[Left]


def preview(target: RankDump, golden: RankDump, options: Options, *, step: int, rank: int) -> Preview:
    """Raises UsageError if a rule or file is wrong."""
    matching, pairs, _, _ = match_nodes(target, golden, options)
    return count_pairs(matching, pairs, options, step=step, rank=rank)


def count_pairs(matching: Matching, pairs: NodePairs, options: Options, *, step: int, rank: int) -> Preview:
    """Count the pairs that these options give."""
    target, golden = matching.target.dump, matching.golden.dump
    both = (pairs.target >= 0) & (pairs.golden >= 0)
    inside = ~both & (pairs.method == Method.FUSED)
    names = [
        target.nodes.names[t] if t >= 0 else golden.nodes.names[g]
        for t, g in zip(pairs.target.tolist(), pairs.golden.tolist(), strict=True)
    ]
    made: Counter[int] = Counter()
    for t, g in zip(pairs.target[both].tolist(), pairs.golden[both].tolist(), strict=True):
        rule = matching.ruled.get(matching.target.label[t])
        if rule is not None and matching.renamed[matching.target.label[t]] == matching.golden.label[g]:
            made[rule] += 1
    labels = Counter(matching.ruled.values())
    left = []
    for row in np.flatnonzero(~both & ~inside).tolist():
        beside = int(pairs.beside[row])
        left.append(
            Left(
                name=names[row],
                side="target" if pairs.target[row] >= 0 else "golden",
                leftover=LEFTOVER_WORDS[pairs.leftover[row]] or "",
                beside=names[beside] if beside >= 0 else None,
            )
        )
    return Preview(
        step=step,
        rank=rank,
        pairs=int(both.sum()),
        methods={METHOD_WORDS[code]: count for code, count in sorted(Counter(pairs.method[both].tolist()).items())},
        inside=int(inside.sum()),
        rules=[
            RuleCount(rule=text, labels=labels[number], pairs=made[number])
            for number, text in enumerate(options.rename)
        ],
        left=left,
    )
