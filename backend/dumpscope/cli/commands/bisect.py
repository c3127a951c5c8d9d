"""`dumpscope bisect`: the smallest set of calls that must run differently for a program to be right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from dumpscope.cli.app import DIVERGED, FINE
from dumpscope.cli.printing import line, plural, print_json, styled
from dumpscope.errors import UsageError
from dumpscope.pipeline.operators.bisect import NO_CALL, Bisection, Trial, Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    command: tuple[str, ...]
    wanted: Wanted
    output: Path
    treatment: str
    resume: bool
    seconds: float
    as_json: bool


def run(request: Request) -> int:
    wanted = request.wanted
    if wanted.metric is not None and wanted.expect is None and wanted.below is None and wanted.above is None:
        raise UsageError("when is the number right?", hint="--expect VALUE, --below VALUE or --above VALUE")
    if (wanted.golden is None) != (wanted.dump is None):
        raise UsageError("--golden needs --dump, the dump that the command writes, and the other way round")
    if not request.as_json:
        line(f"{'run':>4} {'calls':>7} {'seconds':>8}  {'right':5} value")
    search = Bisection(
        request.command,
        wanted,
        request.output,
        treatment=request.treatment,
        resume=request.resume,
        seconds=request.seconds,
        on_run=(lambda *_: None) if request.as_json else _row,
    )
    found = search.run()
    if request.as_json:
        print_json({
            "schema": 1,
            "needed": found.needed,
            "calls": found.total,
            "treatment": request.treatment,
            "runs": [
                {"count": one.count, "right": one.right, "value": one.value, "seconds": round(one.seconds, 3)}
                for one in found.trials
            ],
        })  # fmt: skip
    elif found.needed is None:
        line(f"Not even all {found.total} calls as {request.treatment} make it right: the fault is elsewhere.")
    elif not found.needed:
        line("The program is right as it is: nothing to search.")
    else:
        twice = 2 * math.log2(max(found.total, 2))
        runs = plural(len(found.trials) - 1, "run")
        line(
            f"{plural(len(found.needed), 'call')} of {found.total}, the first run and {runs} (2 log2(n) is {twice:.1f}):"
        )
        for name in found.needed:
            line(f"  {styled(name, 'red')} as {request.treatment}")
        line("Controls that the operator itself is at fault: docs/proof.md, What proves an operator wrong.")
    return FINE if found.needed else DIVERGED


def _row(number: int, trial: Trial) -> None:
    what = NO_CALL if not trial.count else ", ".join(trial.patterns)
    shown = what if len(what) <= 60 else f"{what[:57]}..."
    line(
        f"{number:>4} {trial.count:>7} {trial.seconds:>8.1f}  {'yes' if trial.right else 'no':5} {trial.value[:24]:24} {shown}"
    )
