"""Comparisons of dumps whose ranks do not correspond: the plan is found or read, and its units are joined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import numpy as np

from dumpscope.domain.joined import Joined, JoinedUnit
from dumpscope.domain.options import Options
from dumpscope.domain.records import Kind, RankDump, RankRef, item_name
from dumpscope.errors import Problem, UnreadableError, UsageError
from dumpscope.parallel.evidence import Evidence, evidence
from dumpscope.parallel.join_unit import join_unit
from dumpscope.parallel.plan import Plan, UnitPlan, left_out, parse_plan, write_plan
from dumpscope.parallel.rank_layout import lay_out
from dumpscope.pipeline.compare.joined_tensors import make_tensors
from dumpscope.pipeline.compare.rank_pairs import number
from dumpscope.texts import say

Load = Callable[[RankRef], RankDump]

COPIES: Final = 8
"""Replicas up to which a side is looked at as a whole, with nobody asking, where the other side is one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPair:
    """One step of a virtual unit. target, golden: where its ranks lie, by number; worlds: all ranks of both sides
    folder: below it its tensors are made
    reference: ranks of an absolute reference, empty without; stands_for: the side whose plan they are joined by, "" for a
    single rank as it is"""

    step: int
    unit: UnitPlan
    plan: Plan
    target: dict[int, RankRef]
    golden: dict[int, RankRef]
    worlds: tuple[tuple[int, ...], tuple[int, ...]]
    folder: Path
    reference: dict[int, RankRef] = field(default_factory=dict)
    stands_for: str = ""

    @property
    def rank(self) -> int:
        return self.unit.rank


def find_plan(
    target: Sequence[RankRef], golden: Sequence[RankRef], options: Options, load: Load
) -> tuple[Plan | None, list[Problem]]:
    """The plan by which ranks are joined; None where they are compared one by one.

    That is so unless the user asks for a plan, or both sides have another number of ranks and their weights or layers tell
    that the model was split. Raises UsageError where a plan that was asked for cannot be had.
    """
    sides = [_first_step(side, options) for side in (target, golden)]
    asked = options.parallel is not None
    if not asked and (options.ranks or len(sides[0]) == len(sides[1]) or not all(sides)):
        return None, []
    given = parse_plan(options.parallel)
    sizes = [one for one in (given.target, given.golden) if one is not None]
    known = bool(given.units) or (
        bool(sizes) and all(one.pp == one.vpp == 1 for one in sizes)
    )  # nothing is to be found out
    try:
        seen = [
            [_bare(rank) if known else evidence(load(ref), rank) for rank, ref in sorted(side.items())]
            for side in sides
        ]
        plan = lay_out(given, *seen)
    except UsageError as error:
        if asked:
            raise
        return None, [
            Problem(loc="", kind="no_plan", message=say("pipeline.ranks_one_number_compared", detail=error.detail))
        ]
    if not asked and _copies(plan) and seen[0][0].first == seen[1][0].first and not _few(*map(len, sides)):
        return None, []
    return plan, _left_out(plan, *sides)


def unit_pairs(
    plan: Plan, target: Sequence[RankRef], golden: Sequence[RankRef], options: Options, folder: Path
) -> tuple[list[UnitPair], list[Problem]]:
    """Units of every step that both sides have, and a problem for each that lacks a rank in some step."""
    steps = sorted({ref.step for ref in target} & {ref.step for ref in golden})
    pairs, problems = [], []
    for step in steps:
        if options.steps and step not in options.steps:
            continue
        there = [{number(ref): ref for ref in side if ref.step == step} for side in (target, golden)]
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
                    folder=folder,
                )
            )
    return pairs, problems


def join_pair(pair: UnitPair, options: Options, load: Load) -> tuple[RankDump, RankDump, JoinedUnit]:
    """Both sides of a unit as one dump each, with their tensors made. Raises UnreadableError."""
    whole = join_unit(
        pair.unit,
        pair.plan,
        lambda rank: load(pair.target[rank]),
        lambda rank: load(pair.golden[rank]),
        replace(options, ranks=()),
        worlds=pair.worlds,
    )
    keep = options.tensors and all(len(dump.items.data_names) for dump in (whole.target, whole.golden))
    place = pair.folder / f"step{pair.step}_rank{pair.rank}"
    target = make_tensors(whole.target, whole.target_orders, place / "target", keep=keep)
    golden = make_tensors(whole.golden, whole.golden_orders, place / "golden", keep=keep)
    return target, golden, whole.unit


def with_reference(pairs: Sequence[UnitPair], reference: Sequence[RankRef]) -> tuple[list[UnitPair], list[Problem]]:
    """The units with their ranks of an absolute reference, and a problem for each that has none: it is compared without.

    A reference of as many ranks as the golden, else as the target, was split as that side was; one of a single rank is a whole.
    """
    found, problems = [], []
    for pair in pairs:
        there = {number(ref): ref for ref in reference if ref.step == pair.step}
        sides = (("golden", pair.unit.golden, pair.worlds[1]), ("target", pair.unit.target, pair.worlds[0]))
        split = next((word for word, _, world in sides if set(world) == there.keys()), None)
        if split is not None:
            ranks = {rank: there[rank] for rank in getattr(pair.unit, split).every()}
            found.append(replace(pair, reference=ranks, stands_for=split))
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


