"""The plan of a comparison: which ranks of target, golden and reference meet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex
from dumpscope.errors import Problem, UnreadableError
from dumpscope.parallel.plan import Plan
from dumpscope.pipeline.planning.joined_pairs import Load, UnitPair, add_reference_ranks, find_plan, pair_units
from dumpscope.pipeline.planning.pass_steps import with_passes
from dumpscope.pipeline.planning.rank_pairs import RankPair, add_reference, pair_ranks
from dumpscope.texts import part_remedy, say, value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """joining: the plan by which ranks are joined, None where they are compared one by one
    ranks, units: what is compared with what, by step and rank; one of the two lists is empty
    problems: why a plan was not found, and which ranks have no partner; those of the dumps are not repeated"""

    joining: Plan | None = None
    ranks: Sequence[RankPair] = ()
    units: Sequence[UnitPair] = ()
    problems: Sequence[Problem] = ()

    @property
    def pairs(self) -> Sequence[RankPair | UnitPair]:
        """What is compared, whether ranks or units."""
        return self.units or self.ranks


def plan_comparison(
    target: DumpIndex, golden: DumpIndex, reference: DumpIndex | None, options: Options, load: Load
) -> ComparisonPlan:
    """Which ranks meet. load: reads one rank, where its content decides whether and how ranks are joined

    Raises UsageError where a step, a rank or a plan that was asked for cannot be had, or the sides have no rank in common.
    """
    joining, problems = find_plan(target.ranks, golden.ranks, options, load)
    ranks: list[RankPair] = []
    units: list[UnitPair] = []
    if joining is None:
        ranks, missing = pair_ranks(target.ranks, golden.ranks, options)
        ranks = with_passes(ranks, target.ranks, golden.ranks, options, load)
        taken = {(ref.step, ref.number) for pair in ranks for side in pair.following for ref in side}
        missing = [problem for problem in missing if not _is_of(problem, taken)]
    else:
        units, missing = pair_units(joining, target.ranks, golden.ranks, options)
    problems = [*problems, *missing]
    if reference is not None:
        if joining is None:
            ranks, missing = add_reference(ranks, reference.ranks)
        else:
            units, missing = add_reference_ranks(units, reference.ranks)
        problems = [*problems, *missing]
    return ComparisonPlan(joining=joining, ranks=ranks, units=units, problems=problems)


def _is_of(problem: Problem, places: Collection[tuple[int, int]]) -> bool:
    """Whether a problem says that one of these steps and ranks has no partner."""
    return problem.kind == "missing_rank" and problem.loc in {f"step{step}/rank{rank}" for step, rank in places}


def nothing_compared(problems: Sequence[Problem], where: str | None = None) -> UnreadableError:
    """The error of a comparison in which no ranks meet: the last problem is the reason, what it says to do the hint."""
    why = problems[-1].message if problems else say("pipeline.no_rank_could_be_compared")
    reason, remedy = part_remedy(value_of(why, "pipeline.not_compared", "error"))
    return UnreadableError(say("pipeline.nothing_can_compared", why=reason), hint=remedy, where=where)
