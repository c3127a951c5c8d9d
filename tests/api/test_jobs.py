"""Jobs over HTTP: watched live or late, cancelled, and finished by the next server after a crash."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api import job_feed
from dumpscope.api.app import create_app
from dumpscope.api.http import header_timeout
from dumpscope.api.http.header_timeout import TimedHeads
from dumpscope.api.models import jobs as models
from dumpscope.domain.job import PROVISIONAL_MARK, Job
from dumpscope.errors import CancelledError
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.jobs.runner import Cancelled, Progress, Runner
from dumpscope.pipeline.server import job_kinds


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """(event, job) of a finished event stream; comments and settings left out."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


class Gate:
    """Holds every comparison until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()

    def wrap(self, compare: Any) -> Any:
        def gated(job: Job, progress: Progress, cancelled: Cancelled) -> None:
            self.reached.set()
            while not self.open.wait(0.02):
                progress(0.25, "held")
                if cancelled():
                    raise CancelledError("cancelled")
            compare(job, progress, cancelled)

        return gated


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    held = Gate()
    genuine = job_kinds.job_kinds

    def kinds(*args: Any) -> Any:
        found = genuine(*args)
        return {**found, "compare": held.wrap(found["compare"])}

    monkeypatch.setattr("dumpscope.api.app.job_kinds", kinds)
    yield held
    held.open.set()


def start(client: Client, dumps: Path) -> dict[str, Any]:
    ids = [register(client, dumps / name) for name in ("stat_fault", "stat_golden")]
    body: dict[str, Any] = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1]}).json()
    return body


def test_a_late_listener_learns_the_end(client: Client, dumps: Path) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    job = client.get(f"/api/comparisons/{comparison}").json()["job"]
    reply = client.get(f"/api/jobs/{job}/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    ((name, data),) = events_of(reply.text)
    TypeAdapter(models.Job).validate_python(data)
    assert (name, data["status"], data["progress"]) == ("done", "done", 1.0)


def test_a_failed_job_ends_its_stream_with_the_reason(client: Client, dumps: Path) -> None:
    dump = register(client, dumps / "README.md")
    settled(client, f"/api/dumps/{dump}")
    job = client.get(f"/api/dumps/{dump}").json()["job"]
    name, data = events_of(client.get(f"/api/jobs/{job}/events").text)[-1]
    assert name == "failed"
    assert data["error"]["status"] == 422


@pytest.fixture
def live(make_settings: Make, gate: Gate) -> Iterator[str]:
    """Address of a server on a real socket: streams and their ends are only true there."""
    settings = make_settings()
    config = uvicorn.Config(
        create_app(settings), port=0, log_level="error", timeout_graceful_shutdown=2, http=TimedHeads
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive(), "an open stream does not keep the server from stopping"


def test_progress_is_seen_as_it_happens(live: str, gate: Gate, dumps: Path) -> None:
    with httpx.Client(base_url=live) as client:
        started = start(client, dumps)  # type: ignore[arg-type]
        seen: list[tuple[str, str]] = []
        with client.stream("GET", f"/api/jobs/{started['job']}/events", timeout=30) as stream:
            text = ""
            for piece in stream.iter_text():
                text += piece
                seen = [(name, job["status"]) for name, job in events_of(text)]
                if ("progress", "running") in seen:
                    gate.open.set()
        assert seen[-1] == ("done", "done")
        assert [name for name, _status in seen].count("done") == 1
        versions = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
        assert versions == sorted(set(versions))


def test_the_server_stops_while_somebody_listens(live: str, gate: Gate, dumps: Path) -> None:
    with httpx.Client(base_url=live) as client:
        started = start(client, dumps)  # type: ignore[arg-type]
        assert gate.reached.wait(20)

        def listen() -> None:
            with suppress(httpx.HTTPError), httpx.Client(base_url=live) as other:
                other.get(f"/api/jobs/{started['job']}/events", timeout=30)

        threading.Thread(target=listen, daemon=True).start()
        time.sleep(0.5)


def test_many_streams_of_a_job_cost_one_reader_and_all_learn_its_end(
    live: str, gate: Gate, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 150
    with httpx.Client(base_url=live) as client:
        started = start(client, dumps)  # type: ignore[arg-type]
        assert gate.reached.wait(20)
        reads = 0
        genuine = job_feed.run_in_threadpool

        async def counted(read: Any, job_id: str) -> Any:
            nonlocal reads
            reads += 1
            return await genuine(read, job_id)

        async def listen() -> list[str]:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=live, timeout=60, limits=limits) as many:
                streams = [asyncio.create_task(many.get(f"/api/jobs/{started['job']}/events")) for _ in range(count)]
                await asyncio.sleep(2)
                monkeypatch.setattr(job_feed, "run_in_threadpool", counted)
                begun = time.monotonic()
                await asyncio.sleep(3)
                assert (await many.get("/api/health")).status_code == 200
                most = (time.monotonic() - begun) / job_feed.POLL_SECONDS
                assert 0 < reads <= most + 2, "one reader, not one per stream"
                gate.open.set()
                return [(await stream).text for stream in streams]

        texts = asyncio.run(listen())
    assert [events_of(text)[-1][0] for text in texts] == ["done"] * count


def test_a_client_has_so_many_streams_and_no_more(
    live: str, gate: Gate, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_feed, "STREAMS_PER_CLIENT", 2)
    with httpx.Client(base_url=live) as client, ExitStack() as streams:
        started = start(client, dumps)  # type: ignore[arg-type]
        assert gate.reached.wait(20)
        address = f"/api/jobs/{started['job']}/events"
        opened = [streams.enter_context(httpx.stream("GET", f"{live}{address}")) for _ in range(2)]
        assert [stream.status_code for stream in opened] == [200, 200]
        refused = client.get(address)
        assert (refused.status_code, refused.json()["error"]) == (429, "busy")
        opened[0].close()
        deadline = time.monotonic() + 20
        while client.get(f"/api/jobs/{started['job']}").status_code == 200:
            with client.stream("GET", address) as again:
                if again.status_code == 200:
                    break
            assert time.monotonic() < deadline, "a stream that was closed counts no longer"
            time.sleep(0.2)
        gate.open.set()


def test_a_request_whose_head_never_ends_is_closed(live: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_timeout, "HEAD_SECONDS", 0.5)
    host, port = live.removeprefix("http://").split(":")
    for sent in (b"", b"GET / HT", b"GET /api/health HTTP/1.1\r\nHost: x"):
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(sent)
            assert slow.recv(100) == b"", "the server has closed it"
    with socket.create_connection((host, int(port)), timeout=20) as kept:
        whole = b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        for _ in range(2):  # a pause between two requests is no slow head
            kept.sendall(whole)
            reply = b""
            while not reply.endswith(b"}"):
                reply += kept.recv(65536)
            assert reply.startswith(b"HTTP/1.1 200")
            time.sleep(0.8)
        kept.sendall(b"GET /api")
        assert kept.recv(100) == b""


def test_a_running_comparison_is_cancelled_and_can_be_deleted(make_settings: Make, gate: Gate, dumps: Path) -> None:
    with TestClient(create_app(make_settings()), base_url=BASE) as client:
        started = start(client, dumps)
        assert gate.reached.wait(20)
        running = client.get(f"/api/jobs/{started['job']}").json()
        assert running["status"] == "running"
        client.post(f"/api/comparisons/{started['id']}/cancel")
        row = settled(client, f"/api/comparisons/{started['id']}")
        assert (row["status"], row["counts"]) == ("cancelled", None)
        assert client.get(f"/api/jobs/{started['job']}").json()["status"] == "cancelled"
        assert events_of(client.get(f"/api/jobs/{started['job']}/events").text)[-1][0] == "failed"
        again = client.post(f"/api/comparisons/{started['id']}/cancel")
        assert again.json()["status"] == "cancelled"
        assert client.delete(f"/api/comparisons/{started['id']}").status_code == 204


def test_deleting_a_running_comparison_stops_its_work_first(make_settings: Make, gate: Gate, dumps: Path) -> None:
    with TestClient(create_app(make_settings()), base_url=BASE) as client:
        started = start(client, dumps)
        assert gate.reached.wait(20)
        assert client.delete(f"/api/comparisons/{started['id']}").status_code == 204
        assert client.get(f"/api/jobs/{started['job']}").json()["status"] == "cancelled"
        gate.open.set()
        assert client.get("/api/comparisons").json()["total"] == 0


def test_the_next_server_finishes_what_the_last_one_left(make_settings: Make, gate: Gate, dumps: Path) -> None:
    settings = make_settings()
    with TestClient(create_app(settings), base_url=BASE) as client:
        started = start(client, dumps)
        assert gate.reached.wait(20)
    gate.open.set()
    with TestClient(create_app(settings), base_url=BASE) as client:
        row = settled(client, f"/api/comparisons/{started['id']}")
        assert row["status"] == "done"
        assert row["origin"]["node"] == "Functional.softmax.1.forward"


def test_a_crashed_comparison_starts_over_without_leftovers(make_settings: Make, dumps: Path) -> None:
    settings = make_settings()
    with TestClient(create_app(settings), base_url=BASE) as client:
        comparison = compare(client, dumps / "target_fault", dumps / "golden")
        job = client.get(f"/api/comparisons/{comparison}").json()["job"]
        before = client.get(f"/api/comparisons/{comparison}/summary").json()
        table = client.app.state.shared.jobs  # type: ignore[attr-defined]
        table.change(job, status="running", finished=None)  # as a crash leaves it
    with TestClient(create_app(settings), base_url=BASE) as client:
        settled(client, f"/api/jobs/{job}")
        assert client.get(f"/api/comparisons/{comparison}/summary").json() == before
        with client.app.state.shared.database.read() as connection:  # type: ignore[attr-defined]
            owners = connection.exec_driver_sql("SELECT DISTINCT id >> 28 FROM item_pair").scalars().all()
            units = connection.exec_driver_sql("SELECT id FROM unit").scalars().all()
        assert sorted(owners) == sorted(units)


def test_jobs_are_listed_newest_first(client: Client, dumps: Path) -> None:
    compare(client, dumps / "stat_fault", dumps / "stat_golden")
    page = client.get("/api/jobs?limit=2").json()
    assert page["total"] == 3
    assert page["items"][0]["kind"] == "compare"
    rest = client.get(f"/api/jobs?limit=2&cursor={page['next']}").json()
    assert [job["kind"] for job in rest["items"]] == ["ingest"]


def test_worker_processes_give_the_same_answer_as_threads(make_settings: Make, dumps: Path) -> None:
    with TestClient(create_app(make_settings(executor="processes:2")), base_url=BASE) as client:
        comparison = compare(client, dumps / "dist2_tensor_fault", dumps / "dist2_tensor_golden")
        row = client.get(f"/api/comparisons/{comparison}").json()
        assert row["origin"] == {"node": "Tensor.__add__.0.forward", "kind": "structure", "step": 0, "rank": 1}


def test_a_job_that_ends_before_it_is_noted_still_settles_its_subject(
    client: Client, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = Runner.submit

    def submit_and_wait(runner: Runner, kind: str, subject: str, payload: dict[str, Any] | None = None) -> Job:
        job = submit(runner, kind, subject, payload)
        while client.get(f"/api/jobs/{job.id}").json()["status"] in ("queued", "running"):
            time.sleep(0.01)
        return job

    monkeypatch.setattr(Runner, "submit", submit_and_wait)
    lost = register(client, dumps / "README.md")
    assert settled(client, f"/api/dumps/{lost}", 5)["status"] == "failed"
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
    assert client.patch(f"/api/comparisons/{comparison}", json={"policy": "ptdbg"}).status_code == 200
    row = settled(client, f"/api/comparisons/{comparison}", 5)
    assert (row["status"], row["policy"]) == ("done", "ptdbg")


def test_a_comparison_does_not_wait_for_a_dump_that_is_still_uploaded(client: Client, dumps: Path) -> None:
    golden = register(client, dumps / "stat_golden")
    shared = client.app.state.shared  # type: ignore[attr-defined]
    uploading = create_dump(shared.database, name="upload", path="", owned=True)
    reply = client.post("/api/comparisons", json={"target": uploading, "golden": golden})
    assert (reply.status_code, reply.json()["error"]) == (409, "conflict")
    assert "uploaded" in reply.json()["detail"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux lists what a process has open")
def test_a_server_that_has_stopped_holds_no_file_of_its_database(make_settings: Make, dumps: Path) -> None:
    settings = make_settings()
    with TestClient(create_app(settings), base_url=BASE) as running:
        compare(running, dumps / "target_fault", dumps / "golden")
        assert held(settings.data_dir), "a running server has its database open"
    deadline = time.monotonic() + 20  # a thread that has just finished its task may still be giving its connection back
    while held(settings.data_dir) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert held(settings.data_dir) == []


def held(folder: Path) -> list[str]:
    """Files below a folder that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(descriptor.readlink()))
    return sorted(name for name in found if name.startswith(f"{folder}/"))


def test_a_provisional_answer_is_a_field_of_its_own() -> None:
    node = "Functional.a;b.0.forward"
    job = Job(
        id="1", kind="compare", subject="2", status="running", message=f"12 of 500 tensors{PROVISIONAL_MARK}{node}"
    )
    wire = models.Job.model_validate(job)
    assert (wire.message, wire.provisional) == ("12 of 500 tensors", node)
    plain = models.Job.model_validate(replace(job, message="12 of 500 tensors"))
    assert (plain.message, plain.provisional) == ("12 of 500 tensors", None)
