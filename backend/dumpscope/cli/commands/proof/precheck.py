"""`dumpscope precheck`: every call of a dump alone against a higher-precision reference."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from dumpscope.cli.exit_codes import COMPARED, DIVERGED, NOT_FULLY_JUDGED
from dumpscope.cli.opening import open_layout
from dumpscope.cli.options import Dump, Json, Ranks, Steps, split_commas
from dumpscope.cli.parser import Option
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.cli.progress import Progress
from dumpscope.errors import UsageError
from dumpscope.export.words import plural
from dumpscope.pipeline.operators.precheck import (
    DETAILS,
    ERROR_DATA,
    RESULTS,
    STATE,
    Workers,
    nothing_to_run,
    precheck as run_calls,
)
from dumpscope.pipeline.operators.precheck_config import CheckConfig, read_check_config
from dumpscope.reproduce.tables import counts, result_row
from dumpscope.texts import say, tell

LISTED = 40


def precheck(
    path: Dump,
    output: Annotated[Path, Option("-o", "--output")] = Path("precheck"),
    device: Annotated[str, Option("--device")] = "cpu",
    jobs: Annotated[int, Option("--jobs", min=0)] = 0,
    resume: Annotated[bool, Option("--resume")] = False,
    step: Steps = None,
    rank: Ranks = None,
    only: Annotated[list[str] | None, Option("--white-list")] = None,
    but: Annotated[list[str] | None, Option("--black-list")] = None,
    save: Annotated[bool, Option("--save-error-data")] = False,
    seed: Annotated[int, Option("--seed")] = 1234,
    seconds: Annotated[float, Option("--call-timeout")] = 600.0,
    prelude: Annotated[Path | None, Option("--prelude")] = None,
    python: Annotated[str | None, Option("--python")] = None,
    config: Annotated[Path | None, Option("--config")] = None,
    server: Annotated[
        str | None,
        Option("--server", metavar="URL"),
    ] = None,
    json: Json = False,
) -> int:
    """Run every API of a dump alone against a higher-precision CPU reference. Returns the exit status."""
    chosen = CheckConfig() if config is None else read_check_config(config)
    kept = output if save or config is None else chosen.data
    workers = Workers(
        python=python or sys.executable,
        device=device,
        jobs=jobs or os.cpu_count() or 1,
        seed=seed,
        save=kept / ERROR_DATA if save or config else None,
        prelude=None if prelude is None else str(prelude),
        call_seconds=seconds,
        only=split_commas(only) or chosen.only,
        but=split_commas(but) or chosen.but,
    )
    return _run(
        _Request(
            path=path,
            output=output,
            workers=workers,
            resume=resume,
            steps=tuple(step or ()),
            ranks=tuple(rank or ()),
            server=server,
            as_json=json,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    path: Path
    output: Path
    workers: Workers
    resume: bool
    steps: tuple[int, ...]
    ranks: tuple[int, ...]
    server: str | None
    as_json: bool


def _run(request: _Request) -> int:
    with open_layout(request.path) as layout:
        refs = [
            ref
            for ref in layout.ranks
            if (not request.steps or ref.step in request.steps)
            and (not request.ranks or (ref.rank or 0) in request.ranks)
        ]
        if not refs:
            raise UsageError(say("cli.no_such_step_rank_dump"))
        with Progress() as progress:
            answers = run_calls(
                refs,
                request.output,
                request.workers,
                resume=request.resume,
                path=str(request.path.resolve()),
                on_call=lambda done, total, name: progress.say(done / max(total, 1), name),
            )
        why = None if answers else nothing_to_run(refs)
    sent = None if request.server is None or why else _send_results(request)
    rows = [result_row(one) for one in answers]
    wrong = [row for row in rows if row["Verdict"] in ("error", "crash")]
    recorded = [row for row in rows if row["Recorded Verdict"] == "error"]
    doubtful = [row for row in rows if "warning" in (row["Verdict"], row["Recorded Verdict"])]
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
        for title, found in (
            (tell("cli.wrong", device=request.workers.device), wrong),
            (tell("cli.recorded_result_wrong"), recorded),
            (tell("cli.doubtful"), [row for row in doubtful if row not in wrong and row not in recorded]),
        ):
            for row in found[:LISTED]:
                line(
                    tell(
                        "cli.step_rank_2",
                        styled=styled(row["API name"], "red"),
                        row=row["Step"],
                        row2=row["Rank"],
                        title=title,
                        row3=row["Reason"],
                    )
                )
            if len(found) > LISTED:
                line(tell("cli.more", count=len(found) - LISTED))
        here = ", ".join(f"{count} {word}" for word, count in counts(rows, "Verdict").items())
        there = ", ".join(f"{count} {word}" for word, count in counts(rows, "Recorded Verdict").items())
        if why:
            line(tell("cli.nothing_run", why=why))
        else:
            line(
                tell(
                    "cli.recorded_results",
                    calls=plural(len(rows), "call"),
                    device=request.workers.device,
                    here=here,
                    there=there,
                )
            )
        if doubtful:
            line(tell("cli.warning_means"))
        print(tell("cli.wrote_3", output=request.output / RESULTS, details=DETAILS), file=sys.stderr)
    if sent is not None:
        print(tell("cli.sent", results=plural(sent, "result"), server=request.server), file=sys.stderr)
    if wrong or recorded:
        return DIVERGED
    return COMPARED if any(row["Verdict"] != "SKIP" for row in rows) else NOT_FULLY_JUDGED


def _send_results(request: _Request) -> int:
    """Send the results to the server; returns how many it stored."""
    assert request.server is not None
    with open(request.output / STATE, encoding="utf-8") as lines:
        from dumpscope.cli.on_server import send_precheck  # noqa: PLC0415

        return send_precheck(request.server, request.path, lines)
