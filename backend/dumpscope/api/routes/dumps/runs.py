"""How a dump's ranks were run: versions, devices, seeds and switches that the dump records."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dumpscope.api.models.base import Wire
from dumpscope.api.parameters import Id, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.index.dumps.catalogue import find_rank
from dumpscope.index.dumps.load_rank import stored_run

router = APIRouter(tags=["dumps"])


class Run(Wire):
    """Every value is text; `settings` are those of the dump, defaults filled in, `devices` begin with the processor."""

    versions: dict[str, str]
    settings: dict[str, str]
    numerics: dict[str, str]
    seeds: dict[str, str]
    environment: dict[str, str]
    devices: list[str]


class RankRun(Wire):
    """`run` is null if no file beside the dump says so, and for a dump that an older version read."""

    step: int
    rank: int
    run: Run | None


@router.get("/dumps/{dump_id}/run", response_model=RankRun)
def run(dump_id: Id, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """How one rank of one step was run."""
    stored = find_rank(state.database, dump_id, step, rank)
    found = stored_run(state.database, stored.id)
    told = None if found is None else Run(**{name: getattr(found, name) for name in Run.model_fields})
    return reply(RankRun(step=stored.step, rank=stored.rank, run=told))
