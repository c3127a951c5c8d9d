"""The one error body, for every kind of error."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from dumpscope.api import pages
from dumpscope.api.http_methods import allowed
from dumpscope.api.models.base import Error
from dumpscope.api.replies import StrictJSON
from dumpscope.errors import DumpscopeError, LimitError, error_body
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


def install(app: FastAPI) -> None:
    """Answer every kind of failure with this body."""

    @app.exception_handler(DumpscopeError)
    async def ours(_request: Request, error: DumpscopeError) -> Response:
        return StrictJSON(error.body(), error.status)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        return failure(422, "invalid", _sentence(error), say("api.see_api_docs_what_call_takes"))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        detail, hint = str(error.detail), None
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

    @app.exception_handler(Exception)
    async def unexpected(_request: Request, error: Exception) -> Response:
        return _unexpected(error)


def failure(status: int, code: str, detail: str, hint: str | None) -> Response:
    return StrictJSON(error_body(code, detail, hint, status), status)


def too_large(limit: int) -> Response:
    error = LimitError(say("api.request_body_larger_than_bytes_2", limit=limit), hint=say("api.files_go_api_uploads"))
    return StrictJSON(error.body(), error.status)


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
