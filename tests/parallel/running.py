"""Runs `parallel.models` as processes and returns the folder of its dump."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
TIMEOUT = 400


def run(folder: Path, layout: str, *, size: int = 1, **options: str | int) -> Path:
    """Dump root of one run. options: as `parallel.models` takes them"""
    folder.mkdir(parents=True)
    processes = []
    words = [f"{key}={value}" for key, value in options.items()]
    for rank in range(size):
        environment = {
            **os.environ, "PYTHONPATH": str(TESTS), "RANK": str(rank), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        command = [sys.executable, "-m", "parallel.models", layout, str(folder), *words]
        out = (folder / f"log{rank}").open("w+")
        processes.append((subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT), out))
    try:
        for process, out in processes:
            code = process.wait(timeout=TIMEOUT)
            out.seek(0)
            assert code == 0, out.read()[-3000:]
    finally:
        for process, out in processes:
            process.kill()
            out.close()
    return folder / "dump"
