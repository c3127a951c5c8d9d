"""Uploads: any number of files with their relative paths, or one archive, in one multipart request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from dumpscope.api import schemas
from dumpscope.api.receiving import Received, Receiver, free_bytes
from dumpscope.api.routes.dumps import accept
from dumpscope.api.state import Shared, State
from dumpscope.errors import LimitError, UsageError
from dumpscope.index.dumps import change_dump, create_dump, delete_dump
from dumpscope.pipeline.leftovers import held, remove_folder
from dumpscope.readers.archive import kind_of

router = APIRouter(tags=["dumps"])

PIECE: Final = 1 << 20

ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")

BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "Each part's filename is its path relative to the dump; or one .zip or .tar.",
                        },
                        "name": {"type": "string", "description": "Name of the dump."},
                    },
                }
            }
        },
    }
}


@router.post("/uploads", status_code=202, response_model=schemas.Accepted, openapi_extra=BODY)
async def upload(request: Request, state: Shared) -> Response:
    """Take files from a browser or script. Names that could leave the upload's folder are refused one by one, as problems."""
    announced = request.headers.get("content-length", "")
    await run_in_threadpool(_check_space, state, int(announced) if announced.isdecimal() else 0)
    dump_id = await run_in_threadpool(
        create_dump, state.database, name="upload", path=str(state.settings.uploads), owned=True
    )
    folder = state.settings.uploads / dump_id
    try:
        folder.mkdir()
        with held(folder):
            received = await _receive(request, state, folder)
            return await run_in_threadpool(_accept, state, dump_id, folder, received)
    except BaseException:
        await run_in_threadpool(_discard, state, dump_id, folder)
        raise


async def _receive(request: Request, state: State, folder: Path) -> Received:
    receiver = Receiver(
        request.headers.get("content-type", ""),
        folder,
        limit=state.settings.upload_bytes,
        files=state.settings.upload_files,
    )
    held = bytearray()
    try:
        async for piece in request.stream():
            held += piece
            if len(held) >= PIECE:
                await run_in_threadpool(receiver.write, bytes(held))
                held.clear()
        await run_in_threadpool(receiver.write, bytes(held))
        return receiver.finish()
    except ClientDisconnect as error:
        raise UsageError("the upload was broken off") from error
    finally:
        receiver.close()


def _accept(state: State, dump_id: str, folder: Path, received: Received) -> Response:
    if not received.files:
        why = received.problems[0].message if received.problems else 'no part named "files" came with a filename'
        raise UsageError(f"nothing was uploaded: {why}")
    first = received.files[0]
    path = folder
    if len(received.files) == 1 and kind_of(str(folder / first)) is not None:
        path = folder / first
    _refuse_archives(received.files)
    tops = {name.split("/")[0] for name in received.files}
    name = received.name or (tops.pop() if len(tops) == 1 else f"upload of {len(received.files)} files")
    change_dump(state.database, dump_id, name=name, path=str(path))
    problems = [asdict(problem) for problem in received.problems]
    return accept(state, dump_id, str(path), {"limit": state.settings.upload_bytes, "problems": problems})


def _refuse_archives(files: Sequence[str]) -> None:
    """Raise UsageError for archives that came in company: only one that comes alone is unpacked."""
    archives = [name for name in files if name.lower().endswith(ARCHIVES)]
    if not archives or len(files) == 1 or any(name.endswith(".json") for name in files):
        return
    shown = ", ".join(archives[:3]) + (", ..." if len(archives) > 3 else "")
    if len(archives) > 1:
        raise UsageError(
            f"the upload holds {len(archives)} archives ({shown})",
            hint="each is a dump of its own: upload them one by one",
        )
    raise UsageError(
        f"the upload holds the archive {shown} beside {len(files) - 1} other files, none of which is a dump",
        hint="upload the archive alone",
    )


def _check_space(state: State, announced: int) -> None:
    state.settings.uploads.mkdir(parents=True, exist_ok=True)
    free = free_bytes(state.settings.uploads)
    if announced > min(free, state.settings.upload_bytes):
        raise LimitError(
            f"the upload has {announced >> 20} MiB, but {min(free, state.settings.upload_bytes) >> 20} MiB are allowed or free",
            hint="register the folder by its path, or raise DUMPSCOPE_UPLOAD_MIB",
        )


def _discard(state: State, dump_id: str, folder: Path) -> None:
    remove_folder(folder)
    delete_dump(state.database, dump_id)
