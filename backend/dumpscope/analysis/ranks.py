"""Origins over ranks: a collective's output depends on every rank's input, so a receiver is never to blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.domain.facts import Origin
from dumpscope.domain.records import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A finding and what is said of it, so that its unit need not be kept. name: of its node; place: sorts causal first"""

    finding: Finding
    name: str
    origin: Origin
    place: tuple[int, int, int, float, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFindings:
    """fed: communication calls that this rank gave bad data"""

    step: int
    rank: int
    findings: Sequence[Told]
    fed: frozenset[str]


def fed_calls(case: Case) -> frozenset[str]:
    """Names of the communication calls that received bad data from this rank."""
    story = case.story
    return frozenset(
        name
        for pair, name in enumerate(story.names)
        if name.startswith("Distributed.") and story.own_in[pair] > story.threshold
    )


def drop_received(units: Sequence[RankFindings]) -> list[RankFindings]:
    """Remove findings at a communication call that another rank fed with bad data in the same step."""
    fed: dict[tuple[int, str], set[int]] = {}
    for unit in units:
        for name in unit.fed:
            fed.setdefault((unit.step, name), set()).add(unit.rank)
    return [
        replace(
            unit, findings=[told for told in unit.findings if not fed.get((unit.step, told.name), set()) - {unit.rank}]
        )
        for unit in units
    ]


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


def causal_order(units: Sequence[RankFindings]) -> list[Told]:
    """All findings, causal first (see `causal_place`)."""
    return sorted((told for unit in units for told in unit.findings), key=lambda told: told.place)


def causal_place(case: Case, finding: Finding, *, step: int, rank: int) -> tuple[int, int, int, float, int]:
    """Those that change values before those that do not, then by step, forward before backward, the share of the rank's run
    that had passed, and rank."""
    story = case.story
    return (
        int(finding.kind == "structure" and not finding.items),
        step,
        int(story.direction[finding.pair] == Direction.BACKWARD),
        finding.pair / max(len(story), 1),
        rank,
    )
