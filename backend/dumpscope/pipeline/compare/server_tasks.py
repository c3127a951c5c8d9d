"""The tasks of a comparison on the server, each of which may run in a worker: compare a pair, conclude, judge again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from dumpscope.domain.joined import Joined, JoinedUnit
from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, Header, RankDump, RankRef
from dumpscope.domain.result import Answer, Side, Unit
from dumpscope.errors import CancelledError, ConflictError, Problem
from dumpscope.index.comparisons.catalogue import (
    ComparisonRow,
    change_comparison,
    get_comparison,
    store_answer,
    stored_units,
)
from dumpscope.index.comparisons.joined_dumps import ensure_joined
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.comparisons.store_results import UnitSides, store_unit, update_classes, update_opinions
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.dumps.load_rank import load_rank, rank_places
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.pair_queries.collectives import store_collectives
from dumpscope.index.store.database import Database
from dumpscope.pipeline.compare.conclusion import Conclusion, conclude
from dumpscope.pipeline.compare.in_process import describe_side
from dumpscope.pipeline.compare.pairs import Pair, compare_pair
from dumpscope.pipeline.compare.provisional import with_early
from dumpscope.pipeline.compare.unit import judge_unit
from dumpscope.pipeline.compare.unit_store import UnitStore
from dumpscope.pipeline.planning.joined_pairs import Load, SideName, UnitPair
from dumpscope.pipeline.planning.rank_pairs import RankPair
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress
from dumpscope.texts import say

LOADED: Final = 0.2
"""Share of a comparison's work that is done when both sides of a rank are loaded."""
MEASURED: Final = 0.85
"""Share of a comparison's work that is done when every rank is measured."""
CONCLUDED: Final = 0.9
"""Share of a comparison's work that is done when the cause is found and only storing is left."""

RankIds = Mapping[tuple[SideName, RankRef], int]
"""rank_dump ids of a pair's ranks."""


