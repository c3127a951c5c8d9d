"""Dumps: register, list, look into, remove."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from dumpscope.api.models import bodies, dataflow, details, from_index, schemas
from dumpscope.api.parameters import (
    Around,
    Beside,
    Cursor,
    End,
    Id,
    Level,
    Limit,
    Name,
    Parent,
    Place,
    Rank,
    Reveal,
    Search,
    Step,
)
from dumpscope.api.replies import after, decode_cursor, levels_reply, list_reply, page_reply, reply
from dumpscope.api.state import Shared, State
from dumpscope.domain.job import Job
from dumpscope.errors import ConflictError, ForbiddenError, NotFoundError, UsageError
from dumpscope.index.dump_queries.nodes import get_node, list_nodes
from dumpscope.index.dumps.catalogue import (
    change_dump,
    count_dumps,
    create_dump,
    delete_dump,
    find_rank,
    get_dump,
    list_dumps,
)
from dumpscope.index.store.page import END, Order
from dumpscope.index.trees.tree_levels import dump_levels
from dumpscope.index.trees.trees import dump_reveal, dump_tree
from dumpscope.pipeline.tasks.cleanup import is_folder_held, remove_folder
from dumpscope.texts import say

router = APIRouter(tags=["dumps"])

STOP_SECONDS: Final = 10.0
"""How long removing something waits for its job to stop."""


@router.post("/dumps", status_code=202, response_model=schemas.Accepted)
def register(body: bodies.NewDump, state: Shared) -> Response:
    """Register a dump that lies on the server, below one of its roots; reading it is a job."""
    path = allowed(state, body.path)
    name = body.name or default_name(path)
    return accept(state, create_dump(state.database, name=name, path=str(path)), str(path))


def accept(state: State, dump_id: str, path: str, extra: dict[str, object] | None = None) -> Response:
    """Start reading a registered dump; the 202 that says so."""
    job = state.runner.submit("ingest", dump_id, {"path": path, "trusted": False, **(extra or {})})
    change_dump(state.database, dump_id, job=job.id)
    return reply(schemas.Accepted(id=dump_id, job=job.id), 202, {"Location": f"/api/dumps/{dump_id}"})


def allowed(state: State, given: str) -> Path:
    """The real path, links followed; raises ForbiddenError outside the roots, NotFoundError where nothing is."""
    roots = state.settings.roots
    hint = say("api.start_server_root_folder_holds")
    if "\0" in given:
        raise UsageError(say("api.path_holds_nul_character"))
    path = Path(given).expanduser()
    if not path.is_absolute():
        path = roots[0] / path
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as error:
        raise NotFoundError(say("api.path_cannot_resolved"), where=given) from error
    if not any(real == root or root in real.parents for root in roots):
        raise ForbiddenError(say("api.path_lies_outside_servers_roots"), where=given, hint=hint)
    if not real.exists():
        raise NotFoundError(say("api.nothing_there"), where=given)
    return real


def default_name(path: Path) -> str:
    """The last part of the path that tells dumps apart."""
    parts = [part for part in path.parts if not part.endswith(".json")]
    telling = [part for part in parts if not part.startswith(("step", "rank", "proc", "dump_tensor_data"))]
    return telling[-1] if telling and telling[-1] != os.sep else path.name


@router.get("/dumps", response_model=schemas.Page[schemas.Dump])
def listing(
    state: Shared, q: Search = "", sort: Order = "-created", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Dumps, newest first unless `sort` says otherwise."""
    seek, total = decode_cursor(cursor)
    found = list_dumps(state.database, q=q, order=sort, after=seek, limit=limit + 1)
    return list_reply(found, limit, total, lambda: count_dumps(state.database, q=q), from_index.dump)


@router.get("/dumps/{dump_id}", response_model=schemas.Dump)
def one(dump_id: Id, state: Shared) -> Response:
    """One dump."""
    return reply(from_index.dump(get_dump(state.database, dump_id)))


@router.patch("/dumps/{dump_id}", response_model=schemas.Dump)
def rename(dump_id: Id, body: bodies.DumpChange, state: Shared) -> Response:
    """Give a dump another name."""
    get_dump(state.database, dump_id)
    change_dump(state.database, dump_id, name=body.name)
    return reply(from_index.dump(get_dump(state.database, dump_id)))


