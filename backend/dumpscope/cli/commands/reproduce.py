"""`dumpscope reproduce`: a script that runs one call of a dump alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dumpscope.cli.app import FINE
from dumpscope.cli.opening import opened
from dumpscope.errors import UsageError
from dumpscope.pipeline.operators.reproduce import (
    FoundCall,
    copy_tensors,
    find_call,
    find_saved,
    is_saved,
    write_script,
)
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """copy: put the tensors beside the script; matrix: run it over devices, types and layouts with `python`

    values: `eps=1e-5,1e-3`, scalars that the matrix goes over as well
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


def run(request: Request) -> int:
    for value in request.values:
        if not request.matrix or not all(value.partition("=")[::2]):
            raise UsageError(f"--value {value} is for --matrix", hint="--matrix --value eps=1e-5,1e-3")
    with found_call(request.path, request.node, request.step, request.rank) as found, TemporaryFolder() as room:
        archive = not request.path.is_dir() and request.path.suffix != ".json"
        if request.output is None and not request.matrix:
            if archive and found.files:
                raise UsageError("the tensors lie in an archive", hint="give -o FILE: they are copied beside it")
            sys.stdout.write(write_script(found, origin=origin(request.path, found), data=_data(found)))
            return FINE
        target = request.output or room.path / "call.py"
        _write(request, found, target, copied=request.copy or archive)
        if request.output is not None:
            print(f"wrote {request.output}", file=sys.stderr)
        if not request.matrix:
            return FINE
        words = ["--matrix", *(f"--{value}" for value in request.values)]
        if request.output is not None:
            words.append(f"--logs={target.with_name(f'{target.stem}_logs')}")
        return subprocess.run([request.python or sys.executable, target, *words], check=False).returncode


@contextmanager
def found_call(path: Path, node: str | None, step: int | None, rank: int | None) -> Iterator[FoundCall]:
    """The call that `node` names in the dump at `path`, or the saved call at `path`."""
    if is_saved(path):
        yield find_saved(str(path))
        return
    if node is None:
        raise UsageError("name the call", hint="dumpscope reproduce DUMP Functional.softmax.1")
    with opened(path) as layout:
        yield find_call(layout, node, step=step, rank=rank)


def _write(request: Request, found: FoundCall, target: Path, *, copied: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    data = _data(found)
    if copied and found.files:
        data = f"{target.stem}_data"
        copy_tensors(found, target.parent / data)
    target.write_text(write_script(found, origin=origin(request.path, found), data=data), encoding="utf-8")


def _data(found: FoundCall) -> str:
    return os.path.abspath(found.folder) if found.folder else ""


def origin(path: Path, found: FoundCall) -> str:
    """Where a call is from, in one line."""
    rank = "" if found.ref.rank is None else f", rank {found.ref.rank}"
    return f"{path.resolve().name}, step {found.ref.step}{rank}"
