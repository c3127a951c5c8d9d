"""Starts processes that run cases under an engine."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from capture.peer_runs import Case

TESTS = Path(__file__).parents[1]
TIMEOUT = 600


def launch(engine: str, folder: Path, cases: Sequence[Case], python: str, *, size: int = 1) -> None:
    """Run all cases; their dumps go to FOLDER/{name}. size: ranks that run each case together.

    Single processes share the cases between two, as many as the smallest machine has cores.
    """
    shares = [cases] * size if size > 1 else [cases[0::2], cases[1::2]]
    processes = []
    for rank, share in enumerate(shares):
        listed = folder / f"cases{rank}.json"
        listed.write_text(json.dumps(list(share)), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        if size > 1:
            environment |= {"RANK": str(rank), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
        command = [python, "-m", "capture.peer_runs", engine, str(folder), str(listed)]
        out = (folder / f"log{rank}").open("w+")
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
