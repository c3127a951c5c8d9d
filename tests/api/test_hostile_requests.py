"""Requests that are broken, too large, too slow or meant to harm get an answer that says so, and harm nobody."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api import pages
from dumpscope.api.app import create_app
from dumpscope.api.http import access
from dumpscope.api.http.access import BODY_BYTES
from dumpscope.api.routes.comparisons import exports

TOKEN = "correct horse"


@pytest.fixture
def guarded(make_settings: Make) -> Iterator[Client]:
    with TestClient(create_app(make_settings(token=TOKEN)), base_url=BASE, follow_redirects=False) as running:
        assert running.get(f"/?token={TOKEN}").status_code == 303
        yield running


def is_problem(reply: Any, status: int, code: str) -> None:
    """Every error has the one body, which is a problem of RFC 9457."""
    assert (reply.status_code, reply.json()["error"], reply.json()["status"]) == (status, code, status), reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["type"] == f"urn:dumpscope:error:{code}"
    assert reply.json()["title"]
    assert reply.json()["detail"]
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "foreign", ["a/b=1", 'prefs={"a":1}', "naked", "u=é", "=", ";;", "dumpscope_session", "x=dumpscope_session=1"]
)
def test_cookies_of_other_applications_on_the_host_are_ignored(guarded: Client, foreign: str) -> None:
    session = guarded.cookies["dumpscope_session"]
    guarded.cookies.clear()
    for header in (f"{foreign}; dumpscope_session={session}", f"dumpscope_session={session}; {foreign}"):
        assert guarded.get("/api/health", headers={"Cookie": header.encode()}).status_code == 200, header
    assert guarded.get("/api/health", headers={"Cookie": foreign.encode()}).status_code == 401


def test_every_reply_has_the_security_headers_refusals_included(guarded: Client, client: Client) -> None:
    guarded.cookies.clear()
    replies = [
        guarded.get("/api/health"),
        guarded.get("/", headers={"Accept": "text/html"}),
        guarded.get(f"/?token={TOKEN}"),
        client.get("/api/health", headers={"Host": "evil.example"}),
        client.post("/api/dumps", json={}, headers={"Origin": "http://evil.example"}),
        client.post("/api/dumps", content=b"x" * (BODY_BYTES + 1)),
        client.get("/nowhere"),
        client.get("/api/dumps"),
    ]
    assert [reply.status_code for reply in replies] == [401, 401, 303, 403, 403, 413, 404, 200]
    for reply in replies:
        assert reply.headers["x-content-type-options"] == "nosniff", reply.url
        assert reply.headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/api/comparisons/x/notes/abc/api/uploads", "/api/uploads/abc", "/api/dumps"])
def test_only_the_upload_itself_takes_a_body_without_limit(client: Client, path: str) -> None:
    sent = 0

    def body() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 1 << 20
            yield b" " * (1 << 20)

    reply = client.request("PUT" if "dumps" not in path else "POST", path, content=body())
    is_problem(reply, 413, "limit")


@pytest.mark.parametrize("path", ["~nosuchuser", "a" * 300, "a/" * 2000, "\udce9".encode("utf-8", "replace").decode()])
def test_a_path_that_cannot_be_is_not_found(client: Client, path: str) -> None:
    is_problem(client.post("/api/dumps", json={"path": path}), 404, "not_found")
    is_problem(client.get("/api/paths", params={"path": path}), 404, "not_found")


def test_a_file_name_that_cannot_be_is_not_found(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "STATIC", tmp_path)
    for name in ("icon.png", "index.html", ".hidden.png"):
        (tmp_path / name).write_bytes(b"x")
    for name in ("a" * 300 + ".png", "%00.png", "%ff%fe.png", "..%2f..%2fapp.py", "index.html", ".hidden.png"):
        assert client.get(f"/{name}").status_code == 404, name
    assert client.get("/icon.png").content == b"x"


@pytest.mark.parametrize("prefix", ["", "/tools/view"])
def test_a_slash_too_many_leads_to_the_address_below_the_proxys_prefix(client: Client, prefix: str) -> None:
    headers = {"X-Forwarded-Prefix": prefix} if prefix else {}
    for path, shorter in (("/api/dumps/?limit=1", "../dumps?limit=1"), ("/api/dumps//", "../../dumps")):
        reply = client.get(path, headers=headers, follow_redirects=False)
        assert (reply.status_code, reply.headers["location"]) == (307, shorter)
    assert client.get("/api/dumps/?limit=1").url.path == "/api/dumps"
    assert client.get("/api/nowhere/", follow_redirects=False).status_code == 404


YAML = {
    "open brackets": ("[" * 5000, 400),
    "closed brackets": ("[" * 900 + "]" * 900, 413),
    "a megabyte of keys": ("a: 1\n" * 200_000, 413),
    "a megabyte in one mapping": ("{" + "a: 1, " * 170_000 + "}", 413),
    "five megabytes": ("# " + "x" * 5_000_000, 413),
    "aliases": ("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n", 400),
    "an object": ("a: !!python/object/apply:os.system [ls]", 400),
}


@pytest.fixture(scope="module")
def opened(servers: Callable[[str], Client], dumps: Path) -> tuple[Client, str]:
    """A server and the id of a dump that it has read."""
    server = servers("sqlite")
    dump = register(server, dumps / "golden")
    settled(server, f"/api/dumps/{dump}")
    return server, dump


@pytest.mark.parametrize("option", ["policy", "fusion", "data_mapping", "layer_mapping", "parallel"])
@pytest.mark.parametrize("kind", YAML)
def test_yaml_that_would_take_long_is_refused_at_once(opened: tuple[Client, str], kind: str, option: str) -> None:
    client, dump = opened
    text, status = YAML[kind]
    begun = time.process_time()
    reply = client.post("/api/comparisons", json={"target": dump, "golden": dump, "options": {option: text}})
    if option == "parallel" and len(text) > 1_000_000:
        status = 422  # the body's own limit
    assert reply.status_code == status, reply.text
    assert time.process_time() - begun < 5, "the loop of the server is free"


def test_json_without_end_is_refused(client: Client) -> None:
    for body in (b"[" * 1_000_000, b'{"a":' * 100_000, b"\xff\xfe", b'{"path": "\\udce9"}', b"1" * 100_000):
        reply = client.post("/api/dumps", content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code in (400, 422), body[:20]
        assert reply.headers["content-type"] == "application/problem+json"


def test_a_body_that_stops_ends_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "BODY_SECONDS", 0.05)
    messages = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def silent() -> Any:
        if messages:
            return messages.pop()
        return await asyncio.sleep(60)

    async def read(*, upload: bool) -> Any:
        timed = access._timed(silent, upload=upload)
        await timed()
        return await timed()

    with pytest.raises(HTTPException, match="nothing came"):
        asyncio.run(read(upload=False))
    messages.append({"type": "http.request", "body": b"{", "more_body": True})
    assert asyncio.run(read(upload=True)) == {"type": "http.disconnect"}, "what came of an upload is kept"


def test_a_client_that_waits_for_its_reply_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "BODY_SECONDS", 0.05)
    messages = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await asyncio.sleep(0.3)
        return {"type": "http.disconnect"}

    async def read() -> Any:
        timed = access._timed(receive, upload=False)
        await timed()
        return await timed()

    assert asyncio.run(read()) == {"type": "http.disconnect"}


def test_a_full_disk_is_507_wherever_it_is_noticed(
    client: Client, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")

    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/file")

    monkeypatch.setattr(exports, "export_folder", refuse)
    is_problem(client.get(f"/api/comparisons/{comparison}/export.xlsx"), 507, "full_disk")
    is_problem(client.get(f"/api/comparisons/{comparison}/export.db"), 507, "full_disk")
