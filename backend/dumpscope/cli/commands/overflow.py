"""`dumpscope overflow`: where NaN and infinity started."""

from __future__ import annotations

from typing import Any, Final

from dumpscope.analysis.overflow.births import Finding, Overflow, overflow as find_overflow
from dumpscope.cli.exit_codes import COMPARED, DIVERGED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout, read_ranks, require_read
from dumpscope.cli.options import Dump, Json
from dumpscope.cli.printing import line, plural, print_json, styled
from dumpscope.errors import Problem
from dumpscope.export.document import problem_document
from dumpscope.export.stack_frames import frame_documents, user_frame

LISTED: Final = 100
"""Findings listed per rank and step; the counts are over all."""


def overflow(path: Dump, json: Json = False) -> int:
    """Find the first NaN or infinity of each rank and step: where it started, and what only passed it on.

    Exit status: 1 where one was found that the program did not ask for.
    """
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


def _finding(finding: Finding) -> dict[str, Any]:
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
        "frames": frame_documents(finding.stack),
    }


def _print(found: list[Overflow], problems: list[Problem]) -> None:
    for one in found:
        where = f"step {one.step} rank {one.rank}"
        first = one.first
        if first is None:
            line(styled(f"{where}: no NaN, infinity or clipped number that was not asked for", "green"))
        else:
            line(styled(f"{where}: {first.node}", "red") + f"  [{first.part}, {first.level}]")
            _print_finding(first)
            for other in one.causes[1:6]:
                line(f"  also: {other.node}: {other.evidence}")
            if len(one.causes) > 6:
                line(f"  and {len(one.causes) - 6} more causes")
        counts = ", ".join(f"{count} {part}" for part, count in one.parts.items())
        line(f"  {plural(one.checked, 'node')} checked{f': {counts}' if counts else ''}")
        if one.unknown:
            line(f"  {plural(one.unknown, 'node')} without extrema (hashes only, fp8): nothing can be said about them")
    for problem in problems:
        line(f"problem: {problem.kind} at {problem.loc}: {problem.message}")


def _print_finding(finding: Finding) -> None:
    line(f"  {finding.evidence}")
    if finding.advice:
        line(f"  what to do: {finding.advice}")
    frame = user_frame(finding.stack)
    if frame is not None:
        line(f"  called at {frame}")
    line(f"  items: {', '.join(finding.items[:8])}")
