"""A whole comparison in this process and its children, without a database: what the command line runs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dumpscope.analysis.ranks.collectives import Collective
from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, Header, RankDump, RankRef
from dumpscope.domain.result import Answer, Side, Unit
from dumpscope.errors import DumpscopeError, Problem, UnreadableError
from dumpscope.match.preview import Preview, preview
from dumpscope.parallel.plan import Plan
from dumpscope.pipeline.compare.conclusion import conclude
from dumpscope.pipeline.compare.rank_pairs import RankPair, add_reference, pair_ranks
from dumpscope.pipeline.compare.rank_plan import (
    UnitPair,
    dimension_problems,
    find_plan,
    join_pair,
    join_reference,
    stray_problems,
    told,
    unit_pairs,
    with_reference,
)
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.pipeline.compare.unit_store import Shelf, Shelved, shelve
from dumpscope.readers import read_rank
from dumpscope.texts import say

Progress = Callable[[float, str], None]

WORTH: Final = 4 << 20
"""Bytes of JSON from which a second process is worth its start, and ranks are not all kept in memory."""
LOST: Final = frozenset(
    {
        "truncated", "unreadable", "nesting", "limit", "empty", "refused", "tensor_unreadable", "tensor", "no_data",
        "usage", "not_found", "forbidden", "internal", "missing_rank", "nothing_compared",
    }
)  # fmt: skip
"""Problem kinds that mean: something of the input is missing from the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    answer: Answer
    units: Shelf
    collectives: list[Collective]

    @property
    def incomplete(self) -> bool:
        """Some items could not be read (the answer's problems list them), or no item of one side met one of the other."""
        counts = self.answer.counts
        return counts.unreadable > 0 or counts.nothing_met or any(one.kind in LOST for one in self.answer.problems)


def compare_layouts(
    target: DumpIndex,
    golden: DumpIndex,
    options: Options,
    *,
    paths: tuple[str, str],
    reference: tuple[str, DumpIndex] | None = None,
    jobs: int = 0,
    progress: Progress = lambda _done, _message: None,
) -> Outcome:
    """Compare every common rank. paths: how the user named both sides; jobs: processes, 0 for one per core.
    reference: name and ranks of an absolute reference

    Ranks that cannot be read are problems of the answer; UnreadableError where none is left.
    """
    jobs = jobs or os.cpu_count() or 1
    units = Shelf()
    plan, problems = find_plan(target.ranks, golden.ranks, options, read_rank)
    problems = [*target.problems, *golden.problems, *problems]
    pairs: Sequence[RankPair | UnitPair]
    if plan is not None:
        joined, missing = unit_pairs(plan, target.ranks, golden.ranks, options, units.folder())
        problems += missing
        if reference is not None:
            joined, missing = with_reference(joined, reference[1].ranks)
            problems += [*reference[1].problems, *missing]
        pairs = joined
    else:
        pairs, missing = pair_ranks(target.ranks, golden.ranks, options)
        problems += missing
        if reference is not None:
            pairs, missing = add_reference(pairs, reference[1].ranks)
            problems += [*reference[1].problems, *missing]
    for done, result in enumerate(_units(pairs, options, jobs, units, progress), start=1):
        if isinstance(result, Problem):
            problems.append(result)
        else:
            units.put(result)
        progress(done / len(pairs), say("pipeline.ranks_compared", done=done, count=len(pairs)))
    if not units:
        why = next((one.message for one in reversed(problems)), "no rank could be compared")
        raise UnreadableError(say("pipeline.nothing_can_compared", why=why), where=paths[0])
    answer, collectives = conclude(
        units,
        policy=options.policy,
        target=side(paths[0], target, units.headers(golden=False)),
        golden=side(paths[1], golden, units.headers(golden=True)),
        reference=None if reference is None else side(*reference, []),
        problems=problems,
    )
    if plan is not None:
        answer = replace(answer, joined=told(plan, units.joined))
    return Outcome(answer=answer, units=units, collectives=collectives)


def preview_layouts(target: DumpIndex, golden: DumpIndex, options: Options) -> tuple[list[Preview], Plan | None]:
    """What matching every common rank would give, and the plan where ranks would be joined; measures nothing.

    Raises UnreadableError for a rank that cannot be read.
    """
    found = []
    plan = find_plan(target.ranks, golden.ranks, options, read_rank)[0]
    if plan is not None:
        for unit in unit_pairs(plan, target.ranks, golden.ranks, options, Path())[0]:
            one, other, _ = join_pair(unit, replace(options, tensors=False), read_rank)
            found.append(preview(one, other, options, step=unit.step, rank=unit.rank))
        return found, plan
    for pair in pair_ranks(target.ranks, golden.ranks, options)[0]:
        sides = read_rank(pair.target), read_rank(pair.golden)
        _require_nodes(*sides)
        found.append(preview(*sides, options, step=pair.step, rank=pair.rank))
    return found, None


def side(path: str, layout: DumpIndex, headers: Sequence[Header]) -> Side:
    """One side as the answer names it; where ranks disagree about a word all are named."""
    head = {name: sorted({getattr(header, name) for header in headers}) for name in ("framework", "task", "level")}
    return Side(
        path=path,
        framework=", ".join(head["framework"]),
        task=", ".join(head["task"]),
        level=", ".join(head["level"]),
        steps=layout.steps,
        ranks=layout.rank_numbers,
    )


