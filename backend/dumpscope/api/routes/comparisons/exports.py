"""Result files to download."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from dumpscope.api.cancellable import run_cancellable
from dumpscope.api.downloads import OpenFile, attachment
from dumpscope.api.one_file.asking import Ask, asking
from dumpscope.api.one_file.contents import collect
from dumpscope.api.one_file.page import page_html, require_page
from dumpscope.api.parameters import Filters, Id, Rank, Step
from dumpscope.api.state import Shared, State
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import get_comparison
from dumpscope.index.pair_queries.node_pairs import NodeFilter
from dumpscope.pipeline.results.exports import (
    EXPORTS,
    answer_text,
    csv_text,
    export_units,
    html_page,
    json_document,
    junit_document,
    xlsx_file,
)
from dumpscope.pipeline.results.save import save_copy
from dumpscope.pipeline.tasks.cleanup import export_folder
from dumpscope.texts import say, speaking

router = APIRouter(tags=["exports"])

Kind = Literal["csv", "xlsx", "json", "html", "page.html", "junit.xml", "txt", "db"]

Language = Literal["en", "zh"]

FILES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {media.split(";")[0]: {} for media in EXPORTS.values()}}
}


@router.get("/comparisons/{comparison_id}/export.{kind}", response_class=Response, responses=FILES)
async def export(
    request: Request,
    comparison_id: Id,
    kind: Kind,
    state: Shared,
    filters: Filters,
    step: Annotated[Step, Query(description="Only this step.")] = None,
    rank: Annotated[Rank, Query(description="Only this rank.")] = None,
    pairs: Annotated[bool, Query(description="json: every item pair too.")] = False,
    lang: Annotated[Language, Query(description="html, txt: language.")] = "en",
    bom: Annotated[bool, Query(description="csv: begin with a byte order mark, by which Excel knows UTF-8.")] = False,
) -> Response:
    """The result as a file: csv and xlsx tables, the summary document, a JUnit report, a report without scripts, the page of the
    UI in one file, the text that the command prints, or a database.

    The filters choose the calls in the tables, in the pairs of the document and in the JUnit report. The database (`db`) is for
    `dumpscope serve FILE`: the whole comparison with the notes on its pair, nothing else of the server. Closing the
    connection ends the work and leaves no files. The page (`page.html`) opens from a disk without a server: it holds the answer,
    the calls that matter and some plots.
    """
    asked = _Asked(
        ask=asking(request.app, state.settings),
        state=state,
        comparison=comparison_id,
        kind=kind,
        filters=filters,
        step=step,
        rank=rank,
        pairs=pairs,
        language=lang,
        bom=bom,
    )
    return await run_cancellable(request, asked.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The requested file."""

    ask: Ask
    state: State
    comparison: str
    kind: Kind
    filters: NodeFilter
    step: int | None
    rank: int | None
    pairs: bool
    language: str
    bom: bool

    def answer(self, check: Callable[[], None]) -> Response:
        """The file, or its first bytes and then the rest while it is sent. check: raises after a disconnect"""
        if self.kind == "db":
            whole = self.step is None and self.rank is None and not self.filters
            return _result_file(self.state, self.comparison, check, whole=whole)
        if self.kind == "page.html":
            return self._page(check)
        return self._table(check)

    def _page(self, check: Callable[[], None]) -> Response:
        if self.step is not None or self.rank is not None or self.filters:
            raise UsageError(say("api.page_holds_whole_comparison"), hint=say("api.leave_out_step_rank_filters"))
        name = get_comparison(self.state.database, self.comparison).name
        require_page()
        page = page_html(name, collect(self.ask, self.comparison, check, lambda _share: None))
        headers = {"Content-Disposition": attachment(name, self.kind)}
        return Response(page, headers=headers, media_type=EXPORTS[self.kind])

    def _table(self, check: Callable[[], None]) -> Response:
        state, kind, filters = self.state, self.kind, self.filters
        answer, units = export_units(state.database, self.comparison, self.step, self.rank, filters)
        name = get_comparison(state.database, self.comparison).name
        headers = {"Content-Disposition": attachment(name, kind)}
        if kind == "xlsx":
            with export_folder(state.settings.data_dir) as folder:
                file = folder / "table.xlsx"
                xlsx_file(state.database, units, filters, file, check)
                return _sent(file, headers, kind)
        if kind == "html":
            with speaking(self.language):
                page = html_page(state.database, answer, units, check)
            return Response(page, headers=headers, media_type=EXPORTS[kind])
        if kind == "txt":
            with speaking(self.language):
                return Response(answer_text(answer, units), headers=headers, media_type=EXPORTS[kind])
        if kind == "csv":
            text: Iterator[str] = chain(["\ufeff"] if self.bom else [], csv_text(state.database, units, filters))
        elif kind == "json":
            text = json_document(state.database, answer, units, filters, pairs=self.pairs)
        else:
            text = junit_document(state.database, answer, units, filters, name)
        pieces = (piece.encode("utf-8", "replace") for piece in text)
        return StreamingResponse(pieces, headers=headers, media_type=EXPORTS[kind])


def _result_file(state: State, comparison_id: str, check: Callable[[], None], *, whole: bool) -> Response:
    if not whole:
        raise UsageError(say("api.result_file_holds_whole_comparison"), hint=say("api.leave_out_step_rank_filters"))
    name = get_comparison(state.database, comparison_id).name
    with export_folder(state.settings.data_dir) as folder:
        file = save_copy(folder / "result.db", state.database, comparison_id, check)
        return _sent(file, {"Content-Disposition": attachment(name, "db")}, "db")


def _sent(file: Path, headers: dict[str, str], kind: str) -> Response:
    """Send the file as it is now; it may be removed meanwhile."""
    return OpenFile(file.open("rb"), {**headers, "Content-Length": str(file.stat().st_size)}, EXPORTS[kind])
