"""Tensor comparison against msprobe and against the machine's read rate, on the same files in the same run.

    python bench/compare_tensors.py --peer /path/to/msprobe [--mib 1024] [--files 4096] [--repeat 3] [--dir FOLDER]

Cases: --mib MiB a side in 64 tensors (float32 with noise of 1e-3, the same but equal, bfloat16 with noise) and in a single one,
and --files tensors of 256 KiB a side. Rows: `library` is dumpscope's reader and metrics in one process, start-up excluded;
`command` is the whole `dumpscope compare`; `peer` is the whole `msprobe compare`. The last columns divide the peer's wall and
processor time, less those of its start-up, by ours; on a shared machine the second is the steadier, and so is the throughput by
processor time. Throughput counts the bytes of both sides. Peak memory is the largest resident set, mapped file pages included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from tensor_dumps import write_dump

SMALL_ELEMENTS = 65536  # 256 KiB of float32


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    seconds: float
    cpu: float
    peak_mib: float
    output: str
    status: int


def run(command: list[str]) -> Run:
    """Run to the end; peak_mib is that of the process or of one it waited for, whichever is larger."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        text = output.read()
        if process.returncode not in (0, 1):
            print(f"{' '.join(command)}: exit {process.returncode}\n{errors.read()[-800:]}", file=sys.stderr)
        return Run(
            seconds=seconds,
            cpu=usage.ru_utime + usage.ru_stime,
            peak_mib=usage.ru_maxrss / 1024,
            output=text,
            status=process.returncode,
        )


def best(command: list[str], repeat: int) -> Run:
    return min((run(command) for _ in range(repeat)), key=lambda done: done.seconds)


def measure_library(target: Path, golden: Path, threads: int) -> None:
    """Child mode: compare all files of two dumps `--repeat` times and print the best time."""
    from dumpscope.metrics import compare_tensors  # noqa: PLC0415 (the child pays for its own imports only)
    from dumpscope.readers import torchfile  # noqa: PLC0415

    from dumpscope.pipeline.measure import CHUNK, LARGE  # noqa: PLC0415

    names = sorted(os.listdir(target))
    large = (target / names[0]).stat().st_size >= LARGE

    def some(part: list[str]) -> int:
        pairs = (
            (torchfile.load(f"{target}/{name}", root=str(target)), torchfile.load(f"{golden}/{name}", root=str(golden)))
            for name in part
        )
        return sum(compare_tensors(t.array, g.array, threads=threads if large else 1).unequal for t, g in pairs)

    ones = np.ones(1 << 24, np.float32)
    compare_tensors(ones, ones)  # loads the compiled kernel
    times = []
    for _ in range(5):
        start, cpu = time.perf_counter(), time.process_time()
        if large:
            unequal = [some(names)]
        else:
            with ThreadPoolExecutor(threads) as pool:
                unequal = list(pool.map(some, [names[at : at + CHUNK] for at in range(0, len(names), CHUNK)]))
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    best_wall, best_cpu = (min(column) for column in zip(*times, strict=True))
    print(json.dumps({"seconds": best_wall, "cpu": best_cpu, "unequal": sum(unequal)}))


def measure_dot() -> None:
    """Child mode: rate in GB/s at which numpy.dot reads two float32 arrays of 512 MiB."""
    first, second = np.ones(1 << 27, np.float32), np.ones(1 << 27, np.float32)
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        np.dot(first, second)
        seconds.append(time.perf_counter() - start)
    print(2 * first.nbytes / min(seconds) / 1e9)


def dot_rate(blas_threads: int) -> float:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(blas_threads), "OMP_NUM_THREADS": str(blas_threads)}
    command = [sys.executable, __file__, "--child-dot"]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def noisy(values: np.ndarray[Any, Any], random: np.random.Generator) -> np.ndarray[Any, Any]:
    return values * (1 + np.float32(1e-3) * random.standard_normal(values.size, dtype=np.float32))


def cases(mib: int, files: int) -> list[tuple[str, str, int, int, bool]]:
    """(name, dtype, tensors, elements each, equal)"""
    return [
        ("float32, noise", "float32", 64, mib << 12, False),
        ("float32, equal", "float32", 64, mib << 12, True),
        ("bfloat16, noise", "bfloat16", 64, mib << 13, False),
        ("one float32", "float32", 1, mib << 18, False),
        (f"{files} files", "float32", files, SMALL_ELEMENTS, False),
    ]


