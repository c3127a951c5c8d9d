"""Requests of a server to itself, and their replies: what a file holds is what the page would have been told."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import anyio
from anyio import from_thread
from fastapi import FastAPI
from starlette.types import Message, Scope

from dumpscope.settings import Settings

Query = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """One reply. body: JSON"""

    status: int
    body: bytes

    def parsed(self) -> Any:
        """The document; None for an error."""
        return json.loads(self.body) if self.status == 200 else None


Ask = Callable[[str, Query], Told]
"""GET of a path below the server's top, with its query: `None` is left out."""


def asking(app: FastAPI, settings: Settings) -> Ask:
    """Ask `app`. For threads of its event loop's pool; each call waits for the reply."""
    headers = [(b"host", b"127.0.0.1"), (b"accept", b"application/json")]
    if settings.token:
        headers.append((b"authorization", f"Bearer {settings.token}".encode()))

    def ask(path: str, query: Query) -> Told:
        return from_thread.run(_get, app, headers, path, query)

    return ask


async def _get(app: FastAPI, headers: list[tuple[bytes, bytes]], path: str, query: Query) -> Told:
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": urlencode(list(_parameters(query))).encode(),
        "headers": headers,
        "server": ("127.0.0.1", 80),
        "client": None,
    }
    status = 500
    pieces: list[bytes] = []
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if asked:
            await anyio.sleep_forever()  # nobody goes away before the reply
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            pieces.append(message.get("body", b""))

    await app(scope, receive, send)
    return Told(status, b"".join(pieces))


def _parameters(query: Query) -> Iterable[tuple[str, str]]:
    for name, value in query.items():
        if value is not None:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def key_of(path: str, query: Query) -> str:
    """Name of a request in a file; `keyOf` of frontend/src/api/file makes the same one."""
    return f"{path}?{'&'.join(f'{name}={value}' for name, value in sorted(_parameters(query)))}"


LEVEL: Final = 1
"""Of the compression that tells the size; the file itself is packed better."""


class Held:
    """Asks for replies and keeps them by the name of their request.

    check: called before each request; what it raises ends the work
    """

    def __init__(self, ask: Ask, check: Callable[[], None]) -> None:
        self._ask = ask
        self._check = check
        self._replies: dict[str, bytes] = {}
        self.size = 0
        """Bytes of all replies, each packed on its own."""

    def look(self, path: str, **query: Any) -> Any:
        """A reply that is not kept; None where there is none."""
        self._check()
        return self._ask(path, query).parsed()

    def take(self, path: str, **query: Any) -> Any:
        """A reply that is kept, also an error; None for an error."""
        self._check()
        told = self._ask(path, query)
        self.keep(path, query, told.status, told.body)
        return told.parsed()

    def keep(self, path: str, query: Query, status: int, body: bytes) -> None:
        """Keep a reply that was made elsewhere, or changed."""
        key = key_of(path, query)
        if key not in self._replies:
            self.size += len(zlib.compress(body, LEVEL))
            self._replies[key] = b"[%d,%b]" % (status, body or b"null")

    def document(self, facts: dict[str, Any]) -> bytes:
        """Everything as one JSON object: `facts`, and `replies` as lists of status and body by the names of their requests."""
        replies = b",".join(json.dumps(key).encode() + b":" + reply for key, reply in self._replies.items())
        head = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return head[:-1] + b',"replies":{' + replies + b"}}"
