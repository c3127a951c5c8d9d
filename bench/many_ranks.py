"""What a job of many ranks costs a server, and how fast the views of the whole job answer.

    python bench/many_ranks.py --ranks 16 64 256 --nodes 20000
    python bench/many_ranks.py --ranks 1024 --nodes 2000 --executor cluster --kill

Each number of ranks: both sides of a synthetic job (job_dumps.py: two faults, one stray rank) are written, registered and
compared by a server of its own. `processes` is that server with SQLite and two workers; `cluster` is dask (a scheduler, four
workers of one thread) with a PostgreSQL of its own, which .ci/with-postgres starts. --kill ends one dask worker by SIGKILL in
the middle of the comparison.

Seconds are wall time; CPU seconds and memory (proportional set size, sampled) are those of the server and all its workers, in a
cluster with the scheduler, and beside them those of PostgreSQL. The answer is right if both faults are the origins with their
step and ranks, and the stray one is named. Exit status 1 where an answer is wrong or a limit (MEMORY, LINEAR, P95, REPLY) is
missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from api_latency import finish, serve
from job_dumps import Job, write_job
from measure import folder_size, tree_memory

MB = 1024 * 1024
MEMORY = 2_000_000_000
"""Most memory of the server and its workers, in bytes."""
LINEAR = 1.25
"""Most CPU time of a rank, by that of a rank of the smallest job."""
P95, REPLY = 150.0, 200_000
"""Milliseconds within which 95 % of the replies come, and bytes of the largest."""
WORKERS = 4
POSTGRES = "DUMPSCOPE_TEST_POSTGRES_URL"

Question = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Meter:
    """CPU time and peak memory of everything that this process has started."""

    peak: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def cpu(self) -> float:
        return sum(_cpu(process) for process in psutil.Process().children(recursive=True))

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.peak = max(self.peak, sum(tree_memory(child) for child in psutil.Process().children()))


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def postgres_cpu() -> float:
    """CPU seconds of the PostgreSQL that was started for us, its backends included."""
    place = os.environ[POSTGRES].rpartition("host=")[2]
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if f"{place}/data" in command:
            return _cpu(process) + sum(_cpu(child) for child in process.children(recursive=True))
    return 0.0


@contextmanager
def dask_cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Address of a scheduler, and its workers, each a process of one thread without a nanny."""
    address = f"tcp://127.0.0.1:{_free_port()}"
    log = (folder / "dask.log").open("wb")
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("dask")), *words], stdout=log, stderr=subprocess.STDOUT, cwd=folder
        )
        started.append(process)
        return process

    start("scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard", "--no-show")
    workers = [start("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard") for _ in range(WORKERS)]
    try:
        yield address, workers
    finally:
        for process in reversed(started):  # workers first: without a scheduler they look for it again
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        log.close()


def _free_port() -> int:
    import socket  # noqa: PLC0415

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def register(client: httpx.Client, path: Path) -> str:
    reply = client.post("dumps", json={"path": str(path)}).raise_for_status().json()
    finish(client, reply["job"])
    return str(reply["id"])


def compare(client: httpx.Client, target: str, golden: str, middle: Callable[[], None] | None) -> str:
    """Id of the comparison. middle: called once when half of the ranks are compared"""
    reply = client.post("comparisons", json={"target": target, "golden": golden}).raise_for_status().json()
    while middle is not None:
        state = client.get(f"jobs/{reply['job']}").raise_for_status().json()
        if state["progress"] > 0.4 or state["status"] not in ("queued", "running"):
            print(f"a worker is killed at {state['progress']:.0%} of the comparison")
            middle()
            break
        time.sleep(0.2)
    finish(client, reply["job"])
    return str(reply["id"])


def wrong(job: Job, summary: dict[str, Any]) -> list[str]:
    """What the answer lacks."""
    found: list[str] = []
    common = sorted(set(range(job.ranks)) - {job.stray, *job.branch})
    for name, ranks in ((job.common, common), (job.branched, list(job.branch))):
        named = [one for one in summary["origins"] if one["node"] == name and one["step"] == 0]
        seen = [sorted({one["rank"], *one["ranks"]}) for one in named]
        if seen != [ranks]:
            found.append(f"{name} is named on {seen}, planted on {ranks}")
    others = [one["rank"] for one in summary["origins"] if one["node"] not in (job.common, job.branched)]
    if set(others) != {job.stray}:
        found.append(f"other origins are named on ranks {others}, the stray one is {job.stray}")
    if [one["rank"] for one in summary["strays"]] != [job.stray]:
        found.append(f"{summary['strays']} stray, planted is {job.stray}")
    return found


