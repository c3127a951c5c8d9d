"""Wire models of how ranks are joined."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from dumpscope.api import wire
from dumpscope.api.schemas import Phrase, Problem, Wire
from dumpscope.domain import joined as domain
from dumpscope.domain.phrases import english
from dumpscope.errors import Problem as FoundProblem
from dumpscope.parallel.plan import Plan, write_plan

UNITS: Final = 200
"""Units sent at once."""


class Stray(Wire):
    """Copies on `ranks` differ from the others', first at `item`; with an empty `item`: calls that only these ranks made."""

    ranks: list[int]
    node: str
    item: str
    items: int


class JoinedSide(Wire):
    """`ranks`: by replica, stage and shard; `offsets`: added to the layer numbers of each virtual stage.

    `shards`, `replicas`: how many tensors were made in which way: copy, sum, skip, odd, `dimension 1`.
    """

    ranks: list[list[list[int]]]
    offsets: list[int]
    chunks: int
    shards: dict[str, int]
    replicas: dict[str, int]
    collectives: int
    own_data: list[int]
    strays: list[Stray]


class JoinedUnit(Wire):
    step: int
    rank: int
    target: JoinedSide
    golden: JoinedSide
    gradients: str | None


class Joined(Wire):
    """`plan`: yaml for the option `parallel`; `reasons`: why it is so; `reasons_said`: the same as phrases;
    `units`: at most 200 of `unit_count`."""

    plan: str
    reasons: list[str]
    reasons_said: list[Phrase]
    units: list[JoinedUnit]
    unit_count: int


class ComparisonPlan(Wire):
    """`joined` is null where ranks were compared one by one."""

    joined: Joined | None


class PlanPreview(Wire):
    """`plan`: yaml for the option `parallel`, null where ranks would be compared one by one; `units`: how many it makes."""

    plan: str | None
    reasons: list[str]
    reasons_said: list[Phrase]
    units: int
    problems: list[Problem]


def comparison_plan(found: domain.Joined | None) -> ComparisonPlan:
    if found is None:
        return ComparisonPlan(joined=None)
    units = [JoinedUnit.model_validate(asdict(unit)) for unit in found.units[:UNITS]]
    return ComparisonPlan(
        joined=Joined(
            plan=found.plan,
            reasons=[english([reason]) for reason in found.reasons],
            reasons_said=wire.phrases(found.reasons),
            units=units,
            unit_count=len(found.units),
        )
    )


def plan_preview(plan: Plan | None, problems: list[FoundProblem]) -> PlanPreview:
    reasons = () if plan is None else plan.reasons
    return PlanPreview(
        plan=None if plan is None else write_plan(plan),
        reasons=[english([reason]) for reason in reasons],
        reasons_said=wire.phrases(reasons),
        units=0 if plan is None else len(plan.units),
        problems=wire.problems(problems),
    )
