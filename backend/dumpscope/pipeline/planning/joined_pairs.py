"""Which ranks meet where the two models were split differently: the plan is found or read, and gives units of several ranks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, RankRef
from dumpscope.errors import Problem, UsageError
from dumpscope.parallel.plan import Plan, UnitPlan, left_out, parse_plan
from dumpscope.pipeline.planning.rank_pairs import list_numbers
from dumpscope.texts import say

if TYPE_CHECKING:
    from dumpscope.parallel.evidence import Evidence

SideName = Literal["target", "golden", "reference"]
Load = Callable[[SideName, RankRef], RankDump]
"""Reads a rank of a side. Two dumps of one folder have equal places, so the side is named too."""

COPIES: Final = 8
"""Most replicas of a side that are joined without being asked for, where the other side is a single rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPair:
    """One step of a virtual unit. target, golden: where its ranks lie, by number; worlds: all ranks of both sides
    reference: ranks of an absolute reference, empty without; stands_for: the side whose plan they are joined by, "" for a
    single rank as it is"""

    step: int
    unit: UnitPlan
    plan: Plan
    target: dict[int, RankRef]
    golden: dict[int, RankRef]
    worlds: tuple[tuple[int, ...], tuple[int, ...]]
    reference: dict[int, RankRef] = field(default_factory=dict)
    stands_for: Literal["target", "golden", ""] = ""

    @property
    def rank(self) -> int:
        return self.unit.rank

    def ranks_of(self, side: SideName) -> dict[int, RankRef]:
        """Where the ranks of a side lie, by number."""
        return {"target": self.target, "golden": self.golden, "reference": self.reference}[side]


def find_plan(
    target: Sequence[RankRef], golden: Sequence[RankRef], options: Options, load: Load
) -> tuple[Plan | None, list[Problem]]:
    """The plan by which ranks are joined; None where they are compared one by one.

    That is so unless the user asks for a plan, or both sides have another number of ranks, the ranks of one are not some of
    those of the other, and their weights or layers tell that the model was split. Raises UsageError where a plan that was asked
    for cannot be had.
    """
    names: tuple[SideName, SideName] = ("target", "golden")
    sides = [_first_step(side, options) for side in (target, golden)]
    asked = options.parallel is not None
    if not asked and (options.ranks or len(sides[0]) == len(sides[1]) or not all(sides)):
        return None, []
    from dumpscope.parallel.evidence import evidence  # noqa: PLC0415 (few comparisons join ranks)
    from dumpscope.parallel.rank_layout import lay_out  # noqa: PLC0415

    given = parse_plan(options.parallel)
    sizes = [one for one in (given.target, given.golden) if one is not None]
    known = bool(given.units) or (
        bool(sizes) and all(one.pp == one.vpp == 1 for one in sizes)
    )  # nothing is to be found out
    try:
        seen = [
            [_no_evidence(rank) if known else evidence(load(name, ref), rank) for rank, ref in sorted(side.items())]
            for name, side in zip(names, sides, strict=True)
        ]
        if not asked and _are_same_ranks(*seen):
            return None, []
        plan = lay_out(given, *seen)
    except UsageError as error:
        if asked:
            raise
        return None, [
            Problem(loc="", kind="no_plan", message=say("pipeline.ranks_one_number_compared", detail=error.detail))
        ]
    if (
        not asked
        and _only_replicas(plan)
        and seen[0][0].first == seen[1][0].first
        and not _one_and_few_copies(*map(len, sides))
    ):
        return None, []
    return plan, _unplanned_ranks(plan, *sides)


def pair_units(
    plan: Plan, target: Sequence[RankRef], golden: Sequence[RankRef], options: Options
) -> tuple[list[UnitPair], list[Problem]]:
    """Units of every step that both sides have, and a problem for each that lacks a rank in some step."""
    known = [sorted({ref.step for ref in side}) for side in (target, golden)]
    steps = sorted(set(known[0]) & set(known[1]))
    pairs: list[UnitPair] = []
    problems = [] if options.steps else _steps_of_one_side(*known)
    for step in steps:
        if options.steps and step not in options.steps:
            continue
        there = [{ref.number: ref for ref in side if ref.step == step} for side in (target, golden)]
        worlds = tuple(sorted(there[0])), tuple(sorted(there[1]))
        for unit in plan.units:
            if options.ranks and unit.rank not in options.ranks:
                continue
            lacking = [
                f"rank {rank} of the {word}"
                for word, side, refs in zip(("target", "golden"), (unit.target, unit.golden), there, strict=True)
                for rank in sorted(set(side.every()) - refs.keys())
            ]
            if lacking:
                message = say("pipeline.step_has_no_unit_not_compared", names=", ".join(lacking))
                problems.append(Problem(loc=f"step{step}/rank{unit.rank}", kind="missing_rank", message=message))
                continue
            pairs.append(
                UnitPair(
                    step=step,
                    unit=unit,
                    plan=plan,
                    target={rank: there[0][rank] for rank in unit.target.every()},
                    golden={rank: there[1][rank] for rank in unit.golden.every()},
                    worlds=worlds,
                )
            )
    return pairs, problems


