"""What of the other side a record does not reach: it ends early, or its dump was told to hold a part of the run only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.facts import Leftover, Method, NodePairs
from dumpscope.domain.records import Bool, Direction, Int8, Int32, Int64, NodeKind, RankDump
from dumpscope.match.gaps import computing
from dumpscope.match.matching import Matching
from dumpscope.match.sides import Side

CALLS: Final = 4
"""So many computing calls before or behind all calls of the other side are no longer an extra call of a whole run."""
_CHOOSING: Final = ("data_mode", "scope", "list", "risk_level", "backward")
"""Settings by which the user leaves parts of a run out of its dump."""


def find_unreached(matching: Matching, pairs: NodePairs, surely: Sequence[bool]) -> tuple[Int8, Int64]:
    """Per node pair `Leftover.ENDED` where the other side's record ends before it, `LEFT_OUT` where the other side's dump holds
    a part of the run that begins later or ends before by choice, else 0; and the node pair at that end (-1).

    surely: per node pair, whether the other side names the same call and has no data of it
    """
    found = np.zeros(len(pairs), np.int8)
    last = np.full(len(pairs), -1, np.int64)
    for side, other, own, there in (
        (matching.target, matching.golden, pairs.target, pairs.golden),
        (matching.golden, matching.target, pairs.golden, pairs.target),
    ):
        held = np.flatnonzero(own >= 0)
        if not len(held):
            continue
        beyond = _Beyond(side, other, there)
        head, tail = np.arange(held[0]), np.arange(held[-1] + 1, len(pairs))
        head, tail = (rows[pairs.method[rows] == Method.NONE] for rows in (head, tail))
        if is_cut(side.dump):
            found[tail] = Leftover.ENDED
        elif beyond.counts(head):
            found[head] = found[tail] = Leftover.LEFT_OUT
        elif (
            len(tail)
            and not are_around_passes(other.dump, there[tail]).all()
            and not _goes_on(side, own, there)
            and not _chosen_otherwise(side.dump, other.dump)
            and beyond.show_an_end(tail, surely)
        ):
            found[tail] = Leftover.ENDED
        last[tail] = held[-1]
    return found, last


def is_cut(dump: RankDump) -> bool:
    """Whether the dump's file ends too early, or its run was killed while it was written."""
    return any(problem.kind == "truncated" for problem in dump.problems)


@dataclass(frozen=True, slots=True)
class _Beyond:
    """Calls that `other` made before or behind everything that `side` holds. entries: of the other side, per node pair"""

    side: Side
    other: Side
    entries: Int32

    def counts(self, rows: Int64) -> bool:
        """Whether `side` would have recorded several of these calls."""
        labels = set(self.side.label[: self.side.dumped])
        parts = self._recorded()
        calls = [entry for entry in self.entries[rows].tolist() if self._part(entry) in parts]
        calls = computing(self.other, calls)
        return len(calls) >= CALLS and any(self.other.label[entry] in labels for entry in calls)

    def show_an_end(self, rows: Int64, surely: Sequence[bool]) -> bool:
        """Whether the record of `side` ends here, although the run of the other side goes on: a module began and was not
        completed, or it lacks several calls of kinds that it records, or (if both tell their settings) the backward pass."""
        parts = self._recorded()
        entries = self.entries[rows].tolist()
        begun = any(
            surely[row] and self._part(entry) == (NodeKind.MODULE, Direction.FORWARD) and self._part(entry) in parts
            for row, entry in zip(rows.tolist(), entries, strict=True)
        )
        return begun or self.counts(rows) or self._lack_the_backward(parts, entries)

    def _lack_the_backward(self, parts: set[tuple[int, int]], entries: list[int]) -> bool:
        told = self.side.dump.header.run is not None and self.other.dump.header.run is not None
        if not told or any(direction == Direction.BACKWARD for _, direction in parts):
            return False
        return any(
            self.other.direction[entry] == Direction.BACKWARD and (self.other.kind[entry], Direction.FORWARD) in parts
            for entry in entries
        )

    def _part(self, entry: int) -> tuple[int, int]:
        return self.other.kind[entry], self.other.direction[entry]

    def _recorded(self) -> set[tuple[int, int]]:
        side = self.side
        return set(zip(side.kind[: side.dumped], side.direction[: side.dumped], strict=True))


def are_around_passes(dump: RankDump, entries: Int32) -> Bool:
    """Which of these calls are those of a loop around a model whose passes were put together: the other side needs no loop."""
    if dump.ref.passes is None:
        return np.zeros(len(entries), bool)
    nodes = dump.nodes
    alone = (nodes.kind[entries] == NodeKind.API) & (nodes.direction[entries] == Direction.FORWARD)
    found: Bool = alone & (dump.tree.parent[entries] < 0)
    return found


def _goes_on(side: Side, own: Int32, there: Int32) -> bool:
    """Whether `side` made computing calls of its own after the last call of both: what follows then is not missing but other."""
    met = np.flatnonzero((own >= 0) & (there >= 0))
    first = int(met[-1]) + 1 if len(met) else 0
    return bool(computing(side, [entry for entry in own[first:].tolist() if entry >= 0]))


def _chosen_otherwise(one: RankDump, other: RankDump) -> bool:
    """Whether both sides tell their settings and left out other parts of the run."""
    if one.header.run is None or other.header.run is None:
        return False
    mine, theirs = one.header.run.settings, other.header.run.settings
    return any(mine.get(name) != theirs.get(name) for name in _CHOOSING)
