"""Comparisons of checkpoints: start, list, cancel, remove; their summary and their tensors."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path as InPath, Query, Response

from dumpscope.api.ingest import resolve_path, root_of
from dumpscope.api.models.base import Accepted, Page
from dumpscope.api.models.training.checkpoints import (
    CheckpointCounts,
    CheckpointDiff,
    CheckpointSummary,
    CheckpointTensor,
    NewCheckpointDiff,
    checkpoint_diff,
    checkpoint_summary,
    checkpoint_tensor,
)
from dumpscope.api.parameters import INT32, Cursor, Id, Limit, Search, words
from dumpscope.api.replies import decode_cursor, list_reply, reply
from dumpscope.api.state import Shared, State
from dumpscope.domain.checkpoints.differences import STATES
from dumpscope.errors import ConflictError
from dumpscope.index.checkpoints.catalogue import (
    CheckpointDiffRow,
    change_checkpoint_diff,
    count_checkpoint_diffs,
    create_checkpoint_diff,
    delete_checkpoint_diff,
    get_checkpoint_diff,
    list_checkpoint_diffs,
)
from dumpscope.index.checkpoints.tensors import Sort, count_states, count_tensors, get_tensor, list_tensors
from dumpscope.match.renames.rename_rules import parse_renames
from dumpscope.texts import say

router = APIRouter(tags=["checkpoints"])

States = Annotated[list[str], Query(alias="state", description="Any of these states; several times or with commas.")]
Place = Annotated[int, InPath(ge=0, le=INT32)]


@router.post("/checkpoint-diffs", status_code=202, response_model=Accepted)
def start(body: NewCheckpointDiff, state: Shared) -> Response:
    """Compare two checkpoints that lie below the server's roots; a job."""
    parse_renames(body.rename)
    target, golden = resolve_path(state, body.target), resolve_path(state, body.golden)
    name = body.name or f"{target.name} / {golden.name}"
    diff_id = create_checkpoint_diff(
        state.database, name=name, target=str(target), golden=str(golden), renames=body.rename
    )
    job = state.runner.submit("checkpoints", diff_id, {"roots": [root_of(state, target), root_of(state, golden)]})
    change_checkpoint_diff(state.database, diff_id, job=job.id)
    return reply(Accepted(id=diff_id, job=job.id), 202, {"Location": f"/api/checkpoint-diffs/{diff_id}"})


@router.get("/checkpoint-diffs", response_model=Page[CheckpointDiff])
def listing(state: Shared, q: Search = "", cursor: Cursor = None, limit: Limit = 100) -> Response:
    """Comparisons of checkpoints, newest first."""
    seek, total = decode_cursor(cursor)
    found = list_checkpoint_diffs(state.database, q=q, after=seek, limit=limit + 1)
    return list_reply(found, limit, total, lambda: count_checkpoint_diffs(state.database, q=q), checkpoint_diff)


@router.get("/checkpoint-diffs/{diff_id}", response_model=CheckpointDiff)
def one(diff_id: Id, state: Shared) -> Response:
    """One comparison of checkpoints."""
    return reply(checkpoint_diff(get_checkpoint_diff(state.database, diff_id)))


@router.post("/checkpoint-diffs/{diff_id}/cancel", response_model=CheckpointDiff)
def cancel(diff_id: Id, state: Shared) -> Response:
    """Ask its job to stop; a finished one is not changed."""
    row = get_checkpoint_diff(state.database, diff_id)
    if row.job is not None and row.status == "pending":
        state.runner.cancel(row.job)
    return reply(checkpoint_diff(get_checkpoint_diff(state.database, diff_id)))


@router.delete("/checkpoint-diffs/{diff_id}", status_code=204)
def remove(diff_id: Id, state: Shared) -> Response:
    """Stop its job and delete it; the files stay."""
    row = get_checkpoint_diff(state.database, diff_id)
    if row.job is not None and row.status == "pending":
        state.stop_job(row.job)
    delete_checkpoint_diff(state.database, diff_id)
    return Response(status_code=204)


@router.get("/checkpoint-diffs/{diff_id}/summary", response_model=CheckpointSummary)
def summary(diff_id: Id, state: Shared) -> Response:
    """What came out: sentence, counts by state, renames that were found, problems."""
    return reply(checkpoint_summary(_finished(state, diff_id).answer or {}))


@router.get("/checkpoint-diffs/{diff_id}/counts", response_model=CheckpointCounts)
def counts(diff_id: Id, state: Shared, q: Search = "") -> Response:
    """Tensors by state, of those whose name holds `q`."""
    found = count_states(state.database, _finished(state, diff_id), q=q)
    return reply(CheckpointCounts.model_validate({"counts": {one: found.get(one, 0) for one in STATES}}))


@router.get("/checkpoint-diffs/{diff_id}/tensors", response_model=Page[CheckpointTensor])
def tensors(
    diff_id: Id,
    state: Shared,
    states: States = [],  # noqa: B006  (FastAPI copies defaults)
    q: Search = "",
    sort: Sort = "worst",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Tensors, the worst first unless `sort` says otherwise."""
    diff = _finished(state, diff_id)
    seek, total = decode_cursor(cursor)
    wanted = words(states)
    found = list_tensors(state.database, diff, states=wanted, q=q, sort=sort, after=seek, limit=limit + 1)
    return list_reply(
        found, limit, total, lambda: count_tensors(state.database, diff, states=wanted, q=q), checkpoint_tensor
    )


@router.get("/checkpoint-diffs/{diff_id}/tensors/{number}", response_model=CheckpointTensor)
def tensor(diff_id: Id, number: Place, state: Shared) -> Response:
    """One tensor, by its place in the list that has the worst first."""
    return reply(checkpoint_tensor(get_tensor(state.database, _finished(state, diff_id), number)))


def _finished(state: State, diff_id: str) -> CheckpointDiffRow:
    """Raises ConflictError while there is no result."""
    row = get_checkpoint_diff(state.database, diff_id)
    if row.answer is None:
        hint = say("checkpoints.compare_again") if row.status in ("failed", "cancelled") else say("checkpoints.wait")
        raise ConflictError(say("checkpoints.no_result"), hint=hint)
    return row
