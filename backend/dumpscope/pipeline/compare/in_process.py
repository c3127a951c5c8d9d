"""A whole comparison in this process and its children, without a database: what the command line runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dumpscope.analysis.ranks.collectives import Collective
from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, Header, RankDump, RankRef, join_words
from dumpscope.domain.result import Answer, Side, Unit
from dumpscope.errors import DumpscopeError, Problem, UnreadableError
from dumpscope.match.preview import Preview, preview
from dumpscope.parallel.passes.chain import chain_steps
from dumpscope.parallel.plan import Plan
from dumpscope.pipeline.compare.conclusion import conclude
from dumpscope.pipeline.compare.join_passes import with_joined_passes
from dumpscope.pipeline.compare.pairs import Pair, compare_pair, lost_rank, nothing_recorded
from dumpscope.pipeline.compare.unit_store import SpilledUnit, UnitStore, spill
from dumpscope.pipeline.planning.comparison_plan import ComparisonPlan, nothing_compared, plan_comparison
from dumpscope.pipeline.planning.joined_pairs import SideName, UnitPair
from dumpscope.pipeline.planning.rank_pairs import RankPair
from dumpscope.readers import read_rank
from dumpscope.texts import say

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from multiprocessing.context import BaseContext

Progress = Callable[[float, str], None]

WORTH: Final = 4 << 20
"""Bytes of JSON from which a second process is worth its start, and ranks are not all kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    answer: Answer
    units: UnitStore
    collectives: list[Collective]

    @property
    def incomplete(self) -> bool:
        """Something that matters was not judged."""
        return self.answer.incomplete


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """jobs: threads or processes, 0 for one per core; processes: whether other processes may be started
    all_or_nothing: a rank that cannot be read ends the comparison, instead of being a problem of the answer"""

    jobs: int = 0
    processes: bool = True
    all_or_nothing: bool = False

    @property
    def count(self) -> int:
        return self.jobs or os.cpu_count() or 1


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
    plan = plan_comparison(target, golden, None if reference is None else reference[1], options, _read)
    return compare_plan(
        plan, target, golden, options, paths=paths, reference=reference, workers=Workers(jobs=jobs), progress=progress
    )


def compare_plan(
    plan: ComparisonPlan,
    target: DumpIndex,
    golden: DumpIndex,
    options: Options,
    *,
    paths: tuple[str, str],
    reference: tuple[str, DumpIndex] | None = None,
    workers: Workers = Workers(),
    progress: Progress = lambda _done, _message: None,
) -> Outcome:
    """Compare what a plan pairs, as `compare_layouts` does."""
    units = UnitStore()
    dumps = (target, golden) if reference is None else (target, golden, reference[1])
    problems = [*(problem for dump in dumps for problem in dump.problems), *plan.problems]
    pairs = plan.pairs
    for done, result in enumerate(_units(pairs, options, workers, units, progress), start=1):
        if isinstance(result, Problem):
            problems.append(result)
        else:
            units.put(result)
        progress(done / len(pairs), say("pipeline.ranks_compared", done=done, count=len(pairs)))
    if not units:
        raise nothing_compared(problems, paths[0])
    answer, collectives = conclude(
        units,
        policy=options.policy,
        target=describe_side(paths[0], target, units.headers(golden=False)),
        golden=describe_side(paths[1], golden, units.headers(golden=True)),
        reference=None if reference is None else describe_side(*reference, []),
        problems=problems,
    )
    if plan.joining is not None:
        from dumpscope.pipeline.compare.join_ranks import describe_joining  # noqa: PLC0415

        answer = replace(answer, joined=describe_joining(plan.joining, units.joined))
    return Outcome(answer=answer, units=units, collectives=collectives)


def preview_layouts(target: DumpIndex, golden: DumpIndex, options: Options) -> tuple[list[Preview], Plan | None]:
    """What matching every common rank would give, and the plan where ranks would be joined; measures nothing.

    Raises UnreadableError for a rank that cannot be read.
    """
    plan = plan_comparison(target, golden, None, options, _read)
    found = []
    for pair in plan.pairs:
        if isinstance(pair, UnitPair):
            from dumpscope.pipeline.compare.join_ranks import join_pair  # noqa: PLC0415

            one, other, _ = join_pair(pair, options, _read, None)
        else:
            one, other = (chain_steps([read_rank(ref) for ref in side]) for side in (pair.targets, pair.goldens))
            for dump in (one, other):
                if not len(dump.nodes):
                    raise nothing_recorded(dump.ref, dump.problems[0].message if dump.problems else "")
            (one, other), _ = with_joined_passes(one, other, replace(options, tensors=False), None)
        found.append(preview(one, other, options, step=pair.step, rank=pair.rank))
    return found, plan.joining


def describe_side(path: str, layout: DumpIndex, headers: Sequence[Header]) -> Side:
    """One side as the answer names it; where ranks disagree about a word all are named."""
    return Side(
        path=path,
        framework=join_words(header.framework for header in headers),
        task=join_words(header.task for header in headers),
        level=join_words(header.level for header in headers),
        steps=layout.steps,
        ranks=layout.rank_numbers,
    )


