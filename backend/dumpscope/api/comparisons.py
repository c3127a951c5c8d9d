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
from dumpscope.pipeline.compare.rank_pairs import require_chosen
from dumpscope.pipeline.results.require_dumps import require_dumps
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
            raise ConflictError(f"the dump {dump.name} could not be read", hint="register it again")
        if dump.status == "pending" and dump.job is None:  # waiting for it could take every job's slot, its own too
            raise ConflictError(f"the dump {dump.name} is still being uploaded", hint="try again when it is complete")
    if options.tensors:
        require_dumps(state.database, [dump.id for dump in (target, golden, *reference)])
    if target.status == golden.status == "ready":  # else its job tells
        require_chosen(options, (target.steps, target.ranks), (golden.steps, golden.ranks))
    name = body.name or f"{target.name} against {golden.name}"
    comparison = create_comparison(
        state.database, name=name, target=target.id, golden=golden.id, reference=body.reference, options=options
    )
    job = state.runner.submit("compare", comparison)
    change_comparison(state.database, comparison, job=job.id)
    return get_comparison(state.database, comparison)


def require_answer(row: ComparisonRow) -> Answer:
    """The answer of a comparison; raises ConflictError while there is none."""
    if row.answer is None:
        raise ConflictError(f"the comparison is {row.status} and has no result", hint="wait for its job")
    return row.answer
