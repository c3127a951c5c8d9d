"""Compare dumps that are in the index, and judge a stored comparison again: what a job does, task by task."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, RankDump, RankRef
from dumpscope.errors import ConflictError, Problem
from dumpscope.index.comparisons.catalogue import change_comparison, clear_comparison, get_comparison
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.dumps.load_rank import empty_ranks, load_rank, rank_places
from dumpscope.index.store.database import Database
from dumpscope.parallel.plan import Plan
from dumpscope.pipeline.compare.join_ranks import describe_joining
from dumpscope.pipeline.compare.pairs import Pair, lost_rank, nothing_recorded
from dumpscope.pipeline.compare.server_tasks import (
    MEASURED,
    RankIds,
    compare_only_rank,
    compare_stored_pair,
    conclude_stored,
    judge_stored,
)
from dumpscope.pipeline.planning.comparison_plan import ComparisonPlan, nothing_compared, plan_comparison
from dumpscope.pipeline.planning.joined_pairs import SideName, UnitPair, find_plan
from dumpscope.pipeline.planning.rank_pairs import RankPair
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress, Work, spread
from dumpscope.texts import say
from dumpscope.verdict.policy import load_policy


def run_comparison(
    work: Work, comparison_id: str, *, folder: Path | None = None, progress: Progress, cancelled: Cancelled
) -> None:
    """Compare all common ranks of the two dumps and store the answer. Starts from nothing, so doing it again is safe.

    folder: takes the tensors of joined ranks and passes, emptied first; without one they are compared by their statistics
    Raises ConflictError where a dump is not ready, UnreadableError where no rank can be compared, CancelledError.
    """
    database = work.database
    row = get_comparison(database, comparison_id)
    load_policy(row.options.policy)
    sides = StoredSides(database, row.target, row.golden, row.reference)
    clear_comparison(database, comparison_id)
    change_comparison(database, comparison_id, status="running", error=None)
    plan = sides.plan(row.options)
    pairs: Sequence[Pair] = plan.units
    problems = [*sides.problems, *plan.problems]
    options = row.options
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    if plan.joining is not None:
        if folder is None:
            options = replace(options, tensors=False)
    else:
        pairs, empty = _without_empty_ranks(database, (row.target, row.golden), plan, sides)
        problems += empty
    if not pairs:
        raise nothing_compared(problems)
    if len(pairs) == 1 and plan.joining is None:  # everything in one place: the unit need not be loaded again
        call = (comparison_id, options, pairs[0], sides.ids(pairs[0]), folder, problems)
        spread(work, compare_only_rank, [call], progress=progress, cancelled=cancelled)
        return
    calls: list[tuple[Any, ...]] = [(comparison_id, options, pair, sides.ids(pair), folder) for pair in pairs]
    found = spread(
        work, compare_stored_pair, calls, progress=lambda done, text: progress(done * MEASURED, text),
        cancelled=cancelled,
    )  # fmt: skip
    joined = None
    if plan.joining is not None:
        joined = describe_joining(plan.joining, [unit for _, unit in found if unit is not None])
    spread(
        work,
        conclude_stored,
        [(comparison_id, [unit_id for unit_id, _ in found], problems, joined)],
        progress=lambda done, text: progress(MEASURED + done * (1 - MEASURED), text),
        cancelled=cancelled,
    )


def rejudge(work: Work, comparison_id: str, policy: str, *, progress: Progress, cancelled: Cancelled) -> None:
    """Judge every stored unit under another policy and store the new answer; reads no tensor."""
    load_policy(policy)
    get_comparison(work.database, comparison_id)
    spread(work, judge_stored, [(comparison_id, policy)], progress=progress, cancelled=cancelled)


class StoredSides:
    """Ranks of the dumps of a comparison, and the rank_dump id of each."""

    def __init__(self, database: Database, target: str, golden: str, reference: str | None = None) -> None:
        """Raises ConflictError where a dump is not ready."""
        self._database = database
        self._ids: dict[SideName, dict[RankRef, int]] = {}
        self.target = self._layout("target", target)
        self.golden = self._layout("golden", golden)
        self.reference = None if reference is None else self._layout("reference", reference)

    @property
    def problems(self) -> list[Problem]:
        """What was found when the dumps were read."""
        dumps = (self.target, self.golden, self.reference)
        return [problem for dump in dumps if dump is not None for problem in dump.problems]

    def joining(self, options: Options) -> tuple[Plan | None, list[Problem]]:
        """The plan by which ranks are joined, see `find_plan`."""
        return find_plan(self.target.ranks, self.golden.ranks, options, self.load)

    def plan(self, options: Options) -> ComparisonPlan:
        """Which ranks meet. Raises as `plan_comparison`."""
        return plan_comparison(self.target, self.golden, self.reference, options, self.load)

    def load(self, side: SideName, ref: RankRef) -> RankDump:
        return load_rank(self._database, self.id(side, ref))

    def id(self, side: SideName, ref: RankRef) -> int:
        return self._ids[side][ref]

    def ids(self, pair: Pair) -> RankIds:
        """rank_dump ids of all ranks of a pair, by side and place."""
        names: tuple[SideName, ...] = ("target", "golden", "reference")
        return {(side, ref): self.id(side, ref) for side in names for ref in _refs(pair, side)}

    def _layout(self, side: SideName, dump_id: str) -> DumpIndex:
        dump = get_dump(self._database, dump_id)
        if dump.status != "ready":
            raise ConflictError(
                say("api.dump", name=dump.name, status=dump.status), hint=say("api.wait_job_register_again")
            )
        places = rank_places(self._database, dump_id)
        self._ids[side] = {ref: rank_id for rank_id, ref in places.items()}
        return DumpIndex(root=dump.path, ranks=list(places.values()), problems=dump.problems)


def _refs(pair: Pair, side: SideName) -> Sequence[RankRef]:
    if isinstance(pair, UnitPair):
        return list(pair.ranks_of(side).values())
    if side == "reference":
        return [] if pair.reference is None else [pair.reference]
    return pair.targets if side == "target" else pair.goldens


def _without_empty_ranks(
    database: Database, dumps: tuple[str, str], plan: ComparisonPlan, sides: StoredSides
) -> tuple[list[RankPair], list[Problem]]:
    """The pairs of ranks in which something was recorded, and a problem for every other."""
    reasons = empty_ranks(database, dumps)
    pairs: list[RankPair] = []
    problems: list[Problem] = []
    for pair in plan.ranks:
        both: tuple[tuple[SideName, RankRef], ...] = (("target", pair.target), ("golden", pair.golden))
        lost = next(
            ((ref, reason) for side, ref in both if (reason := reasons.get(sides.id(side, ref))) is not None), None
        )
        if lost is None:
            pairs.append(pair)
        else:
            problems.append(lost_rank(pair, nothing_recorded(*lost)))
    return pairs, problems
