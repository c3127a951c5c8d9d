"""Results of a comparison, page by page: tree, strip, nodes, item pairs."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Response

from dumpscope.api.models import trees
from dumpscope.api.models.base import Page, Phrase
from dumpscope.api.models.dataflow import Flow, PathView
from dumpscope.api.models.explanations import differs, explained, told_item
from dumpscope.api.models.pairs import (
    Collective,
    CollectivePart,
    FilterCounts,
    NodeDetail,
    NodeRow,
    Pair,
    PairWithDetail,
    Strip,
    reason,
)
from dumpscope.api.parameters import (
    Api,
    Around,
    Beside,
    Cursor,
    End,
    Filters,
    Id,
    Key,
    Level,
    Limit,
    Name,
    Parent,
    Place,
    Rank,
    Reveal,
    Step,
    Terms,
    Verdicts,
    words,
)
from dumpscope.api.replies import decode_cursor, page_reply, reply
from dumpscope.api.state import Shared, State
from dumpscope.api.tree_replies import COMPARISON_TREE, TreePart, tree_levels_reply, tree_reply
from dumpscope.domain.facts import VERDICT_WORDS, Origin
from dumpscope.index.comparisons.catalogue import (
    StoredUnit,
    find_unit,
    origins_of,
    unit_of_pair,
)
from dumpscope.index.pair_queries.collectives import collectives_of, list_collectives, list_parts
from dumpscope.index.pair_queries.dataflow import node_flow
from dumpscope.index.pair_queries.filter_counts import filter_counts
from dumpscope.index.pair_queries.item_pairs import get_item_pair, items_of_node, list_item_pairs
from dumpscope.index.pair_queries.list_positions import node_pairs_around, node_pairs_at
from dumpscope.index.pair_queries.node_details import node_context
from dumpscope.index.pair_queries.node_pairs import NodeFilter, NodePairRow, list_node_pairs, one_node_pair
from dumpscope.index.pair_queries.pair_columns import pair_columns, strip
from dumpscope.index.pair_queries.paths.path_view import path_view
from dumpscope.index.pair_queries.reach import cause_of, first_reached, reach_of
from dumpscope.index.store.page import END
from dumpscope.texts import english

router = APIRouter(prefix="/comparisons/{comparison_id}", tags=["results"])

DETAIL_PAIRS: Final = 100
"""Item pairs sent with one node."""


@router.get("/tree", response_model=Page[trees.TreeRow] | trees.TreePath)
def tree(
    comparison_id: Id,
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
    """Children of a row of the module tree with the counts below them (a page of many can be `around` one), or with `reveal`
    the rows on the path to a node."""
    asked = TreePart(parent=parent, reveal=reveal, around=around, end=end, cursor=cursor, limit=limit)
    return tree_reply(COMPARISON_TREE, state.database, find_unit(state.database, comparison_id, step, rank), asked)


@router.get("/tree/levels", response_model=trees.TreeLevels)
def tree_levels(
    comparison_id: Id,
    state: Shared,
    reveal: Annotated[str, Query(max_length=4000, description="The node at the end of the way.")],
    step: Step = None,
    rank: Rank = None,
    first: Level = 0,
) -> Response:
    """The path to a node from the top, level by level, each with the neighbouring rows."""
    unit = find_unit(state.database, comparison_id, step, rank)
    return tree_levels_reply(COMPARISON_TREE, state.database, unit, reveal, first=first)


@router.get("/strip", response_model=Strip)
def overview(
    comparison_id: Id,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    buckets: Annotated[int, Query(ge=1, le=1500)] = 800,
) -> Response:
    """All node pairs in equal buckets of execution order, the worst of each."""
    unit = find_unit(state.database, comparison_id, step, rank)
    found = strip(pair_columns(state.database, unit), buckets=buckets)
    return reply(Strip.model_validate({"total": unit.pairs, "buckets": found, "backward": unit.backward}))


@router.get("/nodes", response_model=Page[NodeRow])
def nodes(
    comparison_id: Id,
    state: Shared,
    filters: Filters,
    step: Step = None,
    rank: Rank = None,
    sort: Literal["order", "-out_score", "-ratio", "-class", "name"] = "order",
    around: Around = None,
    at: Place = None,
    end: End = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Node pairs in execution order or by error; `around` centres the page on a node, `at` begins it at a position of the list,
    `end` asks for the last ones."""
    unit = find_unit(state.database, comparison_id, step, rank)
    if around is not None and cursor is None:
        page = node_pairs_around(state.database, unit, around, filters=filters, sort=sort, limit=limit)
    elif at is not None and cursor is None:
        page = node_pairs_at(state.database, unit, at, filters=filters, sort=sort, limit=limit)
    else:
        seek, total = decode_cursor(cursor)
        if end and cursor is None:
            seek = END
        page = list_node_pairs(state.database, unit, filters=filters, sort=sort, seek=seek, total=total, limit=limit)
    return page_reply(page, NodeRow.model_validate, walkable=True)


