"""Pre-checks of the calls of a dump: import results, run one here, show results beside a comparison."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from dumpscope.api.ingest import resolve_path
from dumpscope.api.models.base import Accepted, Real, Wire
from dumpscope.api.models.jobs import Job
from dumpscope.api.parameters import INT32, Id, Name, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.errors import ConflictError, UsageError
from dumpscope.index.comparisons.catalogue import find_unit
from dumpscope.index.dump_queries.prechecks import (
    Standing,
    delete_prechecks,
    dump_standing,
    failing_calls,
    rank_standing,
    result_of_node,
    results_of_pair,
    unit_standing,
)
from dumpscope.index.dumps.catalogue import find_rank, get_dump, stored_ranks
from dumpscope.index.pair_queries.node_pairs import one_node_pair
from dumpscope.pipeline.operators.precheck_import import import_lines, import_precheck
from dumpscope.texts import say

router = APIRouter(tags=["prechecks"])

TEXT_BYTES = 16 << 20
Word = Literal["pass", "warning", "fail", "skip"]
Side = Literal["target", "golden"]
Chosen = Annotated[list[Annotated[int, Field(ge=0, le=INT32)]], Field(max_length=10_000)]


class GivenPrecheck(BaseModel):
    """Results to import: `path` of a folder of `dumpscope precheck` below one of the roots, or `text`, lines of its
    precheck.jsonl, the first of which names the device; a file too large for one request is sent in pieces."""

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    text: Annotated[str, Field(max_length=TEXT_BYTES)] | None = None


class NewPrecheck(BaseModel):
    """Run every call alone on the server, with its Python with torch (DUMPSCOPE_PYTHON). steps, ranks: empty for all."""

    model_config = ConfigDict(extra="forbid")

    device: Annotated[str, Field(pattern=r"^[a-z]{1,20}(:[0-9]{1,3})?$")] = "cpu"
    steps: Chosen = []
    ranks: Chosen = []


class TakenPrecheck(Wire):
    """`rows`: number of nodes with a result now; `unknown`: rows for nodes that the dump does not have"""

    rows: int
    unknown: int


class PrecheckStanding(Wire):
    """Number of nodes by word; `devices` that they ran on. `total` 0: there is no pre-check."""

    total: int
    counts: dict[Word, int]
    devices: list[str]


class DumpPrecheck(PrecheckStanding):
    """`can_run`: the server can run one; `command`: a command that makes one on another machine and sends it here, with the
    server's address for `URL`; `job`: the running job"""

    can_run: bool
    command: str
    job: Job | None


class FailingCall(Wire):
    """`node`: the address of the call's row; `side`: the side whose call fails alone"""

    node: str
    side: Side


class UnitPrecheck(Wire):
    """`failing`: calls that fail alone, at most 500 of a side"""

    target: PrecheckStanding
    golden: PrecheckStanding
    failing: list[FailingCall]


class JudgedAlone(Wire):
    """The worst result. `units`: its error divided by the effect of rounding the inputs (docs/proof.md)"""

    verdict: str
    item: str
    units: Real
    cosine: Real
    max_abs: Real
    reason: str


class NodeAlone(Wire):
    """`word`: fail if the call gives a wrong result on `device`, or the recorded result is wrong for the call's own inputs
    `here`: on `device`; `recorded`: in the dump; `made_up`: the numbers of its inputs are; `after_forward`: a backward whose
    forward's recorded result is wrong, which it may use; `reason`: why nothing was judged"""

    word: Word
    device: str
    here: JudgedAlone | None
    recorded: JudgedAlone | None
    made_up: bool
    after_forward: bool
    reason: str


class PairAlone(Wire):
    """null: that side has no such call, or no result for it"""

    target: NodeAlone | None
    golden: NodeAlone | None


class CallAlone(Wire):
    """`result`: null if there is none for this call; `checked`: number of calls of this step and rank that have one"""

    result: NodeAlone | None
    checked: int


@router.get("/dumps/{dump_id}/prechecks", response_model=DumpPrecheck)
def of_dump(dump_id: Id, state: Shared) -> Response:
    """Number of calls by pre-check result, and how to make a pre-check."""
    dump = get_dump(state.database, dump_id)
    jobs = state.jobs.of("precheck", dump_id)
    standing = _standing(dump_standing(state.database, dump_id))
    return reply(
        DumpPrecheck(
            **standing.model_dump(),
            can_run=bool(state.settings.python),
            command=f"dumpscope precheck {shlex.quote(dump.path)} --server URL/dumps/{dump_id}",
            job=Job.model_validate(jobs[0]) if jobs else None,
        )
    )


