"""Figures as plotly JSON, each with its words."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from dumpscope.api.parameters import Id, Rank, Step
from dumpscope.api.replies import StrictJSON
from dumpscope.api.schemas import Figure
from dumpscope.api.state import Shared
from dumpscope.domain.phrases import english
from dumpscope.export.document import wire
from dumpscope.index.comparisons import find_unit, get_comparison
from dumpscope.pipeline.figures import Wanted, draw

router = APIRouter(tags=["figures"])


@router.get("/comparisons/{comparison_id}/figures/{name}", response_model=Figure)
def figure(
    comparison_id: Id,
    name: str,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    node: Annotated[str | None, Query(max_length=4000, description="Node the figure is about or marks.")] = None,
    pair: Annotated[int | None, Query(ge=0, lt=2**53, description="Item pair the figure is about.")] = None,
    log: Annotated[bool, Query(description="Counts on a logarithmic axis.")] = False,
) -> Response:
    """`api-distribution`, `error-order`, `histogram` or `error-histogram`; `missing` says why there is nothing to draw."""
    unit = find_unit(state.database, comparison_id, step, rank)
    answer = get_comparison(state.database, comparison_id).answer
    drawn = draw(state.database, unit, answer, name, Wanted(node=node, pair=pair, log=log))
    text = english(drawn.said)
    words = {"text": "", "missing": text} if drawn.figure is None else {"text": text, "missing": None}
    return StrictJSON({"figure": wire(drawn.figure), **words, "said": drawn.said})
