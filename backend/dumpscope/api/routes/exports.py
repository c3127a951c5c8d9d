"""Result files to download."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.background import BackgroundTask

from dumpscope.api.parameters import Filters, Id, Rank, Step
from dumpscope.api.state import Shared
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

router = APIRouter(tags=["exports"])

FILES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {media.split(";")[0]: {} for media in EXPORTS.values()}}
}


@router.get("/comparisons/{comparison_id}/export.{kind}", response_class=Response, responses=FILES)
def export(
    comparison_id: Id,
    kind: Literal["csv", "xlsx", "json", "html", "junit.xml"],
    state: Shared,
    filters: Filters,
    step: Annotated[Step, Query(description="Only this step.")] = None,
    rank: Annotated[Rank, Query(description="Only this rank.")] = None,
    pairs: Annotated[bool, Query(description="json: every item pair too.")] = False,
) -> Response:
    """The result as a file: csv and xlsx tables, the summary document, a JUnit report, or a self-contained page.

    The filters say which calls the tables, the pairs of the document and the JUnit report hold.
    """
    answer, units = export_units(state.database, comparison_id, step, rank, filters)
    name = get_comparison(state.database, comparison_id).name
    headers = {"Content-Disposition": attachment(name, kind)}
    if kind == "xlsx":
        state.settings.data_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(suffix=".xlsx", dir=state.settings.data_dir, delete=False) as held:
            file = Path(held.name)
        try:
            xlsx_file(state.database, units, filters, file)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        cleanup = BackgroundTask(file.unlink, missing_ok=True)
        return FileResponse(file, headers=headers, media_type=EXPORTS[kind], background=cleanup)
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


def attachment(name: str, kind: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_") or "comparison"
    return f"attachment; filename=\"{plain[:100]}.{kind}\"; filename*=UTF-8''{quote(name[:100], safe='')}.{kind}"
