"""Uploads in pieces: received bytes are kept if the connection, the page or the server ends, and the rest is sent later."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from dumpscope.api.http.access import BODY_BYTES
from dumpscope.api.models import transfers
from dumpscope.api.models.base import Accepted, Page, Problem
from dumpscope.api.parameters import Cursor, Id, Limit
from dumpscope.api.replies import decode_cursor, page_reply, reply
from dumpscope.api.state import Shared, State
from dumpscope.api.uploads.receive import BODY, check_space, finish as make_dump, pour, receive, upload_limits
from dumpscope.errors import LimitError
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.store.page import Page as Rows
from dumpscope.pipeline.uploads.piece import SentPiece
from dumpscope.pipeline.uploads.unfinished import Unfinished, report_full_disk
from dumpscope.texts import say

router = APIRouter(tags=["dumps"])

PROBLEMS_SHOWN: Final = 100

BYTES: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}

FilePath = Annotated[str, Query(max_length=8000, description="Path of the file relative to the dump.")]
Size = Annotated[int, Query(ge=0, lt=2**53, description="Bytes of the whole file.")]
Checksum = Annotated[
    str | None,
    Header(
        alias="X-CRC32",
        pattern="^[0-9a-fA-F]{8}$",
        description="CRC-32 of the body; a body that has another is refused.",
    ),
]
Offset = Annotated[int, Query(ge=0, lt=2**53, description="Where in the file the body begins; at most what is there.")]


@router.get("/uploads", response_model=transfers.UploadRoom)
def limits(state: Shared) -> Response:
    """The limits of an upload, before anything is sent."""
    limit, free = upload_limits(state)
    settings = state.settings
    return reply(
        transfers.UploadRoom(
            limit=limit, free=free, files=settings.upload_files, request=BODY_BYTES, hours=settings.upload_hours
        )
    )


@router.put("/uploads/{upload_id}", response_model=transfers.Upload)
def begin(upload_id: Id, body: transfers.NewUpload, state: Shared) -> Response:
    """Begin an upload with an id of the caller's choice, or continue it: the reply says what has arrived."""
    if body.files > state.settings.upload_files:
        raise LimitError(
            say("api.upload_has_files_but_allowed", files=body.files, upload_files=state.settings.upload_files),
            hint=say("api.upload_one_archive_register_folder_by"),
        )
    known = state.unfinished.look(upload_id)
    if known is None or known.dump is None:
        check_space(state, body.bytes, 0 if known is None else known.bytes)
    upload = state.unfinished.begin(upload_id, name=body.name.strip(), files=body.files, bytes=body.bytes)
    with upload.busy():
        return _upload_reply(upload_id, upload)


@router.get("/uploads/{upload_id}", response_model=transfers.Upload)
def one(upload_id: Id, state: Shared) -> Response:
    """Progress of an upload."""
    return _upload_reply(upload_id, state.unfinished.get(upload_id))


@router.get("/uploads/{upload_id}/files", response_model=Page[transfers.UploadedFile])
def files(upload_id: Id, state: Shared, cursor: Cursor = None, limit: Limit = 500) -> Response:
    """Files that have arrived, whole or in part, by path."""
    upload = state.unfinished.get(upload_id)
    seek, _total = decode_cursor(cursor)
    last = "" if seek is None else str(seek.key[0])
    with upload.lock:
        names = sorted([*upload.files, *upload.pieces])
        rows = [name for name in names if name > last]
        page = [
            transfers.UploadedFile(path=name, bytes=piece.have, size=piece.size)
            if (piece := upload.pieces.get(name)) is not None
            else transfers.UploadedFile(path=name, bytes=upload.files[name], size=upload.files[name])
            for name in rows[:limit]
        ]
    keys = [(row.path,) for row in page]
    return page_reply(Rows(rows=page, keys=keys, more=len(rows) > limit, total=len(names)), lambda row: row)


@router.put("/uploads/{upload_id}/files", response_model=transfers.Upload, openapi_extra=BYTES)
async def write(
    upload_id: Id,
    request: Request,
    state: Shared,
    path: FilePath,
    size: Size,
    offset: Offset = 0,
    checksum: Checksum = None,
) -> Response:
    """A piece of one file. Bytes that arrived before the connection broke are kept; 409 if the bytes before `offset` are missing,
    or if the body does not match its checksum (then nothing of it is kept)."""
    upload = await run_in_threadpool(state.unfinished.get, upload_id)
    reason = upload.refusal(path)
    if reason is not None:
        await run_in_threadpool(upload.refuse, path, reason)
        return _upload_reply(upload_id, upload)
    piece = SentPiece(upload, path, size, offset, None if checksum is None else int(checksum, 16))
    with upload.busy():
        await run_in_threadpool(piece.add, b"")
        await pour(request, piece.add)
        await run_in_threadpool(piece.end)
    return await run_in_threadpool(_upload_reply, upload_id, upload)


@router.post("/uploads/{upload_id}/files", response_model=transfers.Upload, openapi_extra=BODY)
async def batch(upload_id: Id, request: Request, state: Shared) -> Response:
    """Many small files at once, each whole. Files that arrived before the connection broke are kept."""
    upload = await run_in_threadpool(state.unfinished.get, upload_id)
    with upload.busy(), report_full_disk():
        await receive(request, upload.batch(), limit=BODY_BYTES, files=state.settings.upload_files)
    return await run_in_threadpool(_upload_reply, upload_id, upload)


@router.post("/uploads/{upload_id}/finish", status_code=202, response_model=Accepted)
def finish(upload_id: Id, state: Shared) -> Response:
    """Everything was sent: read it as a dump. A repeated request gets the same reply. 409 if something is missing."""
    upload = state.unfinished.get(upload_id)
    with upload.busy(), upload.lock:
        if upload.dump is not None:
            row = get_dump(state.database, upload.dump)
            accepted = Accepted(id=row.id, job=row.job or "")
            return reply(accepted, 202, {"Location": f"/api/dumps/{row.id}"})
        upload.check()
        return _finish(state, upload_id, upload)


@router.delete("/uploads/{upload_id}", status_code=204)
def cancel(upload_id: Id, state: Shared) -> Response:
    """Cancel an upload; its files are removed."""
    state.unfinished.remove(upload_id)
    return Response(status_code=204)


def _finish(state: State, upload_id: str, upload: Unfinished) -> Response:
    try:
        return make_dump(state, upload)
    except BaseException:
        state.unfinished.remove(upload_id)
        raise


def _upload_reply(upload_id: str, upload: Unfinished) -> Response:
    with upload.lock:
        return reply(
            transfers.Upload(
                id=upload_id,
                name=upload.name,
                files=upload.announced_files,
                bytes=upload.announced_bytes,
                whole=len(upload.files),
                there=upload.bytes,
                problems=[Problem.model_validate(one) for one in upload.problems[:PROBLEMS_SHOWN]],
                dump=upload.dump,
            )
        )
