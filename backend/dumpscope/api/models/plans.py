"""Models of joined ranks and their plans."""

from __future__ import annotations

from typing import Final

from dumpscope.api.models.base import PROBLEMS, Phrase, Problem, Wire
from dumpscope.domain import joined as domain
from dumpscope.errors import Problem as FoundProblem
from dumpscope.parallel.plan import Plan, write_plan
from dumpscope.pipeline.dry_runs.plan import PlanDryRun
from dumpscope.texts import english

UNITS: Final = 200
"""Units sent at once."""
LAID_OUT: Final = 512
"""Most ranks for which a plan is also sent as data."""
TENSORS: Final = 200
"""Tensors of a trial sent at once."""


class Stray(Wire):
    """Copies on `ranks` differ from the others', first at `item`; with an empty `item`: calls that only these ranks made."""

    ranks: list[int]
    node: str
    item: str
    items: int


class JoinedSide(Wire):
    """`ranks`: by replica, stage and shard; `offsets`: added to the layer numbers of each virtual stage.

    `shards`, `context`, `replicas`: number of tensors per way (copy, sum, skip, odd, `dimension 1`, and padded ones among them),
    joined from parts of the model, of the sequence, of the batch; `experts`: number of left-out calls inside experts.
    """

    ranks: list[list[list[int]]]
    offsets: list[int]
    chunks: int
    shards: dict[str, int]
    context: dict[str, int]
    replicas: dict[str, int]
    experts: int
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
    """`plan`: yaml for the option `parallel`; `reasons`: reasons for the plan; `reasons_said`: the same as phrases;
    `units`: at most 200 of `unit_count`."""

    plan: str
    reasons: list[str]
    reasons_said: list[Phrase]
    units: list[JoinedUnit]
    unit_count: int


class ComparisonPlan(Wire):
    """`joined` is null if ranks were compared one by one."""

    joined: Joined | None


class PlanSide(Wire):
    """`ranks`: by replica, stage and shard; `offsets`: added to the layer numbers of each virtual stage; `context`, `experts`:
    how many consecutive replicas share a sequence, and the experts."""

    ranks: list[list[list[int]]]
    offsets: list[int]
    chunks: int
    context: int
    sequence: str | None
    experts: int


class PlanUnit(Wire):
    rank: int
    target: PlanSide
    golden: PlanSide


class PlanDimension(Wire):
    """`way`: a dimension as a number, or copy, sum, skip."""

    pattern: str
    way: int | str


class PlanLayout(Wire):
    """The plan's yaml as data. An edited plan is sent as JSON with the same keys, with `dimensions` as a mapping."""

    units: list[PlanUnit]
    gradients: str | None
    dimensions: list[PlanDimension]


class PlanPreview(Wire):
    """`plan`: yaml for the option `parallel`, null if ranks would be compared one by one; `units`: number of units;
    `layout`: the same as data, null with more than 512 ranks."""

    plan: str | None
    reasons: list[str]
    reasons_said: list[Phrase]
    units: int
    layout: PlanLayout | None
    problems: list[Problem]


class TrialTensor(Wire):
    """`way`: copy, join, sum, odd or skip; `by`: shards, context or replicas, empty for a copy, and the number
    of `members`; `shape`: of the whole, joined along `dimension`; `sizes`: of the parts along it, null if they are equal."""

    side: str
    name: str
    way: str
    by: str
    members: int
    shape: list[int] | None
    dimension: int | None
    sizes: list[int] | None


class PlanTrial(Wire):
    """How one unit would be joined; `tensors`: at most 200 of `tensor_count`."""

    unit: JoinedUnit
    tensors: list[TrialTensor]
    tensor_count: int
    problems: list[Problem]


def comparison_plan(found: domain.Joined | None) -> ComparisonPlan:
    if found is None:
        return ComparisonPlan(joined=None)
    units = [JoinedUnit.model_validate(unit) for unit in found.units[:UNITS]]
    return ComparisonPlan(
        joined=Joined(
            plan=found.plan,
            reasons=[english([reason]) for reason in found.reasons],
            reasons_said=[Phrase.model_validate(one) for one in found.reasons],
            units=units,
            unit_count=len(found.units),
        )
    )


def plan_preview(plan: Plan | None, problems: list[FoundProblem]) -> PlanPreview:
    reasons = () if plan is None else plan.reasons
    return PlanPreview(
        plan=None if plan is None else write_plan(plan),
        reasons=[english([reason]) for reason in reasons],
        reasons_said=[Phrase.model_validate(one) for one in reasons],
        units=0 if plan is None else len(plan.units),
        layout=None if plan is None else _layout(plan),
        problems=[Problem.model_validate(one) for one in problems[:PROBLEMS]],
    )


def plan_trial(found: PlanDryRun) -> PlanTrial:
    return PlanTrial(
        unit=JoinedUnit.model_validate(found.unit),
        tensors=[TrialTensor.model_validate(one) for one in found.tensors],
        tensor_count=found.count,
        problems=[Problem.model_validate(one) for one in found.problems[:PROBLEMS]],
    )


def _layout(plan: Plan) -> PlanLayout | None:
    if sum(1 for unit in plan.units for side in (unit.target, unit.golden) for _ in side.every()) > LAID_OUT:
        return None
    return PlanLayout(
        units=[PlanUnit.model_validate(unit) for unit in plan.units],
        gradients=plan.gradients,
        dimensions=[PlanDimension(pattern=pattern, way=way) for pattern, way in plan.dimensions.items()],
    )
