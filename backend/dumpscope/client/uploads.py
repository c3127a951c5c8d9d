"""Sends a folder or an archive in pieces, so that a lost connection costs a piece: sent again, the upload goes on."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dumpscope.client.records import Dump, ServerError
from dumpscope.client.steps import Request, Steps, Watcher, finish, get, record, send
from dumpscope.errors import UsageError
from dumpscope.texts import say

PIECE_BYTES: Final = 8 << 20
SMALL_BYTES: Final = 256 << 10
"""Smaller files travel many in one request."""
BATCH_BYTES: Final = 8 << 20
BATCH_FILES: Final = 200

File = tuple[str, Path, int]
"""Name on the server, path here, bytes."""

Sent = Callable[[int, int], None]
"""Called with the bytes that have arrived, and with all."""


def upload(path: str | Path, name: str | None, *, wait: bool, sent: Sent | None, watch: Watcher | None) -> Steps[Dump]:
    """Make a dump of a folder or archive that is here. Raises UsageError where nothing is."""
    files = list(_files(Path(path)))
    if not files:
        raise UsageError(say("client.nothing_to_upload"), where=str(path))
    total = sum(size for _, _, size in files)
    place = f"/uploads/{_id(files)}"
    begun = yield from _begin(place, {"files": len(files), "bytes": total, "name": name or ""})
    if begun is None:  # it became a dump that was removed since: another upload of the same files
        place = f"/uploads/{_id(files)}-{os.urandom(4).hex()}"
        begun = yield from send("PUT", place, {"files": len(files), "bytes": total, "name": name or ""})
    if begun["dump"] is None:
        yield from _send_files(place, files, begun["there"], sent)
    accepted = yield Request(method="POST", path=f"{place}/finish", repeatable=True)
    if wait:
        yield from finish(accepted["job"], watch)
    return (yield from record(Dump, f"/dumps/{accepted['id']}"))


def _send_files(place: str, files: list[File], arrived: int, sent: Sent | None) -> Steps[None]:
    total = sum(size for _, _, size in files)
    there = (yield from _there(place)) if arrived else {}
    for batch in _batches(files, there):
        parts: list[tuple[str, tuple[str | None, bytes]]] = []
        for own, real, size in batch:
            data = _piece(real, 0, size)
            parts += [("crc32", (None, f"{zlib.crc32(data):08x}".encode())), ("files", (own, data))]
        reply = yield Request(method="POST", path=f"{place}/files", parts=parts, repeatable=True)
        arrived = _report(reply, arrived, total, sent)
    for own, real, size in files:
        if size < SMALL_BYTES:
            continue
        for start in range(there.get(own, 0), size, PIECE_BYTES):
            data = _piece(real, start, min(PIECE_BYTES, size - start))
            reply = yield Request(
                method="PUT",
                path=f"{place}/files",
                query={"path": own, "size": size, "offset": start},
                content=data,
                headers={"X-CRC32": f"{zlib.crc32(data):08x}", "Content-Type": "application/octet-stream"},
            )
            arrived = _report(reply, arrived, total, sent)


def _begin(place: str, body: dict[str, Any]) -> Steps[dict[str, Any] | None]:
    """Begin or continue; None where this upload has become a dump that is gone."""
    begun: dict[str, Any] = yield from send("PUT", place, body)
    if begun["dump"] is not None:
        try:
            yield from get(f"/dumps/{begun['dump']}")
        except ServerError as error:
            if error.reply_status != 404:
                raise
            return None
    return begun


def _there(place: str) -> Steps[dict[str, int]]:
    """Bytes that have arrived of each file."""
    found: dict[str, int] = {}
    cursor = None
    while True:
        page = yield from get(f"{place}/files", {"cursor": cursor, "limit": 500})
        found.update((one["path"], one["bytes"]) for one in page["items"])
        cursor = page["next"]
        if cursor is None:
            return found


def _report(reply: dict[str, Any], before: int, total: int, sent: Sent | None) -> int:
    if reply["problems"]:
        first = reply["problems"][0]
        raise UsageError(first["message"], where=first["loc"])
    arrived = int(reply["there"])
    if sent is not None and arrived != before:
        sent(arrived, total)
    return arrived


def _files(path: Path) -> Iterator[File]:
    """Each regular file, without hidden ones."""
    if path.is_file():
        yield path.name, path, path.stat().st_size
        return
    top = path.resolve().name or "dump"
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for name in sorted(names):
            real = Path(folder, name)
            if not name.startswith(".") and real.is_file():
                yield "/".join((top, *real.relative_to(path).parts)), real, real.stat().st_size


def _id(files: list[File]) -> str:
    """The same for the same files, so that a repeated upload goes on with what has arrived."""
    digest = hashlib.sha256()
    for own, real, size in files:
        digest.update(
            f"{own}\0{real.resolve()}\0{size}\0{real.stat().st_mtime_ns}\n".encode("utf-8", "backslashreplace")
        )
    return digest.hexdigest()[:32]


def _batches(files: list[File], there: dict[str, int]) -> Iterator[list[File]]:
    batch: list[File] = []
    held = 0
    for one in files:
        own, _, size = one
        if size >= SMALL_BYTES or (own in there and there[own] == size):
            continue
        if batch and (held + size > BATCH_BYTES or len(batch) == BATCH_FILES):
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += size
    if batch:
        yield batch


def _piece(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)
