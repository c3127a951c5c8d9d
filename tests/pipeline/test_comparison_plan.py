"""Which ranks meet: one plan for the command line, the server and the calls of ptdbg."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dumpscope.domain.options import Options
from dumpscope.domain.records import DumpIndex, RankDump, RankRef
from dumpscope.errors import Problem, UsageError
from dumpscope.index.dumps.catalogue import change_dump, create_dump
from dumpscope.index.dumps.load_rank import rank_places
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.compare.on_server import StoredSides
from dumpscope.pipeline.planning.comparison_plan import plan_comparison
from dumpscope.pipeline.planning.joined_pairs import SideName
from dumpscope.readers import discover, read_rank


def layout(*places: tuple[int, int], problems: tuple[Problem, ...] = ()) -> DumpIndex:
    """Ranks at these steps and numbers."""
    ranks = [
        RankRef(
            step=step, rank=rank, label=f"rank{rank}", folder="", dump_json="", stack_json=None, construct_json=None
        )
        for step, rank in places
    ]
    return DumpIndex(root="", ranks=ranks, problems=list(problems))


def unread(_side: SideName, ref: RankRef) -> RankDump:
    raise AssertionError(f"{ref} need not be read")


def test_common_ranks_meet_and_each_other_one_is_a_problem() -> None:
    target, golden = layout((0, 0), (0, 1), (1, 0)), layout((0, 0), (0, 2), (1, 0), (1, 1))
    reference = layout((0, 0), (5, 5))
    plan = plan_comparison(target, golden, reference, Options(), unread)
    assert plan.joining is None
    assert [(pair.step, pair.rank, pair.reference is not None) for pair in plan.ranks] == [(0, 0, True), (1, 0, False)]
    assert list(plan.pairs) == list(plan.ranks)
    assert sorted((one.kind, one.loc) for one in plan.problems) == [
        ("missing_rank", "step0/rank1"),
        ("missing_rank", "step1/rank1"),
        ("no_reference", "step1/rank0"),
        ("unmatched_rank", "step0/rank2"),
    ], "the target never has rank 2; each side has rank 1 in another step"


def test_a_step_that_one_side_lacks_is_missing_unless_the_user_chose_other_steps() -> None:
    short, long = layout((0, 0), (1, 0)), layout((0, 0), (1, 0), (2, 0))
    for sides in ((short, long), (long, short)):
        (problem,) = plan_comparison(*sides, None, Options(), unread).problems
        assert (problem.kind, problem.loc) == ("missing_rank", "step2/rank0")
        assert "(--step)" in problem.message
        assert plan_comparison(*sides, None, Options(steps=(0, 1)), unread).problems == []


def test_problems_of_the_dumps_are_not_repeated() -> None:
    found = Problem(loc="", kind="truncated", message="Cut short.")
    plan = plan_comparison(layout((0, 0), problems=(found,)), layout((0, 3)), None, Options(), unread)
    assert plan.problems == []
    assert plan.ranks[0].golden.rank == 3, "a single rank of each side meets whatever the numbers"


def test_no_common_rank_is_said_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="no step and rank in common"):
        plan_comparison(layout((0, 0), (0, 1)), layout((2, 0), (2, 1)), None, Options(), unread)


def test_two_dumps_of_one_folder_stay_apart(dumps: Path, tmp_path: Path) -> None:
    database = Database.open(sqlite_url(tmp_path / "twice.db"))
    first = read_rank(discover(dumps / "stat_golden").ranks[0])
    later = replace(first, items=replace(first.items, stats=first.items.stats + 1.0))  # the run was dumped again there
    ids = []
    for dump in (first, later):
        ids.append(create_dump(database, name="same", path="same"))
        store_dump_rank(database, ids[-1], dump)
        change_dump(database, ids[-1], status="ready")
    sides = StoredSides(database, *ids)
    (pair,) = sides.plan(Options()).ranks
    assert pair.target == pair.golden
    assert sides.ids(pair) == {
        (side, pair.target): next(iter(rank_places(database, dump_id)))
        for side, dump_id in zip(("target", "golden"), ids, strict=True)
    }
    loaded = [sides.load(side, pair.target).items.stats for side in ("target", "golden")]
    assert (loaded[0] != loaded[1]).any()
    database.close()
