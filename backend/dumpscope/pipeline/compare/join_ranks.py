"""The ranks of a unit joined: both sides, and the reference, as one dump each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from dumpscope.domain.joined import Joined, JoinedUnit
from dumpscope.domain.options import Options
from dumpscope.domain.records import Kind, RankDump, item_name
from dumpscope.errors import Problem, UnreadableError
from dumpscope.parallel.evidence import evidence
from dumpscope.parallel.join_unit import join_unit
from dumpscope.parallel.plan import Plan, write_plan
from dumpscope.pipeline.compare.joined_tensors import make_tensors
from dumpscope.pipeline.planning.joined_pairs import Load, SideName, UnitPair
from dumpscope.texts import say


def join_pair(
    pair: UnitPair, options: Options, load: Load, folder: Path | None
) -> tuple[RankDump, RankDump, JoinedUnit]:
    """Both sides of a unit as one dump each. Raises UnreadableError.

    folder: their tensors are made below it; None: none are made
    """
    whole = join_unit(
        pair.unit,
        pair.plan,
        lambda rank: load("target", pair.target[rank]),
        lambda rank: load("golden", pair.golden[rank]),
        replace(options, ranks=()),
        worlds=pair.worlds,
    )
    if not options.tensors or not all(len(dump.items.data_names) for dump in (whole.target, whole.golden)):
        folder = None
    own = None if folder is None else _own_folder(pair, folder)
    target = make_tensors(whole.target, whole.target_orders, None if own is None else own / "target")
    golden = make_tensors(whole.golden, whole.golden_orders, None if own is None else own / "golden")
    return target, golden, whole.unit


def join_reference(pair: UnitPair, options: Options, load: Load, folder: Path | None) -> RankDump | None:
    """The unit's reference as one dump, joined as the side that it stands for; None without one. folder: as of `join_pair`

    Raises UnreadableError.
    """
    if not pair.reference:
        return None
    if not pair.stands_for:
        return load("reference", next(iter(pair.reference.values())))
    _require_split_alike(pair, load)

    def load_side(side: SideName, rank: int) -> RankDump:
        return (
            load("reference", pair.reference[rank])
            if side == pair.stands_for
            else load(side, pair.ranks_of(side)[rank])
        )

    whole = join_unit(
        pair.unit,
        pair.plan,
        lambda rank: load_side("target", rank),
        lambda rank: load_side("golden", rank),
        replace(options, ranks=()),
        worlds=pair.worlds,
    )
    golden = pair.stands_for == "golden"
    dump, orders = (whole.golden, whole.golden_orders) if golden else (whole.target, whole.target_orders)
    wanted = folder is not None and options.tensors and bool(len(dump.items.data_names))
    return make_tensors(dump, orders, _own_folder(pair, folder) / "reference" if wanted and folder else None)


def _own_folder(pair: UnitPair, folder: Path) -> Path:
    return folder / f"step{pair.step}_rank{pair.rank}"


def _require_split_alike(pair: UnitPair, load: Load) -> None:
    """Raise UnreadableError where weights of a reference's rank have other shapes than those of the side it stands for."""
    side: SideName = pair.stands_for or "golden"
    for rank, ref in pair.reference.items():
        own = evidence(load("reference", ref), rank).weights
        theirs = evidence(load(side, pair.ranks_of(side)[rank]), rank).weights
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


def describe_joining(plan: Plan, units: Sequence[JoinedUnit]) -> Joined:
    """What the answer says about joined ranks."""
    in_order = sorted(units, key=lambda unit: (unit.step, unit.rank))
    return Joined(plan=write_plan(plan), reasons=list(plan.reasons), units=in_order)


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
