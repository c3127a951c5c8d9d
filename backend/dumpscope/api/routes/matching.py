"""The matching of a comparison: tried with other options, changed by hand, and made again."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response

from dumpscope.api import bodies, schemas
from dumpscope.api.matching import HandEdits, MatchingPreview, hand_edits, matching_preview
from dumpscope.api.parameters import Id, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.domain.options import Options
from dumpscope.errors import ConflictError, NotFoundError
from dumpscope.index.comparisons import change_comparison, edit_options, find_unit, get_comparison
from dumpscope.index.node_pairs import holds_node
from dumpscope.index.ranks import load_rank
from dumpscope.match.by_hand import Edit, parse_edits, write_edits
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


@router.get("", response_model=HandEdits)
def edits(comparison_id: Id, state: Shared) -> Response:
    """Matches made by hand, oldest first."""
    return reply(hand_edits(parse_edits(get_comparison(state.database, comparison_id).options.matches)))


@router.get("/matches.yaml", response_class=Response, responses={200: {"content": {"application/yaml": {}}}})
def export(comparison_id: Id, state: Shared) -> Response:
    """Matches made by hand as the file that `--matches` and the option `matches` read."""
    text = write_edits(parse_edits(get_comparison(state.database, comparison_id).options.matches))
    named = {"Content-Disposition": f'attachment; filename="matches-{comparison_id}.yaml"'}
    return Response(text, media_type="application/yaml", headers=named)


@router.post("/match", response_model=HandEdits)
def join(comparison_id: Id, body: bodies.HandMatch, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Say that two nodes are one call; the step and rank must hold both."""
    _require(state, comparison_id, step, rank, target=body.target, golden=body.golden)
    return _added(state, comparison_id, Edit(join=True, target=body.target, golden=body.golden))


@router.post("/unmatch", response_model=HandEdits)
def part(comparison_id: Id, body: bodies.HandUnmatch, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Say that a node has no partner; the step and rank must hold it."""
    target, golden = (body.node, None) if body.side == "target" else (None, body.node)
    _require(state, comparison_id, step, rank, target=target, golden=golden)
    return _added(state, comparison_id, Edit(join=False, target=target, golden=golden))


@router.post("/undo", response_model=HandEdits)
def undo(comparison_id: Id, state: Shared) -> Response:
    """Forget the last match made by hand."""

    def change(options: Options) -> Options:
        known = parse_edits(options.matches)
        if not known:
            raise ConflictError("no match was made by hand", hint="GET .../matching lists them")
        return _with(options, known[:-1])

    return reply(hand_edits(parse_edits(edit_options(state.database, comparison_id, change).matches)))


@router.post("/apply", status_code=202, response_model=schemas.Accepted)
def apply(comparison_id: Id, state: Shared) -> Response:
    """Compare again with the matches made by hand."""
    row = get_comparison(state.database, comparison_id)
    if row.status in ("pending", "running"):
        raise ConflictError("the comparison is still at work", hint="wait for its job or cancel it")
    change_comparison(state.database, comparison_id, status="pending")
    job = state.runner.submit("compare", comparison_id)
    change_comparison(state.database, comparison_id, job=job.id)
    return reply(schemas.Accepted(id=comparison_id, job=job.id), 202, {"Location": f"/api/comparisons/{comparison_id}"})


def _added(state: Shared, comparison_id: str, edit: Edit) -> Response:
    options = edit_options(
        state.database, comparison_id, lambda options: _with(options, (*parse_edits(options.matches), edit))
    )
    return reply(hand_edits(parse_edits(options.matches)))


def _with(options: Options, edits: tuple[Edit, ...]) -> Options:
    changed = replace(options, matches=write_edits(edits) if edits else None)
    parse_edits(changed.matches)  # refuses one too many
    return changed


def _require(
    state: Shared, comparison_id: str, step: int | None, rank: int | None, *, target: str | None, golden: str | None
) -> None:
    """Raise NotFoundError where the step and rank do not hold these nodes on these sides."""
    unit = find_unit(state.database, comparison_id, step, rank)
    with state.database.read() as connection:
        for side, name in (("target", target), ("golden", golden)):
            if name is not None and not holds_node(connection, unit, name, golden=side == "golden"):
                raise NotFoundError(f"no node {name[:200]!r} in the {side}", hint="GET .../nodes lists them")