@router.get("/dumps/{dump_id}/prechecks/{name:anything}", response_model=CallAlone)
def of_call(dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Pre-check result of a call of a dump."""
    stored = find_rank(state.database, dump_id, step, rank)
    found = _alone(result_of_node(state.database, stored, name))
    return reply(CallAlone(result=found, checked=sum(rank_standing(state.database, stored).counts.values())))


@router.post("/dumps/{dump_id}/prechecks", response_model=TakenPrecheck)
def take(dump_id: Id, body: GivenPrecheck, state: Shared) -> Response:
    """Import results of `dumpscope precheck`; earlier results of the same calls are replaced."""
    get_dump(state.database, dump_id)
    if (body.path is None) == (body.text is None):
        raise UsageError(say("api.give_either_path_text"))
    if body.path is not None:
        stored = import_precheck(state.database, dump_id, resolve_path(state, body.path))
    else:
        stored = import_lines(state.database, dump_id, (body.text or "").split("\n"))
    return reply(TakenPrecheck(rows=stored.rows, unknown=stored.unknown))


@router.post("/dumps/{dump_id}/prechecks/run", status_code=202, response_model=Accepted)
def run(dump_id: Id, body: NewPrecheck, state: Shared) -> Response:
    """Run every call of the dump alone; a job. 409 if the server has no Python with torch, or if one is already running."""
    if not state.settings.python:
        raise ConflictError(
            say("api.server_has_no_python_torch"), hint=say("api.start_dumpscope_python_run_dumpscope_precheck")
        )
    if not stored_ranks(state.database, dump_id):
        get_dump(state.database, dump_id)
        raise ConflictError(say("api.dump_has_no_ranks_yet"), hint=say("api.wait_ingest_job"))
    if state.jobs.of("precheck", dump_id):
        raise ConflictError(say("api.pre_check_dump_runs_already"), hint=say("api.wait_cancel_job"))
    job = state.runner.submit("precheck", dump_id, body.model_dump())
    return reply(Accepted(id=dump_id, job=job.id), 202, {"Location": f"/api/jobs/{job.id}"})


@router.post("/dumps/{dump_id}/prechecks/cancel", status_code=204)
def cancel(dump_id: Id, state: Shared) -> Response:
    """End the running pre-check; earlier results stay."""
    get_dump(state.database, dump_id)
    for job in state.jobs.of("precheck", dump_id):
        state.runner.cancel(job.id)
    return Response(status_code=204)


@router.delete("/dumps/{dump_id}/prechecks", status_code=204)
def forget(dump_id: Id, state: Shared) -> Response:
    """Remove the pre-check results of this dump."""
    get_dump(state.database, dump_id)
    delete_prechecks(state.database, dump_id)
    return Response(status_code=204)


@router.get("/comparisons/{comparison_id}/prechecks", response_model=UnitPrecheck)
def of_unit(comparison_id: Id, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Pre-check results of both sides in one step and rank: counts, and the calls that fail alone."""
    unit = find_unit(state.database, comparison_id, step, rank)
    with state.database.read() as connection:
        target, golden = unit_standing(connection, unit)
        marked = failing_calls(connection, unit)
    return reply(
        UnitPrecheck(
            target=_standing(target),
            golden=_standing(golden),
            failing=[FailingCall(node=one.node, side=one.side) for one in marked],
        )
    )


@router.get("/comparisons/{comparison_id}/prechecks/{name:anything}", response_model=PairAlone)
def of_node(comparison_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Pre-check results of a call on both sides."""
    unit = find_unit(state.database, comparison_id, step, rank)
    with state.database.read() as connection:
        pair = one_node_pair(connection, unit, name)
        target, golden = results_of_pair(connection, unit, pair.pair)
    return reply(PairAlone(target=_alone(target), golden=_alone(golden)))


def _alone(document: Mapping[str, Any] | None) -> NodeAlone | None:
    return None if document is None else NodeAlone.model_validate(document)


def _standing(found: Standing) -> PrecheckStanding:
    return PrecheckStanding.model_validate(
        {"total": sum(found.counts.values()), "counts": found.counts, "devices": list(found.devices)}
    )
