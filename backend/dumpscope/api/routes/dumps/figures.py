"""Figures of one dump as plotly JSON, each also in words and as numbers; values of one tensor around an element."""

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
from dumpscope.api.state import Shared, State
from dumpscope.index.dumps.catalogue import find_rank, get_dump
from dumpscope.pipeline.figures.dump_figures import draw_of_dump
from dumpscope.pipeline.figures.dump_values import peek_of_dump
from dumpscope.pipeline.figures.request import FigureRequest, FigureResult
from dumpscope.pipeline.server.overflow_cache import stored_overflow
from dumpscope.texts import english

router = APIRouter(prefix="/dumps/{dump_id}", tags=["figures"])


async def _wanted(  # no coroutine would be called in a thread
    node: Annotated[str | None, Query(max_length=4000, description="Call the figure is about or marks.")] = None,
    item: Annotated[int | None, Query(ge=0, lt=2**53, description="`id` of a record of a call.")] = None,
    log: Log = None,
    axes: Axes = None,
    reduce: Annotated[Literal["max", "rms"], Query(description="How a map reduces what a cell holds.")] = "max",
    measure: Annotated[
        Literal["norm", "max"] | None, Query(description="What is shown of outputs; what was recorded when left out.")
    ] = None,
) -> FigureRequest:
    return FigureRequest(node=node, item=item, log=log, axes=indices(axes) or (), reduce=reduce, measure=measure)


Asked = Annotated[FigureRequest, Depends(_wanted)]


@router.get("/figures/{name}.csv", response_class=Response, responses=TABLE)
def dump_figure_csv(
    dump_id: Id, name: str, state: Shared, wanted: Asked, step: Step = None, rank: Rank = None
) -> Response:
    """The numbers of a figure as a table; 404 if there is nothing to draw."""
    return table_reply(_drawn(state, dump_id, step, rank, name, wanted), f"{wanted.node or 'run'} {name}")


@router.get("/figures/{name}", response_model=Figure)
def dump_figure(dump_id: Id, name: str, state: Shared, wanted: Asked, step: Step = None, rank: Rank = None) -> Response:
    """`histogram` and `value-map` of one tensor; `value-order` and `api-values` of what all calls put out. `missing` says why
    there is nothing to draw."""
    return figure_reply(_drawn(state, dump_id, step, rank, name, wanted))


def _drawn(
    state: State, dump_id: str, step: int | None, rank: int | None, name: str, wanted: FigureRequest
) -> FigureResult:
    stored = find_rank(state.database, dump_id, step, rank)

    def first() -> str | None:
        born = stored_overflow(state.database, get_dump(state.database, dump_id), stored).found.first
        return None if born is None else born.node

    return draw_of_dump(state.database, stored, name, wanted, first)


class TensorPlaces(Wire):
    """Interesting indices: the largest magnitude, the first NaN or infinity."""

    largest: list[int] | None
    lost: list[int] | None


class TensorValues(Wire):
    """`rows`: numbers as texts with all digits, from index `row` and `column` on along `axes` (down and across; only across for a
    vector), including `at`. `places` only if `at` and `within` were left out; `missing` says why there is nothing."""

    item: str
    dtype: str | None
    shape: list[int] | None
    at: list[int] | None
    axes: list[int]
    row: int
    column: int
    rows: list[list[str | None]]
    places: TensorPlaces | None
    text: str
    missing: str | None
    said: list[Phrase]


@router.get("/items/{item}/values", response_model=TensorValues)
def dump_values(
    dump_id: Id,
    item: Key,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    at: At = None,
    within: Within = None,
    axes: Axes = None,
    rows: Lines = 9,
    columns: Lines = 5,
) -> Response:
    """Values of a tensor around one element, with all digits."""
    found = peek_of_dump(
        state.database,
        find_rank(state.database, dump_id, step, rank),
        item,
        at=indices(at),
        within=box_of(within),
        axes=indices(axes) or (),
        rows=rows,
        columns=columns,
    )
    seen, marks, tensor = found.window, found.landmarks, found.tensor
    text = english(found.said)
    return reply(
        TensorValues(
            item=found.item,
            dtype=None if tensor is None else tensor.dtype,
            shape=None if tensor is None else list(tensor.shape),
            at=None if seen is None else list(seen.at),
            axes=[] if seen is None else [one for one in seen.axes if one is not None],
            row=0 if seen is None else seen.row,
            column=0 if seen is None else seen.column,
            rows=[] if seen is None else [[one.target for one in line] for line in seen.values],
            places=None
            if marks is None
            else TensorPlaces(
                largest=None if marks.worst is None else list(marks.worst),
                lost=None if marks.lost is None else list(marks.lost),
            ),
            text="" if seen is None else text,
            missing=text if seen is None else None,
            said=[Phrase.model_validate(one) for one in found.said],
        )
    )