def _read(_side: SideName, ref: RankRef) -> RankDump:
    return read_rank(ref)


def _units(
    pairs: Sequence[Pair], options: Options, workers: Workers, store: UnitStore, progress: Progress
) -> Iterator[Unit | SpilledUnit | Problem]:
    """Every pair's unit, in any order; those of a large comparison lie in a folder of the store."""
    count = workers.count
    made = store.folder()
    if len(pairs) == 1 and isinstance(pairs[0], RankPair):
        yield _compare_only(pairs[0], options, made, workers, progress)
    elif sum(map(_json_bytes, pairs)) < WORTH:
        for pair in pairs:
            yield _compare(pair, options, made, count, workers.all_or_nothing)
    elif count == 1 or not workers.processes:
        folder = store.folder()
        for pair in pairs:
            yield _compare_and_spill(pair, options, made, folder, count, workers.all_or_nothing)
    else:
        from concurrent.futures import as_completed  # noqa: PLC0415

        folder = store.folder()
        left = dict(enumerate(pairs))
        with suppress(_LostWorkerError), _pool(min(count, len(pairs))) as pool:
            numbers = {
                pool.submit(_compare_and_spill, pair, options, made, folder, 1, workers.all_or_nothing): number
                for number, pair in left.items()
            }
            for future in as_completed(numbers):
                done = future.result()
                del left[numbers[future]]
                yield done
        for pair in left.values():  # a worker was killed: what is left gets a process of its own, one after another
            with _pool(1) as pool:
                yield pool.submit(_compare_and_spill, pair, options, made, folder, 1, workers.all_or_nothing).result()


def _compare_only(pair: RankPair, options: Options, made: Path, workers: Workers, progress: Progress) -> Unit | Problem:
    """One rank: the two sides are read at the same time, then measured with all threads. made: folder for joined tensors"""
    read: dict[tuple[SideName, RankRef], RankDump] = {}

    def load(side: SideName, ref: RankRef) -> RankDump:
        return read[side, ref] if (side, ref) in read else read_rank(ref)

    count = workers.count
    try:
        if count > 1 and workers.processes and _json_bytes(pair) >= WORTH:
            with _pool(1) as pool:
                other = pool.submit(read_rank, pair.golden)
                read["target", pair.target] = read_rank(pair.target)
                read["golden", pair.golden] = other.result()
        else:
            read["target", pair.target] = read_rank(pair.target)
            read["golden", pair.golden] = read_rank(pair.golden)
        progress(0.5, say("pipeline.both_sides_read"))
        return compare_pair(
            pair, options, load, folder=made, threads=count,
            progress=lambda done, message: progress(0.5 + done / 2, message),
        )  # fmt: skip
    except UnreadableError as error:
        if workers.all_or_nothing:
            raise
        return lost_rank(pair, error)


def _compare(pair: Pair, options: Options, made: Path, threads: int, all_or_nothing: bool) -> Unit | Problem:
    """made: folder for joined tensors"""
    try:
        return compare_pair(pair, options, _read, folder=made, threads=threads)
    except UnreadableError as error:
        if all_or_nothing:
            raise
        return lost_rank(pair, error)


def _compare_and_spill(
    pair: Pair, options: Options, made: Path, folder: Path, threads: int, all_or_nothing: bool
) -> SpilledUnit | Problem:
    result = _compare(pair, options, made, threads, all_or_nothing)
    return result if isinstance(result, Problem) else spill(result, folder)


def _json_bytes(pair: Pair) -> int:
    """Size of the records of all ranks of a pair."""
    total = 0
    refs: Iterable[RankRef | None]
    if isinstance(pair, UnitPair):
        refs = (*pair.target.values(), *pair.golden.values(), *pair.reference.values())
    else:
        refs = (*pair.targets, *pair.goldens, pair.reference)
    for ref in refs:
        if ref is None:
            continue
        try:
            total += os.path.getsize(ref.dump_json)
        except OSError:
            continue
    return total


class _LostWorkerError(DumpscopeError):
    """A worker process was killed."""


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """Worker processes that end with the block, at once where it is left by an exception. Raises _LostWorkerError."""
    import multiprocessing  # noqa: PLC0415 (a small comparison needs none)
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor  # noqa: PLC0415

    pool = ProcessPoolExecutor(workers, mp_context=_context(), initializer=_ignore_interrupts)
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        if isinstance(error, BrokenExecutor):
            raise _LostWorkerError(
                say("pipeline.worker_process_died_most_likely_lack"), hint=say("pipeline.compare_with_fewer_jobs")
            ) from error
        raise
    pool.shutdown()


def _context() -> BaseContext:
    """How worker processes start. Forking costs nothing but is only safe while no thread runs; where threads do, the workers
    are forks of one process without threads that has imported this module, once for all pools."""
    import multiprocessing  # noqa: PLC0415

    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    if threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _ignore_interrupts() -> None:
    """Ctrl-C is for the parent, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
