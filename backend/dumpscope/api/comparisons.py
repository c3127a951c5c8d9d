"""Starting a comparison, and the answer of a finished one."""

from __future__ import annotations

from dumpscope.api.models.bodies import NewComparison
from dumpscope.api.state import State
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer
from dumpscope.errors import ConflictError
from dumpscope.index.comparisons.catalogue import (
    ComparisonRow,
    change_comparison,
    create_comparison,
    get_comparison,
)
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.match import check_options
from dumpscope.parallel.plan import parse_plan
from dumpscope.pipeline.planning.rank_pairs import require_chosen
from dumpscope.pipeline.results.require_dumps import require_dumps
from dumpscope.texts import say
from dumpscope.verdict.policy import load_policy


def start_comparison(body: NewComparison, state: State) -> ComparisonRow:
    """Register a comparison and queue its job."""
    options = Options.from_json(body.options.model_dump())
    load_policy(options.policy)
    check_options(options)
    parse_plan(options.parallel)
    target, golden = get_dump(state.database, body.target), get_dump(state.database, body.golden)
    reference = [] if body.reference is None else [get_dump(state.database, body.reference)]
    for dump in (target, golden, *reference):
        if dump.status == "failed":
            raise ConflictError(say("api.dump_could_not_read", name=dump.name), hint=say("api.register_again"))
        if dump.status == "pending" and dump.job is None:  # waiting could fill all slots, also its own
            raise ConflictError(
                say("api.dump_still_being_uploaded", name=dump.name), hint=say("api.try_again_when_complete")
            )
    if options.tensors:
        require_dumps(state.database, [dump.id for dump in (target, golden, *reference)])
    if target.status == golden.status == "ready":  # else its job reports it
        require_chosen(options, (target.steps, target.ranks), (golden.steps, golden.ranks))
    name = body.name or str(say("report.title", target=target.name, golden=golden.name))
    comparison = create_comparison(
        state.database, name=name, target=target.id, golden=golden.id, reference=body.reference, options=options
    )
    job = state.runner.submit("compare", comparison)
    change_comparison(state.database, comparison, job=job.id)
    return get_comparison(state.database, comparison)


def require_answer(row: ComparisonRow) -> Answer:
    """The answer of a comparison; raises ConflictError while there is none."""
    if row.answer is None:
        raise ConflictError(say("api.comparison_has_no_result", status=row.status), hint=say("api.wait_job"))
    return row.answer
