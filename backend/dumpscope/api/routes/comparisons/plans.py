"""Plans for joining the ranks of two dumps: previews before a comparison, and the plan of a comparison."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response

from dumpscope.api.comparisons import require_answer
from dumpscope.api.models import bodies
from dumpscope.api.models.plans import (
    TENSORS,
    ComparisonPlan,
    PlanPreview,
    PlanTrial,
    comparison_plan,
    plan_preview,
    plan_trial,
)
from dumpscope.api.parameters import Id
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.domain.options import Options
from dumpscope.errors import ConflictError, LimitError, NotFoundError
from dumpscope.index.comparisons.catalogue import get_comparison
from dumpscope.index.dumps.catalogue import DumpRow, get_dump, stored_ranks
from dumpscope.match import check_options
from dumpscope.parallel.plan import parse_plan
from dumpscope.pipeline.compare.on_server import StoredSides
from dumpscope.pipeline.dry_runs.plan import dry_run_plan
from dumpscope.texts import say

router = APIRouter(tags=["comparisons"])

MOST: Final = 1_000_000
"""Most items of a dump's first step for which a plan is found during the request."""


@router.post("/plans", response_model=PlanPreview)
def preview(body: bodies.NewPlan, state: Shared) -> Response:
    """The plan for joining two dumps: found, or the plan of the body, completed and checked. Nothing is stored."""
    given = parse_plan(body.plan)
    for dump in _ready(state, body):
        ranks = stored_ranks(state.database, dump.id)
        first = [rank.items for rank in ranks if rank.step == ranks[0].step]
        if not given.units and sum(first) > MOST:
            raise LimitError(
                say("api.first_step_holds_items_too_many", name=dump.name, first=sum(first)),
                hint=say("api.compare_dumps_plan_comes_result"),
            )
    found, problems = StoredSides(state.database, body.target, body.golden).joining(Options(parallel=body.plan))
    return reply(plan_preview(found, problems))


@router.post("/plans/try", response_model=PlanTrial)
def trial(body: bodies.TriedPlan, state: Shared) -> Response:
    """How a plan would join one step and unit: tensors joined, taken once, summed or left out. Nothing is stored."""
    options = Options.from_json({**body.options.model_dump(), "parallel": body.plan or "{}"})
    check_options(options)
    _ready(state, body)
    found = dry_run_plan(
        state.database, body.target, body.golden, options,
        step=body.step, unit=body.unit, q=body.q, copies=body.copies, limit=TENSORS,
    )  # fmt: skip
    return reply(plan_trial(found))


@router.get(
    "/comparisons/{comparison_id}/plan.yaml",
    response_class=Response,
    responses={200: {"content": {"application/yaml": {}}}},
)
def export(comparison_id: Id, state: Shared) -> Response:
    """The plan of a comparison as the file that `--plan` and the option `parallel` read."""
    joined = require_answer(get_comparison(state.database, comparison_id)).joined
    if joined is None:
        raise NotFoundError(say("api.ranks_compared_one_by_one_there"), hint=say("api.post_api_plans_finds_one"))
    named = {"Content-Disposition": f'attachment; filename="plan-{comparison_id}.yaml"'}
    return Response(joined.plan, media_type="application/yaml", headers=named)


@router.get("/comparisons/{comparison_id}/plan", response_model=ComparisonPlan)
def plan(comparison_id: Id, state: Shared) -> Response:
    """The joined ranks, and how they were joined."""
    return reply(comparison_plan(require_answer(get_comparison(state.database, comparison_id)).joined))


def _ready(state: Shared, body: bodies.NewPlan) -> list[DumpRow]:
    """Both dumps. Raises ConflictError if one is not read yet."""
    dumps = [get_dump(state.database, dump_id) for dump_id in (body.target, body.golden)]
    for dump in dumps:
        if dump.status != "ready":
            raise ConflictError(
                say("api.dump", name=dump.name, status=dump.status), hint=say("api.wait_job_register_again")
            )
    return dumps
