"""`dumpscope handover`: one archive for the owner of an operator."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dumpscope.cli.app import BAD_INPUT, FINE
from dumpscope.cli.commands.reproduce import found_call, origin
from dumpscope.cli.printing import line
from dumpscope.errors import UnreadableError
from dumpscope.pipeline.operators.handover import Evidence, hand_over


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """python: runs the script and its matrix, None for neither"""

    path: Path
    node: str | None
    output: Path
    golden: Path | None
    attached: tuple[Path, ...]
    step: int | None
    rank: int | None
    python: str | None


def run(request: Request) -> int:
    with (
        found_call(request.path, request.node, request.step, request.rank) as found,
        tempfile.TemporaryDirectory(prefix="dumpscope-") as room,
    ):
        report = None if request.golden is None else _compared(request.path, request.golden, Path(room) / "report")
        evidence = Evidence(python=request.python, attached=request.attached, report=report)
        names = hand_over(found, origin(request.path, found), request.output, evidence)
    line(f"wrote {request.output}: {', '.join(name for name in names if '/' not in name)}")
    return FINE


def _compared(target: Path, golden: Path, folder: Path) -> Path:
    """The report of a comparison, made by the command of that name."""
    command = [sys.executable, "-m", "dumpscope", "compare", str(target), str(golden), "-o", str(folder)]
    done = subprocess.run([*command, "--format", "html,json"], capture_output=True, text=True, check=False)
    if done.returncode == BAD_INPUT:
        raise UnreadableError(done.stderr.strip().removeprefix("dumpscope: "))
    return folder
