"""Commands that prove or clear a suspect: run it alone, run everything alone, run the program with it done otherwise."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dumpscope.cli.app import Dump, Json, app


@app.command()
def reproduce(
    path: Dump,
    node: Annotated[
        str | None, typer.Argument(metavar="NODE", help="The call: Functional.softmax.1, backward included.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Script to write. Default: stdout.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Of this step. Default: the first that has it.")] = None,
    rank: Annotated[int | None, typer.Option("--rank", help="Of this rank. Default: the first that has it.")] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy the tensors into a folder beside the script.")] = False,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Run it over device, dtype, layout and order: what flips the result?")
    ] = False,
    value: Annotated[
        list[str] | None, typer.Option("--value", help="A scalar the matrix goes over as well: eps=1e-5,1e-3.")
    ] = None,
    python: Annotated[str | None, typer.Option("--python", help="Python with torch that runs the matrix.")] = None,
) -> int:
    """Write a script that runs one call of a dump alone, forward and backward, and judges it.

    Exit status: with --matrix 1 where a cell fails.
    """
    from dumpscope.cli.commands.reproduce import Request, run  # noqa: PLC0415

    return run(
        Request(
            path=path,
            node=node,
            output=output,
            step=step,
            rank=rank,
            copy=copy,
            matrix=matrix,
            values=tuple(value or ()),
            python=python,
        )
    )


@app.command()
def precheck(
    path: Dump,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the tables.")] = Path("precheck"),
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, npu, npu:1 ...")] = "cpu",
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0 means one per core.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what lies in the output folder.")] = False,
    step: Annotated[list[int] | None, typer.Option("--step", help="Only these steps.")] = None,
    rank: Annotated[list[int] | None, typer.Option("--rank", help="Only these ranks.")] = None,
    only: Annotated[list[str] | None, typer.Option("--white-list", help="Only these APIs; with commas.")] = None,
    but: Annotated[list[str] | None, typer.Option("--black-list", help="Not these APIs; with commas.")] = None,
    save: Annotated[bool, typer.Option("--save-error-data", help="Keep the tensors of wrong calls.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of random calls and numbers that are made up.")] = 1234,
    seconds: Annotated[float, typer.Option("--call-timeout", help="Seconds that one call may take.")] = 600.0,
    prelude: Annotated[Path | None, typer.Option("--prelude", help="Python file to run in each process first.")] = None,
    python: Annotated[str | None, typer.Option("--python", help="Python with torch. Default: the present one.")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="config.json whose acc_check section says what is run and kept.")
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="Send the results to this server, or page of a dump.")
    ] = None,
    json: Json = False,
) -> int:
    """Run every API of a dump alone against a higher-precision CPU reference.

    Exit status: 1 where a call is wrong here, or its recorded result is.
    """
    from dumpscope.cli.commands.precheck import Request, run  # noqa: PLC0415
    from dumpscope.pipeline.operators.precheck import ERROR_DATA, Workers  # noqa: PLC0415
    from dumpscope.pipeline.operators.precheck_config import CheckConfig, read_check_config  # noqa: PLC0415

    told = CheckConfig() if config is None else read_check_config(config)
    kept = output if save or config is None else told.data
    workers = Workers(
        python=python or sys.executable,
        device=device,
        jobs=jobs or os.cpu_count() or 1,
        seed=seed,
        save=kept / ERROR_DATA if save or config else None,
        prelude=None if prelude is None else str(prelude),
        call_seconds=seconds,
        only=_split(only) or told.only,
        but=_split(but) or told.but,
    )
    return run(
        Request(
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


@app.command("precheck-compare")
def precheck_compare(
    mine: Annotated[Path, typer.Argument(metavar="A", help="Pre-check on the device in doubt: folder or details csv.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="Pre-check of the same calls on another device.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for the tables.")] = None,
    json: Json = False,
) -> int:
    """Hold the pre-check of one device to that of another: where does it err more?

    Exit status: 1 where device A is worse, by the ratios or by our units.
    """
    from dumpscope.cli.commands.precheck_compare import run  # noqa: PLC0415

    return run(mine, other, output, as_json=json)


@app.command()
def bisect(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="What to run: python train.py ...")],
    metric: Annotated[
        str | None, typer.Option("--metric", help="Regex whose first group is a number it prints.")
    ] = None,
    expect: Annotated[float | None, typer.Option("--expect", help="The number is right near this value.")] = None,
    tolerance: Annotated[float, typer.Option("--tolerance", help="How near, by the value's size.")] = 1e-3,
    below: Annotated[float | None, typer.Option("--below", help="The number is right below this.")] = None,
    above: Annotated[float | None, typer.Option("--above", help="The number is right above this.")] = None,
    golden: Annotated[Path | None, typer.Option("--golden", help="Right when --dump agrees with this dump.")] = None,
    dump: Annotated[Path | None, typer.Option("--dump", help="Dump that the command writes.")] = None,
    treatment: Annotated[str, typer.Option("--as", help="How calls run: cpu, float64, contiguous ...")] = "cpu",
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the search.")] = Path("bisect"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the search in the folder.")] = False,
    seconds: Annotated[float, typer.Option("--run-timeout", help="Seconds that a run may take.")] = 86_400.0,
    json: Json = False,
) -> int:
    """Find the smallest set of calls that repairs a program when they run differently.

    Without --metric and --golden a run is right when it ends with status 0. Exit status: 1 where nothing is found.
    """
    from dumpscope.cli.commands.bisect import Request, run  # noqa: PLC0415
    from dumpscope.pipeline.operators.bisect import Wanted  # noqa: PLC0415

    wanted = Wanted(
        metric=metric,
        expect=expect,
        tolerance=tolerance,
        below=below,
        above=above,
        dump=None if dump is None else str(dump),
        golden=None if golden is None else str(golden),
    )
    return run(
        Request(
            command=tuple(command),
            wanted=wanted,
            output=output,
            treatment=treatment,
            resume=resume,
            seconds=seconds,
            as_json=json,
        )
    )


@app.command()
def handover(
    path: Dump,
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="The call; none for a saved call.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Archive to write.")] = Path("finding.zip"),
    golden: Annotated[Path | None, typer.Option("--golden", help="Add the report of a comparison with it.")] = None,
    attach: Annotated[list[Path] | None, typer.Option("--attach", help="Add this file: controls, logs.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Of this step.")] = None,
    rank: Annotated[int | None, typer.Option("--rank", help="Of this rank.")] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Do not run it here.")] = False,
    python: Annotated[str | None, typer.Option("--python", help="Python with torch. Default: the present one.")] = None,
) -> int:
    """Pack one call for its owner: script, tensors, stack, environment, matrix."""
    from dumpscope.cli.commands.handover import Request, run  # noqa: PLC0415

    return run(
        Request(
            path=path,
            node=node,
            output=output,
            golden=golden,
            attached=tuple(attach or ()),
            step=step,
            rank=rank,
            python=None if no_run else python or sys.executable,
        )
    )


def _split(values: list[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())
