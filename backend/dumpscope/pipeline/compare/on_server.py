"""Compare dumps that are in the index, and judge a stored comparison again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sqlalchemy import select

from dumpscope.domain.joined import Joined
from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, Header, RankRef
from dumpscope.domain.result import Answer, Side, Unit
from dumpscope.errors import CancelledError, ConflictError, Problem, UnreadableError
from dumpscope.index.comparisons.catalogue import (
    ComparisonRow,
    change_comparison,
    clear_comparison,
    get_comparison,
    store_answer,
    stored_units,
)
from dumpscope.index.comparisons.joined_dumps import create_joined
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.comparisons.store_results import UnitSides, store_unit, update_opinions
from dumpscope.index.dumps.catalogue import DumpRow, get_dump
from dumpscope.index.dumps.load_rank import load_rank, rank_places
from dumpscope.index.pair_queries.collectives import store_collectives
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.parallel.plan import Plan
from dumpscope.pipeline.compare.conclusion import Conclusion, conclude
from dumpscope.pipeline.compare.in_process import lost_rank, nothing_recorded, side
from dumpscope.pipeline.compare.on_server_joined import LOADED, MEASURED, compare_joined
from dumpscope.pipeline.compare.rank_pairs import add_reference, pair_ranks
from dumpscope.pipeline.compare.rank_plan import find_plan, told, unit_pairs, with_reference
from dumpscope.pipeline.compare.unit import Columns, compare_rank, judge_unit
from dumpscope.pipeline.compare.unit_store import Shelf
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress, Work, spread
from dumpscope.texts import say
from dumpscope.verdict.policy import load_policy

CONCLUDED: Final = 0.9
"""Share of a comparison's work that is done when the cause is found and only storing is left."""


def run_comparison(
    work: Work, comparison_id: str, *, room: Path | None = None, progress: Progress, cancelled: Cancelled
) -> None:
    """Compare all common ranks of the two dumps and store the answer. Starts from nothing, so doing it again is safe.

    room: folder that takes the tensors of joined ranks, emptied first; without one they are compared by their statistics
    Raises ConflictError where a dump is not ready, UnreadableError where no rank can be compared, CancelledError.
    """
    database = work.database
    row = get_comparison(database, comparison_id)
    load_policy(row.options.policy)
    target, golden = (_ready(database, dump_id) for dump_id in (row.target, row.golden))
    reference = None if row.reference is None else _ready(database, row.reference)
    clear_comparison(database, comparison_id)
    change_comparison(database, comparison_id, status="running", error=None)
    places = [rank_places(database, row.target), rank_places(database, row.golden)]
    ranks = list(places[0].values()), list(places[1].values())
    numbers = {ref: number for side_places in places for number, ref in side_places.items()}
    plan, no_plan = find_plan(*ranks, row.options, lambda ref: load_rank(database, numbers[ref]))
    if reference is not None:
        places.append(rank_places(database, reference.id))
    if plan is not None:
        numbers |= {ref: number for side_places in places[2:] for number, ref in side_places.items()}
        others = None if reference is None else list(places[-1].values())
        problems = [*target.problems, *golden.problems, *no_plan, *(reference.problems if reference else ())]
        _run_joined(work, row, plan, ranks, others, numbers, room, problems, progress, cancelled)
        return
    pairs, problems = pair_ranks(*ranks, row.options)
    problems = [*no_plan, *problems]
    if not pairs:
        why = problems[-1].message if problems else say("pipeline.they_have_no_step_rank_common")
        raise UnreadableError(say("pipeline.nothing_can_compared", why=why), where=row.title)
    if reference is not None:
        pairs, missing = add_reference(pairs, list(places[-1].values()))
        problems += [*reference.problems, *missing]
    ids = {id(ref): number for side_places in places for number, ref in side_places.items()}
    empty = _empty_ranks(database, (row.target, row.golden))
    calls = []
    for pair in pairs:
        lost = next((ref for ref in (pair.target, pair.golden) if ids[id(ref)] in empty), None)
        if lost is not None:
            problems.append(lost_rank(pair, nothing_recorded(lost, empty[ids[id(lost)]])))
            continue
        third = None if pair.reference is None else ids[id(pair.reference)]
        calls.append(
            (comparison_id, row.options, pair.step, pair.rank, ids[id(pair.target)], ids[id(pair.golden)], third)
        )
    if not calls:
        raise UnreadableError(say("pipeline.nothing_can_compared_2", message=problems[-1].message), where=row.title)
    problems = [*target.problems, *golden.problems, *problems]
    if len(calls) == 1:  # everything in one place: the unit need not be loaded again
        spread(work, compare_alone, [(*calls[0], problems)], progress=progress, cancelled=cancelled)
        return
    units = spread(
        work, compare_unit, calls, progress=lambda done, text: progress(done * MEASURED, text), cancelled=cancelled
    )
    spread(
        work,
        conclude_stored,
        [(comparison_id, units, problems)],
        progress=lambda done, text: progress(MEASURED + done * (1 - MEASURED), text),
        cancelled=cancelled,
    )


