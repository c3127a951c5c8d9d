"""One request over HTTP: how it is written, what its reply means, and when it is sent again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from dumpscope.client.records import ServerError
from dumpscope.client.steps import Request
from dumpscope.errors import UsageError
from dumpscope.texts import said_of, say

TOKEN: Final = "DUMPSCOPE_TOKEN"
SERVER: Final = "DUMPSCOPE_SERVER"
SECONDS: Final = 120.0
"""How long a request waits for its answer."""
TRIES: Final = 6
"""How often a request is sent at most: over about 15 seconds."""
LONGEST_PAUSE: Final = 8.0
BUSY: Final = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may be answered later."""


def home_of(server: str | None) -> str:
    """The address of a server, from the environment if none is given. Raises UsageError."""
    given = (server or os.environ.get(SERVER, "")).rstrip("/")
    if not given:
        raise UsageError(say("cli.no_server_named"), hint=say("cli.name_server"))
    if urlsplit(given).scheme not in ("http", "https"):
        raise UsageError(say("cli.no_address_server", server=f"{given!r}"), hint=say("cli.server_http_127_0_0_1"))
    return given


def settings(token: str | None, seconds: float) -> dict[str, Any]:
    """Arguments of an httpx client."""
    known = os.environ.get(TOKEN, "") if token is None else token
    headers = {"Authorization": f"Bearer {known}"} if known else {}
    return {"headers": headers, "timeout": seconds, "follow_redirects": True}


def written(base: str, request: Request) -> dict[str, Any]:
    """Arguments of `httpx.Client.request`."""
    query = {name: value for name, value in request.query.items() if value is not None}
    words: dict[str, Any] = {
        "method": request.method,
        "url": base + request.path,
        "params": {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()},
        "headers": dict(request.headers),
    }
    if request.body is not None:
        words["json"] = request.body
    if request.content is not None:
        words["content"] = request.content
    if request.parts:
        words["files"] = list(request.parts)
    return words


def pause_before(attempt: int, reply: httpx.Response | None) -> float:
    """Seconds before a request is sent again. attempt: 0 for the first time again"""
    asked = "" if reply is None else reply.headers.get("retry-after", "")
    return min(float(asked), LONGEST_PAUSE) if asked.isdecimal() else min(0.5 * 2.0**attempt, LONGEST_PAUSE)


def may_repeat(request: Request, error: httpx.TransportError) -> bool:
    """Whether a request that was not answered may be sent again: it never arrived, or does no harm twice."""
    return request.may_repeat or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def no_answer(base: str, error: Exception) -> ServerError:
    detail, hint = say("cli.no_answer", server=base.removesuffix("/api"), error=error), say("cli.server_running")
    document = {
        "error": "no_answer",
        "detail": detail,
        "said": said_of(detail),
        "hint": hint,
        "hint_said": said_of(hint),
    }
    return ServerError(document, 0)


def read_reply(reply: httpx.Response) -> Any:
    """The JSON of a reply, None where it has none. Raises ServerError for what the server refused."""
    if reply.is_success:
        return reply.json() if reply.content else None
    try:
        document = reply.json()
        if not isinstance(document, dict) or "detail" not in document:
            raise ValueError
    except ValueError:  # a proxy's page
        document = {"error": "http", "detail": f"{reply.status_code} {reply.reason_phrase}"}
    raise ServerError(document, reply.status_code)


def part_of(file: Path) -> Path:
    """Where a download is written until it is whole."""
    return file.with_name(f".{file.name}.{os.getpid()}.part")
