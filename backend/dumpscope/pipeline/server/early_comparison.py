"""A comparison may be asked for while its dumps are still read: it waits for them. Where each is one rank, it begins when both
are read, and finds its answer while they are being stored."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.coverage import LOST
from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, RankDump, RankRef
from dumpscope.domain.result import Side, Unit
from dumpscope.errors import CancelledError, ConflictError, DumpscopeError, Problem, UnreadableError
from dumpscope.index.comparisons.catalogue import (
    ComparisonRow,
    change_comparison,
    clear_comparison,
    get_comparison,
    store_answer,
)
from dumpscope.index.comparisons.store_results import PARTS, Part, UnitSides, begin_unit, store_part, unit_values
from dumpscope.index.dumps.catalogue import DumpRow, get_dump
from dumpscope.index.dumps.items import gone_rank
from dumpscope.index.dumps.load_rank import empty_ranks, load_rank, rank_place, rank_places
from dumpscope.index.pair_queries.collectives import store_collectives
from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable
from dumpscope.jobs.executors import Processes
from dumpscope.pipeline.compare.conclusion import conclude
from dumpscope.pipeline.compare.provisional import with_early
from dumpscope.pipeline.compare.server_tasks import (
    CONCLUDED,
    MEASURED,
    RankIds,
    compare_loaded,
    describe_sides,
    store_sides,
)
from dumpscope.pipeline.compare.unit_store import UnitStore
from dumpscope.pipeline.planning.comparison_plan import plan_comparison
from dumpscope.pipeline.planning.joined_pairs import SideName
from dumpscope.pipeline.planning.rank_pairs import RankPair
from dumpscope.pipeline.server.unstored_ranks import UnstoredRanks, take_up
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress, Work, spread
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.texts import say
from dumpscope.verdict.policy import load_policy

READING: Final = 0.5
"""Part of a comparison's progress that reading its dumps takes, where it has to wait for them."""

UNIT, ANSWER = "unit", "answer"
"""Files of what was found."""

