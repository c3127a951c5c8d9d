"""Comparisons: start, list, change, cancel, remove; their summary and origins."""

from __future__ import annotations

import shutil
from typing import Final

from fastapi import APIRouter, Response

from dumpscope.api.comparisons import require_answer, start_comparison
from dumpscope.api.ingest import default_name, resolve_path, start_ingest
from dumpscope.api.models import bodies
from dumpscope.api.models.base import Accepted, Page
from dumpscope.api.models.comparisons import Comparison, Origins, Summary, comparison, summarize
from dumpscope.api.parameters import Cursor, Id, Limit, Search
from dumpscope.api.replies import decode_cursor, list_reply, reply
from dumpscope.api.state import Shared
from dumpscope.errors import ConflictError, UnreadableError
from dumpscope.index.comparisons.catalogue import (
    change_comparison,
    count_comparisons,
    delete_comparison,
    get_comparison,
    list_comparisons,
    stored_units,
)
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.index.pair_queries.over_units.rank_map import list_strays
from dumpscope.index.store.page import Order
from dumpscope.pipeline.server.job_kinds import joined_room
from dumpscope.readers.result_tables import find_tables
from dumpscope.texts import say
from dumpscope.verdict.policy import load_policy

router = APIRouter(tags=["comparisons"])

_SIDES: Final = ("target", "golden")


@router.post("/comparisons", status_code=202, response_model=Accepted)
def start(body: bodies.NewComparison, state: Shared) -> Response:
    """Compare two dumps, also while they are still being read."""
    row = start_comparison(body, state)
    return reply(Accepted(id=row.id, job=row.job or ""), 202, {"Location": f"/api/comparisons/{row.id}"})


@router.post("/tables", status_code=202, response_model=Accepted)
def open_table(body: bodies.NewDump, state: Shared) -> Response:
    """Open a result table on the server, or a folder with one a rank: its sides become two dumps, and these are compared."""
    path = resolve_path(state, body.path)
    if not find_tables(path):
        raise UnreadableError(say("readers.no_result_table"), where=body.path, hint=say("readers.name_result_table"))
    name = body.name or default_name(path)
    ids = [create_dump(state.database, name=f"{name} ({side})", path=str(path)) for side in _SIDES]
    for dump_id, side in zip(ids, _SIDES, strict=True):
        start_ingest(state, dump_id, str(path), {"side": side})
    row = start_comparison(bodies.NewComparison(target=ids[0], golden=ids[1], name=name), state)
    return reply(Accepted(id=row.id, job=row.job or ""), 202, {"Location": f"/api/comparisons/{row.id}"})


@router.get("/comparisons", response_model=Page[Comparison])
def listing(
    state: Shared, q: Search = "", sort: Order = "-created", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Comparisons, newest first unless `sort` says otherwise."""
    seek, total = decode_cursor(cursor)
    found = list_comparisons(state.database, q=q, order=sort, after=seek, limit=limit + 1)
    return list_reply(found, limit, total, lambda: count_comparisons(state.database, q=q), comparison)


@router.get("/comparisons/{comparison_id}", response_model=Comparison)
def one(comparison_id: Id, state: Shared) -> Response:
    """One comparison."""
    return reply(comparison(get_comparison(state.database, comparison_id)))


@router.patch("/comparisons/{comparison_id}", response_model=Comparison)
def change(comparison_id: Id, body: bodies.ComparisonChange, state: Shared) -> Response:
    """Rename, or judge by another policy, which is a job that reads no tensor."""
    row = get_comparison(state.database, comparison_id)
    if body.policy is not None:
        load_policy(body.policy)
        if row.status in ("pending", "running"):
            raise ConflictError(say("api.comparison_still_work"), hint=say("api.wait_job_cancel"))
        if row.answer is None:
            raise ConflictError(say("api.comparison_has_no_result_judge"), hint=say("api.compare_again"))
    if body.name is not None:
        change_comparison(state.database, comparison_id, name=body.name)
    if body.policy is not None:
        change_comparison(state.database, comparison_id, status="running")  # first, because the job may end at once
        job = state.runner.submit("rejudge", comparison_id, {"policy": body.policy})
        change_comparison(state.database, comparison_id, job=job.id)
    return reply(comparison(get_comparison(state.database, comparison_id)))


@router.post("/comparisons/{comparison_id}/cancel", response_model=Comparison)
def cancel(comparison_id: Id, state: Shared) -> Response:
    """Ask its job to stop; a finished one is not changed."""
    row = get_comparison(state.database, comparison_id)
    if row.job is not None and row.status in ("pending", "running"):
        state.runner.cancel(row.job)
    return reply(comparison(get_comparison(state.database, comparison_id)))


@router.delete("/comparisons/{comparison_id}", status_code=204)
def remove(comparison_id: Id, state: Shared) -> Response:
    """Stop its job and delete it; the dumps stay."""
    row = get_comparison(state.database, comparison_id)
    if row.job is not None and row.status in ("pending", "running"):
        state.stop_job(row.job)
    delete_comparison(state.database, comparison_id)
    shutil.rmtree(joined_room(state.settings.unpacked, comparison_id), ignore_errors=True)
    return Response(status_code=204)


@router.get("/comparisons/{comparison_id}/summary", response_model=Summary)
def summary(comparison_id: Id, state: Shared) -> Response:
    """The answer: mode, both sides, counts, first No, origins, differences in settings, problems."""
    answer = require_answer(get_comparison(state.database, comparison_id))
    units = stored_units(state.database, comparison_id)
    return reply(summarize(answer, units, list_strays(state.database, units)))


@router.get("/comparisons/{comparison_id}/origins", response_model=Origins)
def origins(comparison_id: Id, state: Shared) -> Response:
    """The independent causes of the divergence, the first cause first; propagated differences are not listed."""
    answer = require_answer(get_comparison(state.database, comparison_id))
    return reply(Origins.model_validate({"items": answer.origins}))
