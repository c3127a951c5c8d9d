"""Tensor comparison against msprobe and against the machine's read rate, on the same files in the same run.

    python bench/compare_tensors.py --peer msprobe [--case NAME]...  [--mib 1024] [--files 4096] [--repeat 3] [--dir FOLDER]

Cases: `noise` --mib MiB a side of float32 in 64 tensors, apart by a relative 1e-3; `equal` the same without noise; `bfloat16`,
`float16`; `mixed` float32 beside bfloat16; `one` a single tensor of float32; `files` and `tiny` --files tensors of 256 and 4 KiB.
Rows: `dot` is one thread of numpy.dot over the same files, each mapped for it (as float32, whatever they hold): what the state of
the page cache lets anybody have; `library` is dumpscope's readers and metrics in one process by that many threads, started up;
`command` is the whole `dumpscope compare`; `peer` is the whole `msprobe compare`. The last columns divide the peer's wall and
processor time, less those of its start-up, by ours; on a shared machine the second is the steadier, and so is the throughput by
processor time. Throughput counts the bytes of both sides. Peak memory is the largest resident set, mapped file pages included.
--sparse GIB compares files of holes instead, far larger than the disk: what streaming costs, and whether memory stays flat.
Exit status 1 where a goal is missed: SHARE of what numpy.dot reads on one thread, for float32 in the library by all threads, and
TIMES as fast as the peer, both as whole commands.
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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import psutil
from tensor_dumps import write_dump, write_sparse_dump

SHARE = 0.5
TIMES = 40
SPARSE_MEMORY = 512 << 20
"""Most memory of the command beside the pages of the files, however large these are."""
STREAMED = ("noise", "equal", "one")
"""Cases in which the library reads large tensors of float32, as numpy.dot does."""


@dataclass(frozen=True, slots=True)
class Case:
    """dtypes of target and golden; elements of each tensor"""

    name: str
    dtypes: tuple[str, str]
    tensors: int
    elements: int
    equal: bool = False

    @property
    def size(self) -> int:
        """Bytes of both sides."""
        return self.tensors * self.elements * sum(4 if dtype == "float32" else 2 for dtype in self.dtypes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    seconds: float
    cpu: float
    peak_mib: float
    output: str
    status: int


def run(command: list[str], environment: dict[str, str] | None = None) -> Run:
    """Run to the end; peak_mib is that of the process or of one it waited for, whichever is larger."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)
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


def measure_library(target: str, golden: str, elements: int, threads: int) -> None:
    """Child mode: compare all files of two folders and print the best times."""
    from dumpscope.metrics import load_kernel  # noqa: PLC0415
    from dumpscope.pipeline.compare.tensor_files import FilePair, compare_files  # noqa: PLC0415 (its own imports only)

    pairs = [FilePair(row, name, name, elements) for row, name in enumerate(sorted(os.listdir(target)))]
    load_kernel(1 << 40)  # loads the compiled kernel
    times = []
    for _ in range(5):
        start, cpu = time.perf_counter(), time.process_time()
        for found in compare_files((target, golden), pairs, threads):
            for _, facts in found:
                if isinstance(facts, str):
                    sys.exit(facts)
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    best_wall, best_cpu = (min(column) for column in zip(*times, strict=True))
    print(json.dumps({"seconds": best_wall, "cpu": best_cpu}))


