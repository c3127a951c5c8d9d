"""Which ranks of two dumps are compared with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankRef
from dumpscope.errors import Problem, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPair:
    """One step and rank as the target numbers them, and where both sides lie."""

    step: int
    rank: int
    target: RankRef
    golden: RankRef


def pair_ranks(
    target: Sequence[RankRef], golden: Sequence[RankRef], options: Options
) -> tuple[list[RankPair], list[Problem]]:
    """Pairs in step and rank order, and a problem for every rank that only one side has.

    Where each side holds a single rank they are paired whatever their numbers: the user named those two. Raises UsageError
    where nothing is common or the wanted steps and ranks are not there.
    """
    left, right = (_wanted(side, options) for side in (target, golden))
    if len(target) == len(golden) == 1 and not (options.steps or options.ranks):
        one, other = target[0], golden[0]
        return [RankPair(step=one.step, rank=number(one), target=one, golden=other)], []
    if not left and not right:
        raise UsageError(
            f"neither dump has step {_said(options.steps)}, rank {_said(options.ranks)}",
            hint=f"the target has steps {_said(_steps(target))} and ranks {_said(_ranks(target))}",
        )
    common = sorted(left.keys() & right.keys())
    if not common:
        raise UsageError(
            "the dumps have no step and rank in common",
            hint=f"target: steps {_said(_steps(target))}, ranks {_said(_ranks(target))};"
            f" golden: steps {_said(_steps(golden))}, ranks {_said(_ranks(golden))};"
            " name one step folder or rank folder of each to compare them nevertheless",
        )
    problems = [
        Problem(
            loc=f"step{step}/rank{rank}",
            kind="unmatched_rank",
            message=f"Only the {word} has this step and rank; it was not compared.",
        )
        for word, one, other in (("target", left, right), ("golden", right, left))
        for step, rank in sorted(one.keys() - other.keys())
    ]
    pairs = [RankPair(step=step, rank=rank, target=left[step, rank], golden=right[step, rank]) for step, rank in common]
    return pairs, problems


def number(ref: RankRef) -> int:
    """Rank as results report it: a single-process folder counts as 0."""
    return ref.rank if ref.rank is not None else 0


def _wanted(refs: Sequence[RankRef], options: Options) -> dict[tuple[int, int], RankRef]:
    return {
        (ref.step, number(ref)): ref
        for ref in refs
        if (not options.steps or ref.step in options.steps) and (not options.ranks or number(ref) in options.ranks)
    }


def _steps(refs: Sequence[RankRef]) -> list[int]:
    return sorted({ref.step for ref in refs})


def _ranks(refs: Sequence[RankRef]) -> list[int]:
    return sorted({number(ref) for ref in refs})


def _said(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "") if numbers else "any"
