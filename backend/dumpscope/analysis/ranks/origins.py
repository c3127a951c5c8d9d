"""Origins over all ranks: a rank is not to blame for what it received, and communication tells what happened first."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import intern
from typing import Final, Literal

import numpy as np

from dumpscope.analysis.ranks.collectives import Collective, Part, Traffic, connect
from dumpscope.analysis.ranks.messages import Message
from dumpscope.analysis.rules.registry import rule_of
from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.suspects import STEEP
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.node_columns import NodeColumns
from dumpscope.domain.facts import Origin, Reached
from dumpscope.domain.records import Direction
from dumpscope.texts import Phrase, as_ranges, english, phrase

NAMED: Final = 8
"""Ranks that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedFinding:
    """A finding and its origin, with what the ranks together need of its unit, so that the unit need not be kept.

    name: of its node; share: of the rank's run that had passed
    reached: communicating node pairs that its data flow reaches, and its own
    listed: it is an origin of the answer; a communication that fails is one on one rank only, and so is what replicas share
    """

    finding: Finding
    name: str
    origin: Origin
    backward: bool
    share: float
    reached: frozenset[int]
    listed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFindings:
    step: int
    rank: int
    findings: Sequence[DescribedFinding]
    messages: Sequence[Message]


def describe_for_ranks(
    case: Case, finding: Finding, origin: Origin, reached: Iterable[int], messages: Sequence[Message]
) -> DescribedFinding:
    """Takes from the unit what the ranks together need. messages: of its rank"""
    talking = {message.pair for message in messages}
    columns = case.columns
    return DescribedFinding(
        finding=finding,
        name=intern(columns.names[finding.pair]),
        origin=replace(
            origin,
            node=intern(origin.node),
            stack=[intern(frame) for frame in origin.stack],
            path=[intern(node) for node in origin.path],
        ),  # of a thousand ranks with the same code, one copy
        backward=bool(columns.direction[finding.pair] == Direction.BACKWARD),
        share=finding.pair / max(len(columns), 1),
        reached=frozenset({pair for pair in reached if pair in talking} | {finding.pair}),
    )


def connect_steps(units: Iterable[RankFindings]) -> dict[int, Traffic]:
    """All communication, by step."""
    messages: dict[int, dict[int, Sequence[Message]]] = {}
    for unit in units:
        messages.setdefault(unit.step, {})[unit.rank] = unit.messages
    return {step: connect(step, by_rank) for step, by_rank in messages.items()}


def drop_received(units: Sequence[RankFindings], traffic: Mapping[int, Traffic]) -> list[RankFindings]:
    """Drops what other ranks explain, and makes one origin of a communication that fails on several ranks."""
    failed: set[int] = set()  # collectives that have their origin, by identity
    kept_units = []
    for unit in sorted(units, key=lambda one: (one.step, one.rank)):
        connected = traffic[unit.step]
        kept = []
        for entry in unit.findings:
            calls = connected.of(unit.rank, entry.finding.pair)
            excused = _is_unread(entry, unit.rank, calls) or _was_received(entry, unit.rank, calls)
            if excused if calls else _follows_unknown(entry, unit, connected):
                continue
            culprits = [one for one in calls if one.took_bad(unit.rank, entry.finding.pair)]
            if culprits:
                known = all(id(one) in failed for one in culprits)
                failed.update(map(id, culprits))
                kept.append(replace(entry, listed=not known, origin=_blame_collective(entry.origin, culprits)))
            else:
                kept.append(entry)
        kept_units.append(replace(unit, findings=kept))
    return kept_units


def find_repeated(columns: NodeColumns, names: Collection[str]) -> list[str]:
    """Those of these calls, wrong in an earlier step, that go wrong by themselves again: the output differs far more than what
    they received, an argument differs, or one side alone makes them. After a wrong step what they receive differs as a rule."""
    if not names:
        return []
    with np.errstate(invalid="ignore"):
        made = (columns.out_score > columns.threshold) & (columns.out_score >= STEEP * columns.seen_in)
    again = made | columns.argument | columns.extra
    return [columns.names[pair] for pair in np.flatnonzero(again).tolist() if columns.names[pair] in names]


