"""Folders of the server below its roots, for picking a dump: one folder per request."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from dumpscope.api.ingest import resolve_path
from dumpscope.api.models.base import Wire
from dumpscope.api.parameters import Cursor
from dumpscope.api.replies import after, encode_cursor, reply
from dumpscope.api.state import Shared
from dumpscope.errors import UsageError
from dumpscope.readers.browsing import Offer, looks_like_dump, offers
from dumpscope.texts import say

router = APIRouter(tags=["dumps"])


class PathEntry(Wire):
    """`name`: of an entry of the folder, or a root's whole path; `dump`: it looks like one"""

    name: str
    kind: Literal["folder", "archive", "file"]
    dump: bool


class Paths(Wire):
    """`path`: of the folder, links followed, null if the roots are listed; `parent`: null at a root; `dump`: the folder itself
    looks like one; `cut`: it has more entries than are read"""

    path: str | None
    parent: str | None
    dump: bool
    cut: bool
    items: list[PathEntry]
    next: str | None
    total: int


@router.get("/paths", response_model=Paths)
def listing(
    state: Shared,
    path: Annotated[str | None, Query(max_length=4096, description="Folder to list; the roots when left out.")] = None,
    q: Annotated[str, Query(max_length=255, description="Part of a name.")] = "",
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> Response:
    """Folders, archives and dump files in a folder below a root, and which of them look like dumps."""
    roots = state.settings.roots
    if path is None:
        entries = [PathEntry(name=str(root), kind="folder", dump=looks_like_dump(str(root))) for root in roots]
        return reply(Paths(path=None, parent=None, dump=False, cut=False, items=entries, next=None, total=len(entries)))
    real = resolve_path(state, path)
    if not real.is_dir():
        raise UsageError(say("api.not_folder"), hint=say("api.list_folder_holds"))
    found, cut = offers(str(real), [str(root) for root in roots])
    found = [offer for offer in found if q.casefold() in offer.name.casefold()]
    start = max(0, after(cursor) or 0)
    shown = found[start : start + limit]
    end = start + len(shown)
    return reply(
        Paths(
            path=str(real),
            parent=None if real in roots else str(real.parent),
            dump=looks_like_dump(str(real)),
            cut=cut,
            items=[_entry(str(real), offer) for offer in shown],
            next=encode_cursor([end], len(found)) if end < len(found) else None,
            total=len(found),
        )
    )


def _entry(folder: str, offer: Offer) -> PathEntry:
    dump = offer.kind != "folder" or looks_like_dump(os.path.join(folder, offer.name))
    return PathEntry(name=offer.name, kind=offer.kind, dump=dump)
