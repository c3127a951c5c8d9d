"""Origins over ranks: what a rank received it is not to blame for, and what happened first is told by communication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.analysis.ranks.collectives import Collective, Part, Traffic, connect
from dumpscope.analysis.ranks.messages import Message
from dumpscope.domain.facts import Origin, Reached
from dumpscope.domain.numbering import as_ranges
from dumpscope.domain.records import Direction
from dumpscope.texts import Phrase, english, phrase

NAMED: Final = 8
"""Ranks that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A finding and what is said of it, so that its unit need not be kept.

    name: of its node; share: of the rank's run that had passed; reached: node pairs that its data flow reaches, its own too
    listed: it is an origin of the answer; a communication that fails is one on one rank only, and so is what replicas share
    """

    finding: Finding
    name: str
    origin: Origin
    backward: bool
    share: float
    reached: frozenset[int]
    listed: bool = True

    @property
    def idle(self) -> bool:
        """It changes no value."""
        return self.finding.kind == "structure" and not self.finding.items


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFindings:
    step: int
    rank: int
    findings: Sequence[Told]
    messages: Sequence[Message]


def tell(case: Case, finding: Finding, origin: Origin, reached: Iterable[int]) -> Told:
    story = case.story
    return Told(
        finding=finding,
        name=story.names[finding.pair],
        origin=origin,
        backward=bool(story.direction[finding.pair] == Direction.BACKWARD),
        share=finding.pair / max(len(story), 1),
        reached=frozenset(reached),
    )


def traffic_of(units: Iterable[RankFindings]) -> dict[int, Traffic]:
    """Communication by step."""
    messages: dict[int, dict[int, Sequence[Message]]] = {}
    for unit in units:
        messages.setdefault(unit.step, {})[unit.rank] = unit.messages
    return {step: connect(step, by_rank) for step, by_rank in messages.items()}


def settle(units: Sequence[RankFindings], traffic: Mapping[int, Traffic]) -> list[RankFindings]:
    """Leave out what other ranks explain, and make one origin of a communication that fails on several ranks."""
    failed: set[int] = set()  # collectives that have their origin, by identity
    settled = []
    for unit in sorted(units, key=lambda one: (one.step, one.rank)):
        road = traffic[unit.step]
        kept = []
        for told in unit.findings:
            calls = road.of(unit.rank, told.finding.pair)
            excused = _unread(told, unit.rank, calls) or _received(told, unit.rank, calls)
            if excused if calls else _unseen(told, unit, road):
                continue
            culprits = [one for one in calls if _took(one, unit.rank, told.finding.pair)]
            if culprits:
                known = all(id(one) in failed for one in culprits)
                failed.update(map(id, culprits))
                kept.append(replace(told, listed=not known, origin=_as_fault(told.origin, culprits)))
            else:
                kept.append(told)
        settled.append(replace(unit, findings=kept))
    return settled


def drop_echoes(units: Sequence[RankFindings]) -> list[RankFindings]:
    """An argument or computation that fails in every step, or an extra call, is one cause: keep its first step."""
    seen: set[tuple[int, str, str]] = set()
    out = []
    for unit in sorted(units, key=lambda one: (one.step, one.rank)):
        kept = []
        for told in unit.findings:
            key = (unit.rank, told.name, told.finding.kind)
            if key not in seen:
                kept.append(told)
            seen.add(key)
        out.append(replace(unit, findings=kept))
    return out


def join_replicas(units: Sequence[RankFindings]) -> list[RankFindings]:
    """The same call of the same code that goes wrong in the same way on several ranks is one cause: it stays an origin on the
    first of them, which names the others."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for unit in units:
        for told in unit.findings:
            if told.listed:
                alike.setdefault(_likeness(unit, told), []).append(unit.rank)
    joined = []
    for unit in units:
        kept = []
        for told in unit.findings:
            ranks = sorted(alike.get(_likeness(unit, told), ()))
            if told.listed and len(ranks) > 1:
                first = unit.rank == ranks[0]
                kept.append(replace(told, listed=first, origin=_on_ranks(told.origin, ranks) if first else told.origin))
            else:
                kept.append(told)
        joined.append(replace(unit, findings=kept))
    return joined


def tell_spread(units: Sequence[RankFindings], traffic: Mapping[int, Traffic]) -> list[RankFindings]:
    """The findings, each with the other ranks that it reached."""
    return [
        replace(
            unit,
            findings=[
                replace(told, origin=_with_spread(told.origin, _spread(told, unit.rank, traffic[unit.step])))
                for told in unit.findings
            ],
        )
        for unit in units
    ]


def causal_order(units: Sequence[RankFindings], traffic: Mapping[int, Traffic]) -> list[Told]:
    """All findings that are listed, causal first: those that change values before those that do not, then by step and by the
    order that communication forces upon the ranks; where it forces none, forward before backward, the share of the rank's
    run that had passed, and rank."""
    placed = [
        ((told.idle, *place(traffic[unit.step], unit, told.finding.pair, told.share, backward=told.backward)), told)
        for unit in units
        for told in unit.findings
        if told.listed
    ]
    return [told for _, told in sorted(placed, key=lambda one: one[0])]


