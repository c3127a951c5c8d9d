"""Tries a policy before a comparison is judged by it."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from dumpscope.api.models.base import Real, VerdictWord, Wire
from dumpscope.api.parameters import Id, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.index.comparisons.catalogue import find_unit
from dumpscope.pipeline.dry_runs.policy import dry_run_policy
from dumpscope.verdict.policy import load_policy

router = APIRouter(prefix="/comparisons/{comparison_id}/policies", tags=["policies"])


class TriedPolicy(BaseModel):
    """A policy's name, or the text of a policy file (docs/verdicts.md)."""

    model_config = ConfigDict(extra="forbid")

    policy: Annotated[str, Field(min_length=1, max_length=100_000)]


class ChangedCall(Wire):
    name: str
    before: VerdictWord
    after: VerdictWord
    score: Real


class PolicyTrial(Wire):
    """Calls of one step and rank by verdict, now and with the policy; `rows`: the worst calls that change."""

    step: int
    rank: int
    before: dict[str, int]
    after: dict[str, int]
    changed: int
    rows: list[ChangedCall]


@router.post("/try", response_model=PolicyTrial)
def attempt(comparison_id: Id, body: TriedPolicy, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Judge one step and rank by a policy; nothing is stored."""
    load_policy(body.policy)
    unit = find_unit(state.database, comparison_id, step, rank)
    trial = dry_run_policy(state.database, unit, body.policy)
    return reply(
        PolicyTrial(
            step=unit.step,
            rank=unit.rank,
            before=trial.before,
            after=trial.after,
            changed=trial.changed,
            rows=[
                ChangedCall(
                    name=row.name,
                    before=row.before,  # type: ignore[arg-type]
                    after=row.after,  # type: ignore[arg-type]
                    score=None if math.isnan(row.score) else row.score,
                )
                for row in trial.rows
            ],
        )
    )
