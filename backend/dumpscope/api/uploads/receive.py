"""Common parts of uploads in one request and in pieces: read files from a request, and make a dump from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from dumpscope.api.ingest import start_ingest
from dumpscope.api.state import State
from dumpscope.api.uploads.multipart import Received, Receiver
from dumpscope.errors import LimitError, Problem, UsageError
from dumpscope.index.dumps.catalogue import change_dump, create_dump, delete_dump
from dumpscope.pipeline.tasks.cleanup import hold_folder, remove_folder
from dumpscope.pipeline.uploads.unfinished import Batch, Unfinished
from dumpscope.readers.archives.unpack import kind_of
from dumpscope.readers.browsing import ARCHIVES
from dumpscope.texts import say

PIECE: Final = 1 << 20

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
                        "crc32": {
                            "type": "string",
                            "description": "CRC-32 of the file that follows, eight hexadecimal digits; before any of them.",
                        },
                    },
                }
            }
        },
    }
}


async def receive(request: Request, store: Batch, *, limit: int, files: int) -> Received:
    """Read the files of a multipart body. limit: most bytes; files: most files"""
    receiver = Receiver(request.headers.get("content-type", ""), store, limit=limit, files=files)
    try:
        await pour(request, receiver.write)
        return receiver.finish()
    finally:
        receiver.close()
        store.close()


async def pour(request: Request, write: Callable[[bytes], None]) -> None:
    """Pass the body on in pieces of a MiB, each in a thread; raises UsageError if the connection ends before the body."""
    waiting = bytearray()
    try:
        async for piece in request.stream():
            waiting += piece
            if len(waiting) >= PIECE:
                full, waiting = bytes(waiting), bytearray()
                await run_in_threadpool(write, full)
    except ClientDisconnect as error:
        await run_in_threadpool(write, bytes(waiting))
        raise UsageError(say("api.upload_broken_off")) from error
    await run_in_threadpool(write, bytes(waiting))


def finish(state: State, upload: Unfinished, arrived: Sequence[str] = ()) -> Response:
    """Make the files of an upload a dump, and start reading it; returns the 202 reply. Raises UsageError if there are no files.

    arrived: their names in the order of arrival, if known
    """
    state.settings.uploads.mkdir(parents=True, exist_ok=True)
    dump_id = create_dump(state.database, name="upload", path=str(state.settings.uploads), owned=True)
    try:
        with hold_folder(upload.folder / "files"):
            names = upload.finish(dump_id, state.settings.uploads / dump_id)
            return _become(state, dump_id, arrived or names, upload.problems, upload.name)
    except BaseException:
        remove_folder(state.settings.uploads / dump_id)
        delete_dump(state.database, dump_id)
        raise


def _become(state: State, dump_id: str, files: Sequence[str], problems: Sequence[Problem], name: str) -> Response:
    if not files:
        why = problems[0].message if problems else say("api.no_part_named_files_came_filename")
        raise UsageError(say("api.nothing_uploaded", why=why))
    folder = state.settings.uploads / dump_id
    path = folder
    if len(files) == 1 and kind_of(str(folder / files[0])) is not None:
        path = folder / files[0]
    _refuse_archives(files)
    tops = {one.split("/")[0] for one in files}
    shown = name or (tops.pop() if len(tops) == 1 else f"upload of {len(files)} files")
    change_dump(state.database, dump_id, name=shown, path=str(path), problems=list(problems))
    told = [asdict(problem) for problem in problems]
    return start_ingest(state, dump_id, str(path), {"limit": state.settings.upload_bytes, "problems": told})


def _refuse_archives(files: Sequence[str]) -> None:
    """Raise UsageError for archives together with other files: only a single archive is unpacked."""
    archives = [name for name in files if name.lower().endswith(ARCHIVES)]
    if not archives or len(files) == 1 or any(name.endswith(".json") for name in files):
        return
    shown = ", ".join(archives[:3]) + (", ..." if len(archives) > 3 else "")
    if len(archives) > 1:
        raise UsageError(
            say("api.upload_holds_archives", count=len(archives), shown=shown),
            hint=say("api.each_dump_own_upload_them_one"),
        )
    raise UsageError(
        say("api.upload_holds_archive_beside_other_files", shown=shown, count=len(files) - 1),
        hint=say("api.upload_archive_alone"),
    )


def upload_limits(state: State) -> tuple[int, int]:
    """(bytes that one upload may have, bytes that are free)"""
    state.settings.uploads.mkdir(parents=True, exist_ok=True)
    return state.settings.upload_bytes, _free_bytes(state.settings.uploads)


def check_space(state: State, announced: int, there: int = 0) -> None:
    """Raise LimitError for an upload that is too large. announced: its bytes; there: its bytes that have already arrived"""
    limit, free = upload_limits(state)
    if announced > limit or announced - there > free:
        raise LimitError(
            say("api.upload_has_mib_but_mib_allowed", announced=announced >> 20, min=min(free + there, limit) >> 20),
            hint=say("api.register_folder_by_path_raise_dumpscope_upload_mib"),
        )


def _free_bytes(folder: Path) -> int:
    """Free bytes on the disk of `folder`."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize
