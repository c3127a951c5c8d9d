"""The calls of a comparison to look at, and the calls that inherit a call's difference."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from dumpscope.api.comparisons import require_answer
from dumpscope.api.models.pairs import NodeRow
from dumpscope.api.models.suspects import Blind, Reach, Suspects, suspect
from dumpscope.api.parameters import Id, Name, Rank, Step, words
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.domain.facts import Suspect
from dumpscope.domain.suspects import blind_of, list_suspects
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import find_unit, get_comparison, origins_of, unit_at
from dumpscope.index.pair_queries.node_pairs import NodePairRow, node_pair_rows, one_node_pair
from dumpscope.index.pair_queries.reach import cause_of, first_reached, reach_of
from dumpscope.index.store.page import LAST_NUMBER
from dumpscope.texts import say

router = APIRouter(prefix="/comparisons/{comparison_id}", tags=["results"])

ENTRIES = 500
"""Rows of the tree asked for at once."""


@router.get("/suspects", response_model=Suspects)
def suspects(comparison_id: Id, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Where to look, in order: the origins, also of other steps and ranks, causes behind them, the strongest amplifiers, where
    else the error grows, what only one side did, settings that differ."""
    answer = require_answer(get_comparison(state.database, comparison_id))
    unit = find_unit(state.database, comparison_id, step, rank)
    rows = list_suspects(answer, (unit.step, unit.rank))
    asked: dict[tuple[int, int], set[int]] = {}
    for row in rows:
        asked.setdefault((row.step, row.rank), set()).add(row.pair)
    found: dict[tuple[int, int, int], NodePairRow] = {}
    with state.database.read() as connection:
        for place, pairs in asked.items():
            if (
                at := unit if place == (unit.step, unit.rank) else unit_at(connection, comparison_id, *place)
            ) is not None:
                known = node_pair_rows(connection, at, pairs)
                found.update(((*place, pair), one) for pair, one in known.items())
    blind = blind_of(answer, (unit.step, unit.rank))
    return reply(
        Suspects(
            items=[suspect(number, row, found) for number, row in enumerate(rows, start=1)],
            blind=None if blind is None else _blind(blind),
        )
    )


def _blind(row: Suspect) -> Blind:
    return Blind.model_validate(
        {"node": row.node, "order": row.pair, "count": row.count, "why": row.why, "why_said": row.why_said}
    )


@router.get("/nodes/{name:anything}/reach", response_model=Reach)
def reach(
    comparison_id: Id,
    name: Name,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    buckets: Annotated[int, Query(ge=1, le=1500, description="As of `strip`.")] = 800,
    entry: Annotated[list[str], Query(description="Rows of the tree; several times or with commas.")] = [],  # noqa: B006
) -> Response:
    """The calls that inherit the difference of a call: the number, the first, and where they stand in strip and tree."""
    unit = find_unit(state.database, comparison_id, step, rank)
    entries = _numbers(entry)
    with state.database.read() as connection:
        pair = one_node_pair(connection, unit, name).pair
    group = cause_of(origins_of(state.database, comparison_id), unit, pair)
    reached = reach_of(state.database, unit, [pair, *group])
    if reached is None:
        return reply(Reach(node=name, count=None, first=None, runs=[], entries=[]))
    with state.database.read() as connection:
        first = first_reached(connection, unit, reached)
    return reply(
        Reach(
            node=name,
            count=reached.count,
            first=None if first is None else NodeRow.model_validate(first),
            runs=reached.runs(buckets, unit.pairs),
            entries=reached.holding(entries),
        )
    )


def _numbers(entries: list[str]) -> list[int]:
    texts = words(entries)
    if len(texts) > ENTRIES or not all(text.isascii() and text.isdigit() and len(text) < 12 for text in texts):
        raise UsageError(say("api.rows_of_tree", most=ENTRIES))
    return [number for text in texts if (number := int(text)) <= LAST_NUMBER]