def views(client: httpx.Client, base: str, job: Job) -> dict[str, Question]:
    """The questions about the whole job that the page asks, by name."""
    middle = client.get(f"{base}/collectives", params={"limit": 1}).raise_for_status().json()
    total = int(middle["total"])
    one = middle["items"][0]
    call = one["parts"][0]["node"]
    cursor = client.get(f"{base}/rank-map", params={"kind": "all"}).raise_for_status().json()["next"]
    rank = {"rank": job.stray}
    assert total > 1
    return {
        "comparison": (base, {}),
        "comparisons": ("comparisons", {}),
        "dump": (f"dumps/{client.get(base).raise_for_status().json()['target']}", {}),
        "dumps": ("dumps", {}),
        "summary": (f"{base}/summary", {}),
        "origins": (f"{base}/origins", {}),
        "suspects": (f"{base}/suspects", rank),
        "rank map, modules": (f"{base}/rank-map", {}),
        "rank map, second page of all": (f"{base}/rank-map", {"kind": "all", "cursor": cursor}),
        "rank map, search": (f"{base}/rank-map", {"kind": "api", "q": "softmax"}),
        "trends, worst of the ranks": (f"{base}/trends", {}),
        "trends, a row a rank": (f"{base}/trends", {"by_rank": True}),
        "trends, one call": (f"{base}/trends", {"name": job.common, "kind": "all", "by_rank": True}),
        "collectives": (f"{base}/collectives", {}),
        "collectives, only no": (f"{base}/collectives", {"verdict": "no"}),
        "collectives, of a rank": (f"{base}/collectives", rank),
        "collectives, parts of one": (f"{base}/collectives/{one['id']}/parts", {}),
        "all_reduce": (f"{base}/nodes/{call}", rank),
        "all_reduce, data flow": (f"{base}/nodes/{call}/flow", rank),
        "all_reduce, path": (f"{base}/nodes/{call}/path", rank),
        "origin": (f"{base}/nodes/{job.common}", {}),
        "origin, figure over ranks": (f"{base}/figures/call-runs", {"node": job.common}),
        "list of the last rank": (f"{base}/nodes", {"rank": job.ranks - 1}),
        "tree of the last rank": (f"{base}/tree", {"rank": job.ranks - 1}),
        "strip of the last rank": (f"{base}/strip", {"rank": job.ranks - 1}),
    }