def measure_mapped(target: str, golden: str, size: int) -> None:
    """Child mode: numpy.dot over the first `size` bytes of each pair of files, mapped anew each time."""
    names = sorted(os.listdir(target))
    times = []
    for _ in range(3):
        start, cpu = time.perf_counter(), time.process_time()
        for name in names:
            np.dot(*(np.memmap(f"{folder}/{name}", np.float32, "r", shape=(size // 4,)) for folder in (target, golden)))
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    best_wall, best_cpu = (min(column) for column in zip(*times, strict=True))
    print(json.dumps({"seconds": best_wall, "cpu": best_cpu}))


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


def cases(mib: int, files: int) -> list[Case]:
    return [
        Case("noise", ("float32", "float32"), 64, mib << 12),
        Case("equal", ("float32", "float32"), 64, mib << 12, equal=True),
        Case("bfloat16", ("bfloat16", "bfloat16"), 64, mib << 13),
        Case("float16", ("float16", "float16"), 64, mib << 13),
        Case("mixed", ("float32", "bfloat16"), 64, mib << 12),
        Case("one", ("float32", "float32"), 1, mib << 18),
        Case("files", ("float32", "float32"), files, 1 << 16),
        Case("tiny", ("float32", "float32"), files, 1 << 10),
    ]


def write_case(folder: Path, case: Case) -> None:
    """Child mode, because a process started from one that holds gigabytes would inherit its peak memory figure."""
    random = np.random.default_rng(1)
    kinds = [np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype) for dtype in case.dtypes]
    sides: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(case.tensors):
        values = random.standard_normal(case.elements, dtype=np.float32)
        sides[0].append(values.astype(kinds[0]))
        sides[1].append((values if case.equal else noisy(values, random)).astype(kinds[1]))
    for name, side, dtype in zip(("target", "golden"), sides, case.dtypes, strict=True):
        write_dump(folder / name, side, dtype)


def measure_case(case: Case, folder: Path, options: argparse.Namespace, start: Run | None, single: float) -> bool:
    """Print the rows of one case; start: the peer's start-up; single: what numpy.dot reads from memory in GB/s.

    Returns whether its goals are held.
    """
    target, golden = (folder / side / "step0" / "rank0" / "dump.json" for side in ("target", "golden"))
    peer: Run | None = None

    def row(label: str, wall: float, cpu: float, peak: float, size: int = case.size) -> None:
        rate = size / wall / 1e9
        line = f"{case.name:9} {label:10} {wall:8.3f} {cpu:7.3f} {rate:6.2f} {100 * rate / single:5.0f}%"
        line += f" {size / cpu / 1e9:8.2f} {peak:9.0f} {wall / case.tensors * 1e6:9.0f}"
        if peer and start:
            line += f" {(peer.seconds - start.seconds) / wall:7.1f} {(peer.cpu - start.cpu) / cpu:7.1f}"
        print(line, flush=True)

    if options.peer:
        arguments = ["compare", "-tp", str(target), "-gp", str(golden), "-o", str(folder / "peer")]
        done = run([options.peer, *arguments])
        if not any((folder / "peer").glob("compare_result*")):
            sys.exit(f"the peer wrote no result:\n{done.output[-2000:]}")
        row("peer", done.seconds, done.cpu, done.peak_mib)
        peer = done
    data = [str(side.parent / "dump_tensor_data") for side in (target, golden)]
    smaller = case.elements * (4 if case.dtypes == ("float32", "float32") else 2)
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    children = {
        "dot": ["--child-mapped", *data, str(smaller)],
        **{
            f"library {threads}": ["--threads", str(threads), "--child-library", *data, str(case.elements)]
            for threads in sorted({1, options.threads})
        },
    }
    for label, arguments in children.items():
        child = run([sys.executable, __file__, *arguments], one)
        found = json.loads(child.output)
        size = 2 * smaller * case.tensors if label == "dot" else case.size
        row(label, found["seconds"], found["cpu"], child.peak_mib, size)
        reached = case.size / found["seconds"] / 1e9 / single
    held = [(f"library: {reached:.0%} of numpy.dot, at least {SHARE:.0%}", reached >= SHARE)]
    held = held if case.name in STREAMED else []
    command = own_command()
    if command:
        whole = best([command, "compare", str(target), str(golden), "--json", "--fail-on", "never"], options.repeat)
        if whole.status == 0:
            row("command", whole.seconds, whole.cpu, whole.peak_mib)
        if peer:
            times = peer.seconds / whole.seconds
            held.append((f"command: {times:.0f} times as fast as the peer, at least {TIMES}", times >= TIMES))
    for what, good in held:
        print(f"{case.name:9} {'held  ' if good else 'MISSED'} {what}", flush=True)
    return all(good for _, good in held)


def measure_sparse(gib: int, folder: Path) -> bool:
    """Compare two dumps of `gib` GiB a side whose files are holes, but for the last number of the target's last tensor.

    Returns whether it was found within SPARSE_MEMORY of memory beside the pages of files.
    """
    command = own_command()
    assert command is not None
    tensors = max(1, gib // 4)
    elements = (gib << 28) // tensors
    write_sparse_dump(folder / "golden", tensors, elements)
    write_sparse_dump(folder / "target", tensors, elements, last=1.0)
    words = [command, "compare", str(folder / "target"), str(folder / "golden"), "--json"]
    clock = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.DEVNULL)
        tree, own, mapped, cpu = psutil.Process(process.pid), 0, 0, 0.0
        while process.poll() is None:
            held = [_resident(one.pid) for one in (tree, *tree.children(recursive=True))]
            own, mapped = max(own, sum(one[0] for one in held)), max(mapped, sum(one[1] for one in held))
            with suppress(psutil.Error):
                times = tree.cpu_times()
                cpu = times.user + times.system + times.children_user + times.children_system
            time.sleep(0.2)
        seconds = time.perf_counter() - clock
        output.seek(0)
        answer = json.loads(output.read())
    found = answer["first_no"] or {}
    right = (
        process.returncode == 1
        and answer["counts"]["no"] == 1
        and str(found.get("node", "")).endswith(f"{tensors - 1}.forward")
    )
    good = right and own <= SPARSE_MEMORY
    print(
        f"{gib} GiB a side in {tensors} tensors: {seconds:.0f} s, {cpu:.0f} CPU s, {2 * gib / seconds:.2f} GiB/s, own memory "
        f"{own >> 20} MiB, pages of files {mapped >> 20} MiB, the one number that differs {'found' if right else 'NOT FOUND'}"
    )
    print(f"{'held  ' if good else 'MISSED'} own memory at most {SPARSE_MEMORY >> 20} MiB and the right answer")
    return good


def _resident(process: int) -> tuple[int, int]:
    """Bytes of a process's own memory, and of file pages that it has mapped."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    kib = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in lines)
        if name.startswith("Rss")
    }
    return kib.get("RssAnon", 0) << 10, kib.get("RssFile", 0) << 10


def own_command() -> str | None:
    return shutil.which("dumpscope", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="the msprobe command; left out, only our own rows are printed")
    parser.add_argument("--mib", type=int, default=1024, help="size of a side in the cases of large tensors")
    parser.add_argument("--files", type=int, default=4096, help="number of tensors in the cases of small ones")
    parser.add_argument("--case", action="append", help="a case to run (repeat it for more); all of them if left out")
    parser.add_argument("--repeat", type=int, default=3, help="runs of our command; the best counts")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--dir", help="where the data goes (default: a temporary folder)")
    parser.add_argument("--child-library", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--child-mapped", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--child-write", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--child-dot", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--sparse", type=int, metavar="GIB", help="only this: files of so many GiB a side that are holes"
    )
    options = parser.parse_args()
    known = {case.name: case for case in cases(options.mib, options.files)}
    if options.child_dot:
        return measure_dot()
    if options.child_write:
        return write_case(Path(options.child_write[0]), known[options.child_write[1]])
    if options.child_library:
        target, golden, elements = options.child_library
        return measure_library(target, golden, int(elements), options.threads)
    if options.child_mapped:
        target, golden, size = options.child_mapped
        return measure_mapped(target, golden, int(size))
    if options.sparse:
        with tempfile.TemporaryDirectory(dir=options.dir) as place:
            sys.exit(0 if measure_sparse(options.sparse, Path(place)) else 1)
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # both commands start from compiled modules, as an installed one does
    if unknown := set(options.case or ()) - set(known):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    single, every = dot_rate(1), dot_rate(options.threads)
    print(f"numpy.dot reads two arrays at {single:.1f} GB/s on one thread, {every:.1f} GB/s on {options.threads}")
    start = best([options.peer, "--help"], 2) if options.peer else None
    command = own_command()
    ours = best([command, "--help"], 3).seconds if command else 0.0
    print(f"start-up: peer {start.seconds if start else 0:.2f} s, dumpscope {ours:.2f} s")
    titles = {
        "wall s": 8, "cpu s": 7, "GB/s": 6, "of dot": 6, "GB/cpu s": 8, "peak MiB": 9, "us/tensor": 9, "x wall": 7, "x cpu": 7,
    }  # fmt: skip
    print(f"{'case':9} {'row':10} " + " ".join(f"{title:>{width}}" for title, width in titles.items()))
    held = True
    for name in options.case or known:
        with tempfile.TemporaryDirectory(dir=options.dir) as place:
            sizes = ["--mib", str(options.mib), "--files", str(options.files)]
            subprocess.run([sys.executable, __file__, *sizes, "--child-write", place, name], check=True)
            held &= measure_case(known[name], Path(place), options, start, single)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
