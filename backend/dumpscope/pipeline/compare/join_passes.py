"""Sides that computed the same data in another number of passes: each becomes a dump of one pass, and its tensors are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from dumpscope.domain.options import Options
from dumpscope.domain.records import Int64, RankDump
from dumpscope.errors import Problem, UnreadableError
from dumpscope.match import match
from dumpscope.parallel.aligned import Aligned, align_members
from dumpscope.parallel.members import with_full_paths
from dumpscope.parallel.passes.join import Whole, agree_on, join_passes, plan_passes
from dumpscope.parallel.passes.relation import Relation
from dumpscope.parallel.passes.split import Passes, find_unfinished, glance, members
from dumpscope.parallel.passes.ways import Pieces
from dumpscope.pipeline.compare.joined_tensors import make_tensors
from dumpscope.pipeline.planning.pass_relation import find_relation
from dumpscope.texts import phrase, say

Sides = tuple[RankDump, RankDump]
Arguments = tuple[Int64, Int64]
"""Items of the target and of the golden that say how much a pass took."""
_ROUNDS: Final = 3
"""How often passes are put together at most: the first ones of two sides may show other partners than the wholes do."""
_NOTHING: Final = np.empty(0, np.int64)


def with_joined_passes(
    target: RankDump, golden: RankDump, options: Options, folder: Path | None
) -> tuple[Sides, Arguments]:
    """Both sides, each with its passes put together where one of them computed in other passes what the other did; and the
    arguments that differ for that reason.

    folder: their tensors are made in it, None: none are, and without `options.tensors` none is read
    """
    as_they_are = (target, golden), (_NOTHING, _NOTHING)
    seen = glance(target), glance(golden)
    if seen[0] == seen[1] or max(map(len, seen)) < 2:
        return as_they_are
    found = find_relation(target, golden)
    if found is None:
        return as_they_are
    relation, passes = found
    try:
        return _join((target, golden), passes, relation, options, folder)
    except UnreadableError:  # the passes did not run the same calls
        return as_they_are


def _join(
    sides: Sides, passes: tuple[Passes, Passes], relation: Relation, options: Options, folder: Path | None
) -> tuple[Sides, Arguments]:
    """Raises UnreadableError where the passes of a side did not run the same calls."""
    many = [one.count > 1 or own is not None for one, own in zip(passes, relation.orders, strict=True)]
    full = [with_full_paths(side) for side in sides]
    aligned: list[Aligned | None] = [
        align_members(members(side, one)) if several else None
        for side, one, several in zip(full, passes, many, strict=True)
    ]
    firsts = [side if one is None else one.base for side, one in zip(full, aligned, strict=True)]
    tensors = options.tensors and all(len(side.items.data_names) for side in sides)
    partners = _partners((firsts[0], firsts[1]), options)
    for _ in range(_ROUNDS):
        wholes = _wholes(firsts, aligned, partners, relation, by_statistics=not tensors)
        joined = [side if whole is None else whole.dump for side, whole in zip(firsts, wholes, strict=True)]
        again = _partners((joined[0], joined[1]), options)
        if all(np.array_equal(one, other) for one, other in zip(partners, again, strict=True)):
            break
        partners = again
    made, arguments = list(sides), [_NOTHING, _NOTHING]
    for number, (word, found) in enumerate(zip(("target", "golden"), wholes, strict=True)):
        if found is not None:
            place = folder / word if folder is not None and tensors else None
            wanted = found.dump if options.tensors else _without_tensors(found.dump)
            made[number] = _with_end(make_tensors(wanted, found.orders, place), aligned[number], word)
            arguments[number] = found.arguments
    return (made[0], made[1]), (arguments[0], arguments[1])


def _partners(sides: Sides, options: Options) -> Arguments:
    """For each item of each side the one of the other, -1 where there is none."""
    pairs = match(sides[0], sides[1], options).items
    both = (pairs.target >= 0) & (pairs.golden >= 0)
    partners = []
    for side, own, there in (
        (sides[0], pairs.target, pairs.golden),
        (sides[1], pairs.golden, pairs.target),
    ):
        partner = np.full(len(side.items), -1, np.int64)
        partner[own[both]] = there[both]
        partners.append(partner)
    return partners[0], partners[1]


def _wholes(
    firsts: Sequence[RankDump],
    aligned: Sequence[Aligned | None],
    partners: Arguments,
    relation: Relation,
    *,
    by_statistics: bool,
) -> list[Whole | None]:
    """Each side with its passes put together, to be compared with these partners; None for one that is a whole as it is."""
    pieces = [
        Pieces(
            dump=firsts[number],
            aligned=aligned[number],
            partner=partners[number],
            sizes=relation.sizes[number],
            rival_sizes=relation.sizes[1 - number],
            rows=relation.word == "rows",
            anew=relation.anew[number],
        )
        for number in range(2)
    ]
    plans = [plan_passes(own, pieces[1 - number]) if own.aligned else None for number, own in enumerate(pieces)]
    if plans[0] is not None and plans[1] is not None:
        agree_on(plans[0], plans[1], pieces[0])
    return [
        None
        if plan is None
        else join_passes(own, pieces[1 - number], plan, relation, golden=number == 1, by_statistics=by_statistics)
        for number, (own, plan) in enumerate(zip(pieces, plans, strict=True))
    ]


def _with_end(dump: RankDump, aligned: Aligned | None, word: str) -> RankDump:
    """The dump, with a problem where its last pass ended early: what only the others made is compared with nothing."""
    count = 0 if aligned is None else find_unfinished(aligned)
    if not count:
        return dump
    said = say("parallel.last_pass_ended", side=[phrase(f"side.{word}")], count=count)
    loc = f"step{dump.ref.step}/{dump.ref.label}"
    return replace(dump, problems=[*dump.problems, Problem(loc=loc, kind="truncated", message=said)])


def _without_tensors(dump: RankDump) -> RankDump:
    items = replace(dump.items, data_name=np.full(len(dump.items), -1, np.int32), data_names=[])
    return replace(dump, items=items)
