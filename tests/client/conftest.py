"""A server on a real socket, and clients of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn

from dumpscope.api.app import create_app
from dumpscope.client import Client
from dumpscope.settings import Settings

TOKEN = "correct horse"


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the server may read."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="package")
def address(tmp_path_factory: pytest.TempPathFactory, dumps: Path, served: Path) -> Iterator[str]:
    """Address of a server with a token, which tests share."""
    folder = tmp_path_factory.mktemp("client")
    slow = folder / "python"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    settings = Settings(
        data_dir=folder / "data",
        roots=[dumps, served],
        executor="threads:2",
        token=TOKEN,
        webhook_hosts=["localhost"],
        python=str(slow),
    )
    server = uvicorn.Server(uvicorn.Config(create_app(settings), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, token=TOKEN) as client:
        yield client


@pytest.fixture(scope="package")
def fault(address: str, dumps: Path) -> str:
    """Id of the comparison of target_fault with golden."""
    with Client(address, token=TOKEN) as client:
        target, golden = (client.register(str(dumps / name)) for name in ("target_fault", "golden"))
        return client.compare(target, golden).id


@pytest.fixture
def as_user(address: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Sets the environment by which commands find the server."""

    def set_environment() -> None:
        monkeypatch.setenv("DUMPSCOPE_SERVER", address)
        monkeypatch.setenv("DUMPSCOPE_TOKEN", TOKEN)

    return set_environment
