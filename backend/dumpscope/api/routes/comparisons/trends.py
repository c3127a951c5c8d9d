"""How calls change over steps and ranks: data for a heat map of rank, step and module."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BeforeValidator

from dumpscope.api.models.base import Real, VerdictWord, Wire
from dumpscope.api.parameters import INT32, Cursor, Id, Search, Step
from dumpscope.api.replies import after, encode_cursor, reply
from dumpscope.api.state import Shared
from dumpscope.index.comparisons.catalogue import find_unit, stored_units
from dumpscope.index.dump_queries.node_values import Part, Statistic
from dumpscope.index.dump_queries.trends import ValueTrends, dump_trends
from dumpscope.index.pair_queries.over_units.rank_map import rank_map
from dumpscope.index.pair_queries.over_units.trends import Trends, comparison_trends
from dumpscope.index.trees.trend_rows import Kind

router = APIRouter(tags=["results"])

Name = Annotated[str | None, Query(max_length=4000, description="Only this call.")]
OneRank = Annotated[int | None, Query(ge=0, le=INT32, description="Only this rank.")]
Buckets = Annotated[int, Query(ge=1, le=100, description="At most so many buckets of steps.")]
Kinds = Annotated[Kind, Query(description="Calls to list.")]
Rows = Annotated[int, Query(ge=1, le=25, description="Rows of the page; it ends earlier where there are many steps.")]


class TrendCell(Wire):
    """The worst of a bucket of steps: `verdict`, first at `step` and `rank`, largest `score` and relative `error`; `target`
    and `golden`: the requested statistic of both sides' outputs."""

    bucket: int
    verdict: VerdictWord
    score: Real
    error: Real
    step: int
    rank: int
    target: Real
    golden: Real


class TrendPlace(Wire):
    step: int
    rank: int


def _place(place: Any) -> Any:
    """(step, rank) as a model."""
    return {"step": place[0], "rank": place[1]} if isinstance(place, tuple) else place


FirstBad = Annotated[TrendPlace | None, BeforeValidator(_place)]


class TrendRow(Wire):
    """`rank`: null if the row is for all ranks; `growth`: factor of the score per step, null with fewer than three values, the
    others: of the requested statistic; `first_bad`: step and rank of the first No."""

    name: str
    kind: str
    rank: int | None
    growth: Real
    target_growth: Real
    golden_growth: Real
    first_bad: FirstBad
    cells: list[TrendCell]


class StepRange(Wire):
    first: int
    last: int


class TrendPage(Wire):
    """`steps`: the buckets; cells give their index."""

    steps: list[StepRange]
    ranks: list[int]
    items: list[TrendRow]
    next: str | None
    total: int


class RankMapRow(Wire):
    """`verdicts`: a letter per rank: `y`es, `w`arning, `n`o, `?` not comparable, `-` the rank does not make the call; `scores`:
    the largest error by rank in floors, three digits, null where nothing was compared; `no`: on how many ranks it is No."""

    name: str
    kind: str
    verdicts: str
    scores: list[Real]
    no: int


class RankMapPage(Wire):
    """`ranks`: the columns."""

    step: int
    ranks: list[int]
    items: list[RankMapRow]
    next: str | None
    total: int


class ValueCell(Wire):
    """`value` of a bucket of steps; `step`: the first that is not finite (`bad`), else the first that has the call."""

    bucket: int
    value: Real
    bad: bool
    step: int


class ValueRow(Wire):
    """`growth`: factor of the value's size per step, null with fewer than three; `first_bad`: the first NaN or infinity."""

    name: str
    kind: str
    rank: int
    growth: Real
    first_bad: FirstBad
    cells: list[ValueCell]


class ValuePage(Wire):
    """`steps`: the buckets; cells give their index."""

    steps: list[StepRange]
    ranks: list[int]
    items: list[ValueRow]
    next: str | None
    total: int


@router.get("/comparisons/{comparison_id}/trends", response_model=TrendPage)
def trends(
    comparison_id: Id,
    state: Shared,
    kind: Kinds = "module",
    q: Search = "",
    name: Name = None,
    rank: OneRank = None,
    statistic: Annotated[Statistic | None, Query(description="Also tell this of both sides.")] = None,
    by_rank: Annotated[bool, Query(description="A row per rank instead of the worst of all.")] = False,
    buckets: Buckets = 60,
    cursor: Cursor = None,
    limit: Rows = 20,
) -> Response:
    """Calls in execution order with the worst of every bucket of steps, over all ranks or one rank, or a row per rank."""
    found = comparison_trends(
        state.database,
        comparison_id,
        statistic=statistic,
        by_rank=by_rank,
        kind=kind,
        q=q,
        name=name,
        rank=rank,
        buckets=buckets,
        after=after(cursor),
        limit=limit,
    )
    return _page_reply(TrendPage, found)


@router.get("/comparisons/{comparison_id}/rank-map", response_model=RankMapPage)
def ranks(
    comparison_id: Id,
    state: Shared,
    step: Step = None,
    kind: Kinds = "module",
    q: Search = "",
    cursor: Cursor = None,
    limit: Rows = 20,
) -> Response:
    """Calls of one step in execution order, with verdict and score on every rank; the first step if left out."""
    shown = find_unit(state.database, comparison_id, step, None).step
    units = [unit for unit in stored_units(state.database, comparison_id) if unit.step == shown]
    found = rank_map(state.database, units, kind=kind, q=q, after=after(cursor), limit=limit)
    page = found.page
    following = encode_cursor(page.keys[-1], page.total) if page.more else None
    shape = {"step": found.step, "ranks": found.ranks, "items": page.rows, "next": following, "total": page.total}
    return reply(RankMapPage.model_validate(shape))


@router.get("/dumps/{dump_id}/trends", response_model=ValuePage)
def values(
    dump_id: Id,
    state: Shared,
    statistic: Annotated[Statistic, Query(description="What to tell of each call.")] = "norm",
    part: Annotated[Part, Query(description="Of its outputs or its inputs.")] = "output",
    kind: Kinds = "module",
    q: Search = "",
    name: Name = None,
    rank: OneRank = None,
    buckets: Buckets = 60,
    cursor: Cursor = None,
    limit: Rows = 20,
) -> Response:
    """Calls of one dump in execution order, a row per rank, with one statistic of every bucket of steps."""
    found = dump_trends(
        state.database,
        dump_id,
        statistic=statistic,
        part=part,
        kind=kind,
        q=q,
        name=name,
        rank=rank,
        buckets=buckets,
        after=after(cursor),
        limit=limit,
    )
    return _page_reply(ValuePage, found)


def _page_reply(model: type[TrendPage | ValuePage], found: Trends | ValueTrends) -> Response:
    page = found.page
    return reply(
        model.model_validate(
            {
                "steps": found.steps,
                "ranks": found.ranks,
                "items": page.rows,
                "next": encode_cursor(page.keys[-1], page.total) if page.more else None,
                "total": page.total,
            }
        )
    )
