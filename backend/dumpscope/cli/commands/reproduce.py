"""`dumpscope reproduce`: a script that runs one call of a dump alone."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.find_call import describe_source, open_call
from dumpscope.cli.options import Dump
from dumpscope.errors import UsageError
from dumpscope.pipeline.operators.reproduce import FoundCall, copy_tensors, write_script
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.texts import say, tell


def reproduce(
    path: Dump,
    node: Annotated[
        str | None, typer.Argument(metavar="NODE", help="The call: Functional.softmax.1, backward included.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Script to write. Default: stdout.")] = None,
    step: Annotated[
        int | None, typer.Option("--step", help="Step of the call. Default: the first that has it.")
    ] = None,
    rank: Annotated[
        int | None, typer.Option("--rank", help="Rank of the call. Default: the first that has it.")
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy the tensors into a folder beside the script.")] = False,
    matrix: Annotated[
        bool,
        typer.Option(
            "--matrix", help="Run it for each device, dtype, layout and order of sums: what changes the result?"
        ),
    ] = False,
    value: Annotated[
        list[str] | None, typer.Option("--value", help="A scalar that the matrix varies too: eps=1e-5,1e-3.")
    ] = None,
    python: Annotated[str | None, typer.Option("--python", help="Python with torch that runs the matrix.")] = None,
) -> int:
    """Write a script that runs one call of a dump alone, forward and backward, and judges it.

    Exit status: with --matrix 1 if a cell fails.
    """
    return _run(
        _Request(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """copy: copy the tensors into a folder beside the script; matrix: run it over devices, types and layouts with `python`

    values: `eps=1e-5,1e-3`, scalars that the matrix varies too
    """

    path: Path
    node: str | None
    output: Path | None
    step: int | None
    rank: int | None
    copy: bool
    matrix: bool
    values: tuple[str, ...]
    python: str | None


def _run(request: _Request) -> int:
    for value in request.values:
        if not request.matrix or not all(value.partition("=")[::2]):
            raise UsageError(say("cli.value_matrix", value=value), hint=say("cli.matrix_value_eps_1e_5_1e"))
    with open_call(request.path, request.node, request.step, request.rank) as found, TemporaryFolder() as temporary:
        archive = not request.path.is_dir() and request.path.suffix != ".json"
        if request.output is None and not request.matrix:
            if archive and found.files:
                raise UsageError(say("cli.tensors_lie_archive"), hint=say("cli.give_o_file_they_copied_beside"))
            sys.stdout.write(write_script(found, origin=describe_source(request.path, found), data=_data(found)))
            return COMPARED
        target = request.output or temporary.path / "call.py"
        _write(request, found, target, copied=request.copy or archive)
        if request.output is not None:
            print(tell("cli.wrote_5", output=request.output), file=sys.stderr)
        if not request.matrix:
            return COMPARED
        words = ["--matrix", *(f"--{value}" for value in request.values)]
        if request.output is not None:
            words.append(f"--logs={target.with_name(f'{target.stem}_logs')}")
        return subprocess.run([request.python or sys.executable, target, *words], check=False).returncode


def _write(request: _Request, found: FoundCall, target: Path, *, copied: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    data = _data(found)
    if copied and found.files:
        data = f"{target.stem}_data"
        copy_tensors(found, target.parent / data)
    target.write_text(write_script(found, origin=describe_source(request.path, found), data=data), encoding="utf-8")


def _data(found: FoundCall) -> str:
    return os.path.abspath(found.folder) if found.folder else ""