def compare_stored_pair(
    database: Database,
    comparison_id: str,
    options: Options,
    pair: Pair,
    ids: RankIds,
    folder: Path | None,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> tuple[int, JoinedUnit | None]:
    """Compare and store one pair. Returns the stored unit, unseen until `conclude_stored`, and what was joined.

    folder: joined tensors are made below it
    """
    unit = _compare(database, options, pair, ids, folder, progress, cancelled)
    return store_unit(database, comparison_id, unit, store_sides(database, comparison_id, pair, ids, unit)), unit.joined


def store_sides(database: Database, comparison_id: str, pair: Pair, ids: RankIds, unit: Unit) -> UnitSides:
    """Where the two sides of a unit are stored: as the ranks that were read, or as what was made of them."""

    def store(side: Literal["target", "golden"], dump: RankDump) -> int:
        if isinstance(pair, RankPair) and not any(pair.following) and dump.ref.passes is None:
            return ids[side, pair.target if side == "target" else pair.golden]
        return store_dump_rank(database, ensure_joined(database, comparison_id, side), dump)

    return UnitSides(target=store("target", unit.target), golden=store("golden", unit.golden))


def compare_only_rank(
    database: Database,
    comparison_id: str,
    options: Options,
    pair: RankPair,
    ids: RankIds,
    folder: Path | None,
    problems: Sequence[Problem],
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Compare, conclude and store a comparison of one rank. folder: joined tensors are made below it"""
    unit = _compare(database, options, pair, ids, folder, progress, cancelled)
    progress(MEASURED, say("pipeline.looking_cause"))
    row = get_comparison(database, comparison_id)
    sides = describe_sides(database, row, [unit.target.header], [unit.golden.header])
    units = UnitStore([unit])
    answer, collectives = conclude(
        units,
        policy=options.policy,
        target=sides[0],
        golden=sides[1],
        reference=_reference_side(database, row),
        problems=problems,
    )
    progress(CONCLUDED, with_early(say("pipeline.storing"), answer.origins[0].node if answer.origins else None))
    stored = store_sides(database, comparison_id, pair, ids, unit)
    new = store_unit(database, comparison_id, units[0], stored)
    store_collectives(database, {(pair.step, pair.rank): new}, collectives)
    store_answer(database, comparison_id, answer, units=[new])


def conclude_stored(
    database: Database,
    comparison_id: str,
    units: Sequence[int],
    problems: Sequence[Problem],
    joined: Joined | None,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Find the causes over these stored units, then show them with the answer."""
    row = get_comparison(database, comparison_id)
    answer = _conclude(database, row, row.options.policy, units, lambda unit: unit, problems, progress, cancelled)
    store_answer(database, comparison_id, replace(answer, joined=joined), units=units)


def judge_stored(
    database: Database, comparison_id: str, policy: str, *, progress: Progress, cancelled: Cancelled
) -> None:
    """Judge all stored units under a policy, then conclude again.

    Opinions change in place. From the first change to the new answer the comparison has no verdict: where a job ends like that,
    the rows are of two policies (see `job_kinds.record_end`).
    """
    row = get_comparison(database, comparison_id)
    units = [stored.id for stored in stored_units(database, comparison_id)]
    if not units or row.answer is None:
        raise ConflictError(say("api.comparison_has_no_result_judge"), hint=say("pipeline.wait_job_compare_again"))
    change_comparison(database, comparison_id, verdict=None)
    answer = _conclude(
        database, row, policy, units, lambda unit: judge_unit(unit, policy), row.answer.problems, progress, cancelled
    )
    answer = _with_sides_of(row.answer, answer)
    store_answer(database, comparison_id, answer, options=replace(row.options, policy=policy))


def _with_sides_of(before: Answer, answer: Answer) -> Answer:
    """The answer about the sides that were compared: a result file holds only the ranks it needs, and none of a reference."""
    reference = answer.reference
    if reference is not None and before.reference is not None:
        reference = replace(reference, side=before.reference.side)
    return replace(answer, joined=before.joined, target=before.target, golden=before.golden, reference=reference)


def _compare(
    database: Database,
    options: Options,
    pair: Pair,
    ids: RankIds,
    folder: Path | None,
    progress: Progress,
    cancelled: Cancelled,
) -> Unit:
    def load(side: SideName, ref: RankRef) -> RankDump:
        return load_rank(database, ids[side, ref])

    return compare_loaded(load, len(ids), options, pair, folder, progress, cancelled)


def compare_loaded(
    load: Load, count: int, options: Options, pair: Pair, folder: Path | None, progress: Progress, cancelled: Cancelled
) -> Unit:
    """Load and compare the ranks of a pair, of which there are `count`. Raises CancelledError."""
    where = say("pipeline.step_rank", step=pair.step, rank=pair.rank)
    reading = say("pipeline.joining" if isinstance(pair, UnitPair) else "pipeline.loading", where=where)
    loaded = 0

    def loading(side: SideName, ref: RankRef) -> RankDump:
        nonlocal loaded
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
        progress(LOADED * min(loaded / count, 1), reading)
        loaded += 1
        return load(side, ref)

    def measuring(done: float, text: str) -> None:
        progress(LOADED + done * (MEASURED - LOADED), text or say("pipeline.comparing", where=where))

    unit = compare_pair(pair, options, loading, folder=folder, progress=measuring, cancelled=cancelled)
    if cancelled():
        raise CancelledError(say("pipeline.cancelled"))
    return unit


def _conclude(
    database: Database,
    row: ComparisonRow,
    policy: str,
    units: Sequence[int],
    judge: Callable[[Unit], Unit],
    problems: Sequence[Problem],
    progress: Progress,
    cancelled: Cancelled,
) -> Answer:
    """The answer over stored units, and their new opinions stored. Holds one unit at a time.

    units: ids, by step and rank; judge: what is done to each first
    """
    conclusion = Conclusion(policy)
    places: list[tuple[int, int]] = []
    headers: tuple[list[Header], list[Header]] = ([], [])
    for number, unit_id in enumerate(units):
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
        progress(number / len(units), say("pipeline.looking_cause"))
        before = load_unit(database, unit_id)
        after = conclusion.add(judge(before))
        update_opinions(database, unit_id, before, after.item_opinions, after.node_opinions)
        places.append((before.step, before.rank))
        headers[0].append(before.target.header)
        headers[1].append(before.golden.header)
        del before, after  # free the memory before the next unit is loaded
    target, golden = describe_sides(database, row, *headers)
    reference = _reference_side(database, row)
    answer = conclusion.answer(target=target, golden=golden, reference=reference, problems=problems)
    for unit_id, place in zip(units, places, strict=True):
        update_classes(database, unit_id, conclusion.changes(*place))
    store_collectives(database, dict(zip(places, units, strict=True)), conclusion.collectives)
    return answer


def describe_sides(
    database: Database, row: ComparisonRow, target: Sequence[Header], golden: Sequence[Header]
) -> tuple[Side, Side]:
    """Both sides as the answer names them, by the headers of the ranks that were compared."""
    return _side(database, row.target, target), _side(database, row.golden, golden)


def _reference_side(database: Database, row: ComparisonRow) -> Side | None:
    if row.reference is None:
        return None
    dump = get_dump(database, row.reference)
    named = _side(database, row.reference, [])
    return replace(named, framework=dump.framework or "", task=dump.task or "", level=dump.level or "")


def _side(database: Database, dump_id: str, headers: Sequence[Header]) -> Side:
    dump = get_dump(database, dump_id)
    layout = DumpIndex(root=dump.path, ranks=list(rank_places(database, dump_id).values()), problems=[])
    return describe_side(dump.path, layout, headers)
