"""How calls go over steps and ranks: what a heat map of rank, step and module is drawn from."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from dumpscope.api.parameters import Cursor, Id, Rank, Search
from dumpscope.api.replies import after, encode_cursor, real, reply
from dumpscope.api.schemas import Real, VerdictWord, Wire
from dumpscope.api.state import Shared
from dumpscope.index.trends import Kind, comparison_trends

router = APIRouter(prefix="/comparisons/{comparison_id}", tags=["results"])


class TrendCell(Wire):
    """The worst of a bucket of steps: `verdict` first met at `step` and `rank`, largest `score` and relative `error`."""

    bucket: int
    verdict: VerdictWord
    score: Real
    error: Real
    step: int
    rank: int


class TrendPlace(Wire):
    step: int
    rank: int


class TrendRow(Wire):
    """`growth`: factor of the score per step, null with fewer than three values; `first_bad`: where No was first reached."""

    name: str
    kind: str
    growth: Real
    first_bad: TrendPlace | None
    cells: list[TrendCell]


class StepRange(Wire):
    first: int
    last: int


class TrendPage(Wire):
    """`steps`: the buckets that cells name by their place."""

    steps: list[StepRange]
    ranks: list[int]
    items: list[TrendRow]
    next: str | None
    total: int


@router.get("/trends", response_model=TrendPage)
def trends(
    comparison_id: Id,
    state: Shared,
    kind: Annotated[Kind, Query(description="Calls to list.")] = "module",
    q: Search = "",
    name: Annotated[str | None, Query(max_length=4000, description="Only this call.")] = None,
    rank: Rank = None,
    buckets: Annotated[int, Query(ge=1, le=100, description="At most so many buckets of steps.")] = 60,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=25)] = 20,
) -> Response:
    """Calls in execution order with the worst of every bucket of steps, over all ranks or one."""
    found = comparison_trends(
        state.database,
        comparison_id,
        kind=kind,
        q=q,
        name=name,
        rank=rank,
        buckets=buckets,
        after=after(cursor),
        limit=limit,
    )
    page = found.page
    return reply(
        TrendPage(
            steps=[StepRange(first=one.first, last=one.last) for one in found.steps],
            ranks=found.ranks,
            items=[
                TrendRow(
                    name=row.name,
                    kind=row.kind,
                    growth=real(row.growth),
                    first_bad=None
                    if row.first_bad is None
                    else TrendPlace(step=row.first_bad[0], rank=row.first_bad[1]),
                    cells=[
                        TrendCell(
                            bucket=cell.bucket,
                            verdict=cell.verdict,  # type: ignore[arg-type]
                            score=real(cell.score),
                            error=real(cell.error),
                            step=cell.step,
                            rank=cell.rank,
                        )
                        for cell in row.cells
                    ],
                )
                for row in page.rows
            ],
            next=encode_cursor(page.keys[-1], page.total) if page.more else None,
            total=page.total,
        )
    )
