"""The matching of a comparison: preview it with other options, change it by hand, and compare again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Response

from dumpscope.api.models import bodies
from dumpscope.api.models.base import Accepted
from dumpscope.api.models.matching import (
    HandEdits,
    MatchingPreview,
    RuleProposals,
    hand_edits,
    matching_preview,
    rule_proposals,
)
from dumpscope.api.parameters import Id, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.domain.options import Options
from dumpscope.errors import ConflictError, NotFoundError
from dumpscope.index.comparisons.catalogue import (
    change_comparison,
    edit_options,
    find_unit,
    get_comparison,
    stored_units,
)
from dumpscope.index.comparisons.hand_matches import EditState, edit_states
from dumpscope.index.dumps.catalogue import StoredRank, get_dump, stored_ranks
from dumpscope.index.dumps.load_rank import load_rank
from dumpscope.index.pair_queries.node_pairs import holds_node
from dumpscope.match import check_options
from dumpscope.match.by_hand import Edit, parse_edits, write_edits
from dumpscope.match.preview import preview
from dumpscope.match.renames.proposals import propose
from dumpscope.pipeline.planning.rank_pairs import require_chosen
from dumpscope.pipeline.results.require_dumps import require_dumps
from dumpscope.texts import say

router = APIRouter(prefix="/comparisons", tags=["matching"])

OF = "/{comparison_id}/matching"


@router.post(f"{OF}/preview", response_model=MatchingPreview)
def try_matching(
    comparison_id: Id, body: bodies.MatchingOptions, state: Shared, step: Step = None, rank: Rank = None
) -> Response:
    """Preview the matching with these options in one step and rank: pairs by method and by rename rule, and unmatched calls."""
    row = get_comparison(state.database, comparison_id)
    unit = find_unit(state.database, comparison_id, step, rank)
    changes = {key: value for key, value in body.model_dump().items() if value is not None}
    if "rename" in changes:
        changes["rename"] = tuple(changes["rename"])
    sides = load_rank(state.database, unit.target), load_rank(state.database, unit.golden)
    found = preview(*sides, replace(row.options, **changes), step=unit.step, rank=unit.rank)
    return reply(matching_preview(found))


@router.get(f"{OF}/proposals", response_model=RuleProposals)
def proposals(comparison_id: Id, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Rename rules for the unmatched calls of one step and rank, and what they would match; none if none helps."""
    row = get_comparison(state.database, comparison_id)
    unit = find_unit(state.database, comparison_id, step, rank)
    sides = load_rank(state.database, unit.target), load_rank(state.database, unit.golden)
    return reply(rule_proposals(propose(*sides, row.options, step=unit.step, rank=unit.rank)))


