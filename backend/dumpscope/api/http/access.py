"""Access checks: token, host names, origins, size of bodies. Plain ASGI, so streams are not changed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from html import escape
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dumpscope.api.http.error_body import failure, too_large
from dumpscope.settings import Settings, is_loopback
from dumpscope.texts import say

COOKIE: Final = "dumpscope_session"
BODY_BYTES: Final = 16 << 20
"""Limit of a JSON body; policies and mappings are text inside one."""

BODY_SECONDS: Final = 60.0
"""How long a body may send nothing before its request ends."""

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

LOGIN: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>dumpscope</title>
<style>body{{font:16px system-ui;max-width:26rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}}
input{{font:inherit;width:100%;padding:.4rem;margin:.5rem 0;box-sizing:border-box}}</style>
<h1>dumpscope</h1><p>{why}</p><form method="get"><label>Token <input name="token" type="password" autofocus required></label>
<button>Open</button></form><p>The token is what the server was started with in <code>DUMPSCOPE_TOKEN</code>.</p></html>"""


class Guards:
    """Refuses requests that are not allowed, before any route sees them."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.token = settings.token
        self.session = _session(settings.token)
        self.hosts = frozenset(host.lower() for host in settings.allowed_hosts)
        self.checks_host = settings.loopback and not settings.token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send)
        headers = Headers(scope=scope)
        refusal = self._refuse(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if (scope["method"], scope["path"]) == (
            "POST",
            "/api/uploads",
        ):  # limited while it streams, kept when it breaks off
            await self.app(scope, _timed(receive, upload=True), send)
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES:
            await too_large(BODY_BYTES)(scope, receive, send)
            return
        await self.app(scope, _bounded(_timed(receive, upload=scope["path"].startswith("/api/uploads/"))), send)

    def _refuse(self, scope: Scope, headers: Headers) -> Response | None:
        host = _name(headers.get("host", ""))
        if self.checks_host and not is_loopback(host) and host not in self.hosts:
            return failure(
                403,
                "forbidden",
                say("api.host_name_not_servers", host=f"{host!r}"),
                say("api.open_127_0_0_1_localhost"),
            )
        if scope["method"] not in SAFE and not self._same_origin(headers):
            return failure(403, "forbidden", say("api.another_web_page_may_not_change"), None)
        return self._authorise(scope, headers) if self.token else None

    def _same_origin(self, headers: Headers) -> bool:
        """Whether the request comes from our own page. A browser names the page; scripts and tools name none."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        asked = urlsplit(origin).netloc.lower()
        served = {headers.get("host", "").lower(), headers.get("x-forwarded-host", "").lower()} - {""}
        return asked in served or _name(asked) in self.hosts

    def _authorise(self, scope: Scope, headers: Headers) -> Response | None:
        scheme, _space, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(given.strip(), self.token):
            return None
        if any(_equal(value, self.session) for value in _cookies(headers)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if scope["method"] in SAFE and tokens and _equal(tokens[-1], self.token):
            return self._welcome(scope, query)
        return _login(headers, wrong=bool(tokens or given))

    def _welcome(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        """Remove the token from the address at once: it becomes a cookie that scripts cannot read."""
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        last = scope.get("raw_path", scope["path"].encode()).decode("latin-1").rsplit("/", 1)[-1]
        reply = RedirectResponse(f"./{last}{'?' + rest if rest else ''}", 303)
        secure = scope.get("scheme") == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https"
        reply.set_cookie(
            COOKIE, self.session, max_age=30 * 86400, httponly=True, samesite="lax", secure=secure, path="/"
        )
        reply.headers["Cache-Control"] = "no-store"
        return reply


def _cookies(headers: Headers) -> list[str]:
    """Values of our cookie. Other applications on this host set cookies of any form: they are not looked at."""
    pairs = [pair.strip().partition("=") for header in headers.getlist("cookie") for pair in header.split(";")]
    return [value.strip('"') for name, _equals, value in pairs if name == COOKIE]


def _session(token: str) -> str:
    """Value of the cookie: it proves that the user knows the token, and is not the token itself."""
    return hmac.new(token.encode(), b"dumpscope session", hashlib.sha256).hexdigest()


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _login(headers: Headers, *, wrong: bool) -> Response:
    why = say("api.token_not_right") if wrong else say("api.server_asks_token")
    if "text/html" in headers.get("accept", ""):
        return HTMLResponse(LOGIN.format(why=escape(why)), 401, {"Cache-Control": "no-store"})
    reply = failure(401, "unauthorized", why, say("api.send_authorization_bearer_token_open_page"))
    reply.headers["WWW-Authenticate"] = "Bearer"
    return reply


def _name(netloc: str) -> str:
    """Host without its port, brackets of IPv6 removed."""
    host = netloc.rsplit("@", 1)[-1].lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rsplit(":", 1)[0] if host.count(":") == 1 else host


def _timed(receive: Receive, *, upload: bool) -> Receive:
    """End a request whose body stops arriving: an upload as if the connection broke, others by 408."""
    complete = False

    async def timed() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), BODY_SECONDS)
        except asyncio.TimeoutError as error:
            if upload:
                return {"type": "http.disconnect"}
            raise HTTPException(408, say("api.body_stopped", seconds=int(BODY_SECONDS))) from error
        complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return timed


def _bounded(receive: Receive) -> Receive:
    """Stop a body at the limit, also if its length header is missing or wrong."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > BODY_BYTES:
                raise HTTPException(413, say("api.request_body_larger_than_bytes", body_bytes=BODY_BYTES))
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _value in message["headers"]}
            extra = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]
            message = {**message, "headers": [*message["headers"], *(pair for pair in extra if pair[0] not in names)]}
        await send(message)

    return sender
