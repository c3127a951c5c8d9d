"""Starts processes that run cases under an engine, or a module together."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from warm_python import warm_python

from capture.peer_runs import Case

TESTS = Path(__file__).parents[1]
TIMEOUT = 600
IMPORTED = {
    "dumpscope": "torch,torch._dynamo",
    "msprobe": "torch,torch._dynamo,torch._subclasses.schema_check_mode,msprobe.pytorch,"
    "msprobe.pytorch.dump.api_dump.api_risk_level,msprobe.core.dump.data_dump.data_processor.pytorch_processor",
}
"""Engine -> what its processes have imported already."""
MSPROBE = "import sys; from msprobe.msprobe import main; sys.exit(main())"
"""The command msprobe as a program."""


def rendezvous_port() -> str:
    """A port for ranks to meet at, below those that the system gives to sockets which name none: one of those may go to any
    connection before the first rank listens, or to a rank that connects to itself."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return str(port)


def launch(engine: str, folder: Path, cases: Sequence[Case], python: str, *, size: int = 1) -> None:
    """Run all cases; their dumps go to FOLDER/{name}. size: ranks that run each case together.

    Single processes share the cases between two, as many as the smallest machine has cores.
    """
    shares = [cases] * size if size > 1 else [cases[0::2], cases[1::2]]
    commands = []
    for rank, share in enumerate(shares):
        listed = folder / f"cases{rank}.json"
        listed.write_text(json.dumps(list(share)), encoding="utf-8")
        commands.append(
            [warm_python(IMPORTED[engine], python), "-m", "capture.peer_runs", engine, str(folder), str(listed)]
        )
    _run(commands, [_ranks(rank, size) if size > 1 else {} for rank in range(len(commands))], folder)


def launch_together(module: str, words: Sequence[str], folder: Path, *, size: int) -> None:
    """Run `python -m module words` as ranks of one launch, in a folder."""
    command = [warm_python(), "-m", module, *words]
    _run([command] * size, [_ranks(rank, size) for rank in range(size)], folder)


def _ranks(rank: int, size: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}


def _run(commands: Sequence[list[str]], variables: Sequence[Mapping[str, str]], folder: Path) -> None:
    processes = []
    for place, (command, more) in enumerate(zip(commands, variables, strict=True)):
        environment = {**os.environ, "PYTHONPATH": str(TESTS), **more}
        out = (folder / f"log{place}").open("w+")
        processes.append(
            (subprocess.Popen(command, env=environment, cwd=folder, stdout=out, stderr=subprocess.STDOUT), out)
        )
    try:
        for process, out in processes:
            code = process.wait(timeout=TIMEOUT)
            out.seek(0)
            assert code == 0, out.read()[-3000:]
    finally:
        for process, out in processes:
            process.kill()
            out.close()
