"""Which ranks meet where ranks are compared one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankRef
from dumpscope.errors import Problem, UsageError
from dumpscope.texts import say


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPair:
    """One step and rank as the target numbers them, and where both sides (and the reference) lie.

    following: further steps of the target and of the golden that are passes of the same request, in their order
    """

    step: int
    rank: int
    target: RankRef
    golden: RankRef
    reference: RankRef | None = None
    following: tuple[tuple[RankRef, ...], tuple[RankRef, ...]] = ((), ())

    @property
    def targets(self) -> tuple[RankRef, ...]:
        """All steps of the target."""
        return (self.target, *self.following[0])

    @property
    def goldens(self) -> tuple[RankRef, ...]:
        """All steps of the golden."""
        return (self.golden, *self.following[1])


def pair_ranks(
    target: Sequence[RankRef], golden: Sequence[RankRef], options: Options
) -> tuple[list[RankPair], list[Problem]]:
    """Pairs in step and rank order, and a problem for every rank that only one side has (see `_left_out`).

    Where each side holds a single rank they are paired whatever their numbers: the user named those two. Raises UsageError
    where nothing is common or a side lacks a step or rank that was asked for.
    """
    if len(target) == len(golden) == 1 and not (options.steps or options.ranks):
        one, other = target[0], golden[0]
        return [RankPair(step=one.step, rank=one.number, target=one, golden=other)], []
    require_chosen(options, (_steps(target), _ranks(target)), (_steps(golden), _ranks(golden)))
    left, right = (_chosen_ranks(side, options) for side in (target, golden))
    common = sorted(left.keys() & right.keys())
    if not common:
        raise UsageError(
            say("pipeline.dumps_have_no_step_rank_common"),
            hint=say(
                "pipeline.target_golden_name_one_step_folder",
                left=_list_places(left or target),
                right=_list_places(right or golden),
            ),
        )
    problems = [
        *_left_out("target", left, right, golden),
        *_left_out("golden", right, left, target),
    ]
    pairs = [RankPair(step=step, rank=rank, target=left[step, rank], golden=right[step, rank]) for step, rank in common]
    return pairs, problems


def add_reference(pairs: Sequence[RankPair], reference: Sequence[RankRef]) -> tuple[list[RankPair], list[Problem]]:
    """The pairs with the reference's rank of the same numbers, and a problem for each that has none: it is compared without.

    A reference of a single rank belongs to a single pair whatever its numbers.
    """
    places = {(ref.step, ref.number): ref for ref in reference}
    if len(pairs) == len(reference) == 1:
        return [replace(pairs[0], reference=reference[0])], []
    problems = [
        Problem(
            loc=f"step{pair.step}/rank{pair.rank}",
            kind="no_reference",
            message=say("pipeline.reference_has_no_such_step_rank", places=_list_places(places)),
        )
        for pair in pairs
        if (pair.step, pair.rank) not in places
    ]
    return [replace(pair, reference=places.get((pair.step, pair.rank))) for pair in pairs], problems


def require_chosen(
    options: Options, target: tuple[Sequence[int], Sequence[int]], golden: tuple[Sequence[int], Sequence[int]]
) -> None:
    """Raise UsageError, naming what there is, where a side (its steps, its ranks) lacks a step or rank that was asked for."""
    for place, (word, chosen) in enumerate((("step", options.steps), ("rank", options.ranks))):
        there = {"target": target[place], "golden": golden[place]}
        lacking = {side: [one for one in chosen if one not in numbers] for side, numbers in there.items()}
        short = [side for side, numbers in lacking.items() if numbers]
        if short:
            gone = sorted({one for side in short for one in lacking[side]})
            who = say("pipeline.has", short=short[0]) if len(short) == 1 else say("pipeline.dumps_have")
            known = {side: list_numbers(numbers) for side, numbers in there.items()}
            raise UsageError(
                say("pipeline.no", who=who, word=word, gone=list_numbers(gone)),
                hint=say("pipeline.sides_have", word=word, **known),
            )


def _left_out(
    word: str,
    one: dict[tuple[int, int], RankRef],
    other: dict[tuple[int, int], RankRef],
    refs: Sequence[RankRef],
) -> list[Problem]:
    """Ranks of the side `word` that the other side (all its `refs`) lacks.

    One of a step, where the other side has this rank in other steps, is `missing_rank`, which leaves the comparison incomplete:
    a run may have ended early. The user who chose steps asked for no others. A rank that the other side never has is
    `unmatched_rank`: its dump holds a part of the job.
    """
    out = []
    rival = "golden" if word == "target" else "target"
    for step, rank in sorted(one.keys() - other.keys()):
        there = [ref.number for ref in refs if ref.step == step]
        has = (
            say("pipeline.ranks_step", there=list_numbers(sorted(there)))
            if there
            else say("pipeline.steps", steps=list_numbers(_steps(refs)))
        )
        loc = f"step{step}/rank{rank}"
        message = say("pipeline.only_has_step_rank_has_not", word=word, rival=rival, has=has)
        if rank not in _ranks(refs):
            out.append(Problem(loc=loc, kind="unmatched_rank", message=message))
            continue
        if not there:
            message = say("pipeline.only_has_step", word=word, rival=rival, has=has)
        out.append(Problem(loc=loc, kind="missing_rank", message=message))
    return out


def _chosen_ranks(refs: Sequence[RankRef], options: Options) -> dict[tuple[int, int], RankRef]:
    return {
        (ref.step, ref.number): ref
        for ref in refs
        if (not options.steps or ref.step in options.steps) and (not options.ranks or ref.number in options.ranks)
    }


def _steps(refs: Sequence[RankRef]) -> list[int]:
    return sorted({ref.step for ref in refs})


def _ranks(refs: Sequence[RankRef]) -> list[int]:
    return sorted({ref.number for ref in refs})


def _list_places(refs: Iterable[RankRef | tuple[int, int]]) -> str:
    known = sorted({ref if isinstance(ref, tuple) else (ref.step, ref.number) for ref in refs})
    shown = ", ".join(f"step {step} rank {rank}" for step, rank in known[:8])
    return shown + (", ..." if len(known) > 8 else "") if known else "nothing"


def list_numbers(numbers: Sequence[int]) -> str:
    """Numbers for a sentence: the first eight."""
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "") if numbers else "none"
