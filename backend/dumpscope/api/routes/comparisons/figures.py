"""Figures as plotly JSON, each also in words and as numbers; values around one element."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from dumpscope.api.models.base import Phrase, Wire
from dumpscope.api.parameters import Id, Key, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.routes.figure_replies import (
    TABLE,
    At,
    Axes,
    Figure,
    Lines,
    Log,
    Within,
    box_of,
    figure_reply,
    indices,
    table_reply,
)
from dumpscope.api.state import Shared
from dumpscope.index.comparisons.catalogue import find_unit, unit_of_pair
from dumpscope.pipeline.figures.registry import draw
from dumpscope.pipeline.figures.request import FigureRequest
from dumpscope.pipeline.figures.values import peek
from dumpscope.texts import english

router = APIRouter(prefix="/comparisons/{comparison_id}", tags=["figures"])


async def _wanted(  # no coroutine would be called in a thread
    node: Annotated[str | None, Query(max_length=4000, description="Node the figure is about or marks.")] = None,
    pair: Annotated[int | None, Query(ge=0, lt=2**53, description="Item pair the figure is about.")] = None,
    log: Log = None,
    axes: Axes = None,
    reduce: Annotated[Literal["max", "rms"], Query(description="How a map reduces what a cell holds.")] = "max",
    ecdf: Annotated[
        bool, Query(description="Of a histogram: the share of elements up to each value, not counts.")
    ] = False,
) -> FigureRequest:
    return FigureRequest(node=node, pair=pair, log=log, axes=indices(axes) or (), reduce=reduce, ecdf=ecdf)


Asked = Annotated[FigureRequest, Depends(_wanted)]


@router.get("/figures/{name}.csv", response_class=Response, responses=TABLE)
def figure_csv(
    comparison_id: Id, name: str, state: Shared, wanted: Asked, step: Step = None, rank: Rank = None
) -> Response:
    """The numbers of a figure as a table; 404 if there is nothing to draw."""
    unit = find_unit(state.database, comparison_id, step, rank)
    return table_reply(draw(state.database, comparison_id, unit, name, wanted), f"{wanted.node or 'run'} {name}")


@router.get("/figures/{name}", response_model=Figure)
def figure(
    comparison_id: Id, name: str, state: Shared, wanted: Asked, step: Step = None, rank: Rank = None
) -> Response:
    """`histogram`, `pair-density`, `difference-map` and `error-histogram` of a tensor pair; `api-distribution`, `api-errors`,
    `error-order` and `call-runs` of calls. `missing` says why there is nothing to draw."""
    unit = find_unit(state.database, comparison_id, step, rank)
    return figure_reply(draw(state.database, comparison_id, unit, name, wanted))


class PairValue(Wire):
    """Numbers as texts with all digits; null if that side has no such element. `equal`: the same number, or both NaN."""

    target: str | None
    golden: str | None
    difference: str | None
    equal: bool


class Places(Wire):
    """Interesting indices: the largest difference, the first difference, the first NaN or infinity on one side only."""

    worst: list[int] | None
    first: list[int] | None
    lost: list[int] | None


class Values(Wire):
    """`rows`: cells from index `row` and `column` on along `axes` (down and across; only across for a vector), including `at`.
    `places` only if `at` and `within` were left out; `missing` says why there is nothing."""

    item: str
    target_dtype: str | None
    golden_dtype: str | None
    target_shape: list[int] | None
    golden_shape: list[int] | None
    at: list[int] | None
    axes: list[int]
    row: int
    column: int
    rows: list[list[PairValue]]
    places: Places | None
    text: str
    missing: str | None
    said: list[Phrase]


@router.get("/pairs/{pair_id}/values", response_model=Values)
def values(
    comparison_id: Id,
    pair_id: Key,
    state: Shared,
    at: At = None,
    within: Within = None,
    axes: Axes = None,
    rows: Lines = 9,
    columns: Lines = 5,
) -> Response:
    """Values of both sides and their difference around one element, with all digits."""
    unit = unit_of_pair(state.database, comparison_id, pair_id)
    found = peek(
        state.database,
        unit,
        pair_id,
        at=indices(at),
        within=box_of(within),
        axes=indices(axes) or (),
        rows=rows,
        columns=columns,
    )
    seen, marks = found.window, found.landmarks
    text = english(found.said)
    shapes = [None if shape is None else list(shape) for shape in found.shapes]
    return reply(
        Values(
            item=found.item,
            target_dtype=found.dtypes[0],
            golden_dtype=found.dtypes[1],
            target_shape=shapes[0],
            golden_shape=shapes[1],
            at=None if seen is None else list(seen.at),
            axes=[] if seen is None else [one for one in seen.axes if one is not None],
            row=0 if seen is None else seen.row,
            column=0 if seen is None else seen.column,
            rows=[]
            if seen is None
            else [
                [
                    PairValue(target=one.target, golden=one.golden, difference=one.difference, equal=one.equal)
                    for one in line
                ]
                for line in seen.values
            ],
            places=None
            if marks is None
            else Places(
                **{
                    name: None if (index := getattr(marks, name)) is None else list(index)
                    for name in ("worst", "first", "lost")
                }
            ),
            text="" if seen is None else text,
            missing=text if seen is None else None,
            said=[Phrase.model_validate(one) for one in found.said],
        )
    )
