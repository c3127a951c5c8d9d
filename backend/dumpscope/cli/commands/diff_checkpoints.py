"""`dumpscope diff-checkpoints`: which tensors of two checkpoints differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

from dumpscope.cli.exit_codes import COMPARED, DIVERGED, NOT_FULLY_JUDGED
from dumpscope.cli.options import Json
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.cli.progress import Progress
from dumpscope.domain.checkpoints.differences import AGREE, STATES, CheckpointDiff
from dumpscope.errors import UsageError
from dumpscope.export.checkpoint_diff import diff_csv, diff_document, summarise, table_lines
from dumpscope.pipeline.checkpoints.compare import compare_checkpoints
from dumpscope.texts import rendered, say, tell, translate

SHOWN: Final = 40
"""Tensors printed unless --limit says otherwise."""
_STYLES: Final = {
    "differs": "red",
    "form": "yellow",
    "target_only": "yellow",
    "golden_only": "yellow",
    "unreadable": "yellow",
}


def diff_checkpoints(
    target: Annotated[Path, Argument(metavar="TARGET")],
    golden: Annotated[Path, Argument(metavar="GOLDEN")],
    rename: Annotated[list[str] | None, Option("--rename", metavar="PATTERN=REPLACEMENT")] = None,
    state: Annotated[list[str] | None, Option("--state", metavar="STATE")] = None,
    limit: Annotated[int, Option("--limit", min=0)] = SHOWN,
    csv: Annotated[Path | None, Option("--csv", metavar="FILE")] = None,
    jobs: Annotated[int, Option("-j", "--jobs", min=0)] = 0,
    json: Json = False,
) -> int:
    """Compare two checkpoints tensor by tensor. Returns the exit status."""
    wanted = _states(state)
    with Progress(quiet=not sys.stderr.isatty()) as progress:
        diff = compare_checkpoints(target, golden, renames=tuple(rename or ()), threads=jobs, progress=progress.say)
    if csv is not None:
        csv.write_text(diff_csv(diff.tensors), encoding="utf-8", newline="")
    if json:
        print_json(diff_document(diff, None if limit == SHOWN else limit))
    else:
        _print(diff, wanted, limit)
        if csv is not None:
            line(tell("checkpoints.wrote", file=csv))
    return exit_status(diff)


def exit_status(diff: CheckpointDiff) -> int:
    """1 where anything differs, 3 where something could not be read, 0 where all tensors agree."""
    if diff.differs:
        return DIVERGED
    return COMPARED if diff.agrees and not diff.problems else NOT_FULLY_JUDGED


def _states(given: list[str] | None) -> set[str]:
    wanted = {word.strip() for one in given or () for word in one.split(",") if word.strip()}
    unknown = sorted(wanted - set(STATES))
    if unknown:
        raise UsageError(say("checkpoints.no_such_state", state=f"{unknown[0]!r}", states=", ".join(STATES)))
    return wanted


def _print(diff: CheckpointDiff, wanted: set[str], limit: int) -> None:
    worst = diff.tensors[0] if diff.tensors else None
    line(styled(rendered(summarise(diff.counts, worst)), "green" if diff.agrees else "red"))
    for rule in diff.rules:
        line("  " + tell("checkpoints.renamed", rule=rule))
    listed = [one for one in diff.tensors if (one.state in wanted if wanted else one.state not in AGREE)]
    if listed and limit:
        line()
        for state, text in table_lines(listed[:limit]):
            line(styled(text, _STYLES.get(state, "dim") if state else "bold"))
        for one in listed[:limit]:
            if one.note:
                line(f"  {one.name}: {translate(one.note)}")
        if len(listed) > limit:
            line(tell("checkpoints.more", count=len(listed) - limit))
    for problem in diff.problems:
        line(tell("cli.problem", kind=problem.kind, loc=problem.loc, message=translate(problem.message)))