def ask(client: httpx.Client, name: str, question: Question, times: int) -> bool:
    """Ask, print one line, and say whether all replies kept to P95 and REPLY."""
    spans, size = [], 0
    for _ in range(times):
        start = time.perf_counter()
        reply = client.get(question[0], params=question[1])
        spans.append((time.perf_counter() - start) * 1000)
        reply.raise_for_status()
        size = max(size, len(reply.content))
    spans.sort()
    p95 = spans[min(times - 1, int(times * 0.95))]
    good = p95 <= P95 and size <= REPLY
    print(
        f"  {name:30} {spans[times // 2]:8.1f} {p95:8.1f} {size / 1000:10.1f} {'' if good else '   over'}", flush=True
    )
    return good


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One job. stored: bytes of the database; other: CPU seconds of PostgreSQL; good: everything was as it should be"""

    ranks: int
    register: float
    compare: float
    cpu: tuple[float, float]
    other: float
    peak: int
    stored: int
    json: int
    good: bool

    def line(self) -> str:
        mine = sum(self.cpu) / self.ranks
        return (
            f"{self.ranks:6} {self.register:9.1f} {self.compare:9.1f} {self.cpu[0]:9.1f} {self.cpu[1]:9.1f} {mine:8.2f} "
            f"{self.other:8.1f} {self.peak / MB:8.0f} {self.stored / MB:8.0f} {self.stored / self.json:7.2f} "
            f"{'right' if self.good else 'WRONG'}"
        )


TITLES = " ".join(
    f"{title:>{width}}"
    for title, width in (
        ("ranks", 6), ("register", 9), ("compare", 9), ("CPU reg.", 9), ("CPU com.", 9), ("CPU/rank", 8), ("CPU db", 8),
        ("peak MB", 8), ("db MB", 8), ("of JSON", 7), ("answer", 6),
    )
)  # fmt: skip


def measure(folder: Path, ranks: int, asked: argparse.Namespace) -> tuple[Row, bool]:
    """The row of one job, and whether its views kept to their limits."""
    start = time.perf_counter()
    job = write_job(folder, ranks, asked.nodes)
    read = folder_size(job.target) + folder_size(job.golden)
    print(f"\n{ranks} ranks, {read / MB:.0f} MB of JSON, written in {time.perf_counter() - start:.0f} s", flush=True)
    data = folder / "data"
    data.mkdir()
    meter = Meter()
    with ExitStack() as stack:
        settings = {"DUMPSCOPE_EXECUTOR": f"processes:{asked.processes}"}
        workers: list[subprocess.Popen[bytes]] = []
        if asked.executor == "cluster":
            address, workers = stack.enter_context(dask_cluster(data))
            settings = {"DUMPSCOPE_EXECUTOR": address, "DUMPSCOPE_DATABASE_URL": fresh_postgres()}
        client = stack.enter_context(serve(folder, data, settings))
        meter.start()
        stack.callback(meter.stop)
        before = postgres_cpu() if workers else 0.0
        clock = [time.perf_counter()]
        cpu = [meter.cpu()]
        sides = [register(client, side) for side in (job.target, job.golden)]
        clock.append(time.perf_counter())
        cpu.append(meter.cpu())
        kill = (lambda: workers[1].send_signal(signal.SIGKILL)) if asked.kill else None
        comparison = compare(client, *sides, kill)
        clock.append(time.perf_counter())
        cpu.append(meter.cpu())
        base = f"comparisons/{comparison}"
        lacks = wrong(job, client.get(f"{base}/summary").raise_for_status().json())
        if asked.kill:
            lacks += lost_work(settings["DUMPSCOPE_DATABASE_URL"])
        for one in lacks:
            print(f"WRONG: {one}")
        peak = meter.peak
        print(f"  {'':30} {'p50 ms':>8} {'p95 ms':>8} {'largest kB':>10}")
        quick = [ask(client, name, one, asked.times) for name, one in views(client, base, job).items()]
        stored = postgres_size(settings["DUMPSCOPE_DATABASE_URL"]) if workers else folder_size(data, "dumpscope.db*")
        row = Row(
            ranks=ranks, register=clock[1] - clock[0], compare=clock[2] - clock[1],
            cpu=(cpu[1] - cpu[0], cpu[2] - cpu[1]), other=postgres_cpu() - before if workers else 0.0, peak=peak,
            stored=stored, json=read, good=not lacks,
        )  # fmt: skip
    return row, all(quick)


def fresh_postgres() -> str:
    """URL of a new, empty database."""
    import psycopg  # noqa: PLC0415

    url = os.environ[POSTGRES]
    name = f"ranks_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    head, _, tail = url.partition("/postgres?")
    return f"{head}/{name}?{tail}"


def postgres_size(url: str) -> int:
    return int(_one(url, "SELECT pg_database_size(current_database())"))


def lost_work(url: str) -> list[str]:
    """A killed worker leaves at most the unit that it was writing."""
    left = int(_one(url, "SELECT count(*) FROM unit WHERE comparison < 0"))
    print(f"units begun by the killed worker and begun again by another: {left}")
    return [f"{left} units were compared twice, the killed worker had one"] if left > 1 else []


def _one(url: str, statement: str) -> Any:
    import psycopg  # noqa: PLC0415

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        found = connection.execute(statement.encode()).fetchone()
    assert found is not None
    return found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--nodes", type=int, default=20_000, help="calls of a rank (default 20000)")
    parser.add_argument("--executor", choices=("processes", "cluster"), default="processes")
    parser.add_argument("--processes", type=int, default=2, help="workers of `processes` (default 2)")
    parser.add_argument("--kill", action="store_true", help="kill a worker of the cluster in the middle")
    parser.add_argument("--times", type=int, default=40, help="requests of each view (default 40)")
    parser.add_argument("--dir", type=Path, help="where the data goes; removed at the end of each job")
    asked = parser.parse_args()
    if asked.kill and asked.executor != "cluster":
        parser.error("--kill needs --executor cluster")
    if asked.executor == "cluster" and POSTGRES not in os.environ:
        runner = Path(__file__).parents[1] / ".ci/with-postgres"
        sys.exit(subprocess.run([str(runner), sys.executable, *sys.argv], check=False).returncode)
    print(f"{asked.executor}, {asked.nodes} calls a rank, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    rows, good = [], True
    for ranks in asked.ranks:
        folder = Path(tempfile.mkdtemp(dir=asked.dir))
        try:
            row, quick = measure(folder, ranks, asked)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        rows.append(row)
        good &= quick and row.good and row.peak <= MEMORY
        each = sum(row.cpu) / row.ranks / (sum(rows[0].cpu) / rows[0].ranks)
        good &= each <= LINEAR
        print(f"\n{TITLES}\n" + "\n".join(one.line() for one in rows), flush=True)
    print(f"load {os.getloadavg()[0]:.1f}; {'all limits held' if good else 'a limit was missed'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
