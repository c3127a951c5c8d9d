"""Result files to download."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from dumpscope.api.parameters import Filters, Id, Rank, Step
from dumpscope.api.state import Shared, State
from dumpscope.errors import UsageError
from dumpscope.index.comparisons import get_comparison
from dumpscope.pipeline.exports import (
    EXPORTS,
    csv_text,
    export_units,
    html_page,
    json_document,
    junit_document,
    xlsx_file,
)
from dumpscope.pipeline.keep import keep_copy
from dumpscope.pipeline.leftovers import export_folder

router = APIRouter(tags=["exports"])

PIECE: Final = 1 << 18
"""Bytes of a result file that are sent at a time."""

FILES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {media.split(";")[0]: {} for media in EXPORTS.values()}}
}


@router.get("/comparisons/{comparison_id}/export.{kind}", response_class=Response, responses=FILES)
def export(
    comparison_id: Id,
    kind: Literal["csv", "xlsx", "json", "html", "junit.xml", "db"],
    state: Shared,
    filters: Filters,
    step: Annotated[Step, Query(description="Only this step.")] = None,
    rank: Annotated[Rank, Query(description="Only this rank.")] = None,
    pairs: Annotated[bool, Query(description="json: every item pair too.")] = False,
) -> Response:
    """The result as a file: csv and xlsx tables, the summary document, a JUnit report, a self-contained page, or a database.

    The filters say which calls the tables, the pairs of the document and the JUnit report hold. The database (`db`) is what
    `dumpscope serve FILE` opens: the whole comparison with the notes on its pair, nothing else of the server.
    """
    if kind == "db":
        return _result_file(state, comparison_id, whole=step is None and rank is None and not filters)
    answer, units = export_units(state.database, comparison_id, step, rank, filters)
    name = get_comparison(state.database, comparison_id).name
    headers = {"Content-Disposition": attachment(name, kind)}
    if kind == "xlsx":
        with export_folder(state.settings.data_dir) as folder:
            file = folder / "table.xlsx"
            xlsx_file(state.database, units, filters, file)
            return _sent(file, headers, kind)
    if kind == "html":
        return Response(html_page(state.database, answer, units), headers=headers, media_type=EXPORTS[kind])
    if kind == "csv":
        text = csv_text(state.database, units, filters)
    elif kind == "json":
        text = json_document(state.database, answer, units, filters, pairs=pairs)
    else:
        text = junit_document(state.database, units, filters, name)
    pieces = (piece.encode("utf-8", "replace") for piece in text)
    return StreamingResponse(pieces, headers=headers, media_type=EXPORTS[kind])


def _result_file(state: State, comparison_id: str, *, whole: bool) -> Response:
    if not whole:
        raise UsageError("a result file holds the whole comparison", hint="leave out step, rank and the filters")
    name = get_comparison(state.database, comparison_id).name
    with export_folder(state.settings.data_dir) as folder:
        file = keep_copy(folder / "result.db", state.database, comparison_id)
        return _sent(file, {"Content-Disposition": attachment(name, "db")}, "db")


def _sent(file: Path, headers: dict[str, str], kind: str) -> Response:
    """The file as it is now; it may be removed while it is sent."""
    return Sent(file.open("rb"), {**headers, "Content-Length": str(file.stat().st_size)}, EXPORTS[kind])


class Sent(StreamingResponse):
    """An open file, closed when it was sent or whoever asked for it has gone: its room on the disk is free then, not later."""

    def __init__(self, stream: BinaryIO, headers: dict[str, str], media_type: str) -> None:
        pieces = iter(lambda: stream.read(PIECE), b"")
        super().__init__(pieces, headers=headers, media_type=media_type)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()


def attachment(name: str, kind: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_") or "comparison"
    return f"attachment; filename=\"{plain[:100]}.{kind}\"; filename*=UTF-8''{quote(name[:100], safe='')}.{kind}"
