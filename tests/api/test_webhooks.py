"""Webhooks against a receiver that takes, fails, hangs and redirects, on a real server with real dumps."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from index.databases import KINDS, empty_url

from api.conftest import BASE, Client, Make, compare, register, settled
from dumpscope.api.app import create_app
from dumpscope.client import verify_webhook
from dumpscope.index.store.webhooks import get_webhook
from dumpscope.pipeline.server import deliveries as sending

CAUSE = "Functional.softmax.1.forward"


@dataclass
class Receiver:
    """got: path -> (headers, body) of each request. `/fail/N?..` answers 503 to the first N, `/hang` never."""

    port: int
    got: dict[str, list[tuple[dict[str, str], bytes]]] = field(default_factory=lambda: defaultdict(list))
    release: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def wait(self, path: str, count: int = 1) -> list[tuple[dict[str, str], bytes]]:
        deadline = time.monotonic() + 30
        while len(self.got[path]) < count:
            assert time.monotonic() < deadline, f"{path} has {len(self.got[path])} of {count} requests"
            time.sleep(0.02)
        return self.got[path]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found = receiver.got[self.path]
            found.append(({name.lower(): value for name, value in self.headers.items()}, body))
            if self.path.startswith("/hang"):
                receiver.release.wait(30)
                return
            if self.path.startswith("/redirect"):
                self.send_response(307)
                self.send_header("Location", receiver.url("/elsewhere"))
            else:
                word, _, number = self.path[1:].partition("?")[0].partition("/")
                self.send_response(503 if word == "fail" and len(found) <= int(number) else 204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield receiver
        receiver.release.set()
        server.shutdown()


@pytest.fixture(params=KINDS)
def start(
    request: pytest.FixtureRequest,
    make_settings: Make,
    tmp_path: Path,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], Client]:
    """A server that may send to the receiver, and sends again after a tenth of a second."""
    monkeypatch.setattr(sending, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(sending, "SECONDS", 0.5)
    url = empty_url(request.param, tmp_path)
    settings = make_settings(database_url=url, webhook_hosts=["127.0.0.1"])
    return lambda: TestClient(create_app(settings), base_url=BASE)


def made(client: Client, url: str, **more: Any) -> dict[str, Any]:
    reply = client.post("/api/webhooks", json={"url": url, **more})
    assert reply.status_code == 201, reply.text
    hook: dict[str, Any] = reply.json()
    return hook


def sent(client: Client, hook: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/webhooks/{hook['id']}/deliveries").json()["items"]
    return found


def over(client: Client, hook: dict[str, Any], count: int = 1) -> list[dict[str, Any]]:
    """Deliveries of a webhook once so many are over."""
    return once(client, hook, lambda found: sum(one["due"] is None for one in found) >= count)


def once(client: Client, hook: dict[str, Any], enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Deliveries of a webhook once they are enough. A job ends a moment after its dump is ready."""
    deadline = time.monotonic() + 30
    while not enough(found := sent(client, hook)):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_the_end_of_a_comparison_is_told_with_its_answer_and_signed(
    start: Callable[[], Client], receiver: Receiver, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/take/{time.monotonic_ns()}"
    with start() as client:
        hook = made(client, receiver.url(path), kinds=["compare", "rejudge"], states=["done"])
        again = made(client, receiver.url(f"/fail/2?{path}"), kinds=["compare"])
        hung, moved = (made(client, receiver.url(f"/{word}{path}"), kinds=["compare"]) for word in ("hang", "redirect"))
        assert hook["secret"].startswith("whsec_")
        assert hook["secret"] != again["secret"]
        assert all("secret" not in one for one in client.get("/api/webhooks").json()["items"])
        comparison = compare(client, dumps / "target_fault", dumps / "golden")
        ((headers, body),) = receiver.wait(path)
        told = verify_webhook(body, headers["dumpscope-signature"], hook["secret"])
        assert (told["event"], told["kind"], told["state"]) == ("compare.done", "compare", "done")
        assert (told["subject"], told["outcome"]) == (comparison, "diverged")
        assert told["cause"]["node"] == CAUSE
        assert told["link"] == f"{BASE}/comparisons/{comparison}"
        assert (headers["dumpscope-event"], headers["content-type"]) == ("compare.done", "application/json")
        (arrived,) = over(client, hook)
        assert (arrived["status"], arrived["tries"], arrived["reply_status"]) == ("delivered", 1, 204)
        assert arrived["id"] == told["id"] == headers["dumpscope-delivery"]

        (arrived,) = over(client, again)
        assert (arrived["status"], arrived["tries"]) == ("delivered", 3)
        bodies = {body for _, body in receiver.got[f"/fail/2?{path}"]}
        assert len(bodies) == 1, "every try sends the same body"

        monkeypatch.setattr(sending, "GIVEN_UP", 0.0)
        (lost,) = over(client, moved)
        assert (lost["status"], lost["reply_status"]) == ("failed", 307)
        assert "not followed" in lost["error"]
        assert lost["error_said"][0]["id"] == "jobs.webhook_redirects"
        assert receiver.got["/elsewhere"] == []
        (lost,) = over(client, hung)
        assert lost["status"] == "failed"
        assert "no reply within 0.5 s" in lost["error"]

        client.patch(f"/api/comparisons/{comparison}", json={"policy": "msprobe"})
        told = verify_webhook(
            receiver.wait(path, 2)[1][1], receiver.got[path][1][0]["dumpscope-signature"], hook["secret"]
        )
        assert told["event"] == "rejudge.done"
        late = made(client, receiver.url(f"{path}/late"), comparison=comparison)
        assert verify_webhook(*_signed(receiver.wait(f"{path}/late")[0]), late["secret"])["subject"] == comparison
        assert client.delete(f"/api/webhooks/{late['id']}").status_code == 204
        assert client.get(f"/api/webhooks/{late['id']}/deliveries").status_code == 404


def _signed(request: tuple[dict[str, str], bytes]) -> tuple[bytes, str]:
    return request[1], request[0]["dumpscope-signature"]


def test_what_was_not_sent_when_the_server_ended_is_sent_by_the_next_one(
    start: Callable[[], Client], receiver: Receiver, dumps: Path
) -> None:
    path = f"/fail/1?restart{time.monotonic_ns()}"
    with start() as client:
        client.app.state.shared.deliveries.stop()  # type: ignore[attr-defined]
        hook = made(client, receiver.url(path))
        settled(client, f"/api/dumps/{register(client, dumps / 'stat_golden')}")
        assert [one["status"] for one in once(client, hook, bool)] == ["pending"]
    assert receiver.got[path] == []
    with start() as client:
        (first,) = over(client, hook)
        assert (first["event"], first["status"], first["tries"]) == ("ingest.done", "delivered", 2)
        with start() as other:  # of two servers on one database one sends
            settled(other, f"/api/dumps/{register(other, dumps / 'stat_golden')}")
            over(other, hook, 2)
        time.sleep(0.3)
        assert len(receiver.got[path]) == 3


def test_a_cancelled_job_is_told_and_a_failed_one_with_its_reason(
    start: Callable[[], Client], receiver: Receiver
) -> None:
    path = f"/take/{time.monotonic_ns()}"
    with start() as client:
        hook = made(client, receiver.url(path), states=["failed", "cancelled"])
        state = client.app.state.shared  # type: ignore[attr-defined]
        queued = state.jobs.create("compare", "nothing", {"the runner": "may take it first"})
        cancelled = state.runner.cancel(queued.id).status == "cancelled"
        failing = state.runner.submit("compare", "nothing")
        over(client, hook, 2)
        told = [verify_webhook(*_signed(one), hook["secret"]) for one in receiver.wait(path, 2)]
        (failed,) = (one for one in told if one["job"] == failing.id)
        assert (failed["event"], failed["link"]) == ("compare.failed", BASE)
        assert "nothing" in failed["error"]["detail"]
        (other,) = (one for one in told if one["job"] == queued.id)
        assert other["state"] == ("cancelled" if cancelled else "failed")


def test_only_hosts_that_the_operator_named_can_be_registered(make_settings: Make, receiver: Receiver) -> None:
    with TestClient(create_app(make_settings()), base_url=BASE) as client:
        refused = client.post("/api/webhooks", json={"url": receiver.url("/x")})
        assert refused.status_code == 403
        assert "DUMPSCOPE_WEBHOOK_HOSTS" in refused.json()["hint"]
        assert client.post("/api/webhooks", json={"url": "file:///etc/passwd"}).status_code == 400
        assert client.post("/api/webhooks", json={"url": "http://x", "kinds": ["other"]}).status_code == 422
        assert client.get("/api/webhooks").json()["items"] == []
    settings = make_settings(webhook_hosts=["127.0.0.1"])
    with TestClient(create_app(settings), base_url=BASE) as client:
        both = {"url": receiver.url("/x"), "comparison": "a", "dump": "b"}
        assert client.post("/api/webhooks", json=both).status_code == 400
        unknown = {"url": receiver.url("/x"), "comparison": "unknown"}
        assert client.post("/api/webhooks", json=unknown).status_code == 404
        links = {"X-Forwarded-Host": "tools.example.com", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/scope"}
        made_behind_a_proxy = client.post("/api/webhooks", json={"url": receiver.url("/x")}, headers=links).json()
        state = client.app.state.shared  # type: ignore[attr-defined]
        assert get_webhook(state.database, made_behind_a_proxy["id"]).home == "https://tools.example.com/scope"