def write_case(folder: Path, dtype: str, tensors: int, elements: int, equal: bool) -> None:
    """Child mode, because a process started from one that holds gigabytes would inherit its peak memory figure."""
    random = np.random.default_rng(1)
    kind = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    sides: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(tensors):
        values = random.standard_normal(elements, dtype=np.float32)
        sides[0].append(values.astype(kind))
        sides[1].append(sides[0][-1] if equal else noisy(values, random).astype(kind))
    write_dump(folder / "target", sides[0], dtype)
    write_dump(folder / "golden", sides[1], dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="the msprobe command; left out, only our own rows are printed")
    parser.add_argument("--mib", type=int, default=1024, help="size of a side in the cases of large tensors")
    parser.add_argument("--files", type=int, default=4096, help="number of 256 KiB tensors")
    parser.add_argument("--repeat", type=int, default=3, help="runs of our command; the best counts")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--dir", help="where the data goes (default: a temporary folder)")
    parser.add_argument("--child-library", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--child-write", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--child-dot", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child_dot:
        return measure_dot()
    if options.child_write:
        place, dtype, *numbers = options.child_write
        return write_case(Path(place), dtype, int(numbers[0]), int(numbers[1]), numbers[2] == "True")
    if options.child_library:
        return measure_library(*(Path(name) for name in options.child_library), options.threads)
    single, every = dot_rate(1), dot_rate(options.threads)
    print(f"numpy.dot reads two arrays at {single:.1f} GB/s on one thread, {every:.1f} GB/s on {options.threads}")
    command = shutil.which("dumpscope", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    start = best([options.peer, "--help"], 2) if options.peer else None
    ours = best([command, "--help"], 3).seconds if command else 0.0
    print(f"start-up: peer {start.seconds if start else 0:.2f} s, dumpscope {ours:.2f} s")
    titles = {"wall s": 8, "cpu s": 7, "GB/s": 6, "of dot": 6, "GB/cpu s": 8, "peak MiB": 9, "x wall": 7, "x cpu": 7}
    print(f"{'case':17} {'row':8} " + " ".join(f"{title:>{width}}" for title, width in titles.items()))
    for name, dtype, tensors, elements, equal in cases(options.mib, options.files):
        with tempfile.TemporaryDirectory(dir=options.dir) as place:
            folder = Path(place)
            parts = [place, dtype, str(tensors), str(elements), str(equal)]
            subprocess.run([sys.executable, __file__, "--child-write", *parts], check=True)
            target, golden = (folder / side / "step0" / "rank0" / "dump.json" for side in ("target", "golden"))
            size = 2 * tensors * elements * (2 if dtype == "bfloat16" else 4)

            def row(
                label: str, wall: float, cpu: float, peak: float, peer: Run | None, case: str = name, size: int = size
            ) -> None:
                rate = size / wall / 1e9
                line = f"{case:17} {label:8} {wall:8.2f} {cpu:7.2f} {rate:6.2f} {100 * rate / single:5.0f}%"
                line += f" {size / cpu / 1e9:8.2f} {peak:9.0f}"
                if peer and start:
                    line += f" {(peer.seconds - start.seconds) / wall:7.0f} {(peer.cpu - start.cpu) / cpu:7.0f}"
                print(line, flush=True)

            peer = None
            if options.peer:
                arguments = ["compare", "-tp", str(target), "-gp", str(golden), "-o", str(folder / "peer")]
                peer = run([options.peer, *arguments])
                if not any((folder / "peer").glob("compare_result*")):
                    sys.exit(f"the peer wrote no result:\n{peer.output[-2000:]}")
                row("peer", peer.seconds, peer.cpu, peer.peak_mib, None)
            data = [str(side.parent / "dump_tensor_data") for side in (target, golden)]
            child = run([sys.executable, __file__, "--threads", str(options.threads), "--child-library", *data])
            found = json.loads(child.output)
            row("library", found["seconds"], found["cpu"], child.peak_mib, peer)
            if command:
                whole = best(
                    [command, "compare", str(target), str(golden), "--json", "--fail-on", "never"], options.repeat
                )
                if whole.status == 0:
                    row("command", whole.seconds, whole.cpu, whole.peak_mib, peer)
    return None


if __name__ == "__main__":
    main()
