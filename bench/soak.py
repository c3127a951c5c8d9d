"""A real server for an hour under faults, and whether it kept what it promised.

    sudo python bench/soak.py                                     # an hour on SQLite, an hour on PostgreSQL
    python bench/soak.py --minutes 10 --database sqlite

Clients register, upload (whole and in pieces), compare, judge again, write notes, delete, follow event streams; others are slow
on purpose. Meanwhile workers and the server are killed, the server is restarted, and its disk is filled. Checked along the way
and at the end: what was acknowledged is there, every job ends, every answer is that of an undisturbed comparison, every end was
told to a webhook, no file and no process is left, memory and open files do not grow, /api/health answers. A broken rule is
printed, and the status is 1.

As root the data folder is a file system of its own in memory, so that it can be filled; without root no disk is filled.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from dumpscope.client import Client, Comparison, Dump, ServerError, SignatureError, verify_webhook

ROOT: Final = Path(__file__).resolve().parents[1]
PAIRS: Final = (
    ("target_fault", "golden"),
    ("stat_fault", "stat_golden"),
    ("golden", "golden"),
    ("target_nan", "golden"),
)
POLICIES: Final = ("default", "msprobe")
DISK_MIB: Final = 1024
RESULTS: Final = 16
"""Results that a client keeps with their dumps, so that the disk is full only when it is filled on purpose."""
WARM_SECONDS: Final = 90.0
"""Age of a process from which on its memory should be flat."""
FLAT_MIB: Final = 64.0
"""What the memory of the server may grow by in the second half of the longest time that one process ran."""
SLOW_P95, SLOW_TIMES = 0.5, 5.0
"""Seconds that /api/health may take at the 95th percentile, or, on a busy machine, how often what a plain file server takes."""
END_SECONDS: Final = 240.0
"""How long the work that is left may take after the last fault."""

Answer = tuple[Any, ...]


@dataclass
class Rules:
    """What was found broken, and what happened how often."""

    broken: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        with self.lock:
            self.seen[what] += 1

    def fail(self, what: str) -> None:
        with self.lock:
            self.broken.append(what)
        print(f"BROKEN {time.strftime('%X')} {what}", flush=True)

    def hold(self, what: str, good: bool, why: object = "") -> None:
        if not good:
            self.fail(f"{what}: {why}")


class Server:
    """`dumpscope serve` on one port and folder, through many lives. windows: times in which it was disturbed"""

    def __init__(self, room: Path, data: Path, roots: list[Path], url: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}"
        self.data, self.temporary = data, room / "tmp"
        self.temporary.mkdir()
        self.log = room / "server.log"
        self.windows: list[list[float]] = []
        self._command = [
            str(Path(sys.executable).with_name("dumpscope")),
            "serve",
            "--port",
            str(self.port),
            "--data-dir",
            str(data),
        ]
        self._command += ["--webhook-host", "127.0.0.1", "--root", *map(str, roots)]
        self._environment = {
            **os.environ, "DUMPSCOPE_EXECUTOR": "processes:2", "TMPDIR": str(self.temporary), "DUMPSCOPE_UPLOAD_HOURS": "0.02",
            "DUMPSCOPE_DATABASE_URL": url,
        }  # fmt: skip
        self.process: psutil.Popen | None = None
        self.began = 0.0

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = psutil.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + 90
        while True:
            try:
                httpx.get(f"{self.address}/api/health", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start\n{self.log.read_text()[-3000:]}") from None
                time.sleep(0.1)
        self.began = time.monotonic()

    def workers(self) -> list[psutil.Process]:
        assert self.process is not None
        with suppress(psutil.NoSuchProcess):
            return [one for one in self.process.children(recursive=True) if "spawn_main" in " ".join(one.cmdline())]
        return []

    def end(self, how: signal.Signals) -> list[psutil.Process]:
        """End this life; the processes that outlived it by 15 s."""
        assert self.process is not None
        below = self.process.children(recursive=True)
        self.process.send_signal(how)
        self.process.wait(60)
        return list(psutil.wait_procs(below, timeout=15)[1])

    @contextmanager
    def disturbed(self) -> Iterator[None]:
        window = [time.time(), float("inf")]
        self.windows.append(window)
        try:
            yield
        finally:
            window[1] = time.time()

    def was_disturbed(self, begin: float, end: float) -> bool:
        """Whether a fault may explain what happened in this time; its effects may show some seconds later."""
        return any(start - 1 <= end and begin <= stop + 10 for start, stop in self.windows)


@contextmanager
def receiver(rules: Rules) -> Iterator[tuple[str, dict[str, str], dict[str, int]]]:
    """An address for a webhook, its secret (to be filled in), and how often the end of each job was told."""
    secret: dict[str, str] = {}
    told: dict[str, int] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                job = verify_webhook(body, self.headers["Dumpscope-Signature"], secret.get("it", ""))["job"]
                told[job] = told.get(job, 0) + 1
            except SignatureError as error:
                rules.fail(f"a webhook was signed wrongly: {error}")
            self.send_response(503 if random.random() < 0.1 else 204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", secret, told
        server.shutdown()


def answer(client: Client, comparison: Comparison) -> Answer:
    """What must be the same whenever the same two dumps are compared."""
    found = client.summary(comparison)
    origins = [(one["node"], one["kind"], one["step"], one["rank"]) for one in found["origins"]]
    return found["outcome"], tuple(sorted(found["counts"].items())), tuple(origins), found["policy"]


@dataclass
class Kept:
    """What a client was told is there, and was not deleted. answers: comparison -> its answer and the job that made it
    unsure: the server was asked to delete it and died before it answered"""

    dumps: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)
    jobs: set[str] = field(default_factory=set)


class Actor(threading.Thread):
    """One client: rounds of everyday work, each step checked."""

    def __init__(self, soak: Soak, number: int) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.soak, self.number = soak, number
        self.chance = random.Random(soak.seed + number)
        self.kept = Kept()
        self.results: deque[tuple[Comparison, list[Dump]]] = deque()
        self.own = soak.room / f"client-{number}"
        for name in {one for pair in PAIRS for one in pair}:
            shutil.copytree(soak.dumps / name, self.own / name)

    def run(self) -> None:
        while not self.soak.stopping.is_set():
            begun = time.time()
            try:
                with Client(self.soak.server.address) as client:
                    self._round(client)
                self.soak.rules.count("rounds")
            except (ServerError, httpx.HTTPError) as error:
                self.soak.rules.count("rounds that a fault broke off")
                if not self.soak.server.was_disturbed(begun, time.time()):
                    self.soak.rules.fail(f"{self.name} without a fault: {error!r} {getattr(error, 'job', '')}")
                time.sleep(1)
            except Exception as error:
                self.soak.rules.fail(f"{self.name}: {error!r}")
                time.sleep(1)

    def _round(self, client: Client) -> None:
        pair = self.chance.choice(PAIRS)
        dumps = [self._dump(client, name) for name in pair]
        comparison = client.compare(*dumps, wait=False)
        self.kept.accepted.add(comparison.id)
        if self.chance.random() < 0.5:
            self._follow(comparison)
        comparison = client.wait(comparison)
        self._check(client, comparison, pair, "default")
        if self.chance.random() < 0.5:
            policy = self.chance.choice(POLICIES)
            comparison = client.judge(comparison, policy)
            self._check(client, comparison, pair, policy)
        if comparison.origin is not None and self.chance.random() < 0.3:
            text = f"{self.name} {time.time()}"
            client.set_note(comparison, comparison.origin["node"], text=text)
            stored = {one["node"]: one["text"] for one in client.notes(comparison)}
            mine = stored.get(comparison.origin["node"], "")
            self.soak.rules.hold(
                "a note is read back", mine.startswith("client-"), mine
            )  # others write notes on the same dumps
        if self.chance.random() < 0.2:
            client.export(comparison, self.chance.choice(("csv", "json", "db")), self.own / "export")
            (self.own / "export").unlink()
        if self.chance.random() < 0.7:
            self._let_go(client, comparison, dumps)
        else:
            self.results.append((comparison, dumps))
        while len(self.results) > RESULTS:
            self._let_go(client, *self.results.popleft())

    def _let_go(self, client: Client, comparison: Comparison, dumps: list[Dump]) -> None:
        self._remove(comparison.id, lambda: client.delete_comparison(comparison))
        self.kept.answers.pop(comparison.id, None)
        for dump in dumps:
            self._remove(dump.id, lambda dump=dump: client.delete_dump(dump))  # type: ignore[misc]
            self.kept.dumps.pop(dump.id, None)

    def _dump(self, client: Client, name: str) -> Dump:
        way = self.chance.choice(("register", "pieces", "whole"))
        if way == "register":
            dump = client.register(str(self.soak.dumps / name))
        elif way == "pieces":
            fresh = self.own / f"upload-{self.chance.getrandbits(40):x}"  # the same files would be the same upload
            shutil.copytree(self.own / name, fresh / name)
            try:
                dump = client.upload(fresh / name)
            finally:
                shutil.rmtree(fresh)
        else:
            dump = self._send_whole(client, name)
        self.soak.rules.count(f"dumps: {way}")
        self.soak.rules.hold("a dump that was waited for is ready", dump.status == "ready", dump)
        self.kept.dumps[dump.id] = name
        return dump

    def _send_whole(self, client: Client, name: str) -> Dump:
        files = [
            ("files", (f"{name}/{file.relative_to(self.own / name)}", file.read_bytes()))
            for file in sorted((self.own / name).rglob("*"))
            if file.is_file()
        ]
        reply = httpx.post(f"{client.base}/uploads", files=files, timeout=120)
        if not reply.is_success:
            raise ServerError(reply.json(), reply.status_code)
        return client.wait(client.dump(reply.json()["id"]))

    def _follow(self, comparison: Comparison) -> None:
        """Read the event stream of a job to its end."""
        last = ""
        with httpx.stream("GET", f"{self.soak.server.address}/api/jobs/{comparison.job}/events", timeout=120) as stream:
            for line in stream.iter_lines():
                last = line.removeprefix("event: ") if line.startswith("event: ") else last
                if last in ("done", "failed"):
                    break
        self.soak.rules.count(f"event streams that ended with {last or 'nothing'}")

    def _check(self, client: Client, comparison: Comparison, pair: tuple[str, str], policy: str) -> None:
        found, wanted = answer(client, comparison), self.soak.answers[pair, policy]
        self.soak.rules.hold(
            f"the answer of {pair} by {policy} is the undisturbed one", found == wanted, (found, wanted)
        )
        self.kept.answers[comparison.id] = found
        if comparison.job:
            self.kept.jobs.add(comparison.job)
        self.soak.rules.count("answers")

    def _remove(self, id: str, delete: Callable[[], None]) -> None:
        try:
            delete()
        except ServerError as error:
            if error.reply_status == 0:
                self.kept.unsure.add(id)
            if error.reply_status != 404:  # the first of two tries may have done it
                raise
        self.kept.deleted.add(id)


class Nuisance(threading.Thread):
    """A client that is slow on purpose, or goes away in the middle."""

    def __init__(self, soak: Soak) -> None:
        super().__init__(name="slow client", daemon=True)
        self.soak = soak
        self.chance = random.Random(soak.seed - 1)

    def run(self) -> None:
        ways = (self._slow_head, self._slow_body, self._slow_reader, self._half_upload, self._idle_stream)
        while not self.soak.stopping.is_set():
            way = self.chance.choice(ways)
            with suppress(OSError, httpx.HTTPError, IndexError, KeyError, ValueError):
                way()
            self.soak.rules.count(f"slow clients: {way.__name__[1:]}")
            self.soak.stopping.wait(1)

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.soak.server.port), 10)

    def _slow_head(self) -> None:
        with ExitStack() as stack:
            sockets = [stack.enter_context(self._connect()) for _ in range(20)]
            for byte in b"GET /api/dumps HTTP/1.1\r\nHost: 127":
                for one in sockets:
                    one.send(bytes([byte]))
                if self.soak.stopping.wait(0.4):
                    return

    def _slow_body(self) -> None:
        head = (
            f"POST /api/comparisons HTTP/1.1\r\nHost: 127.0.0.1:{self.soak.server.port}\r\nContent-Length: 5000\r\n\r\n"
        )
        with ExitStack() as stack:
            sockets = [stack.enter_context(self._connect()) for _ in range(10)]
            for one in sockets:
                one.send(head.encode())
            for _ in range(15):
                for one in sockets:
                    one.send(b"{")
                if self.soak.stopping.wait(0.5):
                    return

    def _slow_reader(self) -> None:
        found = httpx.get(f"{self.soak.server.address}/api/comparisons?limit=1", timeout=30).json()["items"][0]["id"]
        ask = f"GET /api/comparisons/{found}/export.json?pairs=true HTTP/1.1\r\nHost: 127.0.0.1:{self.soak.server.port}\r\n\r\n"
        with self._connect() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.send(ask.encode())
            for _ in range(20):
                one.recv(512)
                if self.soak.stopping.wait(0.5):
                    return

    def _half_upload(self) -> None:
        place = f"{self.soak.server.address}/api/uploads/half-{self.chance.getrandbits(40):x}"
        httpx.put(place, json={"files": 2, "bytes": 1 << 20}, timeout=30).raise_for_status()
        query = {"path": "dump/step0/rank0/dump.json", "size": 1 << 20, "offset": 0}
        httpx.put(f"{place}/files", params=query, content=b"{" * 1000, timeout=30)

    def _idle_stream(self) -> None:
        found = httpx.get(f"{self.soak.server.address}/api/jobs?limit=50", timeout=30).json()["items"]
        with ExitStack() as stack:
            for job in found[:20]:
                one = stack.enter_context(self._connect())
                one.send(
                    f"GET /api/jobs/{job['id']}/events HTTP/1.1\r\nHost: 127.0.0.1:{self.soak.server.port}\r\n\r\n".encode()
                )
            self.soak.stopping.wait(5)


class Faults(threading.Thread):
    """Kills, restarts and full disks, one after the other with pauses."""

    def __init__(self, soak: Soak, *, fills: bool, apart: int) -> None:
        """apart: faults from one end of the server to the next"""
        super().__init__(name="faults", daemon=True)
        self.soak = soak
        self.chance = random.Random(soak.seed + 1000)
        small = [self._kill_worker, self._fill_disk] if fills else [self._kill_worker]
        self.deck = [*(small[number % len(small)] for number in range(apart - 1)), self._kill_server]
        self.deck += [*(small[number % len(small)] for number in range(apart - 1)), self._restart]

    def run(self) -> None:
        number = len(self.deck) // 2 - 3  # so that the first end of the server comes soon
        while not self.soak.stopping.wait(self.chance.uniform(15, 40)):
            way = self.deck[number % len(self.deck)]
            number += 1
            try:
                with self.soak.server.disturbed():
                    way()
            except Exception as error:
                self.soak.rules.fail(f"{way.__name__[1:]}: {error!r}")
                self.soak.stopping.set()
            self.soak.rules.count(f"faults: {way.__name__[1:]}")

    def _kill_worker(self) -> None:
        for _ in range(100):
            found = self.soak.server.workers()
            if found:
                self.chance.choice(found).kill()
                return
            time.sleep(0.1)

    def _kill_server(self) -> None:
        left = self.soak.server.end(signal.SIGKILL)
        self.soak.rules.hold("no worker outlives a killed server", not left, left)
        self.soak.server.start()

    def _restart(self) -> None:
        left = self.soak.server.end(signal.SIGTERM)
        self.soak.rules.hold("no process outlives a server that was ended", not left, left)
        self.soak.server.start()

    def _fill_disk(self) -> None:
        ballast = self.soak.server.data.parent / "ballast"
        try:
            with ballast.open("wb") as file:
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
        except OSError:
            pass
        try:
            self.soak.stopping.wait(self.chance.uniform(4, 10))
        finally:
            ballast.unlink()


@dataclass
class Sample:
    at: float
    life: float
    memory: float
    files: int


class Soak:
    """One run on one kind of database."""

    def __init__(self, room: Path, mount: Path, url: str, *, clients: int, seed: int, fills: bool, apart: int) -> None:
        self.room, self.seed = room, seed
        self.rules = Rules()
        self.stopping = threading.Event()
        self.dumps = room / "dumps"
        self.dumps.mkdir()
        subprocess.run(["tar", "-xf", str(ROOT / "tests/data/dumps.tar.xz"), "-C", str(self.dumps)], check=True)
        data = mount / "data"
        self.server = Server(room, data, [self.dumps], url)
        self.answers: dict[tuple[tuple[str, str], str], Answer] = {}
        self.samples: list[Sample] = []
        self.latencies: list[float] = []
        self.references: list[float] = []
        """Seconds of replies of `python -m http.server` at the same times: what the machine itself takes."""
        self.actors = [Actor(self, number) for number in range(clients)]
        self.others: list[threading.Thread] = [Nuisance(self), Faults(self, fills=fills, apart=apart)]

    def run(self, seconds: float) -> None:
        with receiver(self.rules) as (hook, secret, told):
            self.server.start()
            with Client(self.server.address) as client:
                made = client.create_webhook(hook, kinds=["compare", "rejudge"])
                secret["it"] = made.secret
                self._learn(client)
            quiet = self._state()
            threads = [*self.actors, *self.others, threading.Thread(target=self._measure, daemon=True)]
            for one in threads:
                one.start()
            self.stopping.wait(seconds)
            self.stopping.set()
            for one in threads:
                one.join(180)
                self.rules.hold("every client came to its end", not one.is_alive(), one.name)
            if self.server.process is None or self.server.process.poll() is not None:
                self.server.start()
            self._conclude(told, quiet)
        self._print(quiet)

    def _learn(self, client: Client) -> None:
        """The undisturbed answers, and twice the work, so that what is loaded once is loaded."""
        for _ in range(2):
            for pair in PAIRS:
                sides = [client.register(str(self.dumps / name)) for name in pair]
                found = client.compare(*sides)
                self.answers[pair, "default"] = answer(client, found)
                found = client.judge(found, "msprobe")
                self.answers[pair, "msprobe"] = answer(client, found)
                client.delete_comparison(found)
                for side in sides:
                    client.delete_dump(side)
        with ThreadPoolExecutor(32) as many:  # so that the pools of threads and connections are as large as they become
            list(many.map(lambda _: httpx.get(f"{client.base}/comparisons", timeout=60).raise_for_status(), range(200)))

    def _state(self) -> Sample:
        assert self.server.process is not None
        with self.server.process.oneshot():
            memory = self.server.process.memory_info().rss / 2**20
            files = self.server.process.num_fds()
        return Sample(time.monotonic(), self.server.began, memory, files)

    def _measure(self) -> None:
        empty = self.room / "empty"
        empty.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        command = [sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", str(empty)]
        other = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._ask_again_and_again(f"http://127.0.0.1:{port}/")
        finally:
            other.kill()
            other.wait()

    def _ask_again_and_again(self, reference: str) -> None:
        while not self.stopping.wait(0.5):
            if any(stop == float("inf") for _, stop in self.server.windows):
                continue
            begun = time.monotonic()
            try:
                httpx.get(f"{self.server.address}/api/health", timeout=30).raise_for_status()
            except httpx.HTTPError as error:
                now = time.time()
                self.rules.hold("health answers", self.server.was_disturbed(now - 31, now), repr(error))
                continue
            self.latencies.append(time.monotonic() - begun)
            begun = time.monotonic()
            with suppress(httpx.HTTPError):
                httpx.get(reference, timeout=30)
                self.references.append(time.monotonic() - begun)
            if len(self.latencies) % 4 == 0:
                with suppress(psutil.Error):
                    self.samples.append(self._state())

    def _conclude(self, told: dict[str, int], quiet: Sample) -> None:
        with Client(self.server.address) as client:
            self._await_jobs(client)
            for actor in self.actors:
                kept = actor.kept
                for dump_id, name in kept.dumps.items():
                    self._exists(lambda dump_id=dump_id: client.dump(dump_id), f"dump {dump_id} of {name}")  # type: ignore[misc]
                for found in kept.accepted - kept.deleted - kept.unsure:
                    row = self._exists(lambda found=found: client.comparison(found), f"comparison {found}")  # type: ignore[misc]
                    self.rules.hold(
                        "a comparison is over", row is None or row.status in ("done", "failed", "cancelled"), row
                    )
                for found, wanted in kept.answers.items():
                    row = self._exists(lambda found=found: client.comparison(found), f"answer {found}")  # type: ignore[misc]
                    if row is not None and row.status == "done":
                        now = answer(client, row)
                        self.rules.hold(
                            "a kept answer is the same", now[:3] == wanted[:3] or now[3] != wanted[3], (now, wanted)
                        )
                for found in kept.deleted:
                    self._is_gone(client, found)
            self._await(lambda: all(job in told for actor in self.actors for job in actor.kept.jobs), 60)
            missing = {job for actor in self.actors for job in actor.kept.jobs} - set(told)
            self.rules.hold("every end was told to the webhook", not missing, missing)
            self._empty(client)
        assert self.server.process is not None
        self._await(lambda: self._state().files <= quiet.files + 10, 60)
        if self.server.began == quiet.life:
            self.rules.hold("open files are as at the start", self._state().files <= quiet.files + 10, self._state())
        time.sleep(80)  # unfinished uploads are kept for 72 s
        left = self.server.end(signal.SIGTERM)
        self.rules.hold("no process outlives the server", not left, left)
        self.server.start()  # a start removes what is left over
        time.sleep(3)
        self.server.end(signal.SIGTERM)
        files = [str(one.relative_to(self.server.data)) for one in self.server.data.rglob("*") if one.is_file()]
        foreign = [one for one in files if not one.startswith("dumpscope.db")]
        self.rules.hold("no file is left in the data folder", not foreign, foreign[:10])
        rest = [one.name for one in self.server.temporary.iterdir()]
        self.rules.hold("no file is left in the temporary folder", not rest, rest[:10])
        log = self.server.log.read_text(errors="replace")
        self.rules.seen["tracebacks in the log"] = log.count("Traceback (most recent call last)")

    def _await_jobs(self, client: Client) -> None:
        def open_jobs() -> list[dict[str, Any]]:
            found = httpx.get(f"{client.base}/jobs?limit=500", timeout=60).json()["items"]
            return [one for one in found if one["status"] in ("queued", "running")]

        self._await(lambda: not open_jobs(), END_SECONDS)
        left = open_jobs()
        self.rules.hold(
            "every job ends", not left, [(one["id"], one["kind"], one["status"], one["message"]) for one in left]
        )

    def _await(self, good: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not good() and time.monotonic() < deadline:
            time.sleep(0.5)

    def _exists(self, get: Callable[[], Any], what: str) -> Any:
        try:
            return get()
        except ServerError as error:
            self.rules.fail(f"{what} was acknowledged and is lost: {error}")
            return None

    def _is_gone(self, client: Client, id: str) -> None:
        for get in (client.dump, client.comparison):
            with suppress(ServerError):
                self.rules.fail(f"{id} was deleted and is there: {get(id)}")

    def _empty(self, client: Client) -> None:
        """Delete everything."""
        for comparison in list(client.comparisons()):
            client.delete_comparison(comparison)
        for dump in list(client.dumps()):
            client.delete_dump(dump)
        self.rules.hold("everything can be deleted", not list(client.dumps()) and not list(client.comparisons()))

    def _print(self, quiet: Sample) -> None:
        lives: dict[float, list[Sample]] = {}
        for one in self.samples:
            lives.setdefault(one.life, []).append(one)
        warm = [[one for one in life if one.at - one.life > WARM_SECONDS] for life in lives.values()]
        longest = max(warm, key=lambda life: life[-1].at - life[0].at if life else 0.0, default=[])
        if len(longest) > 10:
            half = len(longest) // 2
            first, second = (statistics.median(one.memory for one in part) for part in (longest[:half], longest[half:]))
            slope = (
                statistics.linear_regression([one.at for one in longest], [one.memory for one in longest]).slope * 3600
            )
            took = longest[-1].at - longest[0].at
            print(
                f"memory: {first:.0f} MiB, then {second:.0f} MiB; slope {slope:+.0f} MiB/h over {took:.0f} s of one process"
            )
            self.rules.hold("memory is flat", second - first < FLAT_MIB, f"{first:.0f} -> {second:.0f} MiB")
            files = [one.files for one in longest]
            print(f"open files: {quiet.files} at rest, median {statistics.median(files):.0f}, most {max(files)}")
        if len(self.latencies) > 20 and len(self.references) > 20:
            cuts = statistics.quantiles(self.latencies, n=100)
            plain = statistics.quantiles(self.references, n=100)[94]
            print(
                f"health: p50 {cuts[49] * 1000:.0f} ms, p95 {cuts[94] * 1000:.0f} ms, most {max(self.latencies):.2f} s;"
                f" Python's file server p95 {plain * 1000:.0f} ms; load average {os.getloadavg()[1]:.1f}"
            )
            soon = cuts[94] < max(SLOW_P95, SLOW_TIMES * plain)
            self.rules.hold("health answers soon", soon, f"p95 {cuts[94]:.2f} s")
        for what, count in sorted(self.rules.seen.items()):
            print(f"{count:6} {what}")


@contextmanager
def file_system(folder: Path, megabytes: int) -> Iterator[bool]:
    """A file system of its own in a folder, where that is allowed; says whether it is."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def soak(kind: str, given: argparse.Namespace) -> list[str]:
    """What was broken on one kind of database."""
    with ExitStack() as stack:
        room = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="dumpscope-soak-", ignore_cleanup_errors=True))
        )
        fills = stack.enter_context(file_system(room / "disk", DISK_MIB))
        url = os.environ.get("DUMPSCOPE_TEST_POSTGRES_URL", "") if kind == "postgresql" else ""
        disk = "a disk that can be filled" if fills else "no full disk"
        print(f"== {kind}, {given.minutes:g} min, {given.clients} clients, {disk}", flush=True)
        apart = 24 if given.minutes >= 30 else 8
        one = Soak(room, room / "disk", url, clients=given.clients, seed=given.seed, fills=fills, apart=apart)
        try:
            one.run(given.minutes * 60)
        finally:
            with suppress(psutil.Error, AttributeError):
                one.server.end(signal.SIGKILL)
            if given.log:
                shutil.copy(one.server.log, f"{given.log}.{kind}")
        return one.rules.broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", help="keep the server's log as FILE.KIND")
    given = parser.parse_args()
    broken: list[str] = []
    for kind in ("sqlite", "postgresql") if given.database == "both" else (given.database,):
        if kind == "postgresql" and not os.environ.get("DUMPSCOPE_TEST_POSTGRES_URL"):
            again = [
                sys.executable,
                __file__,
                "--database",
                kind,
                "--minutes",
                str(given.minutes),
                "--seed",
                str(given.seed),
            ]
            again += ["--clients", str(given.clients), *(["--log", given.log] if given.log else [])]
            status = subprocess.run([str(ROOT / ".ci" / "with-postgres"), *again], check=False).returncode
            broken += ["postgresql: see above"] * (status != 0)
            continue
        broken += soak(kind, given)
    print(f"{len(broken)} broken rules" if broken else "nothing lost, every job ended, every answer right")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
