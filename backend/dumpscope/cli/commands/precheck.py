"""`dumpscope precheck`: every call of a dump alone against a higher-precision reference."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from dumpscope.cli.app import DIVERGED, FINE, INCOMPLETE
from dumpscope.cli.opening import opened
from dumpscope.cli.printing import line, plural, print_json, styled
from dumpscope.cli.progress import Progress
from dumpscope.cli.send_precheck import send
from dumpscope.errors import UsageError
from dumpscope.pipeline.operators.precheck import DETAILS, RESULTS, STATE, Workers, nothing_to_run, precheck
from dumpscope.reproduce.tables import counts, result_row

LISTED = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    path: Path
    output: Path
    workers: Workers
    resume: bool
    steps: tuple[int, ...]
    ranks: tuple[int, ...]
    server: str | None
    as_json: bool


def send_results(request: Request) -> int:
    """Send what was found to the server; returns what it keeps."""
    assert request.server is not None
    with open(request.output / STATE, encoding="utf-8") as lines:
        return send(request.server, request.path, lines)


def run(request: Request) -> int:
    with opened(request.path) as layout:
        refs = [
            ref
            for ref in layout.ranks
            if (not request.steps or ref.step in request.steps)
            and (not request.ranks or (ref.rank or 0) in request.ranks)
        ]
        if not refs:
            raise UsageError("no such step or rank in this dump")
        with Progress() as progress:
            answers = precheck(
                refs,
                request.output,
                request.workers,
                resume=request.resume,
                path=str(request.path.resolve()),
                on_call=lambda done, total, name: progress.say(done / max(total, 1), name),
            )
        why = None if answers else nothing_to_run(refs)
    sent = None if request.server is None or why else send_results(request)
    rows = [result_row(one) for one in answers]
    wrong = [row for row in rows if row["Verdict"] in ("error", "crash")]
    recorded = [row for row in rows if row["Recorded Verdict"] == "error"]
    if request.as_json:
        print_json({
            "schema": 1,
            "path": str(request.path),
            "device": request.workers.device,
            "calls": len(rows),
            "counts": counts(rows, "Verdict"),
            "recorded": counts(rows, "Recorded Verdict"),
            "msprobe": counts(rows, "Forward Test Success"),
            "nothing_to_run": why,
            "results": rows,
        })  # fmt: skip
    else:
        for title, found in ((f"wrong on {request.workers.device}", wrong), ("recorded result is wrong", recorded)):
            for row in found[:LISTED]:
                line(
                    f"{styled(row['API name'], 'red')}  step {row['Step']} rank {row['Rank']}  {title}: {row['Reason']}"
                )
            if len(found) > LISTED:
                line(f"... and {len(found) - LISTED} more")
        here = ", ".join(f"{count} {word}" for word, count in counts(rows, "Verdict").items())
        there = ", ".join(f"{count} {word}" for word, count in counts(rows, "Recorded Verdict").items())
        if why:
            line(f"nothing to run: {why}")
        else:
            line(f"{plural(len(rows), 'call')} on {request.workers.device}: {here}; recorded results: {there}")
        print(f"wrote {request.output / RESULTS} and {DETAILS}", file=sys.stderr)
    if sent is not None:
        print(f"sent {plural(sent, 'result')} to {request.server}", file=sys.stderr)
    if wrong or recorded:
        return DIVERGED
    return FINE if any(row["Verdict"] != "SKIP" for row in rows) else INCOMPLETE