def _steps_of_one_side(target: Sequence[int], golden: Sequence[int]) -> list[Problem]:
    """A problem for each step that only one side has: its run may have ended early."""
    return [
        Problem(
            loc=f"step{step}",
            kind="missing_rank",
            message=say(
                "pipeline.only_has_step", word=word, rival=rival, has=say("pipeline.steps", steps=list_numbers(other))
            ),
        )
        for word, one, rival, other in (("target", target, "golden", golden), ("golden", golden, "target", target))
        for step in sorted(set(one) - set(other))
    ]


def add_reference_ranks(
    pairs: Sequence[UnitPair], reference: Sequence[RankRef]
) -> tuple[list[UnitPair], list[Problem]]:
    """The units with their ranks of an absolute reference, and a problem for each that has none: it is compared without.

    A reference of as many ranks as the golden, else as the target, was split as that side was; one of a single rank is a whole.
    """
    found, problems = [], []
    for pair in pairs:
        there = {ref.number: ref for ref in reference if ref.step == pair.step}
        if set(pair.worlds[1]) == there.keys():
            ranks = {rank: there[rank] for rank in pair.unit.golden.every()}
            found.append(replace(pair, reference=ranks, stands_for="golden"))
        elif set(pair.worlds[0]) == there.keys():
            ranks = {rank: there[rank] for rank in pair.unit.target.every()}
            found.append(replace(pair, reference=ranks, stands_for="target"))
        elif len(there) == 1:
            found.append(replace(pair, reference=there))
        else:
            found.append(pair)
            has = (
                say("pipeline.ranks", names=", ".join(map(str, sorted(there)[:8])))
                if there
                else say("pipeline.no_rank")
            )
            message = say("pipeline.reference_has_step_neither_those_side", has=has)
            problems.append(Problem(loc=f"step{pair.step}/rank{pair.rank}", kind="no_reference", message=message))
    return found, problems


def _unplanned_ranks(plan: Plan, target: Collection[int], golden: Collection[int]) -> list[Problem]:
    """Problems of ranks that no unit of the plan has."""
    return [
        Problem(
            loc=f"rank{rank}",
            kind="unplanned_rank",
            message=say("pipeline.rank_no_unit_plan_not_compared", rank=rank, word=word),
        )
        for word, ranks in left_out(plan.units, target, golden).items()
        for rank in ranks
    ]


def _first_step(refs: Sequence[RankRef], options: Options) -> dict[int, RankRef]:
    """Ranks of the first step."""
    steps = [ref.step for ref in refs if not options.steps or ref.step in options.steps]
    return {ref.number: ref for ref in refs if steps and ref.step == min(steps)}


def _no_evidence(rank: int) -> Evidence:
    from dumpscope.parallel.evidence import Evidence  # noqa: PLC0415

    return Evidence(rank=rank, modules=frozenset(), numbers={}, weights={}, first=None)


def _one_and_few_copies(one: int, other: int) -> bool:
    """One rank and some copies of it: these are looked at together."""
    return min(one, other) == 1 and max(one, other) <= COPIES


def _are_same_ranks(target: Sequence[Evidence], golden: Sequence[Evidence]) -> bool:
    """Whether one side holds some of the ranks of the other, by their numbers: then its other ranks were not dumped, and nothing
    is to be joined.

    Every rank of the smaller side must be one of the other, with weights of the same shapes and the same modules; and it must be
    known to be one of several: its number is too high for its own side, its groups name ranks that its side lacks, or it made the
    same communications as its namesake and received the same first tensor.
    """
    fewer, more = sorted((target, golden), key=len)
    rivals = {one.rank: one for one in more}
    numbers = {one.rank for one in fewer}
    if not numbers < rivals.keys():
        return False
    pairs = [(one, rivals[one.rank]) for one in fewer]
    if not all(one.modules == other.modules and _shapes(one) == _shapes(other) for one, other in pairs):
        return False
    partial = max(numbers) >= len(fewer) or any(one.peers - numbers for one in fewer)
    return partial or all(
        one.communication and one.communication == other.communication and one.took == other.took
        for one, other in pairs
    )


def _shapes(one: Evidence) -> dict[str, tuple[int, ...]]:
    return {name: shape for name, (shape, _) in one.weights.items()}


def _only_replicas(plan: Plan) -> bool:
    """Both sides have replicas only."""
    return all(side.shards == side.stages == 1 for unit in plan.units for side in (unit.target, unit.golden))
