"""Trends are what a loop over all steps, ranks and records gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.domain.records import STATISTICS, Kind, NodeKind, RankDump, Role, State
from dumpscope.errors import NotFoundError
from dumpscope.index.dump_queries.node_values import Part, Statistic
from dumpscope.index.dump_queries.trends import ValueTrend, dump_trends
from dumpscope.index.dumps.catalogue import create_dump
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.store.codec import calls_digest
from dumpscope.index.store.database import Database
from dumpscope.index.trees.trend_rows import Calls, Wanted
from index.databases import KINDS, open_empty
from index.units import make_rank

STEPS = (0, 2, 3, 9)
NODES = 60

Stored = tuple[Database, str, dict[tuple[int, int], RankDump]]


@pytest.fixture(scope="module", params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """A dump of four steps and two ranks, rank 1 with fewer calls, and another dump of the same calls beside it."""
    database = open_empty(request.param, Path(tmp_path_factory.mktemp("trends")))
    ranks: dict[tuple[int, int], RankDump] = {}
    chosen = create_dump(database, name="chosen", path="/chosen")
    other = create_dump(database, name="other", path="/other")
    for number, step in enumerate(STEPS):
        for rank in (0, 1):
            made = make_rank(NODES - 20 * rank, seed=10 * number + rank, step=step, rank=rank)
            ranks[step, rank] = made
            store_dump_rank(database, chosen, made)
            store_dump_rank(database, other, make_rank(NODES, seed=99 + number, step=step, rank=rank))
    yield database, chosen, ranks
    database.close()


def expected(dump: RankDump, name: str, statistic: Statistic, part: Part) -> tuple[float | None, bool] | None:
    """The value and whether any statistic is not finite; None where the rank has no such call."""
    if name not in dump.nodes.names:
        return None
    items = dump.items
    roles = (Role.OUTPUT,) if part == "output" else (Role.INPUT, Role.KWARG)
    chosen = np.flatnonzero(
        (items.node == dump.nodes.names.index(name)) & np.isin(items.role, roles) & (items.kind == Kind.TENSOR)
    )
    column = STATISTICS.index(statistic.capitalize())
    states, values = items.stat_state[chosen], items.stats[chosen, column]
    bad = bool((states >= State.NAN).any())
    worst = int(states[:, column].max())
    if worst > State.FINITE:
        return {State.NAN: math.nan, State.POS_INF: math.inf, State.NEG_INF: -math.inf}[State(worst)], bad
    if worst == State.ABSENT:
        return None, bad
    held = values[states[:, column] == State.FINITE]
    if statistic == "mean":
        return float(held[np.abs(held).argmax()]), bad
    return float(held.min() if statistic == "min" else held.max()), bad


def rows(stored: Stored, **wanted: Any) -> list[ValueTrend]:
    database, dump, _ = stored
    found: list[ValueTrend] = []
    after = None
    while True:
        page = dump_trends(database, dump, kind="all", after=after, limit=7, **wanted).page
        found += page.rows
        if not page.more:
            assert len(found) == page.total
            return found
        after = page.keys[-1][0]


@pytest.mark.parametrize("statistic", ["norm", "max", "min", "mean"])
@pytest.mark.parametrize("part", ["output", "input"])
def test_a_cell_is_its_step_and_ranks_own_value(stored: Stored, statistic: Statistic, part: Part) -> None:
    found = rows(stored, statistic=statistic, part=part)
    assert {(row.name, row.rank) for row in found} == {
        (name, rank) for (_, rank), dump in stored[2].items() for name in dump.nodes.names
    }
    for row in found:
        cells = {cell.bucket: cell for cell in row.cells}
        for bucket, step in enumerate(STEPS):
            wanted = expected(stored[2][step, row.rank], row.name, statistic, part)
            assert wanted is not None
            cell = cells[bucket]
            assert cell.step == step
            assert (repr(cell.value), cell.bad) == (repr(wanted[0]), wanted[1])


def test_the_first_bad_step_is_the_first_number_that_is_not_finite(stored: Stored) -> None:
    for row in rows(stored, statistic="max", part="output"):
        bad = [
            step
            for step in STEPS
            if (found := expected(stored[2][step, row.rank], row.name, "max", "output")) is not None and found[1]
        ]
        assert row.first_bad == ((bad[0], row.rank) if bad else None)


def test_fewer_buckets_hold_the_extreme_of_their_steps_and_lead_to_one_that_exists(stored: Stored) -> None:
    wide = {(row.name, row.rank): row for row in rows(stored, statistic="max", buckets=2)}
    for row in rows(stored, statistic="max"):
        cells = wide[row.name, row.rank].cells
        assert all(cell.step in STEPS for cell in cells)
        if all(cell.value is not None and math.isfinite(cell.value) for cell in row.cells):
            assert [cell.value for cell in cells] == [
                max(cell.value for cell in row.cells[:3] if cell.value is not None), row.cells[3].value,
            ]  # fmt: skip


def test_one_name_or_one_rank_narrows_the_rows(stored: Stored) -> None:
    name = stored[2][0, 0].nodes.names[-1]
    assert [(row.name, row.rank) for row in rows(stored, name=name)] == [(name, 0), (name, 1)]
    assert {row.rank for row in rows(stored, rank=1)} == {1}
    assert rows(stored, rank=7) == []
    assert all("softmax" in row.name for row in rows(stored, q="SOFTmax"))


def test_growth_is_the_factor_per_step(tmp_path: Path) -> None:
    database = open_empty("sqlite", tmp_path)
    dump = create_dump(database, name="growing", path="/growing")
    for step in range(4):
        made = make_rank(4, step=step)
        made.items.stats[:] = -(3.0**step)
        made.items.stat_state[:] = State.FINITE
        store_dump_rank(database, dump, made)
    page = dump_trends(database, dump, kind="all", statistic="min").page
    assert [row.growth for row in page.rows] == pytest.approx([3.0] * 4)
    database.close()


def test_a_dump_without_ranks_is_said_to_have_none(tmp_path: Path) -> None:
    database = open_empty("sqlite", tmp_path)
    with pytest.raises(NotFoundError, match="no ranks"):
        dump_trends(database, create_dump(database, name="empty", path="/empty"))
    database.close()


def test_ranks_with_the_same_calls_are_rows_of_one_list_and_pages_cut_it_anywhere() -> None:
    calls = Calls()
    calls.add([0, 2], {"a": int(NodeKind.API), "b": int(NodeKind.API)})
    calls.add([1], {"b": int(NodeKind.API), "c": int(NodeKind.MODULE)})
    rows, total = calls.rows(Wanted(kind="all"), 0, 10)
    expected = [("a", 0), ("a", 2), ("b", 0), ("b", 1), ("b", 2), ("c", 1)]
    assert [(call.name, call.rank) for _, call in rows] == expected
    assert total == len(expected)
    for first in range(7):
        part, _ = calls.rows(Wanted(kind="all"), first, 2)
        assert [(number, call.name, call.rank) for number, call in part] == [
            (number, *row) for number, row in enumerate(expected)
        ][first : first + 2]
    shared, total = calls.rows(Wanted(kind="api", by_rank=False, q="B"), 0, 10)
    assert [(call.name, call.rank) for _, call in shared] == [("b", None)]
    assert total == 1


def test_ranks_make_the_same_calls_where_names_order_and_kinds_agree() -> None:
    kinds = np.array([NodeKind.API, NodeKind.MODULE])
    one = calls_digest(["a", "b"], kinds)
    assert one == calls_digest(["a", "b"], kinds)
    assert (
        len(
            {
                one,
                calls_digest(["b", "a"], kinds),
                calls_digest(["a", "c"], kinds),
                calls_digest(["a", "b"], kinds[::-1]),
            }
        )
        == 4
    )
