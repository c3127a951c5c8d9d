"""HTTP methods of every address: HEAD for each GET, OPTIONS, and an `Allow` header that names all methods."""

from __future__ import annotations

from typing import Final

import anyio
from fastapi import FastAPI
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

KNOWN: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Head:
    """Answers HEAD like GET without the body. Plain ASGI; a stream of events, which may run for hours, ends after its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        with anyio.CancelScope() as rest:

            async def headers_only(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    if dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream"):
                        await send({"type": "http.response.body", "body": b""})
                        rest.cancel()
                elif message["type"] == "http.response.body" and not message.get("more_body", False):
                    await send({"type": "http.response.body", "body": b""})

            await self.app({**scope, "method": "GET"}, receive, headers_only)


def allowed(app: FastAPI, scope: Scope) -> list[str]:
    """Methods of this address; empty for an unknown address."""
    found = []
    for method in KNOWN:
        for route in app.router.routes:
            if isinstance(route, Mount) and method != "GET":  # files
                continue
            if route.matches({**scope, "method": method})[0] == Match.FULL:
                found.append(method)
                break
    if "GET" in found:
        found.insert(1, "HEAD")
    return [*found, "OPTIONS"] if found else []
