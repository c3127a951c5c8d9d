"""Dumps: register, list, look into, remove."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from dumpscope.api.ingest import default_name, resolve_path, start_ingest
from dumpscope.api.models import bodies, trees
from dumpscope.api.models.base import Accepted, Page
from dumpscope.api.models.dumps import Dump, DumpLeaf, DumpNode, DumpNodeRow, Leaf, Producer, RowOutput
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
from dumpscope.api.replies import after, decode_cursor, list_reply, page_reply, reply
from dumpscope.api.state import Shared
from dumpscope.api.tree_replies import DUMP_TREE, TreePart, tree_levels_reply, tree_reply
from dumpscope.errors import ConflictError
from dumpscope.index.dump_queries.nodes import NodeRow, Producer as FoundProducer, get_node, list_nodes
from dumpscope.index.dump_queries.outputs import RowFacts, largest_magnitude, row_facts
from dumpscope.index.dumps.catalogue import (
    change_dump,
    count_dumps,
    create_dump,
    delete_dump,
    find_rank,
    get_dump,
    list_dumps,
)
from dumpscope.index.dumps.leaves import Leaf as Record
from dumpscope.index.store.page import Order
from dumpscope.pipeline.tasks.cleanup import is_folder_held, removing_folders
from dumpscope.texts import say

router = APIRouter(tags=["dumps"])


@router.post("/dumps", status_code=202, response_model=Accepted)
def register(body: bodies.NewDump, state: Shared) -> Response:
    """Register a dump on the server, below one of its roots; reading it is a job."""
    path = resolve_path(state, body.path)
    name = body.name or default_name(path)
    return start_ingest(state, create_dump(state.database, name=name, path=str(path)), str(path))


@router.get("/dumps", response_model=Page[Dump])
def listing(
    state: Shared,
    q: Search = "",
    watched: Annotated[bool, Query(description="Only dumps whose folder is watched.")] = False,
    sort: Order = "-created",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Dumps, newest first unless `sort` says otherwise."""
    seek, total = decode_cursor(cursor)
    found = list_dumps(state.database, q=q, watched=watched, order=sort, after=seek, limit=limit + 1)
    count = partial(count_dumps, state.database, q=q, watched=watched)
    return list_reply(found, limit, total, count, Dump.model_validate)


@router.get("/dumps/{dump_id}", response_model=Dump)
def one(dump_id: Id, state: Shared) -> Response:
    """One dump."""
    return reply(Dump.model_validate(get_dump(state.database, dump_id)))


@router.patch("/dumps/{dump_id}", response_model=Dump)
def rename(dump_id: Id, body: bodies.DumpChange, state: Shared) -> Response:
    """Give a dump another name."""
    get_dump(state.database, dump_id)
    change_dump(state.database, dump_id, name=body.name)
    return reply(Dump.model_validate(get_dump(state.database, dump_id)))


@router.delete("/dumps/{dump_id}", status_code=204)
def remove(dump_id: Id, state: Shared) -> Response:
    """Delete a dump; uploaded files are removed, files below a root stay. 409 while a comparison uses it."""
    row = get_dump(state.database, dump_id)
    if row.job is not None and row.status == "pending":
        state.stop_job(row.job)
    for kind in ("precheck", "update"):
        for working in state.jobs.of(kind, dump_id):
            state.stop_job(working.id)
    if row.owned and is_folder_held(state.settings.uploads / dump_id):
        raise ConflictError(
            say("api.dump_still_being_uploaded_2"), hint=say("api.break_upload_off_wait_until_complete")
        )
    held = [state.settings.unpacked, state.settings.prechecks, *([state.settings.uploads] if row.owned else [])]
    with removing_folders(*(place / dump_id for place in held)):
        delete_dump(state.database, dump_id)
    return Response(status_code=204)


@router.get("/dumps/{dump_id}/tree", response_model=Page[trees.TreeRow] | trees.TreePath)
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
    """Children of a row of the module tree (with `around`, those around one), or with `reveal` the path to a node."""
    asked = TreePart(parent=parent, reveal=reveal, around=around, end=end, cursor=cursor, limit=limit)
    return tree_reply(DUMP_TREE, state.database, find_rank(state.database, dump_id, step, rank), asked)


@router.get("/dumps/{dump_id}/tree/levels", response_model=trees.TreeLevels)
def tree_levels(
    dump_id: Id,
    state: Shared,
    reveal: Annotated[str, Query(max_length=4000, description="The node at the end of the way.")],
    step: Step = None,
    rank: Rank = None,
    first: Level = 0,
) -> Response:
    """The path to a node from the top, level by level, each with the neighbouring rows."""
    return tree_levels_reply(
        DUMP_TREE, state.database, find_rank(state.database, dump_id, step, rank), reveal, first=first
    )


@router.get("/dumps/{dump_id}/nodes", response_model=Page[DumpNodeRow])
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
    """Nodes in the order of the file; `around` centres the page on a node, `at` begins it at a position of the list."""
    stored = find_rank(state.database, dump_id, step, rank)
    if cursor is None:
        page = list_nodes(state.database, stored, q=q, at=at, around=around, limit=limit)
    else:
        page = list_nodes(state.database, stored, q=q, after=after(cursor), limit=limit)
    told = row_facts(state.database, stored, [row.ordinal for row in page.rows])
    return page_reply(page, lambda row: _row(row, told))


@router.get("/dumps/{dump_id}/nodes/{name:anything}", response_model=DumpNode)
def node(dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """One node: its records, call stack, relatives and position in the module tree."""
    stored = find_rank(state.database, dump_id, step, rank)
    found = get_node(state.database, stored, name)
    return reply(
        DumpNode(
            name=found.name,
            step=stored.step,
            rank=stored.rank,
            items=[
                _record(number, *made)
                for number, made in enumerate(zip(found.items, found.producers, strict=True), found.first_item)
            ],
            item_count=found.item_count,
            stack=found.stack,
            frames=found.stack,  # type: ignore[arg-type]  # their texts
            siblings=found.siblings,
            path=found.path,
        )
    )


def _row(row: NodeRow, told: RowFacts) -> DumpNodeRow:
    record = told.outputs.get(row.ordinal)
    output = None
    if record is not None:
        high, low, _mean, norm = (None if one is None else float(one) for one in record.stats)
        output = RowOutput(dtype=record.dtype, shape=record.shape, norm=norm, largest=largest_magnitude(high, low))
    return DumpNodeRow(
        ordinal=row.ordinal,
        name=row.name,
        kind=row.kind,
        direction=row.direction,
        order=row.order,
        output=output,
        alone=told.alone.get(row.ordinal),  # type: ignore[arg-type]  # one of the words
    )


def _record(number: int, row: Record, made: FoundProducer | None) -> DumpLeaf:
    producer = None if made is None else Producer.model_validate(made)
    return DumpLeaf(**dict(Leaf.model_validate(row)), id=number, producer=producer)
