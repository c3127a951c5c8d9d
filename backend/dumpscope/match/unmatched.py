"""Why a call has no partner, found from the other side's calls at the same place (rules: docs/matching.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dumpscope.domain.facts import Leftover, NodePairs
from dumpscope.domain.records import Direction, Int8, Int32, Int64, NodeKind
from dumpscope.match.endings import find_unreached
from dumpscope.match.gaps import computing, find_gaps
from dumpscope.match.matching import Fusion, Matching
from dumpscope.match.operators.operations import backend, is_region, moves_data, operation
from dumpscope.match.sides import Side

LOW_RISK: Final = frozenset(("clamp", "tril", "triu"))
"""Operations that compute and that msprobe leaves out at its usual risk level, as our capture did before 2026-12."""

Reason = tuple[Leftover, int]
"""A cause, and the entry of the other side that shows it (-1: none)."""


def explain(matching: Matching, pairs: NodePairs, surely: Sequence[bool]) -> tuple[Int8, Int32]:
    """Cause per node pair, and the node pair that shows it: the fused call, the other side's first call at the same place,
    or else the nearest matched call before (-1: none).

    surely: per node pair, whether the other side made the same call and did not dump it
    """
    leftover = np.zeros(len(pairs), np.int8)
    beside = np.full(len(pairs), -1, np.int32)
    alone = np.flatnonzero((pairs.target < 0) | (pairs.golden < 0))
    if not len(alone):
        return leftover, beside
    rows = _rows(pairs.target, matching.target.dumped), _rows(pairs.golden, matching.golden.dumped)
    partners = matching.partner, {golden: target for target, golden in matching.partner.items()}
    sides = (
        _UnmatchedCalls(matching.target, matching.golden, matching.inside_target, matching.beyond_target, partners[0]),
        _UnmatchedCalls(matching.golden, matching.target, matching.inside_golden, matching.beyond_golden, partners[1]),
    )
    for gap in find_gaps(matching):
        calls = [x for x in gap.target if matching.free_target(x)], [x for x in gap.golden if matching.free_golden(x)]
        cores = computing(matching.target, calls[0]), computing(matching.golden, calls[1])
        sides[0].note(calls[0], cores[0], cores[1])
        sides[1].note(calls[1], cores[1], cores[0])
    before = _matched_before(pairs)
    unreached, last = find_unreached(matching, pairs, surely)
    for row in alone.tolist():
        if unreached[row]:
            leftover[row], beside[row] = unreached[row], last[row]
            continue
        on_target = int(pairs.target[row]) >= 0
        entry = int(pairs.target[row] if on_target else pairs.golden[row])
        cause, other = sides[0 if on_target else 1].reason(entry, surely=bool(surely[row]))
        leftover[row] = cause
        if cause == Leftover.INSIDE:
            beside[row] = rows[0][other]  # by the target's entry of the pair
        else:
            beside[row] = rows[1 if on_target else 0][other] if other >= 0 else before[row]
    return leftover, beside


class _UnmatchedCalls:
    """Calls of one side without a partner, and the other side's calls at their place."""

    def __init__(
        self, side: Side, other: Side, inside: dict[int, Fusion], beyond: set[int], partners: dict[int, int]
    ) -> None:
        self._side, self._inside, self._beyond, self._dumped = side, inside, beyond, other.dumped
        transformed = other.in_transforms()
        self._no_backward = {
            (side.label[mine], side.index[mine]) for mine, theirs in partners.items() if theirs in transformed
        }
        self._opposite: dict[int, tuple[int, list[int]]] = {}
        kinds = zip(other.kind[: other.dumped], other.direction[: other.dumped], strict=True)
        self._recorded = set(kinds)
        self._labels = set(other.label[: other.dumped])
        self._leaves_out = LOW_RISK.isdisjoint(map(operation, self._labels))
        self._forward: dict[tuple[str, int], int] = {}
        self._one_is_compiled = _has_regions(side) != _has_regions(other)
        self._other_is_compiled = self._one_is_compiled and _has_regions(other)

    def note(self, calls: list[int], cores: list[int], opposite: list[int]) -> None:
        """Store for the calls of one gap: how many of them compute (`cores`), and the other side's calls (`opposite`)."""
        for entry in calls:
            self._opposite[entry] = (len(cores), opposite)
            self._forward[self._side.label[entry], self._side.index[entry]] = entry

    def reason(self, entry: int, *, surely: bool) -> Reason:
        side = self._side
        fusion = self._inside.get(entry)
        if fusion is not None:
            return Leftover.INSIDE, fusion.target
        if entry in side.wrappers:
            return Leftover.WRAPPER, -1
        if side.again(entry):
            return Leftover.RECOMPUTED, -1
        if self._other_is_compiled and not surely and entry not in self._beyond:
            return Leftover.COMPILED, -1  # what compiled code calls is not recorded, nor what runs between its regions
        if surely or entry in self._beyond or (side.kind[entry], side.direction[entry]) not in self._recorded:
            return Leftover.LEFT_OUT, -1
        if side.direction[entry] == Direction.BACKWARD and (side.label[entry], side.index[entry]) in self._no_backward:
            return Leftover.LEFT_OUT, -1
        if self._one_is_compiled:  # a region whose calls the other side did not record
            return Leftover.LEFT_OUT, -1
        label = side.label[entry]
        left_out = moves_data(label) or (self._leaves_out and operation(label) in LOW_RISK)
        if left_out and side.kind[entry] == NodeKind.API and label not in self._labels:
            return Leftover.LEFT_OUT, -1
        if side.direction[entry] == Direction.BACKWARD:
            entry = self._forward.get((label, side.index[entry]), entry)
        mine, opposite = self._opposite.get(entry, (0, []))
        if opposite and mine:
            shown = next(
                (one for one in opposite if one < self._dumped), -1
            )  # behind these stand calls that were not dumped
            if mine == 1 < len(opposite):
                return Leftover.FUSED, shown
            return (Leftover.DECOMPOSED if mine > 1 == len(opposite) else Leftover.REPLACED), shown
        if backend(label) is not None and label not in self._labels:
            return Leftover.ONE_BACKEND, -1
        return Leftover.INSERTED, -1


def _has_regions(side: Side) -> bool:
    return any(is_region(label) for label in side.label[: side.dumped])


def _rows(column: Int32, entries: int) -> Int64:
    """Node pair of every dumped entry of a side."""
    rows = np.full(entries, -1, np.int64)
    has = column >= 0
    rows[column[has]] = np.flatnonzero(has)
    return rows


def _matched_before(pairs: NodePairs) -> Int64:
    both = (pairs.target >= 0) & (pairs.golden >= 0)
    before: Int64 = np.maximum.accumulate(np.where(both, np.arange(len(pairs)), -1))
    return before
