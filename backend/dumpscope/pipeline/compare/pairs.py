"""One pair in, one unit out: its ranks are read, joined where a plan says so, and compared. Errors become problems here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dumpscope.domain.joined import JoinedUnit
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, RankRef
from dumpscope.domain.result import Unit
from dumpscope.errors import DumpscopeError, Problem, UnreadableError
from dumpscope.parallel.passes.chain import chain_steps
from dumpscope.pipeline.compare.measure import Cancelled, Progress
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.pipeline.planning.joined_pairs import Load, UnitPair
from dumpscope.pipeline.planning.rank_pairs import RankPair
from dumpscope.texts import say

Pair = RankPair | UnitPair


def compare_pair(
    pair: Pair,
    options: Options,
    load: Load,
    *,
    folder: Path | None = None,
    threads: int = 2,
    progress: Progress = lambda _done, _message: None,
    cancelled: Cancelled = lambda: False,
) -> Unit:
    """Read and compare what a plan pairs. folder: joined tensors are made below it, None: none are; progress: of measuring

    A reference that cannot be read is a problem of the unit. Raises UnreadableError where a side cannot be read or holds no node.
    """
    joined: JoinedUnit | None = None
    if isinstance(pair, UnitPair):
        from dumpscope.pipeline.compare.join_ranks import join_pair  # noqa: PLC0415 (few comparisons join ranks)

        target, golden, joined = join_pair(pair, options, load, folder)
    else:
        target = chain_steps([load("target", ref) for ref in pair.targets])
        golden = chain_steps([load("golden", ref) for ref in pair.goldens])
    for dump in (target, golden):
        if not len(dump.nodes):  # against it, everything would be an extra call
            raise nothing_recorded(dump.ref, dump.problems[0].message if dump.problems else "")
    reference: RankDump | None = None
    lost: list[Problem] = []
    try:
        if isinstance(pair, UnitPair):
            from dumpscope.pipeline.compare.join_ranks import join_reference  # noqa: PLC0415

            reference = join_reference(pair, options, load, folder)
        elif pair.reference is not None:
            reference = load("reference", pair.reference)
    except UnreadableError as error:
        lost.append(lost_reference(pair, error))
    where = say("pipeline.step_rank", step=pair.step, rank=pair.rank)
    progress(0.0, say("pipeline.comparing", where=where))
    unit = compare_rank(
        target,
        golden,
        step=pair.step,
        rank=pair.rank,
        options=options,
        reference=reference,
        folder=None if folder is None else folder / f"passes_step{pair.step}_rank{pair.rank}",
        threads=threads,
        progress=progress,
        cancelled=cancelled,
    )
    if isinstance(pair, UnitPair) and joined is not None:
        from dumpscope.pipeline.compare.join_ranks import dimension_problems, stray_problems  # noqa: PLC0415

        lost += [*dimension_problems(pair, target, golden), *stray_problems(joined)]
    return replace(unit, joined=joined, problems=[*lost, *unit.problems])


def nothing_recorded(ref: RankRef, why: str) -> UnreadableError:
    """The error of a rank without a node; why: what its reader said, if anything"""
    return UnreadableError(say("pipeline.nothing_recorded", why=why or "It holds no node."), where=ref.dump_json)


def lost_rank(pair: Pair, error: DumpscopeError) -> Problem:
    """A pair that was left out, and why."""
    return Problem(
        loc=f"step{pair.step}/rank{pair.rank}", kind="unreadable", message=say("pipeline.not_compared", error=error)
    )


def lost_reference(pair: Pair, error: DumpscopeError) -> Problem:
    """A rank of the reference that cannot be read, and why."""
    return Problem(
        loc=f"step{pair.step}/rank{pair.rank}",
        kind="no_reference",
        message=say("pipeline.compared_without_reference", error=error),
    )