def _units(
    pairs: Sequence[RankPair | UnitPair], options: Options, jobs: int, shelf: Shelf, progress: Progress
) -> Iterator[Unit | Shelved | Problem]:
    """Every pair's unit, in any order; those of a large comparison wait in a folder of the shelf."""
    if len(pairs) == 1 and isinstance(pairs[0], RankPair):
        yield _alone(pairs[0], options, jobs, progress)
    elif sum(map(_weight, pairs)) < WORTH:
        for pair in pairs:
            yield _compare(pair, options, jobs)
    elif jobs == 1:
        folder = shelf.folder()
        for pair in pairs:
            yield _compare_away(pair, options, folder)
    else:
        folder = shelf.folder()
        with _pool(min(jobs, len(pairs))) as pool:
            futures = [pool.submit(_compare_away, pair, options, folder) for pair in pairs]
            for future in as_completed(futures):
                yield future.result()


def _alone(pair: RankPair, options: Options, jobs: int, progress: Progress) -> Unit | Problem:
    """One rank: the two sides are read side by side, then measured with all threads."""
    try:
        if jobs > 1 and _weight(pair) >= WORTH:
            with _pool(1) as pool:
                other = pool.submit(read_rank, pair.golden)
                target = read_rank(pair.target)
                golden = other.result()
        else:
            target, golden = read_rank(pair.target), read_rank(pair.golden)
        _require_nodes(target, golden)
        progress(0.5, say("pipeline.both_sides_read"))
        return _compared(
            pair,
            target,
            golden,
            options,
            threads=jobs,
            progress=lambda done, message: progress(0.5 + done / 2, message),
        )
    except UnreadableError as error:
        return lost_rank(pair, error)


def _compare(pair: RankPair | UnitPair, options: Options, threads: int) -> Unit | Problem:
    try:
        if isinstance(pair, UnitPair):
            return _joined(pair, options, threads)
        target, golden = read_rank(pair.target), read_rank(pair.golden)
        _require_nodes(target, golden)
        return _compared(pair, target, golden, options, threads=threads)
    except UnreadableError as error:
        return lost_rank(pair, error)


def _joined(pair: UnitPair, options: Options, threads: int) -> Unit:
    """Compare a virtual unit."""
    target, golden, joined = join_pair(pair, options, read_rank)
    _require_nodes(target, golden)
    reference, lost = None, []
    try:
        reference = join_reference(pair, options, read_rank)
    except UnreadableError as error:
        lost.append(lost_reference(pair, error))
    unit = compare_rank(
        target, golden, step=pair.step, rank=pair.rank, options=options, reference=reference, threads=threads
    )
    problems = [*lost, *dimension_problems(pair, target, golden), *stray_problems(joined), *unit.problems]
    return replace(unit, joined=joined, problems=problems)


def _compared(
    pair: RankPair,
    target: RankDump,
    golden: RankDump,
    options: Options,
    *,
    threads: int,
    progress: Progress = lambda _done, _message: None,
) -> Unit:
    reference, problems = None, []
    if pair.reference is not None:
        try:
            reference = read_rank(pair.reference)
        except UnreadableError as error:
            problems.append(lost_reference(pair, error))
    unit = compare_rank(
        target,
        golden,
        step=pair.step,
        rank=pair.rank,
        options=options,
        reference=reference,
        threads=threads,
        progress=progress,
    )
    return replace(unit, problems=[*unit.problems, *problems])


def _compare_away(pair: RankPair | UnitPair, options: Options, folder: Path) -> Shelved | Problem:
    result = _compare(pair, options, 1)
    return result if isinstance(result, Problem) else shelve(result, folder)


def _require_nodes(*dumps: RankDump) -> None:
    """Raise UnreadableError for a rank without a single node: against it, everything would be an extra call."""
    for dump in dumps:
        if not len(dump.nodes):
            raise nothing_recorded(dump.ref, dump.problems[0].message if dump.problems else "")


def nothing_recorded(ref: RankRef, why: str) -> UnreadableError:
    """The error of a rank without a node; why: what its reader said, if anything"""
    return UnreadableError(say("pipeline.nothing_recorded", why=why or "It holds no node."), where=ref.dump_json)


def lost_rank(pair: RankPair | UnitPair, error: DumpscopeError) -> Problem:
    """A pair that was left out, and why."""
    return Problem(
        loc=f"step{pair.step}/rank{pair.rank}", kind="unreadable", message=say("pipeline.not_compared", error=error)
    )


def lost_reference(pair: RankPair | UnitPair, error: DumpscopeError) -> Problem:
    """A rank of the reference that cannot be read, and why."""
    return Problem(
        loc=f"step{pair.step}/rank{pair.rank}",
        kind="no_reference",
        message=say("pipeline.compared_without_reference", error=error),
    )


def _weight(pair: RankPair | UnitPair) -> int:
    total = 0
    refs: Iterable[RankRef | None]
    if isinstance(pair, UnitPair):
        refs = (*pair.target.values(), *pair.golden.values(), *pair.reference.values())
    else:
        refs = (pair.target, pair.golden, pair.reference)
    for ref in refs:
        if ref is None:
            continue
        try:
            total += os.path.getsize(ref.dump_json)
        except OSError:
            continue
    return total


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """Worker processes that end with the block, at once where it is left by an exception."""
    # forking costs nothing but is only safe while no thread runs
    method = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(method), initializer=_deaf)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    pool.shutdown()


def _deaf() -> None:
    """Ctrl-C belongs to the parent, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