def _run_joined(
    work: Work,
    row: ComparisonRow,
    plan: Plan,
    ranks: tuple[Sequence[RankRef], Sequence[RankRef]],
    reference: Sequence[RankRef] | None,
    numbers: Mapping[RankRef, int],
    room: Path | None,
    problems: Sequence[Problem],
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Compare the virtual units of a plan. numbers: rank_dump ids"""
    if room is not None:
        shutil.rmtree(room, ignore_errors=True)
    options = row.options if room is not None else replace(row.options, tensors=False)
    pairs, missing = unit_pairs(plan, *ranks, options, room or Path())
    if reference is not None:
        pairs, unmet = with_reference(pairs, reference)
        missing += unmet
    problems = [*problems, *missing]
    if not pairs:
        why = problems[-1].message if problems else say("pipeline.they_have_no_step_common")
        raise UnreadableError(say("pipeline.nothing_can_compared", why=why), where=row.title)
    create_joined(work.database, row.id)
    calls = [
        (
            row.id,
            options,
            pair,
            {ref: numbers[ref] for ref in (*pair.target.values(), *pair.golden.values(), *pair.reference.values())},
        )
        for pair in pairs
    ]
    found = spread(
        work, compare_joined, calls, progress=lambda done, text: progress(done * MEASURED, text), cancelled=cancelled
    )
    spread(
        work,
        conclude_stored,
        [(row.id, [unit for unit, _ in found], problems, told(plan, [joined for _, joined in found]))],
        progress=lambda done, text: progress(MEASURED + done * (1 - MEASURED), text),
        cancelled=cancelled,
    )


def rejudge(work: Work, comparison_id: str, policy: str, *, progress: Progress, cancelled: Cancelled) -> None:
    """Judge every stored unit under another policy and store the new answer; reads no tensor."""
    load_policy(policy)
    get_comparison(work.database, comparison_id)
    spread(work, judge_stored, [(comparison_id, policy)], progress=progress, cancelled=cancelled)


def compare_unit(
    database: Database,
    comparison_id: str,
    options: Options,
    step: int,
    rank: int,
    target: int,
    golden: int,
    reference: int | None,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> int:
    """Compare and store one rank; target, golden and reference are rank_dump ids. Returns the unit, unseen until
    `conclude_stored`."""
    unit = _compare(database, options, step, rank, (target, golden, reference), progress, cancelled)
    return store_unit(database, comparison_id, unit, UnitSides(target=target, golden=golden))


def compare_alone(
    database: Database,
    comparison_id: str,
    options: Options,
    step: int,
    rank: int,
    target: int,
    golden: int,
    reference: int | None,
    problems: Sequence[Problem],
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Compare, conclude and store a comparison of one rank."""
    unit = _compare(database, options, step, rank, (target, golden, reference), progress, cancelled)
    progress(MEASURED, say("pipeline.looking_cause"))
    row = get_comparison(database, comparison_id)
    sides = _sides(database, row, [unit.target.header], [unit.golden.header])
    units = Shelf([unit])
    answer, collectives = conclude(
        units,
        policy=options.policy,
        target=sides[0],
        golden=sides[1],
        reference=_third(database, row),
        problems=problems,
    )
    progress(CONCLUDED, say("pipeline.storing"))
    new = store_unit(database, comparison_id, units[0], UnitSides(target=target, golden=golden))
    store_collectives(database, {(step, rank): new}, collectives)
    store_answer(database, comparison_id, answer, units=[new])


def conclude_stored(
    database: Database,
    comparison_id: str,
    units: Sequence[int],
    problems: Sequence[Problem],
    joined: Joined | None = None,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Find the causes over these stored units, then show them with the answer."""
    row = get_comparison(database, comparison_id)
    answer = _concluded(database, row, row.options.policy, units, lambda unit: unit, problems, progress, cancelled)
    store_answer(database, comparison_id, replace(answer, joined=joined), units=units)


def judge_stored(
    database: Database, comparison_id: str, policy: str, *, progress: Progress, cancelled: Cancelled
) -> None:
    """Judge all stored units under a policy, then conclude again.

    Opinions change in place. From the first change to the new answer the comparison has no verdict: where that is how a job ends,
    its rows are of two policies (see `work.settle`).
    """
    row = get_comparison(database, comparison_id)
    units = [stored.id for stored in stored_units(database, comparison_id)]
    if not units or row.answer is None:
        raise ConflictError(say("api.comparison_has_no_result_judge"), hint=say("pipeline.wait_job_compare_again"))
    change_comparison(database, comparison_id, verdict=None)
    answer = _concluded(
        database, row, policy, units, lambda unit: judged(unit, policy), row.answer.problems, progress, cancelled
    )
    answer = _same_sides(answer, row.answer)
    store_answer(database, comparison_id, answer, options=replace(row.options, policy=policy))


def _same_sides(answer: Answer, before: Answer) -> Answer:
    """The answer about the sides that were compared: a result file has only their ranks that it needs, of a reference none."""
    reference = answer.reference
    if reference is not None and before.reference is not None:
        reference = replace(reference, side=before.reference.side)
    return replace(answer, joined=before.joined, target=before.target, golden=before.golden, reference=reference)


def judged(unit: Unit, policy: str) -> Unit:
    """The unit with opinions by another policy; nothing is measured again."""
    return judge_unit(
        Columns(
            step=unit.step,
            rank=unit.rank,
            target=unit.target,
            golden=unit.golden,
            mode=unit.mode,
            pairs=unit.pairs,
            items=unit.items,
            tree=unit.tree,
            facts=unit.facts,
            problems=unit.problems,
        ),
        policy,
    )


def _concluded(
    database: Database,
    row: ComparisonRow,
    policy: str,
    units: Sequence[int],
    judged: Callable[[Unit], Unit],
    problems: Sequence[Problem],
    progress: Progress,
    cancelled: Cancelled,
) -> Answer:
    """The answer over stored units, and their new opinions stored. Holds one unit at a time.

    units: ids, by step and rank; judged: what is done to each first
    """
    conclusion = Conclusion(policy)
    places: list[tuple[int, int]] = []
    headers: tuple[list[Header], list[Header]] = ([], [])
    for number, unit_id in enumerate(units):
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
        progress(number / len(units), say("pipeline.looking_cause"))
        before = load_unit(database, unit_id)
        after = conclusion.add(judged(before))
        update_opinions(database, unit_id, before, after.item_opinions, after.node_opinions)
        places.append((before.step, before.rank))
        headers[0].append(before.target.header)
        headers[1].append(before.golden.header)
        del before, after  # not beside the next one
    target, golden = _sides(database, row, *headers)
    answer = conclusion.answer(target=target, golden=golden, reference=_third(database, row), problems=problems)
    for unit_id, place in zip(units, places, strict=True):
        if conclusion.changes(*place):
            before = load_unit(database, unit_id)
            after = conclusion.final(before)
            update_opinions(database, unit_id, before, after.item_opinions, after.node_opinions)
            del before, after
    store_collectives(database, dict(zip(places, units, strict=True)), conclusion.collectives)
    return answer


def _compare(
    database: Database,
    options: Options,
    step: int,
    rank: int,
    ranks: tuple[int, int, int | None],
    progress: Progress,
    cancelled: Cancelled,
) -> Unit:
    """ranks: rank_dump ids of target, golden and reference"""
    where = say("pipeline.step_rank", step=step, rank=rank)
    known = [rank_dump for rank_dump in ranks if rank_dump is not None]
    sides = []
    for number, rank_dump in enumerate(known):
        progress(LOADED * number / len(known), say("pipeline.loading", where=where))
        sides.append(load_rank(database, rank_dump))
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
    progress(LOADED, say("pipeline.comparing", where=where))
    return compare_rank(
        sides[0],
        sides[1],
        reference=sides[2] if len(sides) > 2 else None,
        step=step,
        rank=rank,
        options=options,
        progress=lambda done, text: progress(
            LOADED + done * (MEASURED - LOADED), text or say("pipeline.comparing", where=where)
        ),
        cancelled=cancelled,
    )


def _ready(database: Database, dump_id: str) -> DumpRow:
    dump = get_dump(database, dump_id)
    if dump.status != "ready":
        raise ConflictError(
            say("api.dump", name=dump.name, status=dump.status), hint=say("api.wait_job_register_again")
        )
    return dump


def _empty_ranks(database: Database, dump_ids: Sequence[str]) -> dict[int, str]:
    """rank_dump id -> why, for the ranks in which no node was recorded."""
    rank = tables.rank_dump.c
    statement = (
        select(rank.id, rank.problems)
        .join(tables.dump, tables.dump.c.serial == rank.dump)
        .where(tables.dump.c.id.in_(dump_ids), rank.nodes == 0)
    )
    with database.read() as connection:
        found = {row.id: json.loads(row.problems) for row in connection.execute(statement)}
    return {number: Problem(**problems[0]).message if problems else "" for number, problems in found.items()}


def _sides(
    database: Database, row: ComparisonRow, target: Sequence[Header], golden: Sequence[Header]
) -> tuple[Side, Side]:
    return _side(database, row.target, target), _side(database, row.golden, golden)


def _third(database: Database, row: ComparisonRow) -> Side | None:
    if row.reference is None:
        return None
    dump = get_dump(database, row.reference)
    named = _side(database, row.reference, [])
    return replace(named, framework=dump.framework or "", task=dump.task or "", level=dump.level or "")


def _side(database: Database, dump_id: str, headers: Sequence[Header]) -> Side:
    dump = get_dump(database, dump_id)
    layout = DumpIndex(root=dump.path, ranks=list(rank_places(database, dump_id).values()), problems=[])
    return side(dump.path, layout, headers)