def drop_echoes(units: Sequence[RankFindings], repeated: Mapping[tuple[int, str], Sequence[int]]) -> list[RankFindings]:
    """A call that goes wrong in the same way in every step, or an extra call, is one cause: keep its first step, which names
    the others. repeated: steps in which a call of a rank goes wrong again (`find_repeated`), by rank and name"""
    ordered = sorted(units, key=lambda one: (one.step, one.rank))
    steps: dict[tuple[object, ...], list[int]] = {}
    for unit in ordered:
        for entry in unit.findings:
            steps.setdefault(_recurs_as(unit, entry), []).append(unit.step)
    out = []
    for unit in ordered:
        kept = []
        for entry in unit.findings:
            first, *later = steps[_recurs_as(unit, entry)]
            if unit.step == first:
                again = {*later, *(step for step in repeated.get((unit.rank, entry.name), ()) if step > first)}
                kept.append(replace(entry, origin=_name_steps(entry.origin, sorted(again))) if again else entry)
        out.append(replace(unit, findings=kept))
    return out


def _recurs_as(unit: RankFindings, entry: DescribedFinding) -> tuple[object, ...]:
    """What the same cause has in common in all steps."""
    return unit.rank, entry.name, entry.finding.rule, entry.finding.name


def _name_steps(origin: Origin, steps: list[int]) -> Origin:
    word = "origin.in_steps" if len(steps) > 1 else "origin.in_step"
    said = [*origin.evidence_said, phrase(word, steps=as_ranges(steps))]
    return replace(origin, steps=steps, evidence=english(said), evidence_said=said)


