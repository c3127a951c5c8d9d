"""The one error body, for every kind of error: a problem of RFC 9457 with members of our own."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from dumpscope.api import pages
from dumpscope.api.http.methods import allowed
from dumpscope.api.models.base import Error
from dumpscope.api.replies import StrictJSON
from dumpscope.errors import DumpscopeError, LimitError, error_body, full_disk
from dumpscope.index.store.database import DatabaseError
from dumpscope.texts import say

log = logging.getLogger("dumpscope.api")

CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "limit",
    422: "invalid",
}

RESPONSES: dict[int | str, dict[str, Any]] = {"default": {"model": Error, "description": "What went wrong."}}
"""Error responses of every route: errors have the same form everywhere."""


class ProblemJSON(StrictJSON):
    media_type = "application/problem+json"


def install(app: FastAPI) -> None:
    """Answer every kind of failure with this body, and say so in the OpenAPI document."""
    _document(app)

    @app.exception_handler(DumpscopeError)
    async def ours(_request: Request, error: DumpscopeError) -> Response:
        return _problem(error.body(), error.status)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        return failure(422, "invalid", _sentence(error), say("api.see_api_docs_what_call_takes"))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        detail, hint = str(error.detail), None
        if error.status_code == 404 and (shorter := _without_slash(app, request)) is not None:
            return RedirectResponse(shorter, 307)
        if error.status_code == 404 and detail == HTTPStatus.NOT_FOUND.phrase:
            if pages.is_for_readers(request):
                return pages.draw_page(request, 404)
            detail, hint = (
                say("api.there_nothing", path=request.url.path[:200]),
                say("api.get_api_docs_shows_every_call"),
            )
        if error.status_code == 405:
            methods = ", ".join(allowed(app, request.scope))
            if request.method == "OPTIONS":
                return Response(status_code=204, headers={"Allow": methods})
            detail, hint = (
                say("api.means_nothing_here", method=request.method),
                say("api.address_takes", methods=methods),
            )
            error.headers = {"Allow": methods}
        reply = failure(error.status_code, CODES.get(error.status_code, "http"), detail, hint)
        reply.headers.update(error.headers or {})
        return reply

    @app.exception_handler(DatabaseError)
    async def database(_request: Request, error: DatabaseError) -> Response:
        return _unexpected(error)

    @app.exception_handler(OSError)
    async def system(_request: Request, error: OSError) -> Response:
        full = full_disk(error)
        return _unexpected(error) if full is None else _problem(full.body(), full.status)

    @app.exception_handler(Exception)
    async def unexpected(_request: Request, error: Exception) -> Response:
        return _unexpected(error)


def failure(status: int, code: str, detail: str, hint: str | None) -> Response:
    return _problem(error_body(code, detail, hint, status), status)


def _problem(body: dict[str, Any], status: int) -> Response:
    return ProblemJSON({"type": f"urn:dumpscope:error:{body['error']}", "title": _title(status), **body}, status)


def _title(status: int) -> str:
    return HTTPStatus(status).phrase


def _without_slash(app: FastAPI, request: Request) -> str | None:
    """The address without the slash at its end, if there is one. It is relative: a proxy's prefix stays before it."""
    path: str = request.scope["path"]
    shorter = path.rstrip("/")
    if shorter in ("", path) or not allowed(app, {**request.scope, "path": shorter}):
        return None
    query = request.url.query
    return "../" * path[len(shorter) :].count("/") + quote(shorter.rsplit("/", 1)[-1]) + (f"?{query}" if query else "")


def _document(app: FastAPI) -> None:
    make = app.openapi

    def openapi() -> dict[str, Any]:
        fresh = app.openapi_schema is None
        document = make()
        if fresh:
            for address in document["paths"].values():
                for operation in address.values():
                    content = operation["responses"].get("default", {}).get("content", {})
                    if "application/json" in content:
                        content[ProblemJSON.media_type] = content.pop("application/json")
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def too_large(limit: int) -> Response:
    error = LimitError(say("api.request_body_larger_than_bytes_2", limit=limit), hint=say("api.files_go_api_uploads"))
    return _problem(error.body(), error.status)


def _unexpected(error: Exception) -> Response:
    number = secrets.token_hex(4)
    log.error("request failed, id %s", number, exc_info=error)
    return failure(
        500, "internal", say("api.server_failed_id", number=number), say("api.log_says_more_under_id", number=number)
    )


def _sentence(error: RequestValidationError) -> str:
    parts = []
    for one in error.errors()[:5]:
        place = ".".join(str(step) for step in one["loc"][1:])  # the first step is body, query or path
        parts.append(f"{place}: {one['msg']}" if place else str(one["msg"]))
    return "; ".join(parts) or say("api.request_not_valid")
