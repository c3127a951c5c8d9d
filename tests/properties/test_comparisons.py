"""What holds of a comparison of any two dumps, from files to the answer."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from same_units import assert_same

from dumpscope.domain.facts import METHOD_WORDS, VERDICT_WORDS
from dumpscope.domain.options import Options
from dumpscope.domain.records import item_name
from dumpscope.domain.result import Unit
from dumpscope.export.document import json_text
from dumpscope.index.comparisons.catalogue import create_comparison, get_comparison, stored_units
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.compare import in_process
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.pipeline.compare.on_server import rejudge, run_comparison
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.pipeline.server.ingest import ingest_dump
from dumpscope.pipeline.tasks.fan_out import Work
from dumpscope.readers import discover, read_rank
from properties.generated import Call, Side, Value, pairs, sides, write

QUIET: dict[str, Any] = {"progress": lambda _done, _message: None, "cancelled": lambda: False}
POLICIES = ("default", "ptdbg", "msprobe")


def compared(target: Path, golden: Path, *, jobs: int = 1, **options: Any) -> Outcome:
    return compare_layouts(discover(target), discover(golden), Options(**options), paths=("t", "g"), jobs=jobs)


def told(outcome: Outcome) -> str:
    """Everything that the answer says, as one text."""
    return "".join(json_text(outcome.answer, None))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sides())
def test_a_dump_compared_with_itself_is_yes_throughout(side: Side) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = write(Path(folder) / "side", side)
        outcome = compared(place, place)
    counts = outcome.answer.counts
    assert (counts.no, counts.warning, counts.unmatched_target, counts.unmatched_golden) == (0, 0, 0, 0)
    assert outcome.answer.origins == []
    assert outcome.answer.first_no is None
    for unit in outcome.units:
        assert {VERDICT_WORDS[code] for code in unit.item_opinions.verdict} <= {"yes", "n/a"}


def rows(unit: Unit, *, flipped: bool) -> Counter[tuple[object, ...]]:
    """Items of both sides that were paired, and what was said of them; flipped: roles are exchanged"""
    found: Counter[tuple[object, ...]] = Counter()
    for row, (t, g) in enumerate(zip(unit.items.target.tolist(), unit.items.golden.tolist(), strict=True)):
        names = [item_name(dump, item) if item >= 0 else None for dump, item in ((unit.target, t), (unit.golden, g))]
        verdict = VERDICT_WORDS[unit.item_opinions.verdict[row]]
        method = METHOD_WORDS[unit.pairs.method[unit.items.pair[row]]]
        found[(*(names[::-1] if flipped else names), method, verdict)] += 1
    return found


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs())
def test_swapping_the_sides_swaps_the_roles_and_nothing_else(both: tuple[Side, Side]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, other = (write(Path(folder) / str(place), side) for place, side in enumerate(both))
        straight, turned = compared(one, other), compared(other, one)
        for mine, theirs in zip(straight.units, turned.units, strict=True):
            assert rows(mine, flipped=False) == rows(theirs, flipped=True)
    here, there = straight.answer, turned.answer
    assert here.mode == there.mode
    assert (here.counts.unmatched_target, here.counts.unmatched_golden) == (
        there.counts.unmatched_golden, there.counts.unmatched_target,
    )  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs(), st.integers(2, 5))
def test_the_number_of_threads_changes_nothing(both: tuple[Side, Side], threads: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sides_read = [
            read_rank(discover(write(Path(folder) / str(place), side)).ranks[0]) for place, side in enumerate(both)
        ]
        one, other = (
            compare_rank(*sides_read, step=0, rank=0, options=Options(), threads=count) for count in (1, threads)
        )
    assert_same(one, other)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs())
def test_the_number_of_processes_changes_nothing(both: tuple[Side, Side]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        places = [write(Path(folder) / str(place), side) for place, side in enumerate(both)]
        plain = compared(*places)
        patch.setattr(in_process, "WORTH", 0)
        for jobs in (1, 2, 3):
            spread = compared(*places, jobs=jobs)
            assert told(spread) == told(plain)
            for mine, theirs in zip(plain.units, spread.units, strict=True):
                assert_same(mine, theirs)


PLAIN = Call(
    api="Torch.mul", module=-1, backward=False, taken=(), made=(Value(shape=(), dtype="torch.float32", seed=4),)
)
NEGATIVE = replace(PLAIN, made=(replace(PLAIN.made[0], spoil="zeros"),))
"""Its only element is -0, which a database stores as 0."""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example((Side(task="statistics", ranks=((NEGATIVE,),)), Side(task="statistics", ranks=((PLAIN,),))), [*POLICIES])
@given(pairs(), st.permutations(POLICIES))
def test_judging_again_is_as_judging_afresh(both: tuple[Side, Side], order: list[str]) -> None:
    """Stored in a database, judged by one policy after the other, and back."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = [write(folder / str(place), side) for place, side in enumerate(both)]
        work = Work(database=Database.open(sqlite_url(folder / "index.db")))
        ids = []
        for place in places:
            ids.append(create_dump(work.database, name="side", path=str(place)))
            ingest_dump(work, ids[-1], str(place), folder, **QUIET)
        first, *others = order
        comparison = create_comparison(
            work.database, name="c", target=ids[0], golden=ids[1], options=Options(policy=first)
        )
        run_comparison(work, comparison, **QUIET)
        for policy in (first, *others, first):
            rejudge(work, comparison, policy, **QUIET)
            afresh = compared(*places, policy=policy)
            answer = get_comparison(work.database, comparison).answer
            assert answer is not None
            assert (answer.counts, answer.origins, answer.mode) == (
                afresh.answer.counts, afresh.answer.origins, afresh.answer.mode,
            )  # fmt: skip
            assert str(answer.first_no) == str(afresh.answer.first_no)  # NaN is not equal to itself
            for place, unit in zip(stored_units(work.database, comparison), afresh.units, strict=True):
                found = load_unit(work.database, place.id)
                np.testing.assert_array_equal(found.item_opinions.verdict, unit.item_opinions.verdict)
                np.testing.assert_array_equal(found.node_opinions.cls, unit.node_opinions.cls)
                np.testing.assert_array_equal(found.node_opinions.verdict, unit.node_opinions.verdict)
        work.database.close()