Sources = Mapping[SideName, Path | int]
"""Where the rank of a side comes from: the file in which it was put aside, or the rank_dump as which it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """Two dumps that are read, one of them or both not stored yet, and the pair that they make."""

    pair: RankPair
    sources: Sources


def await_dumps(
    work: Work, unstored: UnstoredRanks, comparison_id: str, progress: Progress, cancelled: Cancelled
) -> tuple[bool, Early | None]:
    """Wait until a comparison can begin. Returns whether it had to wait, and what it begins with before both dumps are ready.

    Raises ConflictError where a dump cannot be read, CancelledError.
    """
    database = work.database
    row = get_comparison(database, comparison_id)
    waited = False
    while True:
        dumps = _dumps(database, row)
        if all(dump.status == "ready" for dump in dumps):
            return waited, None
        early = _find(work, unstored, row, dumps)
        if early is not None:
            return True, early
        waited = True
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
        read = [1.0 if dump.status == "ready" else _read(database, dump) for dump in dumps]
        share = sum(read) / len(read)
        progress(READING * share, say("pipeline.waiting_dumps_read", read=f"{share:.0%}"))
        unstored.wait()


def compare_early(
    work: Work,
    unstored: UnstoredRanks,
    comparison_id: str,
    early: Early,
    *,
    folder: Path,
    progress: Progress,
    cancelled: Cancelled,
) -> bool:
    """Compare what was read and store the answer when both dumps are ready. folder: takes tensors of passes, emptied first

    False where what was read is gone, or there is no room for it: then the comparison begins with what is stored. Raises as
    `await_dumps`.
    """
    database = work.database
    row = get_comparison(database, comparison_id)
    with ExitStack() as stack:
        try:
            own = stack.enter_context(TemporaryFolder("early"))
            load_policy(row.options.policy)
            sources: Sources = {
                side: source if isinstance(source, int) else _keep(source, own.path / side)
                for side, source in early.sources.items()
            }
            clear_comparison(database, comparison_id)
            change_comparison(database, comparison_id, status="running", error=None)
            shutil.rmtree(folder, ignore_errors=True)
            found = own.path / "found"
            found.mkdir()
            (compared,) = spread(
                work, compare_aside, [(row.options, early.pair, sources, folder, found)], progress=progress,
                cancelled=cancelled, sent=lambda: unstored.begin((row.target, row.golden)),
            )  # fmt: skip
        except OSError:
            return False
        finally:
            unstored.begin((row.target, row.golden))
        if not compared.kept:
            return False
        while True:
            dumps = _dumps(database, row)
            if all(dump.status == "ready" for dump in dumps):
                break
            if cancelled():
                raise CancelledError(say("pipeline.cancelled"))
            progress(CONCLUDED, with_early(say("pipeline.storing"), compared.node))
            unstored.wait()
        ids = [
            source if isinstance(source, int) else unstored.stored_as(dump)
            for source, dump in ((sources["target"], row.target), (sources["golden"], row.golden))
        ]
        if ids[0] is None or ids[1] is None:
            return False

        def storing(_done: float, text: str) -> None:
            progress(CONCLUDED, with_early(text, compared.node))

        known: RankIds = {("target", early.pair.target): ids[0], ("golden", early.pair.golden): ids[1]}
        if compared.values is not None and all(rank_place(database, one) is not None for one in known.values()):
            unit = begin_unit(database, comparison_id, {**compared.values, "target": ids[0], "golden": ids[1]})
        else:
            call = comparison_id, early.pair, known, found
            (unit,) = spread(work, begin_compared, [call], progress=storing, cancelled=cancelled)
        parts = [(unit, found, part) for part in PARTS]
        spread(work, store_compared, parts, progress=storing, cancelled=cancelled)
        _finish(database, row, early.pair, unit, found)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """kept: there was room for the result; node: of the first origin, None where there is none
    values: of the unit's own row, but for its two ranks; None where ranks were made that are not stored
    """

    kept: bool
    node: str | None
    values: dict[str, Any] | None


def compare_aside(
    database: Database,
    options: Options,
    pair: RankPair,
    sources: Sources,
    folder: Path,
    found: Path,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> Compared:
    """Compare two ranks, and conclude. found: folder that takes the result, for those below"""

    def load(side: SideName, _ref: RankRef) -> RankDump:
        source = sources[side]
        return load_rank(database, source) if isinstance(source, int) else take_up(source)

    unit = compare_loaded(load, len(sources), options, pair, folder, progress, cancelled)
    progress(MEASURED, say("pipeline.looking_cause"))
    units = UnitStore([unit])
    unnamed = Side(path="", framework="", task="", level="", steps=[], ranks=[])
    answer, collectives = conclude(units, policy=options.policy, target=unnamed, golden=unnamed)
    kept = True
    unit.context.memo.clear()  # nobody asks again
    try:
        _write(found / UNIT, units[0])
        _write(found / ANSWER, (answer, collectives, unit.target.header, unit.golden.header))
    except OSError:
        kept = False
    made = unit.target.ref.passes is not None or unit.golden.ref.passes is not None
    values = None if made else unit_values(units[0], UnitSides(target=0, golden=0))
    return Compared(kept=kept, node=answer.origins[0].node if answer.origins else None, values=values)


def begin_compared(
    database: Database,
    comparison_id: str,
    pair: RankPair,
    ids: RankIds,
    found: Path,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> int:
    """Begin to store what `compare_aside` found; returns the unit's id. ids: both ranks as they are stored now

    Raises NotFoundError where one is gone.
    """
    progress(0.0, say("pipeline.storing"))
    if any(rank_place(database, rank) is None for rank in ids.values()):
        raise gone_rank()
    unit = _read_unit(found)
    return begin_unit(database, comparison_id, unit_values(unit, store_sides(database, comparison_id, pair, ids, unit)))


def store_compared(
    database: Database, unit_id: int, found: Path, part: Part, *, progress: Progress, cancelled: Cancelled
) -> None:
    """Store a part of what `compare_aside` found."""
    progress(0.0, say("pipeline.storing"))
    store_part(database, unit_id, _read_unit(found), part)


def _finish(database: Database, row: ComparisonRow, pair: RankPair, unit_id: int, found: Path) -> None:
    """Show the unit, with the answer."""
    with (found / ANSWER).open("rb") as stream:
        answer, collectives, target, golden = pickle.load(stream)
    sides = describe_sides(database, row, [target], [golden])
    before = [problem for dump in _dumps(database, row) for problem in dump.problems]
    problems: list[Problem] = list(dict.fromkeys([*before, *answer.problems]))
    lost = sum(problem.kind in LOST for problem in problems)
    answer = replace(
        answer, target=sides[0], golden=sides[1], problems=problems, coverage=replace(answer.coverage, lost=lost)
    )
    store_collectives(database, {(pair.step, pair.rank): unit_id}, collectives)
    store_answer(database, row.id, answer, units=[unit_id])


def _write(file: Path, found: object) -> None:
    with file.open("wb") as stream:
        pickle.dump(found, stream, protocol=pickle.HIGHEST_PROTOCOL)


def _read_unit(found: Path) -> Unit:
    with (found / UNIT).open("rb") as stream:
        unit = pickle.load(stream)
    assert isinstance(unit, Unit)
    return unit


def may_begin_early(work: Work, row: ComparisonRow) -> bool:
    """Whether a comparison may begin before its dumps are stored: where processes work, without a reference, rank by rank."""
    return isinstance(work.executor, Processes) and row.reference is None and row.options.parallel is None


def _find(work: Work, unstored: UnstoredRanks, row: ComparisonRow, dumps: Sequence[DumpRow]) -> Early | None:
    """What a comparison can begin with: both sides are read, and each is one rank that is compared as it is."""
    if not may_begin_early(work, row):
        return None
    sides: tuple[SideName, SideName] = ("target", "golden")
    layouts: list[DumpIndex] = []
    sources: dict[SideName, Path | int] = {}
    for side, dump in zip(sides, dumps, strict=True):
        aside = unstored.find(dump.id)
        if aside is not None:
            layouts.append(aside.layout)
            sources[side] = aside.file
        elif dump.status == "ready":
            places = rank_places(work.database, dump.id)
            if len(places) != 1 or empty_ranks(work.database, (dump.id,)):
                return None
            layouts.append(DumpIndex(root=dump.path, ranks=list(places.values()), problems=[]))
            sources[side] = next(iter(places))
        else:
            return None
    pair = None if any(dump.watch is not None for dump in dumps) else _only_pair(layouts[0], layouts[1], row.options)
    if pair is None:
        unstored.begin((row.target, row.golden))
        return None
    return Early(pair=pair, sources=sources)


def _only_pair(target: DumpIndex, golden: DumpIndex, options: Options) -> RankPair | None:
    """The pair that two dumps of one rank make, None where a plan says more of them."""

    def load(_side: SideName, ref: RankRef) -> RankDump:
        raise UnreadableError(ref.dump_json)  # a plan of single ranks needs none

    try:
        plan = plan_comparison(target, golden, None, options, load)
    except DumpscopeError:  # it is raised again when both are stored
        return None
    if plan.joining is not None or len(plan.ranks) != 1 or plan.problems or any(plan.ranks[0].following):
        return None
    return plan.ranks[0]


def _keep(file: Path, own: Path) -> Path:
    """A file under a name of our own, since who made it may remove it. Raises OSError where it is gone."""
    try:
        os.link(file, own)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copyfile(file, own)
    return own


def _dumps(database: Database, row: ComparisonRow) -> list[DumpRow]:
    """The dumps of a comparison. Raises ConflictError where one cannot be read, NotFoundError where it is gone."""
    dumps = [get_dump(database, one) for one in (row.target, row.golden, row.reference) if one is not None]
    for dump in dumps:
        if dump.status == "failed":
            reason = (dump.error or {}).get("detail", "it could not be read")
            raise ConflictError(
                say("pipeline.dump_failed", name=dump.name, reason=reason), hint=say("api.register_again")
            )
    return dumps


def _read(database: Database, dump: DumpRow) -> float:
    """Share of a dump that its job has read so far."""
    return JobTable(database).get(dump.job).progress if dump.job else 0.0
