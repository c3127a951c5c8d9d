"""Compare one virtual unit of dumps that are in the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dumpscope.domain.joined import JoinedUnit
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, RankRef
from dumpscope.errors import CancelledError, Problem, UnreadableError
from dumpscope.index.comparisons.joined_dumps import SIDES, joined_id
from dumpscope.index.comparisons.store_results import UnitSides, store_unit
from dumpscope.index.dumps.load_rank import load_rank, rank_places
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.store.database import Database
from dumpscope.parallel.plan import Plan
from dumpscope.pipeline.compare.in_process import lost_reference
from dumpscope.pipeline.compare.rank_plan import (
    UnitPair,
    dimension_problems,
    find_plan,
    join_pair,
    join_reference,
    stray_problems,
)
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress
from dumpscope.texts import say

LOADED: Final = 0.2
"""Share of a comparison's work that is done when both sides of a rank are loaded."""
MEASURED: Final = 0.85
"""Share of a comparison's work that is done when every rank is measured."""


def stored_plan(database: Database, target: str, golden: str, options: Options) -> tuple[Plan | None, list[Problem]]:
    """As `joining.find_plan`, of two dumps of the index."""
    sides = rank_places(database, target), rank_places(database, golden)
    numbers = {ref: number for side in sides for number, ref in side.items()}
    one, other = (list(side.values()) for side in sides)
    return find_plan(one, other, options, lambda ref: load_rank(database, numbers[ref]))


def compare_joined(
    database: Database,
    comparison_id: str,
    options: Options,
    pair: UnitPair,
    numbers: Mapping[RankRef, int],
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> tuple[int, JoinedUnit]:
    """Join, compare and store one virtual unit; returns it, unseen until `conclude_stored`, and what was joined."""

    def load(ref: RankRef) -> RankDump:
        if cancelled():
            raise CancelledError(say("pipeline.cancelled"))
        return load_rank(database, numbers[ref])

    where = say("pipeline.step_rank", step=pair.step, rank=pair.rank)
    progress(0.0, say("pipeline.joining", where=where))
    *dumps, joined = join_pair(pair, options, load)
    reference, lost = None, []
    try:
        reference = join_reference(pair, options, load)
    except UnreadableError as error:
        lost.append(lost_reference(pair, error))
    progress(LOADED, say("pipeline.comparing", where=where))
    unit = compare_rank(
        *dumps,
        reference=reference,
        step=pair.step,
        rank=pair.rank,
        options=options,
        progress=lambda done, text: progress(
            LOADED + done * (MEASURED - LOADED), text or say("pipeline.comparing", where=where)
        ),
        cancelled=cancelled,
    )
    unit = replace(unit, problems=[*lost, *dimension_problems(pair, *dumps), *stray_problems(joined), *unit.problems])
    sides = [
        store_dump_rank(database, joined_id(comparison_id, side), dump) for side, dump in zip(SIDES, dumps, strict=True)
    ]
    return store_unit(database, comparison_id, unit, UnitSides(target=sides[0], golden=sides[1])), joined
