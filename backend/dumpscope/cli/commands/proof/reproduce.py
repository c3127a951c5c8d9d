"""`dumpscope reproduce`: a script that runs one call of a dump alone."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.find_call import describe_source, open_call
from dumpscope.cli.options import Dump, Json
from dumpscope.cli.parser import Argument, Option
from dumpscope.errors import UsageError
from dumpscope.pipeline.operators.reproduce import FoundCall, copy_tensors, write_script
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.texts import say, tell


def reproduce(
    path: Dump,
    node: Annotated[str | None, Argument(metavar="NODE")] = None,
    output: Annotated[Path | None, Option("-o", "--output")] = None,
    step: Annotated[int | None, Option("--step")] = None,
    rank: Annotated[int | None, Option("--rank")] = None,
    copy: Annotated[bool, Option("--copy")] = False,
    matrix: Annotated[
        bool,
        Option("--matrix"),
    ] = False,
    value: Annotated[list[str] | None, Option("--value")] = None,
    python: Annotated[str | None, Option("--python")] = None,
    run: Annotated[bool, Option("--run")] = False,
    json: Json = False,
    prelude: Annotated[Path | None, Option("--prelude")] = None,
) -> int:
    """Write a script that runs one call of a dump alone, forward and backward, and judges it.

    Returns the exit status."""
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
            run=run,
            json=json,
            prelude=prelude,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """copy: copy the tensors into a folder beside the script; matrix: run it over devices, types and layouts with `python`

    values: `eps=1e-5,1e-3`, scalars that the matrix varies too; run: run it once; json: and print the answer as JSON
    prelude: Python that runs before it
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
    run: bool
    json: bool
    prelude: Path | None


def _run(request: _Request) -> int:
    for value in request.values:
        if not request.matrix or not all(value.partition("=")[::2]):
            raise UsageError(say("cli.value_matrix", value=value), hint=say("cli.matrix_value_eps_1e_5_1e"))
    with open_call(request.path, request.node, request.step, request.rank) as found, TemporaryFolder() as temporary:
        region = "graph" in found.call
        if region and request.matrix:
            raise UsageError(say("cli.no_matrix_of_region"), hint=say("cli.region_runs_with_backends"))
        archive = not request.path.is_dir() and request.path.suffix != ".json"
        runs = request.run or request.json or request.matrix or (region and request.output is None)
        if not runs and request.output is None:
            if archive and found.files:
                raise UsageError(say("cli.tensors_lie_archive"), hint=say("cli.give_o_file_they_copied_beside"))
            sys.stdout.write(write_script(found, origin=describe_source(request.path, found), data=_data(found)))
            return COMPARED
        target = request.output or temporary.path / "call.py"
        _write(request, found, target, copied=request.copy or archive)
        if request.output is not None:
            print(tell("cli.wrote_5", output=request.output), file=sys.stderr)
        return _run_script(request, target) if runs else COMPARED


def _run_script(request: _Request, target: Path) -> int:
    """Run the script with `python`. Returns its status."""
    python = request.python or sys.executable
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode:
        raise UsageError(say("cli.python_has_no_torch", python=python), hint=say("cli.name_python_with_torch"))
    words = [f"--prelude={os.path.abspath(request.prelude)}"] if request.prelude is not None else []
    words += ["--json"] if request.json else []
    if request.matrix:
        words += ["--matrix", *(f"--{value}" for value in request.values)]
        if request.output is not None:
            words.append(f"--logs={target.with_name(f'{target.stem}_logs')}")
    return subprocess.run([python, target, *words], check=False).returncode


def _write(request: _Request, found: FoundCall, target: Path, *, copied: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    data = _data(found)
    if copied and found.files:
        data = f"{target.stem}_data"
        copy_tensors(found, target.parent / data)
    target.write_text(write_script(found, origin=describe_source(request.path, found), data=data), encoding="utf-8")


def _data(found: FoundCall) -> str:
    return os.path.abspath(found.folder) if found.folder else ""
