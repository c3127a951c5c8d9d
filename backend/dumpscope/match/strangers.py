"""Two programs that compute the same with other modules: a model written again under other names. Their calls are matched in the
order in which they ran, and modules by the calls that they make."""

from __future__ import annotations

from typing import Final

from dumpscope.domain.records import Direction, NodeKind
from dumpscope.match.matching import Matching
from dumpscope.match.operators.operations import moves_data
from dumpscope.match.sides import Side

FEW: Final = 0.8
"""If less than this share of the computing calls of the side with fewer calls have partners, the modules may be strangers."""
KNOWN: Final = 0.2
"""They are none if more than this share of their labels are on both sides."""


def are_strangers(matching: Matching) -> bool:
    """Whether both sides have modules and calls, and few calls met inside the modules."""
    if matching.target.dump.tree.inferred or matching.golden.dump.tree.inferred:
        return False
    calls = [_computing(side) for side in (matching.target, matching.golden)]
    labels = [_module_labels(side) for side in (matching.target, matching.golden)]
    if not all(calls) or len(labels[0] & labels[1]) >= KNOWN * min(map(len, labels)):
        return False
    return count_calls(matching) < FEW * min(map(len, calls))


def count_calls(matching: Matching) -> int:
    """Computing calls of the target that have a partner."""
    return sum(entry in matching.partner for entry in _computing(matching.target))


def _module_labels(side: Side) -> set[str]:
    return {label for kind, label in zip(side.kind, side.label, strict=True) if kind == NodeKind.MODULE}


def _computing(side: Side) -> list[int]:
    return [
        entry
        for entry in range(side.dumped)
        if side.kind[entry] == NodeKind.API
        and side.direction[entry] == Direction.FORWARD
        and not moves_data(side.label[entry])
    ]


def pair_modules(matching: Matching) -> None:
    """Pair the modules inside which the same calls ran, innermost first."""
    held = _contents(matching.target, matching.partner), _contents(matching.golden, {g: g for g in matching.taken})
    by_content: dict[frozenset[int], list[int]] = {}
    for module, calls in held[1].items():
        by_content.setdefault(frozenset(calls), []).append(module)
    waiting = {calls: _inner_first(matching.golden, modules) for calls, modules in by_content.items()}
    for module in _inner_first(matching.target, list(held[0])):
        rivals = waiting.get(frozenset(held[0][module]))
        if rivals:
            matching.pair(module, rivals.pop(0))


def _contents(side: Side, partner: dict[int, int]) -> dict[int, set[int]]:
    """Module call -> the golden's entries of the calls inside it that have partners. partner: entry -> that of the golden"""
    parent = side.dump.tree.parent
    found: dict[int, set[int]] = {}
    for entry in range(side.dumped):
        if side.kind[entry] != NodeKind.API or side.direction[entry] != Direction.FORWARD or entry not in partner:
            continue
        around = int(parent[entry])
        while around >= 0:
            if side.kind[around] == NodeKind.MODULE and side.direction[around] != Direction.BACKWARD:
                found.setdefault(around, set()).add(partner[entry])
            around = int(parent[around])
    return found


def _inner_first(side: Side, modules: list[int]) -> list[int]:
    def depth(entry: int) -> int:
        steps, around = 0, int(side.dump.tree.parent[entry])
        while around >= 0:
            steps, around = steps + 1, int(side.dump.tree.parent[around])
        return steps

    return sorted(modules, key=depth, reverse=True)
