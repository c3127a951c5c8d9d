"""Running servers over real dumps. Threads as workers: the suite stays fast, the path of the work is the same."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from index.databases import KINDS, empty_url

from dumpscope.api.app import create_app
from dumpscope.pipeline.server import ingest, job_kinds
from dumpscope.settings import Settings

BASE = "http://127.0.0.1:8000"

ERROR_KEYS = {"type", "title", "error", "detail", "hint", "status", "said", "hint_said"}
"""Of the one body that every error has."""

Client = TestClient
Make = Callable[..., Settings]
Compared = Callable[[Client, str, str], str]


@pytest.fixture
def make_settings(tmp_path: Path, dumps: Path) -> Make:
    """Settings over an empty data folder and the real dumps; keywords win."""

    def make(**given: Any) -> Settings:
        return Settings(**{"data_dir": tmp_path / "data", "roots": [dumps], "executor": "threads:2", **given})

    return make


@pytest.fixture
def client(make_settings: Make) -> Iterator[Client]:
    """A fresh server."""
    with TestClient(create_app(make_settings()), base_url=BASE) as running:
        yield running


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory, dumps: Path) -> Iterator[Callable[[str], Client]]:
    """The server of a kind of database, started when it is first asked for."""
    with ExitStack() as running:

        @cache
        def server(kind: str) -> Client:
            folder = tmp_path_factory.mktemp("served")
            url = empty_url(kind, folder)
            settings = Settings(data_dir=folder, roots=[dumps], executor="threads:2", database_url=url)
            return running.enter_context(TestClient(create_app(settings), base_url=BASE))

        yield server


@pytest.fixture(scope="package", params=KINDS)
def served(request: pytest.FixtureRequest, servers: Callable[[str], Client]) -> Client:
    """One server for all tests that only read. It outlives this fixture, which pytest makes anew whenever the kind changes."""
    return servers(request.param)


@pytest.fixture(scope="session")
def compared(dumps: Path) -> Compared:
    """Id of the comparison of two dumps on a server where tests only read, made when it is first asked for."""
    return cache(lambda client, target, golden: compare(client, dumps / target, dumps / golden))


@pytest.fixture(scope="package")
def fault(served: Client, compared: Compared) -> str:
    """Id of the comparison of target_fault with golden (two steps, tensors)."""
    return compared(served, "target_fault", "golden")


def register(client: Client, path: Path) -> str:
    reply = client.post("/api/dumps", json={"path": str(path)})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def compare(client: Client, target: Path, golden: Path, **options: Any) -> str:
    """Register both, compare, wait; returns the comparison's id."""
    ids = [register(client, path) for path in (target, golden)]
    reply = client.post("/api/comparisons", json={"target": ids[0], "golden": ids[1], "options": options})
    assert reply.status_code == 202, reply.text
    settled(client, f"/api/comparisons/{reply.json()['id']}")
    return str(reply.json()["id"])


def settled(client: Client, address: str, seconds: float = 60.0) -> dict[str, Any]:
    """The dump, comparison or job once its work is over."""
    deadline = time.monotonic() + seconds
    while True:
        body: dict[str, Any] = client.get(address).json()
        if body["status"] not in ("pending", "running", "queued"):
            return body
        assert time.monotonic() < deadline, body
        time.sleep(0.03)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each comparison that began before its dumps were stored came to its end like that."""
    found: list[bool] = []
    begin = job_kinds.compare_early

    def watched(*arguments: Any, **options: Any) -> bool:
        found.append(begin(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(job_kinds, "compare_early", watched)
    monkeypatch.setattr(ingest, "LEAST_PATIENCE", 60.0)  # the machine may be at work elsewhere
    return found


def ask(client: Client, target: str, golden: str) -> str:
    reply = client.post("/api/comparisons", json={"target": target, "golden": golden})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def ask_while_read(client: Client, gate: Path, *paths: Path, golden: str | None = None) -> str:
    """Register dumps with a server of two processes and have them compared; nothing is read before the comparison waits.

    golden: the dump, where it is registered already
    """
    hold = partial(subprocess.run, ["sh", "-c", f"while ! test -e {gate}; do sleep 0.02; done"])
    for _ in range(2):
        client.app.state.shared.executor.submit(hold)  # type: ignore[attr-defined]
    target = register(client, paths[0])
    comparison = ask(client, target, golden or register(client, paths[1]))
    job = client.get(f"/api/comparisons/{comparison}").json()["job"]
    while "waiting" not in client.get(f"/api/jobs/{job}").json()["message"]:
        time.sleep(0.02)
    gate.touch()
    assert settled(client, f"/api/jobs/{job}")["status"] == "done"  # later than the comparison, by what is cleared away
    return comparison
