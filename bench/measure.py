"""Run a command and say what it cost: wall time, time to the first byte of its answer, peak memory of its whole process tree."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """wall, first: seconds to the end and to the first byte on stdout (None when it printed nothing)
    peak: bytes; the tree's memory as sampled, or the largest process's own maximum where that is more
    processor: seconds of processor time, of the command and the processes that it waited for
    """

    wall: float
    first: float | None
    peak: int
    status: int
    output: str
    processor: float


def tree_memory(process: psutil.Process) -> int:
    """Memory of a process and its children in bytes; pages they share are counted once (proportional set size)."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            for line in Path(f"/proc/{one.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except (OSError, psutil.Error):
            continue
    return total


def run(command: list[str], *, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Cost:
    """Run to the end, sampling memory 20 times a second; stderr is kept out of the answer but shown when the command fails."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=cwd, env=environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    done = threading.Event()
    peak = [0]
    errors: list[bytes] = []

    def watch() -> None:
        watched = psutil.Process(process.pid)
        while not done.is_set():
            try:
                peak[0] = max(peak[0], tree_memory(watched))
            except psutil.Error:
                return
            done.wait(0.05)

    watchers = [
        threading.Thread(target=watch, daemon=True),
        threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True),  # type: ignore[union-attr]
    ]
    for watcher in watchers:
        watcher.start()
    first_byte = process.stdout.read(1)
    first = time.perf_counter() - start if first_byte else None
    rest = process.stdout.read()
    _, code, used = os.wait4(process.pid, 0)
    status = process.returncode = os.waitstatus_to_exitcode(code)
    wall = time.perf_counter() - start
    done.set()
    for watcher in watchers:
        watcher.join()
    if status not in (0, 1):  # 1 is the answer "they differ"
        raise RuntimeError(f"{' '.join(command)}: status {status}\n{errors[0].decode(errors='replace')[-2000:]}")
    output = (first_byte + rest).decode(errors="replace")
    return Cost(
        wall=wall,
        first=first,
        peak=max(peak[0], used.ru_maxrss * 1024),
        status=status,
        output=output,
        processor=used.ru_utime + used.ru_stime,
    )


def folder_size(path: Path, pattern: str = "*") -> int:
    """Bytes of the files below `path` whose names match."""
    return sum(file.stat().st_size for file in path.rglob(pattern) if file.is_file())