@router.get("/counts", response_model=FilterCounts)
def counts(comparison_id: Id, state: Shared, filters: Filters, step: Step = None, rank: Rank = None) -> Response:
    """How many node pairs each class, verdict and cause without a partner would show, beside what else is asked for."""
    unit = find_unit(state.database, comparison_id, step, rank)
    return reply(FilterCounts.model_validate(filter_counts(state.database, unit, filters)))


@router.get("/nodes/{name:anything}/flow", response_model=Flow)
def flow(comparison_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Data flow around a node: the dumped call that made each of its inputs, and the calls that received its outputs."""
    unit = find_unit(state.database, comparison_id, step, rank)
    return reply(Flow.model_validate(node_flow(state.database, unit, name)))


@router.get("/nodes/{name:anything}/path", response_model=PathView)
def path(
    comparison_id: Id,
    name: Name,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    hops: Annotated[int, Query(ge=1, le=3, description="Steps of data flow before and after the node.")] = 2,
) -> Response:
    """Some calls around a node, what they passed to each other, and where the way from the first origin leads through them."""
    unit = find_unit(state.database, comparison_id, step, rank)
    here = [
        one.pair
        for one in origins_of(state.database, comparison_id)
        if (one.step, one.rank) == (unit.step, unit.rank) and one.pair >= 0
    ]
    start = here[0] if here else None
    return reply(PathView.model_validate(path_view(state.database, unit, name, hops=hops, start=start)))


@router.get("/nodes/{name:anything}", response_model=NodeDetail)
def node(comparison_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """One node pair: the reason of its verdict, its item pairs, both call stacks, relatives and position in the tree."""
    unit = find_unit(state.database, comparison_id, step, rank)
    with state.database.read() as connection:
        row = one_node_pair(connection, unit, name)
        pairs = items_of_node(connection, unit, row.pair, limit=DETAIL_PAIRS)
        context = node_context(connection, unit, row.pair)
        collectives = collectives_of(connection, unit, row.pair)
    worst = max(
        pairs,
        key=lambda pair: (VERDICT_WORDS.index(pair.verdict), -1.0 if pair.score is None else pair.score),
        default=None,
    )
    why, told = reason(row, worst), told_item(pairs, worst)
    origins = origins_of(state.database, comparison_id)
    inherited, first = _heirs(state, origins, unit, row) if differs(row) else (None, None)
    return reply(
        NodeDetail(
            **dict(NodeRow.model_validate(row)),
            reason=english(why),
            reason_said=[Phrase.model_validate(one) for one in why],
            explanation=explained(
                row,
                pairs,
                told,
                reason(row, told),
                inherited=inherited,
                first=first,
                repeats=_repeats(origins, unit, row),
            ),
            rule=worst.rule if worst else "",
            items=[Pair.model_validate(pair) for pair in pairs],
            item_count=row.items,
            target_stack=context.target_stack,
            golden_stack=context.golden_stack,
            target_frames=context.target_stack,  # type: ignore[arg-type]  # their texts
            golden_frames=context.golden_stack,  # type: ignore[arg-type]
            path=context.path,
            siblings=context.siblings,
            collectives=[Collective.model_validate(row) for row in collectives],
        )
    )


def _repeats(origins: list[Origin], unit: StoredUnit, row: NodePairRow) -> Origin | None:
    """The origin of an earlier step of which this call is the same fault again."""
    return next(
        (
            one
            for one in origins
            if one.node == row.name and unit.step in one.steps and unit.rank in (one.rank, *one.ranks)
        ),
        None,
    )


def _heirs(state: State, origins: list[Origin], unit: StoredUnit, row: NodePairRow) -> tuple[int | None, str | None]:
    """How many later calls inherit the difference of a call, and the first of them. None where nothing tells: what comes out of a
    module was made by a call inside it."""
    group = cause_of(origins, unit, row.pair) if row.cls in ("origin", "nonfinite") else []
    reached = reach_of(state.database, unit, [row.pair, *group])
    if reached is None or (reached.count == 0 and row.kind != "api"):
        return None, None
    with state.database.read() as connection:
        first = first_reached(connection, unit, reached)
    return reached.count, None if first is None else first.name


@router.get("/collectives", response_model=Page[Collective])
def collectives(
    comparison_id: Id,
    state: Shared,
    step: Step = None,
    rank: Annotated[Rank, Query(description="Only those that this rank has a part in.")] = None,
    verdict: Verdicts = [],  # noqa: B006
    api: Annotated[str, Query(max_length=300, description="all_reduce, send_receive, ...")] = "",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Communications of a step, each with every rank's part, in the order that they force on the ranks."""
    unit = find_unit(state.database, comparison_id, step, None)
    seek, total = decode_cursor(cursor)
    page = list_collectives(
        state.database,
        comparison_id,
        unit.step,
        api=api,
        verdicts=words(verdict),
        rank=rank,
        seek=seek,
        total=total,
        limit=limit,
    )
    return page_reply(page, Collective.model_validate)


@router.get("/collectives/{collective_id}/parts", response_model=Page[CollectivePart])
def collective_parts(
    comparison_id: Id, collective_id: Key, state: Shared, cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Every rank's part in a communication."""
    seek, _total = decode_cursor(cursor)
    page = list_parts(state.database, comparison_id, collective_id, seek=seek, limit=limit)
    return page_reply(page, CollectivePart.model_validate)


@router.get("/pairs", response_model=Page[Pair])
def pairs(
    comparison_id: Id,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    verdict: Verdicts = [],  # noqa: B006
    api: Api = "",
    q: Terms = "",
    node_name: Annotated[str | None, Query(alias="node", max_length=4000, description="Only this node's.")] = None,
    sort: Literal["order", "-score"] = "order",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Item pairs in execution order or by error."""
    unit = find_unit(state.database, comparison_id, step, rank)
    number = None
    if node_name is not None:
        with state.database.read() as connection:
            number = one_node_pair(connection, unit, node_name).pair
    seek, total = decode_cursor(cursor)
    page = list_item_pairs(
        state.database,
        unit,
        filters=NodeFilter(verdicts=words(verdict), api=api, q=q),
        node=number,
        sort=sort,
        seek=seek,
        total=total,
        limit=limit,
    )
    return page_reply(page, Pair.model_validate)


@router.get("/pairs/{pair_id}", response_model=PairWithDetail)
def pair(comparison_id: Id, pair_id: Key, state: Shared) -> Response:
    """One item pair with its worst element and error histograms."""
    unit = unit_of_pair(state.database, comparison_id, pair_id)
    return reply(PairWithDetail.model_validate(get_item_pair(state.database, unit, pair_id)))