@router.post("/preview", response_model=MatchingPreview)
def try_dumps(body: bodies.NewComparison, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Preview the matching of these dumps with these options in one step and rank, before anything is compared."""
    options = Options.from_json(body.options.model_dump())
    check_options(options)
    dumps = get_dump(state.database, body.target), get_dump(state.database, body.golden)
    for dump in dumps:
        if dump.status != "ready":
            raise ConflictError(say("api.dump_not_read_yet", name=dump.name), hint=say("api.wait_job"))
    require_chosen(options, *((dump.steps, dump.ranks) for dump in dumps))
    target, golden = _common([stored_ranks(state.database, dump.id) for dump in dumps], options, step, rank)
    sides = load_rank(state.database, target.id), load_rank(state.database, golden.id)
    return reply(matching_preview(preview(*sides, options, step=target.step, rank=target.rank)))


def _common(
    sides: Sequence[Sequence[StoredRank]], options: Options, step: int | None, rank: int | None
) -> tuple[StoredRank, StoredRank]:
    """The first requested step and rank that both have; two single ranks are compared whatever their numbers are."""
    target, golden = sides
    if len(target) == len(golden) == 1:
        return target[0], golden[0]
    there = {(one.step, one.rank): one for one in golden}
    for one in target:
        wanted = step in (None, one.step) and rank in (None, one.rank)
        chosen = (not options.steps or one.step in options.steps) and (not options.ranks or one.rank in options.ranks)
        if wanted and chosen and (one.step, one.rank) in there:
            return one, there[one.step, one.rank]
    raise NotFoundError(say("api.dumps_have_no_such_step_rank"), hint=say("api.name_another_none"))


@router.get(OF, response_model=HandEdits)
def edits(comparison_id: Id, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Matches made by hand, oldest first, and the state of each in one step and rank."""
    return _listed(state, comparison_id, get_comparison(state.database, comparison_id).options, step, rank)


@router.get(f"{OF}/matches.yaml", response_class=Response, responses={200: {"content": {"application/yaml": {}}}})
def export(comparison_id: Id, state: Shared) -> Response:
    """Matches made by hand as the file that `--matches` and the option `matches` read."""
    text = write_edits(parse_edits(get_comparison(state.database, comparison_id).options.matches))
    named = {"Content-Disposition": f'attachment; filename="matches-{comparison_id}.yaml"'}
    return Response(text, media_type="application/yaml", headers=named)


@router.post(f"{OF}/match", response_model=HandEdits)
def join(comparison_id: Id, body: bodies.HandMatch, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Match two nodes; the step and rank must have both."""
    _require(state, comparison_id, step, rank, target=body.target, golden=body.golden)
    edit = Edit(join=True, target=body.target, golden=body.golden)
    return _added(state, comparison_id, (edit,), step, rank)


@router.post(f"{OF}/unmatch", response_model=HandEdits)
def part(comparison_id: Id, body: bodies.HandUnmatch, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Take the partner from a node; the step and rank must have the node."""
    target, golden = (body.node, None) if body.side == "target" else (None, body.node)
    _require(state, comparison_id, step, rank, target=target, golden=golden)
    return _added(state, comparison_id, (Edit(join=False, target=target, golden=golden),), step, rank)


@router.post(f"{OF}/import", response_model=HandEdits)
def take(comparison_id: Id, body: bodies.HandMatches, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Add the matches of a file after the existing ones; the last match of a node counts."""
    return _added(state, comparison_id, parse_edits(body.matches), step, rank)


@router.post(f"{OF}/undo", response_model=HandEdits)
def undo(comparison_id: Id, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Remove the last match made by hand."""

    def change(options: Options) -> Options:
        known = parse_edits(options.matches)
        if not known:
            raise ConflictError(say("api.no_match_made_by_hand"), hint=say("api.get_matching_lists_them"))
        return _with(options, known[:-1])

    return _listed(state, comparison_id, edit_options(state.database, comparison_id, change), step, rank)


@router.post(f"{OF}/apply", status_code=202, response_model=Accepted)
def apply(comparison_id: Id, state: Shared) -> Response:
    """Compare again with the matches made by hand."""
    row = get_comparison(state.database, comparison_id)
    if row.status in ("pending", "running"):
        raise ConflictError(say("api.comparison_still_work"), hint=say("api.wait_job_cancel"))
    require_dumps(state.database, [side for side in (row.target, row.golden, row.reference) if side is not None])
    change_comparison(state.database, comparison_id, status="pending")
    job = state.runner.submit("compare", comparison_id)
    change_comparison(state.database, comparison_id, job=job.id)
    return reply(Accepted(id=comparison_id, job=job.id), 202, {"Location": f"/api/comparisons/{comparison_id}"})


def _added(state: Shared, comparison_id: str, added: Sequence[Edit], step: int | None, rank: int | None) -> Response:
    options = edit_options(
        state.database, comparison_id, lambda options: _with(options, (*parse_edits(options.matches), *added))
    )
    return _listed(state, comparison_id, options, step, rank)


def _listed(state: Shared, comparison_id: str, options: Options, step: int | None, rank: int | None) -> Response:
    """The edits in these options with their states; without a result, all are waiting."""
    known = parse_edits(options.matches)
    units = stored_units(state.database, comparison_id)
    states: list[EditState] = ["waiting"] * len(known)
    for unit in units:
        if step in (None, unit.step) and rank in (None, unit.rank):
            with state.database.read() as connection:
                states = edit_states(connection, unit, known)
            break
    return reply(hand_edits(known, states))


def _with(options: Options, edits: tuple[Edit, ...]) -> Options:
    changed = replace(options, matches=write_edits(edits) if edits else None)
    parse_edits(changed.matches)  # refuses one too many
    return changed


def _require(
    state: Shared, comparison_id: str, step: int | None, rank: int | None, *, target: str | None, golden: str | None
) -> None:
    """Raise NotFoundError if the step and rank does not have these nodes on these sides."""
    unit = find_unit(state.database, comparison_id, step, rank)
    with state.database.read() as connection:
        for side, name in (("target", target), ("golden", golden)):
            if name is not None and not holds_node(connection, unit, name, golden=side == "golden"):
                raise NotFoundError(
                    say("api.no_node", name=f"{name[:200]!r}", side=side), hint=say("api.get_nodes_lists_them")
                )
