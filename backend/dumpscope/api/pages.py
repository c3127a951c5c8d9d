"""The web UI's files: the bundle, its page under every address of the UI, and its plotly.js."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from dumpscope.api.http.proxy_prefix import clean_prefix
from dumpscope.texts import say

router = APIRouter(include_in_schema=False)

STATIC: Final = Path(str(resources.files("dumpscope") / "static"))
FOREVER: Final = "public, max-age=31536000, immutable"

MISSING: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>dumpscope</title>
<style>body{font:16px system-ui;max-width:40rem;margin:10vh auto;padding:0 1rem;color-scheme:light dark}</style>
<h1>The web UI is not built</h1>
<p>This is a source checkout. Build the UI once with <code>npm ci && npm run build</code> in <code>frontend</code>, or install
with <code>pip install .</code>, which builds it.</p>
<p>The REST interface works: <a href="api/docs">api/docs</a>. So does the command line: <code>dumpscope compare</code>.</p>
</html>"""


GZIP_BYTES: Final = 1000
"""Bytes from which a reply is compressed: a smaller one is one packet anyway."""
GZIP_LEVEL: Final = 5


class Assets(StaticFiles):
    """Bundle files carry a digest in their name, so browsers may keep them, and a process compresses each of them once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        reply = await super().get_response(path, scope)
        stat = reply.stat_result if isinstance(reply, FileResponse) else None
        accepted = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        if not isinstance(reply, FileResponse) or stat is None or stat.st_size < GZIP_BYTES or not accepted:
            return reply
        body = await run_in_threadpool(_compressed, Path(reply.path), stat.st_mtime_ns)
        kept = {name: value for name, value in reply.headers.items() if name not in ("content-length", "accept-ranges")}
        return Response(body, headers={**kept, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"})

    def file_response(self, *args: object, **kwargs: object) -> Response:
        reply = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        reply.headers["Cache-Control"] = FOREVER
        return reply


@cache
def _compressed(path: Path, _changed: int) -> bytes:
    """A file of the bundle as it is sent. _changed: when it was written last"""
    return gzip.compress(path.read_bytes(), GZIP_LEVEL, mtime=0)


def install_assets(app: FastAPI) -> None:
    """Serve the files of the bundle; call it after the other routes are in place."""
    app.mount("/assets", Assets(directory=STATIC / "assets", check_dir=False), name="assets")


@router.get("/")
@router.get("/dumps/{_id}")
@router.get("/checkpoints/{_id}")
@router.get("/monitors/{_id}")
@router.get("/comparisons/{_id}")
def page(request: Request) -> Response:
    """The page of the UI; it reads the address itself."""
    return draw_page(request, 200)


def is_for_readers(request: Request) -> bool:
    """Whether a browser opens an address that is none of the interface's."""
    asked = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")
    return asked and not {"api", "assets"} & set(request.url.path.split("/"))


def draw_page(request: Request, status: int) -> Response:
    file = STATIC / "index.html"
    if not file.is_file():
        return HTMLResponse(MISSING, 503, {"Cache-Control": "no-store"})
    text = file.read_text(encoding="utf-8")
    prefix = mount(request)
    # A proxy that does not name its prefix removes it: then only a relative base is right, from the first asset on.
    href = f"{prefix}/" if prefix else "../" * request.url.path.lstrip("/").count("/") or "./"
    base = f'<base href="{escape(href, quote=True)}">'
    body = re.sub(r"<head\b[^>]*>", lambda found: found[0] + base, text, count=1)
    return HTMLResponse(body, status, headers={"Cache-Control": "no-cache", "Content-Security-Policy": _policy(text)})


@router.get("/api/plotly.min.js")
def plotly(request: Request) -> Response:
    """The plotly.js that draws the figures, under a name that stays the same from version to version."""
    file = plotly_file()
    if file is None:
        raise HTTPException(404, say("api.no_plotly"))
    tag = f'"{file.stem}"'
    headers = {"ETag": tag, "Cache-Control": "public, max-age=86400, stale-while-revalidate=31536000"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return FileResponse(file, media_type="text/javascript", headers=headers)


def plotly_file() -> Path | None:
    """plotly.js of the built UI; its name has a digest."""
    return next((STATIC / "assets").glob("plotly-*.js"), None)


@router.get("/{name}.{kind}")
def file(name: str, kind: str) -> Response:
    """Files beside the page (icons)."""
    beside = {one.name: one for one in STATIC.iterdir() if one.is_file()} if STATIC.is_dir() else {}
    found = beside.get(f"{name}.{kind}")
    if found is None or kind == "html" or name.startswith("."):
        raise HTTPException(404, say("api.no_such_page"))
    return FileResponse(found)


def mount(request: Request) -> str:
    """Path under which a proxy shows the server ("" at the top), from its header or the server's root path."""
    return clean_prefix(request.headers.get("x-forwarded-prefix", "") or str(request.scope.get("root_path", "")))


@cache
def _policy(text: str) -> str:
    """Content policy: nothing from other hosts; the only inline scripts are those of the built page."""
    inline = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in inline]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;"
        " font-src 'self' data:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self';"
        " frame-ancestors 'self'"
    )
