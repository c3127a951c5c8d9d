"""How long a server takes from registering two dumps to the answer, beside the command on the same dumps.

    python bench/register_to_answer.py --nodes 100000

Registers both and asks for their comparison in the same moment, as the page does; then polls. The server has been up for some
seconds, as one that a team uses. Wall times, and processor time of the server with its workers. Exit status 1 where a target
(RATIO, SHOWN, STORED) is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from api_latency import serve
from compare_statistics import make_pair
from measure import folder_size, run

RATIO = 1.3
"""Most time to the answer, as a multiple of the command's."""
SHOWN = 3.0
"""Seconds after which an origin is named, be it provisional."""
STORED = 0.6
"""Largest database, as a multiple of the JSON of both sides."""
WARM = 30.0
REST = 0.1
WORKERS = 3
"""Processes below a server whose workers run: two of them, and one that Python itself has."""
POLL = 0.2
"""Seconds between two looks, which cost the server some milliseconds each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Seconds since both dumps were registered. read: both are; named: an origin is told; cpu: of the server and its workers"""

    read: float
    named: float | None
    done: float
    cpu: float


def processor_time(server: psutil.Process) -> float:
    """Seconds of a server and its workers."""
    times = [one.cpu_times() for one in (server, *server.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def await_workers() -> psutil.Process:
    """The server, once its workers run and rest, or WARM seconds are over."""
    (server,) = (one for one in psutil.Process().children() if "serve" in one.cmdline())
    deadline, before = time.monotonic() + WARM, -1.0
    while time.monotonic() < deadline:
        now = processor_time(server)
        if now - before < REST and len(server.children(recursive=True)) >= WORKERS:
            break
        before = now
        time.sleep(1)
    return server


def compare_on_server(client: httpx.Client, target: Path, golden: Path) -> Served:
    """Register both, compare, wait. Raises RuntimeError where it fails."""
    server = await_workers()
    client.get("dumps").raise_for_status()  # as the page does: the first request finds the routes, for 0.2 s
    before, start = processor_time(server), time.perf_counter()
    ids = [client.post("dumps", json={"path": str(path)}).raise_for_status().json()["id"] for path in (target, golden)]
    asked = client.post("comparisons", json={"target": ids[0], "golden": ids[1]}).raise_for_status().json()
    read: float | None = None
    named: float | None = None
    while True:
        job = client.get(f"jobs/{asked['job']}").raise_for_status().json()
        now = time.perf_counter() - start
        if job["status"] in ("failed", "cancelled"):
            raise RuntimeError(job["error"])
        if named is None and (job["provisional"] or job["status"] == "done"):
            named = now
        if read is None and all(client.get(f"dumps/{one}").json()["status"] == "ready" for one in ids):
            read = now
        if job["status"] == "done":
            return Served(read=read or now, named=named, done=now, cpu=processor_time(server) - before)
        time.sleep(POLL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000, help="nodes a side (default 100000)")
    parser.add_argument("--runs", type=int, default=1, help="runs of both, in turn; the best counts (default 1)")
    parser.add_argument("--keep", type=Path, help="folder for the dumps, kept for the next run")
    arguments = parser.parse_args()
    command = str(Path(sys.executable).with_name("dumpscope"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        target, golden, _ = make_pair(folder, arguments.nodes)
        costs, found = [], []
        for number in range(arguments.runs):
            costs.append(run([command, "compare", str(target), str(golden), "--json"]))
            data = Path(scratch) / f"data{number}"
            with serve(folder, data) as client:
                found.append(compare_on_server(client, target, golden))
            stored = folder_size(data, "dumpscope.db") / (folder_size(target) + folder_size(golden))
    cheapest = min(costs, key=lambda one: one.wall)
    wall, best = cheapest.wall, min(found, key=lambda one: one.done)
    named = best.done if best.named is None else best.named
    print(
        f"command {wall:.2f} s; server: both read {best.read:.2f} s, origin named {named:.2f} s, answer {best.done:.2f} s"
    )
    print(
        f"processor time: command {cheapest.processor:.2f} s, server {best.cpu:.2f} s; database {stored:.2f} x input JSON"
    )
    held = [
        (f"answer after {best.done / wall:.2f} times the command, at most {RATIO}", best.done <= RATIO * wall),
        (f"an origin named after {named:.1f} s, at most {SHOWN:.1f}", named <= SHOWN),
        (f"database {stored:.2f} x input JSON, at most {STORED}", stored <= STORED),
    ]
    for what, good in held:
        print(f"{'held  ' if good else 'MISSED'}  {what}")
    sys.exit(0 if all(good for _, good in held) else 1)


if __name__ == "__main__":
    main()
