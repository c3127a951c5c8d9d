"""Who may talk to the server, and which files it may touch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from api.conftest import BASE, Client, Make, settled
from dumpscope.api.app import create_app

TOKEN = "correct horse"
SITE = "http://dumps.example"


@pytest.fixture
def guarded(make_settings: Make) -> Iterator[Client]:
    """A server others can reach, with a token."""
    app = create_app(make_settings(host="0.0.0.0", token=TOKEN))
    with TestClient(app, base_url=SITE, follow_redirects=False) as running:
        yield running


def test_a_host_that_others_reach_needs_a_token(make_settings: Make) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "dumps.example"):
        with pytest.raises(ValidationError, match="DUMPSCOPE_TOKEN"):
            make_settings(host=host)
    for host in ("127.0.0.1", "localhost", "::1"):
        assert make_settings(host=host).loopback


def test_nothing_is_answered_without_the_token(guarded: Client) -> None:
    for address in ("/", "/api/health", "/api/dumps", "/api/openapi.json", "/api/docs", "/assets/x.js", "/nowhere"):
        reply = guarded.get(address)
        assert reply.status_code == 401, address
        assert reply.json() == {
            "type": "urn:dumpscope:error:unauthorized", "title": "Unauthorized",
            "error": "unauthorized", "detail": "This server asks for a token.", "status": 401,
            "hint": "send Authorization: Bearer TOKEN, or open the page once with ?token=TOKEN",
            "said": [{"id": "api.server_asks_token", "values": {}}],
            "hint_said": [{"id": "api.send_authorization_bearer_token_open_page", "values": {}}],
        }  # fmt: skip
    assert guarded.post("/api/dumps", json={"path": "/"}).status_code == 401


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", "Basic " + TOKEN, "Bearer correct", "Bearer \xff"])
def test_a_wrong_token_is_refused(guarded: Client, header: str) -> None:
    reply = guarded.get("/api/health", headers={"Authorization": header.encode("latin-1")})
    assert reply.status_code == 401
    assert guarded.get("/api/health?token=wrong").status_code == 401
    assert guarded.get("/api/health", cookies={"dumpscope_session": TOKEN}).status_code == 401


def test_scripts_send_the_token_as_a_header(guarded: Client) -> None:
    assert guarded.get("/api/health", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_cannot_read(guarded: Client) -> None:
    reply = guarded.get("/comparisons/abc", params={"token": TOKEN, "n": "Functional.softmax.1.forward", "s": "0"})
    assert reply.status_code == 303
    assert reply.headers["location"] == "./abc?n=Functional.softmax.1.forward&s=0"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert TOKEN.split(maxsplit=1)[0] not in cookie
    assert guarded.get("/api/health").status_code == 200, "the cookie is kept"


def test_the_redirect_cannot_be_led_to_another_site(guarded: Client) -> None:
    for path in ("//evil.example/", "/%2f%2fevil.example", "/dumps//evil.example"):
        reply = guarded.get(f"{SITE}{path}?token={TOKEN}".replace(" ", "%20"))
        assert reply.headers["location"].startswith("./")
        guarded.cookies.clear()


def test_people_without_the_token_get_a_form(guarded: Client) -> None:
    reply = guarded.get("/", headers={"Accept": "text/html"})
    assert reply.status_code == 401
    assert '<input name="token" type="password"' in reply.text


def test_a_foreign_host_name_cannot_reach_a_server_without_a_token(client: Client) -> None:
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
        reply = client.get("/api/dumps", headers={"Host": host})
        assert reply.status_code == 403, host
        assert reply.json()["error"] == "forbidden"
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"):
        assert client.get("/api/dumps", headers={"Host": host}).status_code == 200, host


def test_a_proxys_name_can_be_allowed(make_settings: Make) -> None:
    app = create_app(make_settings(allowed_hosts=["dumps.example"]))
    with TestClient(app, base_url=SITE) as running:
        assert running.get("/api/health").status_code == 200
        assert running.post("/api/dumps", json={"path": "x"}, headers={"Origin": SITE}).status_code == 404


def test_another_web_page_may_not_change_anything(client: Client, dumps: Path) -> None:
    body = {"path": str(dumps / "golden")}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        reply = client.post("/api/dumps", json=body, headers={"Origin": origin})
        assert reply.status_code == 403, origin
    crossing = client.post("/api/uploads", files={"files": ("a", b"x")}, headers={"Sec-Fetch-Site": "cross-site"})
    assert crossing.status_code == 403
    assert client.get("/api/dumps").json()["total"] == 0
    assert client.post("/api/dumps", json=body, headers={"Origin": BASE}).status_code == 202
    assert (
        "access-control-allow-origin" not in client.get("/api/dumps", headers={"Origin": "http://evil.example"}).headers
    )


def test_only_paths_below_a_root_are_opened(make_settings: Make, dumps: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "inside").symlink_to(dumps / "golden")
    (root / "own").mkdir()
    (root / "own" / "dump.json").write_text('{"task": "statistics", "level": "L1", "data": {}}')
    sibling = tmp_path / "rootless"
    sibling.mkdir()
    with TestClient(create_app(make_settings(roots=[root])), base_url=BASE) as running:
        outside = (
            str(dumps / "golden"), str(root / "inside"), str(sibling), str(root / ".." / "rootless"), "/", "/etc/passwd",
            "../rootless", "~",
        )  # fmt: skip
        for path in outside:
            reply = running.post("/api/dumps", json={"path": path})
            assert reply.status_code == 403, path
            assert "--root" in reply.json()["hint"]
        assert running.post("/api/dumps", json={"path": str(root / "nothing")}).status_code == 404
        assert running.post("/api/dumps", json={"path": "a\0b"}).status_code == 400
        reply = running.post("/api/dumps", json={"path": "own"})
        assert reply.status_code == 202, "a relative path is below the first root"
        settled(running, reply.headers["location"])


def test_a_dump_cannot_send_the_server_to_files_outside(make_settings: Make, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "Functional.relu.0.forward.input.0.pt").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    leaf = {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": [1],
        "Max": 1.0,
        "Min": 1.0,
        "Mean": 1.0,
        "Norm": 1.0,
    }
    leaf |= {"requires_grad": False, "data_name": "Functional.relu.0.forward.input.0.pt"}
    call = {"input_args": [leaf], "input_kwargs": {}, "output": []}
    head = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(secret)}
    (root / "dump.json").write_text(json.dumps({**head, "data": {"Functional.relu.0.forward": call}}))
    with TestClient(create_app(make_settings(roots=[root])), base_url=BASE) as running:
        ids = [running.post("/api/dumps", json={"path": str(root)}).json()["id"] for _ in range(2)]
        reply = running.post("/api/comparisons", json={"target": ids[0], "golden": ids[1]})
        row = settled(running, f"/api/comparisons/{reply.json()['id']}")
        assert row["mode"] != "tensor"


def test_answers_tell_browsers_to_keep_to_themselves(client: Client) -> None:
    headers = client.get("/api/dumps").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_a_body_that_is_too_large_is_refused(client: Client) -> None:
    huge = b'{"path": "' + b"x" * (17 << 20) + b'"}'
    reply = client.post("/api/dumps", content=huge, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["error"]) == (413, "limit")

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(huge), 1 << 20):
            yield huge[start : start + (1 << 20)]

    reply = client.post("/api/dumps", content=pieces(), headers={"Content-Type": "application/json"})
    assert reply.status_code == 413


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permission_is_an_error_not_a_crash(client: Client, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    assert client.post("/api/dumps", json={"path": str(locked)}).status_code in (403, 404)