def join_reference(pair: UnitPair, options: Options, load: Load) -> RankDump | None:
    """The unit's reference as one dump, joined as the side that it stands for, with its tensors made; None without one.

    Raises UnreadableError.
    """
    if not pair.reference:
        return None
    if not pair.stands_for:
        return load(next(iter(pair.reference.values())))
    _require_split_alike(pair, load)
    places = {"target": pair.target, "golden": pair.golden, pair.stands_for: pair.reference}
    whole = join_unit(
        pair.unit,
        pair.plan,
        lambda rank: load(places["target"][rank]),
        lambda rank: load(places["golden"][rank]),
        replace(options, ranks=()),
        worlds=pair.worlds,
    )
    golden = pair.stands_for == "golden"
    dump, orders = (whole.golden, whole.golden_orders) if golden else (whole.target, whole.target_orders)
    keep = options.tensors and bool(len(dump.items.data_names))
    return make_tensors(dump, orders, pair.folder / f"step{pair.step}_rank{pair.rank}" / "reference", keep=keep)


def _require_split_alike(pair: UnitPair, load: Load) -> None:
    """Raise UnreadableError where weights of a reference's rank have other shapes than those of the side it stands for."""
    refs: dict[int, RankRef] = getattr(pair, pair.stands_for)
    for rank, ref in pair.reference.items():
        own, theirs = (evidence(load(one), rank).weights for one in (ref, refs[rank]))
        common = own.keys() & theirs.keys()
        unlike = sum(own[name][0] != theirs[name][0] for name in common)
        if 2 * len(common) < len(own) or 10 * unlike > len(common):
            raise UnreadableError(
                say(
                    "pipeline.rank_reference_not_split_has_weights",
                    rank=rank,
                    stands_for=pair.stands_for,
                    count=len(common) - unlike,
                    count2=len(own),
                ),
                where=ref.folder,
            )


def told(plan: Plan, units: Sequence[JoinedUnit]) -> Joined:
    """What the answer says of the joining."""
    order = sorted(units, key=lambda unit: (unit.step, unit.rank))
    return Joined(plan=write_plan(plan), reasons=list(plan.reasons), units=order)


def stray_problems(unit: JoinedUnit) -> list[Problem]:
    """What joining left out or doubts, as problems of the comparison: copies that differ between ranks, calls of experts."""
    problems = []
    if unit.target.experts or unit.golden.experts:
        left = say(
            "pipeline.calls_target_golden_inside_experts_left",
            experts=unit.target.experts,
            experts2=unit.golden.experts,
        )
        why = say("pipeline.tokens_dealt_out_ranks_hold_their")
        problems.append(
            Problem(
                loc=f"step{unit.step}/rank{unit.rank}",
                kind="experts",
                message=say("problem.because", what=left, why=why),
            )
        )
    for word, side in (("target", unit.target), ("golden", unit.golden)):
        for stray in side.strays:
            who = f"{'ranks' if len(stray.ranks) > 1 else 'rank'} {', '.join(map(str, stray.ranks))}"
            if not stray.item:
                what = say(
                    "pipeline.only_made_calls_first_they_left", word=word, who=who, items=stray.items, node=stray.node
                )
            elif stray.ranks:
                what = say(
                    "pipeline.differs_from_copies_tensors_first_values",
                    word=word,
                    who=who,
                    items=stray.items,
                    item=stray.item,
                )
            else:
                what = say(
                    "pipeline.copies_differ_tensors_first_none_odd", word=word, items=stray.items, item=stray.item
                )
            problems.append(Problem(loc=f"step{unit.step}/{stray.node}", kind="odd_rank", message=what))
    return problems


def dimension_problems(pair: UnitPair, *dumps: RankDump) -> list[Problem]:
    """Entries of the plan's `dimensions` that did nothing to a unit: their pattern fits none of the joined tensors, or the
    dimension that it names none of those that it fits. dumps: the joined target and golden"""
    fitted: dict[str, str | None] = {}
    for dump in dumps:
        if not dump.ref.joined or not pair.plan.dimensions:
            continue
        items = dump.items
        for item in np.flatnonzero(items.kind == Kind.TENSOR).tolist():
            name = item_name(dump, item)
            pattern = next((one for one in pair.plan.dimensions if fnmatchcase(name, one)), None)
            if pattern is None:
                continue
            text = items.values[items.value[item]] if items.value[item] >= 0 else ""
            refused = isinstance(pair.plan.dimensions[pattern], int) and '"way":"skip"' in text
            if not refused or pattern not in fitted:
                fitted[pattern] = name if refused else None
    loc = f"step{pair.step}/rank{pair.rank}"
    problems = []
    for pattern, way in pair.plan.dimensions.items():
        if pattern not in fitted:
            what = say("pipeline.plans_dimensions_fits_no_joined_tensor", pattern=f"{pattern!r}")
        elif fitted[pattern] is not None:
            what = say(
                "pipeline.plans_dimensions_asks_dimension_along_which",
                pattern=f"{pattern!r}",
                way=way,
                fitted=fitted[pattern],
            )
        else:
            continue
        problems.append(Problem(loc=loc, kind="plan_dimension", message=what))
    return problems


def _left_out(plan: Plan, target: Collection[int], golden: Collection[int]) -> list[Problem]:
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
    return {number(ref): ref for ref in refs if steps and ref.step == min(steps)}


def _bare(rank: int) -> Evidence:
    return Evidence(rank=rank, modules=frozenset(), numbers={}, weights={}, first=None)


def _few(one: int, other: int) -> bool:
    """One rank and some copies of it: these are looked at together."""
    return min(one, other) == 1 and max(one, other) <= COPIES


def _copies(plan: Plan) -> bool:
    """Both sides have replicas only."""
    return all(side.shards == side.stages == 1 for unit in plan.units for side in (unit.target, unit.golden))
