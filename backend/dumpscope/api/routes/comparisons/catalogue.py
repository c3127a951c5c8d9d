"""Comparisons: start, list, change, cancel, remove; their summary and origins."""

from __future__ import annotations

import shutil

from fastapi import APIRouter, Response

from dumpscope.api.models import bodies, from_index, schemas
from dumpscope.api.parameters import Cursor, Id, Limit, Search
from dumpscope.api.replies import decode_cursor, list_reply, reply
from dumpscope.api.routes.dumps.catalogue import stop
from dumpscope.api.state import Shared, State
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer
from dumpscope.errors import ConflictError
from dumpscope.index.comparisons.catalogue import (
    ComparisonRow,
    change_comparison,
    count_comparisons,
    create_comparison,
    delete_comparison,
    get_comparison,
    list_comparisons,
    stored_units,
)
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.store.page import Order
from dumpscope.match import check_options
from dumpscope.parallel.plan import parse_plan
from dumpscope.pipeline.planning.rank_pairs import require_chosen
from dumpscope.pipeline.results.require_dumps import require_dumps
from dumpscope.pipeline.server.job_kinds import joined_room
from dumpscope.texts import say
from dumpscope.verdict.policy import load_policy

router = APIRouter(tags=["comparisons"])


@router.post("/comparisons", status_code=202, response_model=schemas.Accepted)
def start(body: bodies.NewComparison, state: Shared) -> Response:
    """Compare two dumps; it may be asked for while they are still read."""
    row = begin(body, state)
    return reply(schemas.Accepted(id=row.id, job=row.job or ""), 202, {"Location": f"/api/comparisons/{row.id}"})


def begin(body: bodies.NewComparison, state: State) -> ComparisonRow:
    """Register a comparison and queue its job."""
    options = Options.from_json(body.options.model_dump())
    load_policy(options.policy)
    check_options(options)
    parse_plan(options.parallel)
    target, golden = get_dump(state.database, body.target), get_dump(state.database, body.golden)
    reference = [] if body.reference is None else [get_dump(state.database, body.reference)]
    for dump in (target, golden, *reference):
        if dump.status == "failed":
            raise ConflictError(say("api.dump_could_not_read", name=dump.name), hint=say("api.register_again"))
        if dump.status == "pending" and dump.job is None:  # waiting for it could take every job's slot, its own too
            raise ConflictError(
                say("api.dump_still_being_uploaded", name=dump.name), hint=say("api.try_again_when_complete")
            )
    if options.tensors:
        require_dumps(state.database, [dump.id for dump in (target, golden, *reference)])
    if target.status == golden.status == "ready":  # else its job tells
        require_chosen(options, (target.steps, target.ranks), (golden.steps, golden.ranks))
    name = body.name or str(say("report.title", target=target.name, golden=golden.name))
    comparison = create_comparison(
        state.database, name=name, target=target.id, golden=golden.id, reference=body.reference, options=options
    )
    job = state.runner.submit("compare", comparison)
    change_comparison(state.database, comparison, job=job.id)
    return get_comparison(state.database, comparison)


@router.get("/comparisons", response_model=schemas.Page[schemas.Comparison])
def listing(
    state: Shared, q: Search = "", sort: Order = "-created", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Comparisons, newest first unless `sort` says otherwise."""
    seek, total = decode_cursor(cursor)
    found = list_comparisons(state.database, q=q, order=sort, after=seek, limit=limit + 1)
    return list_reply(found, limit, total, lambda: count_comparisons(state.database, q=q), from_index.comparison)


@router.get("/comparisons/{comparison_id}", response_model=schemas.Comparison)
def one(comparison_id: Id, state: Shared) -> Response:
    """One comparison."""
    return reply(from_index.comparison(get_comparison(state.database, comparison_id)))


@router.patch("/comparisons/{comparison_id}", response_model=schemas.Comparison)
def change(comparison_id: Id, body: bodies.ComparisonChange, state: Shared) -> Response:
    """Rename, or judge under another policy: that is a job which reads no tensor."""
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
        change_comparison(state.database, comparison_id, status="running")  # first, since the job may be over at once
        job = state.runner.submit("rejudge", comparison_id, {"policy": body.policy})
        change_comparison(state.database, comparison_id, job=job.id)
    return reply(from_index.comparison(get_comparison(state.database, comparison_id)))


@router.post("/comparisons/{comparison_id}/cancel", response_model=schemas.Comparison)
def cancel(comparison_id: Id, state: Shared) -> Response:
    """Ask its job to stop; one that is over stays as it is."""
    row = get_comparison(state.database, comparison_id)
    if row.job is not None and row.status in ("pending", "running"):
        state.runner.cancel(row.job)
    return reply(from_index.comparison(get_comparison(state.database, comparison_id)))


@router.delete("/comparisons/{comparison_id}", status_code=204)
def remove(comparison_id: Id, state: Shared) -> Response:
    """Stop its job and forget it; the dumps stay."""
    row = get_comparison(state.database, comparison_id)
    if row.job is not None and row.status in ("pending", "running"):
        stop(state, row.job)
    delete_comparison(state.database, comparison_id)
    shutil.rmtree(joined_room(state.settings.unpacked, comparison_id), ignore_errors=True)
    return Response(status_code=204)


@router.get("/comparisons/{comparison_id}/summary", response_model=schemas.Summary)
def summary(comparison_id: Id, state: Shared) -> Response:
    """The answer: mode, both sides, counts, first No, origins, differences in how the dumps were taken, problems."""
    answer = answered(get_comparison(state.database, comparison_id))
    return reply(from_index.summary(answer, stored_units(state.database, comparison_id)))


@router.get("/comparisons/{comparison_id}/origins", response_model=schemas.Origins)
def origins(comparison_id: Id, state: Shared) -> Response:
    """What caused the divergence: independent causes, causal first, propagated ones never."""
    answer = answered(get_comparison(state.database, comparison_id))
    return reply(schemas.Origins(items=[from_index.origin(found) for found in answer.origins[: from_index.ORIGINS]]))


def answered(row: ComparisonRow) -> Answer:
    """The answer of a comparison; raises ConflictError while there is none."""
    if row.answer is None:
        raise ConflictError(say("api.comparison_has_no_result", status=row.status), hint=say("api.wait_job"))
    return row.answer
