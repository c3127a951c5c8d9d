"""The source around the line that made a call: of both sides of a comparison, and of one dump."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dumpscope.api.models.source import Source, source
from dumpscope.api.parameters import Id, Name, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.index.comparisons.catalogue import find_unit
from dumpscope.index.dump_queries.nodes import stack_of
from dumpscope.index.dumps.catalogue import find_rank
from dumpscope.index.pair_queries.node_details import stacks_of_pair
from dumpscope.index.pair_queries.node_pairs import one_node_pair
from dumpscope.pipeline.results.call_source import call_source, side_source

router = APIRouter()


@router.get("/comparisons/{comparison_id}/nodes/{name:anything}/source", response_model=Source, tags=["results"])
def pair_source(comparison_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """The lines around the user's own line of a call's stack, 8 above and below, of both sides; lines that only one side has are
    rows of their own."""
    unit = find_unit(state.database, comparison_id, step, rank)
    with state.database.read() as connection:
        pair = one_node_pair(connection, unit, name).pair
        stacks = stacks_of_pair(connection, unit, pair)
    roots = state.settings.source_folders
    target, golden = (
        None if stack is None else side_source(state.database, side, stack, roots)
        for side, stack in zip((unit.target, unit.golden), stacks, strict=True)
    )
    return reply(source(call_source(target, golden)))


@router.get("/dumps/{dump_id}/nodes/{name:anything}/source", response_model=Source, tags=["dumps"])
def dump_source(dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """The same of a call of one dump, as `target`; `golden` is null."""
    stored = find_rank(state.database, dump_id, step, rank)
    stack = stack_of(state.database, stored, name)
    return reply(
        source(call_source(side_source(state.database, stored.id, stack, state.settings.source_folders), None))
    )
