"""Origins over ranks: a collective's output depends on every rank's input, so a receiver is never to blame."""

from __future__ import annotations

from dataclasses import dataclass

from dumpscope.analysis.case import Case
from dumpscope.analysis.finding import Finding
from dumpscope.domain.records import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFindings:
    step: int
    rank: int
    case: Case
    findings: list[Finding]


def drop_received(units: list[RankFindings]) -> list[RankFindings]:
    """Remove findings at a communication call that another rank fed with bad data in the same step."""
    fed: dict[tuple[int, str], set[int]] = {}
    for unit in units:
        story = unit.case.story
        for pair, name in enumerate(story.names):
            if name.startswith("Distributed.") and story.own_in[pair] > story.threshold:
                fed.setdefault((unit.step, name), set()).add(unit.rank)
    out = []
    for unit in units:
        kept = [
            finding
            for finding in unit.findings
            if not fed.get((unit.step, unit.case.story.names[finding.pair]), set()) - {unit.rank}
        ]
        out.append(RankFindings(step=unit.step, rank=unit.rank, case=unit.case, findings=kept))
    return out


def causal_order(units: list[RankFindings]) -> list[tuple[RankFindings, Finding]]:
    """All findings, causal first: those that change values before those that do not, then by step, forward before
    backward, the share of the rank's run that had passed, and rank."""
    flat = [(unit, finding) for unit in units for finding in unit.findings]
    return sorted(flat, key=_place)


def _place(entry: tuple[RankFindings, Finding]) -> tuple[int, int, int, float, int]:
    unit, finding = entry
    story = unit.case.story
    return (
        int(finding.kind == "structure" and not finding.items),
        unit.step,
        int(story.direction[finding.pair] == Direction.BACKWARD),
        finding.pair / max(len(story), 1),
        unit.rank,
    )
