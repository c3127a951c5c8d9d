"""A unit keeps what its two sides were gathered into, from measuring to the last file; judging again measures nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.analysis.unit import cancellation
from dumpscope.analysis.unit.rounding_only import scores_of_sums
from dumpscope.domain import context
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.domain.result import Unit
from dumpscope.export.table.unit_table import Table
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.compare import unit as comparing
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.pipeline.compare.unit import compare_rank, judge_unit
from dumpscope.pipeline.results.save import save_comparison
from dumpscope.readers import discover, read_rank
from dumpscope.verdict.calibration import calibrate

PAIR = ("target_fault", "golden")


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RankDump, RankDump]]:
    """Both sides of every gathering of two different ranks, wherever it is called."""
    calls: list[tuple[RankDump, RankDump]] = []
    gather = context.gather

    def counted(target: RankDump, golden: RankDump, *rest: Any) -> context.Context:
        if target is not golden:  # a rank by itself is traced when it is stored
            calls.append((target, golden))
        return gather(target, golden, *rest)

    for module in (comparing, context):
        monkeypatch.setattr(module, "gather", counted)
    return calls


def test_comparing_storing_calibrating_and_writing_gather_once_a_unit(
    dumps: Path, tmp_path: Path, gathered: list[tuple[RankDump, RankDump]]
) -> None:
    target, golden = (discover(dumps / name) for name in PAIR)
    outcome = compare_layouts(target, golden, Options(), paths=PAIR, jobs=1)
    for unit in outcome.units:
        Table(unit)
    calibrate(outcome.units)
    database = Database.open(sqlite_url(tmp_path / "kept.db"))
    save_comparison(database, outcome, Options(), name="once")
    database.close()
    assert len(gathered) == len(outcome.units) == 2


def test_judging_again_measures_and_gathers_nothing(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, golden = (read_rank(discover(dumps / name).ranks[0]) for name in PAIR)
    first = compare_rank(target, golden, step=0, rank=0, options=Options())

    def refused(*_args: Any, **_named: Any) -> Any:
        raise AssertionError("nothing is to be measured")

    for name in ("measure", "match", "gather", "measure_distances"):
        monkeypatch.setattr(comparing, name, refused)
    again = judge_unit(first, "msprobe")
    assert isinstance(again, Unit)
    assert again.context is first.context
    assert again.facts is first.facts
    assert (again.item_opinions.verdict != first.item_opinions.verdict).any()
    assert (judge_unit(again, "default").item_opinions.verdict == first.item_opinions.verdict).all()


def test_sums_are_weighed_once_for_the_same_scores_and_anew_for_others(
    dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weighed: list[Any] = []
    follow = cancellation.follow_rounding

    def counted(calls: Any, score: Any, *rest: Any) -> Any:
        weighed.append(score)
        return follow(calls, score, *rest)

    monkeypatch.setattr(cancellation, "follow_rounding", counted)
    sides = [read_rank(discover(dumps / name).ranks[0]) for name in PAIR]
    unit = compare_rank(sides[0], sides[1], step=0, rank=0, options=Options(tensors=False))
    weighed.clear()
    first = scores_of_sums(unit, unit.item_opinions)
    assert scores_of_sums(unit, unit.item_opinions) is first
    others = replace(unit.item_opinions, score=2 * unit.item_opinions.score)
    later = scores_of_sums(unit, others)
    unit.context.memo.clear()
    np.testing.assert_array_equal(scores_of_sums(unit, others), later)
    assert not np.array_equal(first, later, equal_nan=True)
    assert len(weighed) in (2, 3)  # the first, where judging has not asked for it
