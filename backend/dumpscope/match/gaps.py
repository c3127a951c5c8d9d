"""Gaps: runs of unmatched calls between two matched calls, inside one matched module."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dumpscope.domain.records import NodeKind
from dumpscope.match.matching import Matching
from dumpscope.match.operators.operations import moves_data
from dumpscope.match.sides import Side, is_call


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Free entries of both sides in order of time; a free module comes before its content.

    parent: the matched module around them, as entry of the target; -1 for the top
    """

    parent: int
    target: list[int]
    golden: list[int]


def find_gaps(matching: Matching, loose: Collection[int] = ()) -> Iterator[Gap]:
    """Find the gaps of every matched module and of the top in which at least one side has a free forward call.

    loose: target entries whose pairs bound no gap; they and their partners are listed like free ones
    """
    target, golden = matching.target, matching.golden
    freed = {matching.partner[t] for t in loose}
    parents = [(-1, -1), *matching.partner.items()]
    for t_parent, g_parent in parents:
        ts = [t for t in target.children.get(t_parent, ()) if is_call(target, t) and not target.again(t)]
        gs = [g for g in golden.children.get(g_parent, ()) if is_call(golden, g) and not golden.again(g)]
        if all(t in matching.partner for t in ts) and all(g in matching.taken for g in gs):
            continue
        places = {g: j for j, g in enumerate(gs)}
        t_from = g_from = 0
        for i, j in [*_anchors(matching, [-1 if t in loose else t for t in ts], places), (len(ts), len(gs))]:
            gap = Gap(
                parent=t_parent,
                target=[x for t in ts[t_from:i] if t in loose or matching.free_target(t) for x in below(target, t)],
                golden=[x for g in gs[g_from:j] if g in freed or matching.free_golden(g) for x in below(golden, g)],
            )
            if gap.target or gap.golden:
                yield gap
            t_from, g_from = i + 1, j + 1


def computing(side: Side, entries: list[int]) -> list[int]:
    """The entries that compute something: calls, and modules without calls, except those that only move data."""
    return [
        entry
        for entry in entries
        if (side.kind[entry] == NodeKind.API and not moves_data(side.label[entry]))
        or (side.kind[entry] != NodeKind.API and entry < side.dumped and not side.children.get(entry))
    ]


def _anchors(matching: Matching, ts: list[int], places: dict[int, int]) -> list[tuple[int, int]]:
    """The longest run of matched children that keep their order on both sides.

    Calls that move data are left out: implementations move data at different places, and dumps seldom show which call is which.
    """
    pairs = [
        (i, places[matching.partner[t]])
        for i, t in enumerate(ts)
        if t in matching.partner and matching.partner[t] in places and not moves_data(matching.target.label[t])
    ]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        at = bisect_left(ends, j)
        before.append(last[at - 1] if at else -1)
        ends[at : at + 1] = [j]
        last[at : at + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def below(side: Side, entry: int) -> Iterator[int]:
    """An entry and the calls inside it, in order of time."""
    waiting = [entry]
    while waiting:
        entry = waiting.pop()
        yield entry
        waiting += [child for child in reversed(side.children.get(entry, ())) if is_call(side, child)]