@router.delete("/dumps/{dump_id}", status_code=204)
def remove(dump_id: Id, state: Shared) -> Response:
    """Forget a dump; uploaded files go with it, files below a root stay. 409 while a comparison uses it."""
    row = get_dump(state.database, dump_id)
    if row.job is not None and row.status == "pending":
        stop(state, row.job)
    for checking in state.jobs.of("precheck", dump_id):
        stop(state, checking.id)
    if row.owned and is_folder_held(state.settings.uploads / dump_id):
        raise ConflictError(
            say("api.dump_still_being_uploaded_2"), hint=say("api.break_upload_off_wait_until_complete")
        )
    gone = delete_dump(state.database, dump_id)
    remove_folder(state.settings.unpacked / dump_id)
    remove_folder(state.settings.prechecks / dump_id)
    if gone.owned:
        remove_folder(state.settings.uploads / dump_id)
    return Response(status_code=204)


def stop(state: State, job_id: str) -> None:
    """Cancel a job and wait until it is over; raises ConflictError where that takes too long."""
    job: Job | None = None
    with contextlib.suppress(NotFoundError):
        job = state.runner.cancel(job_id)
    deadline = time.monotonic() + STOP_SECONDS
    while job is not None and not job.over:
        if time.monotonic() > deadline:
            raise ConflictError(say("api.job_still_stopping"), hint=say("api.try_again_moment"))
        time.sleep(0.1)
        job = state.jobs.get(job_id)


@router.get("/dumps/{dump_id}/tree", response_model=schemas.Page[schemas.TreeRow] | schemas.TreePath)
def tree(
    dump_id: Id,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    parent: Parent = None,
    reveal: Reveal = None,
    around: Beside = None,
    end: End = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Children of a row of the module tree (of many those `around` one), or with `reveal` the rows on the way to a node."""
    stored = find_rank(state.database, dump_id, step, rank)
    if reveal is not None:
        return reply(schemas.TreePath(path=dump_reveal(state.database, stored, reveal)))
    seek = END if end and cursor is None else decode_cursor(cursor)[0]
    page = dump_tree(state.database, stored, parent=parent, seek=seek, around=around, limit=limit)
    return page_reply(page, from_index.tree_row, walkable=True)


@router.get("/dumps/{dump_id}/tree/levels", response_model=details.TreeLevels)
def tree_levels(
    dump_id: Id,
    state: Shared,
    reveal: Annotated[str, Query(max_length=4000, description="The node at the end of the way.")],
    step: Step = None,
    rank: Rank = None,
    first: Level = 0,
) -> Response:
    """The way to a node from the top, level by level, each with the rows beside it."""
    stored = find_rank(state.database, dump_id, step, rank)
    return levels_reply(dump_levels(state.database, stored, reveal, first=first), from_index.tree_row)


@router.get("/dumps/{dump_id}/nodes", response_model=schemas.Page[schemas.DumpNodeRow])
def nodes(
    dump_id: Id,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    q: Search = "",
    around: Around = None,
    at: Place = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Nodes in the order of the file; `around` centres the page on a node, `at` begins it at a place of the list."""
    stored = find_rank(state.database, dump_id, step, rank)
    if cursor is None:
        page = list_nodes(state.database, stored, q=q, at=at, around=around, limit=limit)
    else:
        page = list_nodes(state.database, stored, q=q, after=after(cursor), limit=limit)
    return page_reply(
        page,
        lambda row: schemas.DumpNodeRow(
            ordinal=row.ordinal, name=row.name, kind=row.kind, direction=row.direction, order=row.order
        ),
    )


@router.get("/dumps/{dump_id}/nodes/{name:anything}", response_model=dataflow.DumpNode)
def node(dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """One node: its records, call stack, relatives and place in the module tree."""
    stored = find_rank(state.database, dump_id, step, rank)
    found = get_node(state.database, stored, name)
    return reply(
        dataflow.DumpNode(
            name=found.name,
            step=stored.step,
            rank=stored.rank,
            items=[from_index.dump_leaf(*made) for made in zip(found.items, found.producers, strict=True)],
            item_count=found.item_count,
            stack=found.stack[: from_index.SENT_FRAMES],
            siblings=found.siblings,
            path=found.path,
        )
    )