def join_replicas(units: Sequence[RankFindings]) -> list[RankFindings]:
    """The same call of the same code that goes wrong in the same way on several ranks is one cause: it stays an origin on the
    first of them, which names the others."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for unit in units:
        for entry in unit.findings:
            if entry.listed:
                alike.setdefault(_likeness_of(unit, entry), []).append(unit.rank)
    joined = []
    for unit in units:
        kept = []
        for entry in unit.findings:
            ranks = sorted(alike.get(_likeness_of(unit, entry), ()))
            if entry.listed and len(ranks) > 1:
                first = unit.rank == ranks[0]
                kept.append(
                    replace(entry, listed=first, origin=_name_ranks(entry.origin, ranks) if first else entry.origin)
                )
            else:
                kept.append(entry)
        joined.append(replace(unit, findings=kept))
    return joined


def add_reached_ranks(units: Sequence[RankFindings], traffic: Mapping[int, Traffic]) -> list[RankFindings]:
    """The findings, each that is listed with the other ranks that it reached."""
    return [
        replace(
            unit,
            findings=[
                replace(entry, origin=_add_reached(entry.origin, _find_reached(entry, unit.rank, traffic[unit.step])))
                if entry.listed
                else entry
                for entry in unit.findings
            ],
        )
        for unit in units
    ]


def sort_causally(units: Sequence[RankFindings], traffic: Mapping[int, Traffic]) -> list[DescribedFinding]:
    """All findings that are listed, causal first: those that change values before those that do not, then by step and by the
    order that communication forces upon the ranks; where it forces none, forward before backward, the share of the rank's
    run that had passed, and rank."""
    placed = [
        (
            (
                entry.finding.idle,
                *time_key(traffic[unit.step], unit, entry.finding.pair, entry.share, backward=entry.backward),
            ),
            entry,
        )
        for unit in units
        for entry in unit.findings
        if entry.listed
    ]
    return [entry for _, entry in sorted(placed, key=lambda one: one[0])]


def time_key(
    traffic: Traffic, unit: RankFindings, pair: int, share: float, *, backward: bool = False
) -> tuple[int, int, int, bool, float, int]:
    """Sort key of node pairs of all units by the time at which they ran, as far as it is known."""
    return (unit.step, *traffic.clock(unit.rank, pair), backward, share, unit.rank)


def _was_received(entry: DescribedFinding, rank: int, calls: Sequence[Collective]) -> bool:
    """Everything bad that a communication call took follows from what a rank gave."""
    taken = [one for one in calls if one.took_bad(rank, entry.finding.pair)]
    return bool(taken) and all(one.explained for one in taken)


def _is_unread(entry: DescribedFinding, rank: int, calls: Sequence[Collective]) -> bool:
    """Only a buffer with meaningless content differs: one that the communication does not read, or that is not read after it."""
    shown_by = rule_of(entry.finding.rule).shown_by
    if shown_by == "received":
        return not any(one.bad_givers or one.bad_takers for one in calls)
    own = [message for one in calls for message in one.messages.get((rank, entry.finding.pair), ())]
    return shown_by == "made" and all(message.taken is None for message in own)


def _follows_unknown(entry: DescribedFinding, unit: RankFindings, traffic: Traffic) -> bool:
    """Data from outside the dump, after a communication that was given something bad and whose result here is unknown."""
    return rule_of(entry.finding.rule).shown_by == "received" and any(
        message.taken is not None
        and message.taken.score != message.taken.score
        and any(part.rank != unit.rank for one in traffic.of(unit.rank, message.pair) for part in one.bad_givers)
        for message in unit.messages
        if message.pair < entry.finding.pair
    )


def _blame_collective(origin: Origin, culprits: Sequence[Collective]) -> Origin:
    """The origin of a failed communication, with what the ranks together show: who is missing, who received bad data."""
    missing = sorted({rank for one in culprits for rank in one.missing})
    hit = sorted({part.rank for one in culprits for part in one.bad_takers})
    givers = sum(1 for one in culprits for part in one.parts if part.message.given is not None)
    more: list[Phrase] = []
    confidence = origin.confidence
    size = max((one.other_size for one in culprits), default=0)
    if size:
        own = max(len(one.ranks) for one in culprits)
        said = [phrase("origin.other_group", target=own, golden=size)]
        advised = [phrase("advice.other_group")]
        return replace(
            origin, kind="configuration", confidence=round(0.5 * confidence, 2), evidence=english(said), evidence_said=said,
            advice=english(advised), advice_said=advised,
        )  # fmt: skip
    if missing:
        more = [phrase("origin.absent_ranks", ranks=_join_ranks(missing))]
        confidence *= 0.5
    elif all(one.faulty for one in culprits):
        word = "origin.collective" if givers > 1 else "origin.message"
        more = (
            [phrase(word, count=givers, ranks=_join_ranks(hit))]
            if givers > 1
            else [phrase(word, ranks=_join_ranks(hit))]
        )
        confidence = max(confidence, 0.8)
    else:
        given, taken = (_worst_of(culprits, side) for side in ("given", "taken"))
        more = [phrase("origin.collective_worse", given=given, taken=taken, ranks=_join_ranks(hit))]
    said = [*origin.evidence_said, *more]
    return replace(origin, confidence=round(confidence, 2), evidence=english(said), evidence_said=said)


def _worst_of(culprits: Sequence[Collective], side: Literal["given", "taken"]) -> str:
    """The largest score of what was given or taken, in floors."""
    halves = [part.message.given if side == "given" else part.message.taken for one in culprits for part in one.parts]
    return f"{max((half.score for half in halves if half is not None and half.score == half.score), default=0.0):.2g}"


def _likeness_of(unit: RankFindings, entry: DescribedFinding) -> tuple[object, ...]:
    finding = entry.finding
    return unit.step, entry.name, finding.kind, finding.rule, finding.name, *entry.origin.stack


def _name_ranks(origin: Origin, ranks: list[int]) -> Origin:
    said = [*origin.evidence_said, phrase("origin.on_ranks", ranks=as_ranges(ranks))]
    return replace(origin, ranks=ranks, evidence=english(said), evidence_said=said)


def _add_reached(origin: Origin, spread: list[Reached]) -> Origin:
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


def _find_reached(entry: DescribedFinding, rank: int, traffic: Traffic) -> list[Reached]:
    """The first call on each other rank that received bad data because of this finding, in order."""
    found: dict[int, Part] = {}
    visited = {rank, *entry.origin.ranks}
    queue = deque(
        one
        for pair in sorted(entry.reached)
        for one in traffic.of(rank, pair)
        if one.gave_bad(rank) or (pair == entry.finding.pair and one.bad_takers)
    )
    done: set[int] = set()  # by identity: whoever gave it, a communication reaches the same ranks
    while queue:
        one = queue.popleft()
        if id(one) in done:
            continue
        done.add(id(one))
        for part in one.bad_takers:
            if part.rank in visited:
                continue
            visited.add(part.rank)
            found[part.rank] = part
            later = traffic.clocks[part.rank][0]
            queue += [
                other
                for pair in later
                if pair >= part.message.pair
                for other in traffic.of(part.rank, pair)
                if id(other) not in done and other.gave_bad(part.rank)
            ]
    parts = sorted(found.values(), key=lambda part: (part.clock, part.rank))
    return [Reached(rank=part.rank, node=part.message.name) for part in parts]


def _join_ranks(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:NAMED])) + (", ..." if len(ranks) > NAMED else "")
