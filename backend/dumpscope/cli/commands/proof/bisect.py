"""`dumpscope bisect`: the smallest set of calls that must run differently for a program to be right."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from dumpscope.cli.exit_codes import COMPARED, DIVERGED
from dumpscope.cli.options import Json
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line, print_json, styled
from dumpscope.errors import UsageError
from dumpscope.export.words import plural
from dumpscope.pipeline.operators.bisect import NO_CALL, Bisection, Trial, Wanted
from dumpscope.texts import say, tell


def bisect(
    command: Annotated[list[str], Argument(metavar="-- COMMAND...")],
    metric: Annotated[str | None, Option("--metric")] = None,
    expect: Annotated[float | None, Option("--expect")] = None,
    tolerance: Annotated[float, Option("--tolerance")] = 1e-3,
    below: Annotated[float | None, Option("--below")] = None,
    above: Annotated[float | None, Option("--above")] = None,
    golden: Annotated[Path | None, Option("--golden")] = None,
    dump: Annotated[Path | None, Option("--dump")] = None,
    treatment: Annotated[str, Option("--as")] = "cpu",
    output: Annotated[Path, Option("-o", "--output")] = Path("bisect"),
    resume: Annotated[bool, Option("--resume")] = False,
    seconds: Annotated[float, Option("--run-timeout")] = 86_400.0,
    json: Json = False,
) -> int:
    """Find the smallest set of calls that must run differently to repair a program. Returns the exit status."""
    if metric is not None and expect is None and below is None and above is None:
        raise UsageError(say("cli.metric_needs_expect_below_above"), hint=say("cli.they_say_when_number_right"))
    if (golden is None) != (dump is None):
        raise UsageError(say("cli.golden_needs_dump_dump_command_writes"))
    wanted = Wanted(
        metric=metric,
        expect=expect,
        tolerance=tolerance,
        below=below,
        above=above,
        dump=None if dump is None else str(dump),
        golden=None if golden is None else str(golden),
    )
    if not json:
        line(
            f"{tell('cli.head_run'):>4} {tell('cli.head_calls'):>7} {tell('cli.head_seconds'):>8}  {tell('cli.head_right'):5} "
            + tell("cli.head_value")
        )
    search = Bisection(
        tuple(command),
        wanted,
        output,
        treatment=treatment,
        resume=resume,
        seconds=seconds,
        on_run=(lambda *_: None) if json else _row,
    )
    found = search.run()
    if json:
        print_json({
            "schema": 1,
            "needed": found.needed,
            "calls": found.total,
            "treatment": treatment,
            "runs": [
                {"count": one.count, "right": one.right, "value": one.value, "seconds": round(one.seconds, 3)}
                for one in found.trials
            ],
        })  # fmt: skip
    elif found.needed is None:
        line(tell("cli.not_even_all_calls_make_right", total=found.total, treatment=treatment))
    elif not found.needed:
        line(tell("cli.program_right_nothing_search"))
    else:
        twice = 2 * math.log2(max(found.total, 2))
        runs = plural(len(found.trials) - 1, "run")
        line(
            tell(
                "cli.first_run_2_log2_n",
                calls=plural(len(found.needed), "call"),
                total=found.total,
                runs=runs,
                twice=f"{twice:.1f}",
            )
        )
        for name in found.needed:
            line("  " + tell("cli.as", styled=styled(name, "red"), treatment=treatment))
        line(tell("cli.controls_operator_itself_fault_docs_proof"))
    return COMPARED if found.needed else DIVERGED


def _row(number: int, trial: Trial) -> None:
    what = NO_CALL if not trial.count else ", ".join(trial.patterns)
    shown = what if len(what) <= 60 else f"{what[:57]}..."
    line(
        f"{number:>4} {trial.count:>7} {trial.seconds:>8.1f}  {'yes' if trial.right else 'no':5} {trial.value[:24]:24} {shown}"
    )
