"""The matching of a comparison: tried with other options before it is compared again."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response

from dumpscope.api import bodies
from dumpscope.api.matching import MatchingPreview, matching_preview
from dumpscope.api.parameters import Id, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.index.comparisons import find_unit, get_comparison
from dumpscope.index.ranks import load_rank
from dumpscope.match.preview import preview

router = APIRouter(prefix="/comparisons/{comparison_id}/matching", tags=["matching"])


@router.post("/preview", response_model=MatchingPreview)
def try_matching(
    comparison_id: Id, body: bodies.MatchingOptions, state: Shared, step: Step = None, rank: Rank = None
) -> Response:
    """What these options would match in one step and rank: pairs by method and by rename rule, and what would be left."""
    row = get_comparison(state.database, comparison_id)
    unit = find_unit(state.database, comparison_id, step, rank)
    changes = {key: value for key, value in body.model_dump().items() if value is not None}
    if "rename" in changes:
        changes["rename"] = tuple(changes["rename"])
    sides = load_rank(state.database, unit.target), load_rank(state.database, unit.golden)
    found = preview(*sides, replace(row.options, **changes), step=unit.step, rank=unit.rank)
    return reply(matching_preview(found))