def place(
    road: Traffic, unit: RankFindings, pair: int, share: float, *, backward: bool = False
) -> tuple[int, int, int, bool, float, int]:
    """What sorts node pairs of all units by the time at which they ran, as far as it can be told."""
    return (unit.step, *road.clock(unit.rank, pair), backward, share, unit.rank)


def _took(one: Collective, rank: int, pair: int) -> bool:
    return any(part.rank == rank and part.message.pair == pair for part in one.hit)


def _received(told: Told, rank: int, calls: Sequence[Collective]) -> bool:
    """All that is bad in what a communication call took was fed to it."""
    taken = [one for one in calls if _took(one, rank, told.finding.pair)]
    return bool(taken) and all(one.fed for one in taken)


def _unread(told: Told, rank: int, calls: Sequence[Collective]) -> bool:
    """Only the content of a buffer differs that the communication does not read, or what it leaves in one that nobody reads."""
    if told.finding.rule == "O-4":
        return not any(one.fed or one.hit for one in calls)
    own = [
        part.message
        for one in calls
        for part in one.parts
        if (part.rank, part.message.pair) == (rank, told.finding.pair)
    ]
    return told.finding.rule == "O-1" and all(message.taken is None for message in own)


def _unseen(told: Told, unit: RankFindings, road: Traffic) -> bool:
    """Data that nothing dumped made, after a communication that was fed and whose result on this rank is not known."""
    return told.finding.rule == "O-4" and any(
        message.taken is not None
        and message.taken.score != message.taken.score
        and any(part.rank != unit.rank for one in road.of(unit.rank, message.pair) for part in one.fed)
        for message in unit.messages
        if message.pair < told.finding.pair
    )


def _as_fault(origin: Origin, culprits: Sequence[Collective]) -> Origin:
    """What all ranks together say of a communication that failed."""
    missing = sorted({rank for one in culprits for rank in one.missing})
    hit = sorted({part.rank for one in culprits for part in one.hit})
    givers = sum(1 for one in culprits for part in one.parts if part.message.given is not None)
    more: list[Phrase] = []
    confidence = origin.confidence
    if missing:
        more = [phrase("origin.absent_ranks", ranks=_listed(missing))]
        confidence *= 0.5
    elif all(one.faulty for one in culprits):
        word = "origin.collective" if givers > 1 else "origin.message"
        more = [phrase(word, count=givers, ranks=_listed(hit))] if givers > 1 else [phrase(word, ranks=_listed(hit))]
        confidence = max(confidence, 0.8)
    said = [*origin.evidence_said, *more]
    return replace(origin, confidence=round(confidence, 2), evidence=english(said), evidence_said=said)


def _likeness(unit: RankFindings, told: Told) -> tuple[object, ...]:
    finding = told.finding
    return unit.step, told.name, finding.kind, finding.rule, finding.weight, *told.origin.stack


def _on_ranks(origin: Origin, ranks: list[int]) -> Origin:
    said = [*origin.evidence_said, phrase("origin.on_ranks", ranks=as_ranges(ranks))]
    return replace(origin, ranks=ranks, evidence=english(said), evidence_said=said)


def _with_spread(origin: Origin, spread: list[Reached]) -> Origin:
    if not spread:
        return origin
    shown = [phrase("origin.spread_rank", rank=one.rank, node=one.node) for one in spread[:NAMED]]
    more = (
        phrase("origin.spread", ranks=shown)
        if len(spread) == len(shown)
        else phrase("origin.spread_more", count=len(spread), ranks=shown)
    )
    said = [*origin.evidence_said, more]
    return replace(origin, spread=spread, evidence=english(said), evidence_said=said)


def _spread(told: Told, rank: int, road: Traffic) -> list[Reached]:
    """The calls through which other ranks received what this finding spoiled, one for each rank, in order."""
    found: dict[int, Part] = {}
    visited = {rank, *told.origin.ranks}
    queue = [
        (rank, one)
        for pair in sorted(told.reached)
        for one in road.of(rank, pair)
        if _gave(one, rank) or (pair == told.finding.pair and one.hit)
    ]
    while queue:
        giver, one = queue.pop(0)
        for part in one.hit:
            if part.rank == giver or part.rank in visited:
                continue
            visited.add(part.rank)
            found[part.rank] = part
            later = road.clocks[part.rank][0]
            queue += [
                (part.rank, other)
                for pair in later
                if pair >= part.message.pair
                for other in road.of(part.rank, pair)
                if _gave(other, part.rank)
            ]
    parts = sorted(found.values(), key=lambda part: (part.clock, part.rank))
    return [Reached(rank=part.rank, node=part.message.name) for part in parts]


def _gave(one: Collective, rank: int) -> bool:
    return any(part.rank == rank for part in one.fed)


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:NAMED])) + (", ..." if len(ranks) > NAMED else "")
