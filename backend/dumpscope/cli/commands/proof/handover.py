"""`dumpscope handover`: one archive for the owner of an operator."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from dumpscope.cli.exit_codes import BAD_USAGE, COMPARED
from dumpscope.cli.find_call import describe_source, open_call
from dumpscope.cli.options import Dump
from dumpscope.cli.parser import Argument, Option
from dumpscope.cli.printing import line
from dumpscope.errors import UnreadableError
from dumpscope.pipeline.operators.handover import Evidence, hand_over
from dumpscope.texts import tell


def handover(
    path: Dump,
    node: Annotated[str | None, Argument(metavar="NODE")] = None,
    output: Annotated[Path, Option("-o", "--output")] = Path("finding.zip"),
    golden: Annotated[Path | None, Option("--golden")] = None,
    attach: Annotated[list[Path] | None, Option("--attach")] = None,
    step: Annotated[int | None, Option("--step")] = None,
    rank: Annotated[int | None, Option("--rank")] = None,
    no_run: Annotated[bool, Option("--no-run")] = False,
    python: Annotated[str | None, Option("--python")] = None,
) -> int:
    """Pack one call for the owner of the operator: script, tensors, stack, environment, matrix."""
    with open_call(path, node, step, rank) as found, tempfile.TemporaryDirectory(prefix="dumpscope-") as folder:
        report = None if golden is None else _compare(path, golden, Path(folder) / "report")
        evidence = Evidence(
            python=None if no_run else python or sys.executable, attached=tuple(attach or ()), report=report
        )
        names = hand_over(found, describe_source(path, found), output, evidence)
    line(tell("cli.wrote_2", output=output, names=", ".join(name for name in names if "/" not in name)))
    return COMPARED


def _compare(target: Path, golden: Path, folder: Path) -> Path:
    """Run `dumpscope compare` and return the folder of its report."""
    command = [sys.executable, "-m", "dumpscope", "compare", str(target), str(golden), "-o", str(folder)]
    done = subprocess.run([*command, "--format", "html,json"], capture_output=True, text=True, check=False)
    if done.returncode == BAD_USAGE:
        raise UnreadableError(done.stderr.strip().removeprefix("dumpscope: "))
    return folder
