"""`dumpscope overflow`: where NaN and infinity started."""

from __future__ import annotations

from typing import Any, Final

from dumpscope.analysis.overflow.births import NodeOverflow, Overflow, find_overflow
from dumpscope.analysis.overflow.ranks import join_ranks
from dumpscope.cli.exit_codes import COMPARED, DIVERGED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout, read_ranks, require_read
from dumpscope.cli.options import Dump, Json
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.errors import Problem
from dumpscope.export.document import problem_document
from dumpscope.export.stack_frames import describe_call, frame_documents, locate_call
from dumpscope.export.words import plural
from dumpscope.texts import tell, translate, word

LISTED: Final = 100
"""Findings printed per rank and step; the counts include all."""


def overflow(path: Dump, json: Json = False) -> int:
    """Find the first NaN or infinity of each rank and step: where it started, and what only passed it on.

    Returns the exit status."""
    found: list[Overflow] = []
    problems: list[Problem] = []
    with open_layout(path) as layout:
        problems += layout.problems
        lost = False
        for _, dump in read_ranks(layout):
            if isinstance(dump, Problem):
                problems.append(dump)
                lost = True
            else:
                problems += dump.problems
                found.append(find_overflow(dump))
                lost = lost or not len(dump.nodes)
        require_read(len(found), layout, problems)
    found = join_ranks(found)
    if json:
        print_json({
            "schema": 1,
            "path": str(path),
            "units": [_document(one) for one in found],
            "problems": [problem_document(problem) for problem in problems],
        })  # fmt: skip
    else:
        _print(found, problems)
    if any(one.first is not None for one in found):
        return DIVERGED
    return NOT_FULLY_JUDGED if lost else COMPARED


def _document(found: Overflow) -> dict[str, Any]:
    return {
        "step": found.step,
        "rank": found.rank,
        "first": None if found.first is None else _finding(found.first),
        "origins": [_finding(one) for one in found.causes[:LISTED]],
        "counts": found.parts,
        "checked": found.checked,
        "unknown": found.unknown,
        "findings": [_finding(one) for one in found.findings[:LISTED]],
    }


def _finding(finding: NodeOverflow) -> dict[str, Any]:
    return {
        "ordinal": finding.ordinal,
        "node": finding.node,
        "part": finding.part,
        "level": finding.level,
        "inputs": list(finding.inputs),
        "outputs": list(finding.outputs),
        "items": list(finding.items),
        "evidence": finding.evidence,
        "advice": finding.advice,
        "forward": finding.forward,
        "stack": list(finding.stack),
        "called_at": locate_call(finding.stack),
        "frames": frame_documents(finding.stack),
    }


def _print(found: list[Overflow], problems: list[Problem]) -> None:
    for one in found:
        where = tell("pipeline.step_rank", step=one.step, rank=one.rank)
        first = one.first
        if first is None:
            line(styled(tell("cli.no_nan_infinity_clipped_number_not", where=where), "green"))
        else:
            line(
                styled(f"{where}: {first.node}", "red")
                + f"  [{word('overflow.part', first.part)}, {word('overflow.level', first.level)}]"
            )
            _print_finding(first)
            for other in one.causes[1:6]:
                line("  " + tell("cli.also", node=other.node, evidence=translate(other.evidence, other.said)))
            if len(one.causes) > 6:
                line("  " + tell("cli.more_causes", count=len(one.causes) - 6))
        counts = ", ".join(f"{count} {word('overflow.part', part)}" for part, count in one.parts.items())
        line("  " + tell("cli.checked", nodes=plural(one.checked, "node"), part=f": {counts}" if counts else ""))
        if one.unknown:
            line("  " + tell("cli.without_extrema_hashes_only_fp8_nothing", nodes=plural(one.unknown, "node")))
    for problem in problems:
        line(tell("cli.problem", kind=problem.kind, loc=problem.loc, message=problem.message))


def _print_finding(finding: NodeOverflow) -> None:
    line(f"  {translate(finding.evidence, finding.said)}")
    if finding.advice:
        line("  " + tell("cli.what_do", advice=translate(finding.advice, finding.advised)))
    where = describe_call(finding.stack)
    if where:
        line("  " + tell("cli.called", frame=where))
    line("  " + tell("cli.items", names=", ".join(finding.items[:8])))
