"""The path that a reverse proxy shows the server under."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,255}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*")


def clean_prefix(given: str) -> str:
    """The prefix without a slash at its end; "" if there is none or it is no path of this host."""
    prefix = given.rstrip("/")
    return prefix if _PATH.fullmatch(prefix) and not prefix.startswith("//") else ""


def home_of(request: Request) -> str:
    """The address of the page as the sender of a request reached it, without a slash at its end."""
    headers = request.headers
    host = headers.get("x-forwarded-host", headers.get("host", "")).partition(",")[0].strip()
    scheme = headers.get("x-forwarded-proto", request.url.scheme).partition(",")[0].strip()
    known = scheme if scheme in ("http", "https") else request.url.scheme
    host = host if _HOST.fullmatch(host) else request.url.netloc
    return f"{known}://{host}{clean_prefix(headers.get('x-forwarded-prefix', ''))}"


class Unprefixed:
    """Removes the prefix from the path, if a proxy names it and leaves it there. Plain ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        prefix = clean_prefix(Headers(scope=scope).get("x-forwarded-prefix", "")) if scope["type"] == "http" else ""
        if prefix and scope["path"].startswith(f"{prefix}/"):
            raw = scope.get("raw_path") or b""
            scope = {**scope, "path": scope["path"].removeprefix(prefix), "raw_path": raw.removeprefix(prefix.encode())}
        await self.app(scope, receive, send)
