"""Uploads in one request: any number of files with their relative paths, or one archive."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from dumpscope.api.models.base import Accepted
from dumpscope.api.state import Shared
from dumpscope.api.uploads.receive import BODY, check_space, finish, receive
from dumpscope.pipeline.tasks.cleanup import hold_folder, remove_folder
from dumpscope.pipeline.uploads.unfinished import begin_once

router = APIRouter(tags=["dumps"])


@router.post("/uploads", status_code=202, response_model=Accepted, openapi_extra=BODY)
async def upload(request: Request, state: Shared) -> Response:
    """Upload files from a browser or script. Names that lead out of the upload's folder are refused one by one, as problems."""
    announced = request.headers.get("content-length", "")
    settings = state.settings
    await run_in_threadpool(check_space, state, int(announced) if announced.isdecimal() else 0)
    limits = {"files": settings.upload_files, "bytes": settings.upload_bytes}
    begun = await run_in_threadpool(partial(begin_once, settings.uploads, **limits))
    try:
        with hold_folder(begun.folder):
            received = await receive(
                request, begun.batch(once=True), limit=settings.upload_bytes, files=settings.upload_files
            )
            begun.name = received.name
            return await run_in_threadpool(finish, state, begun, received.files)
    finally:
        await run_in_threadpool(remove_folder, begun.folder)
