"""`dumpscope msprobe`: its help. `cli.msprobe_line` turns such a line into another command before this one is reached."""

from __future__ import annotations

from typing import Annotated

import typer

from dumpscope.errors import UsageError
from dumpscope.texts import say


def msprobe(
    line: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND [OPTIONS]", help="As after the word msprobe.")
    ] = None,
) -> int:
    """Take a command line of msprobe, print the same in words of dumpscope, and run that.

    msprobe compare -tp TARGET -gp GOLDEN -o OUT, or -f pytorch compare -i compare.json -o OUT: `dumpscope compare`

    msprobe acc_check -api_info DUMP (run_ut, multi_acc_check, multi_run_ut): `dumpscope precheck`

    msprobe api_precision_compare -npu A.csv -gpu B.csv: `dumpscope precheck-compare`

    msprobe overflow_check -i STEP (nan_analyze): `dumpscope overflow`

    Of graph_visualize, merge_result, op_generate and parse it says what does their work here.
    """
    raise UsageError(say("cli.msprobe_two_sides"), hint=say("cli.msprobe_see_help"))
