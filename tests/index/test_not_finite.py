"""Both databases compare, sort and fold infinite numbers and those that are not a number in one way, that of the definitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from dumpscope.domain.records import State
from dumpscope.domain.search.terms import parse
from dumpscope.index.comparisons.catalogue import StoredUnit, find_unit
from dumpscope.index.pair_queries.item_pairs import list_item_pairs
from dumpscope.index.pair_queries.list_positions import node_pairs_at
from dumpscope.index.pair_queries.node_pairs import NodeFilter, NodePairRow, Sort, list_node_pairs
from dumpscope.index.pair_queries.over_units.trends import comparison_trends
from dumpscope.index.store import tables
from dumpscope.index.store.codec import STATE_BITS
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import END, Page, Seek
from index.databases import KINDS, open_empty
from index.test_search import describes
from index.test_storage import store_pair

NODES = 60
SCORES = (-1.0, 0.0, 0.5, 1.0, math.inf, 1e308, 3.0)
"""As they are stored: -1 where nothing was compared."""
ERRORS: tuple[tuple[float | None, State], ...] = (
    (None, State.ABSENT), (0.0, State.FINITE), (0.5, State.FINITE), (None, State.NAN), (None, State.POS_INF),
)  # fmt: skip

Stored = tuple[Database, str, StoredUnit, list[NodePairRow]]


def _spoil(database: Database, unit: StoredUnit) -> None:
    """Give every node pair other numbers, so that each kind of number meets each other one."""
    pair, item = tables.node_pair, tables.item_pair
    with database.write() as connection:
        for number in range(unit.pairs):
            entering, leaving = ERRORS[number % 5], ERRORS[number // 5 % 5]
            connection.execute(
                update(pair)
                .where(pair.c.id == tables.key(unit.id, number))
                .values(
                    severity=SCORES[number % 7],
                    in_score=SCORES[number // 2 % 7],
                    ratio=SCORES[number // 3 % 7],
                    distance_measure=0,
                    in_error=entering[0],
                    out_error=leaving[0],
                    error_states=entering[1] | leaving[1] << STATE_BITS,
                )
            )
        for number in range(unit.items):
            connection.execute(
                update(item).where(item.c.id == tables.key(unit.id, number)).values(severity=SCORES[number % 7])
            )


@pytest.fixture(scope="module", params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    folder: Path = tmp_path_factory.mktemp("not_finite")
    database = open_empty(request.param, folder)
    comparison, _, _ = store_pair(database, nodes=NODES)
    unit = find_unit(database, comparison, None, None)
    _spoil(database, unit)
    yield database, comparison, unit, list_node_pairs(database, unit, filters=NodeFilter(), limit=500).rows
    database.close()


@pytest.mark.parametrize("minus", ["", "-"])
@pytest.mark.parametrize("key", ["err", "in", "score", "inscore", "ratio", "confidence", "order"])
def test_every_comparison_finds_what_the_definition_says(stored: Stored, key: str, minus: str) -> None:
    database, _, unit, rows = stored
    bounds = ("inf", "-inf", "1e400", "1e308", "1", "0")
    searches = [f"{minus}{key}{op}{bound}" for op in (":", ">", ">=", "<", "<=") for bound in bounds]
    searches += [
        f"{minus}{key}:{low}..{high}" for low, high in itertools.product(("", *bounds), repeat=2) if low or high
    ]
    for search in searches:
        (term,) = parse(search)
        page = list_node_pairs(database, unit, filters=NodeFilter(q=search), limit=500)
        expected = [row.order for row in rows if describes(term, row)]
        assert ([row.order for row in page.rows], page.total) == (expected, len(expected)), search


def _walked(read: Callable[[Seek | None], Page[Any]], *, back: bool) -> list[Any]:
    """All rows, page by page, from the beginning or from the end."""
    rows: list[Any] = []
    seek = END if back else None
    while True:
        page = read(seek)
        rows = [*page.rows, *rows] if back else [*rows, *page.rows]
        if not (page.before if back else page.more):
            return rows
        seek = Seek(key=page.keys[0], back=True) if back else Seek(key=page.keys[-1])


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("sort", ["-out_score", "-ratio"])
def test_the_infinite_come_first_and_every_page_goes_on_where_the_last_one_ended(
    stored: Stored, sort: Sort, back: bool
) -> None:
    database, _, unit, rows = stored

    def value(row: NodePairRow) -> float:
        shown = row.out_score if sort == "-out_score" else row.standing and row.standing.ratio
        return -1.0 if shown is None else shown

    expected = [row.order for row in sorted(rows, key=lambda row: (-value(row), row.order))]
    walked = _walked(
        lambda seek: list_node_pairs(database, unit, filters=NodeFilter(), sort=sort, seek=seek, limit=4), back=back
    )
    assert [row.order for row in walked] == expected
    by_place = [
        row.order
        for place in range(0, NODES, 7)
        for row in node_pairs_at(database, unit, place, filters=NodeFilter(), sort=sort, limit=7).rows
    ]
    assert by_place == expected


def test_items_with_an_infinite_score_come_first(stored: Stored) -> None:
    database, _, unit, _ = stored
    walked = _walked(
        lambda seek: list_item_pairs(database, unit, filters=NodeFilter(), sort="-score", seek=seek, limit=9),
        back=False,
    )
    numbers = [row.id & tables.NUMBER_MASK for row in walked]
    assert numbers == sorted(range(unit.items), key=lambda number: (-SCORES[number % 7], number))


def test_a_trend_shows_the_error_that_is_not_finite(stored: Stored) -> None:
    database, comparison, _, rows = stored
    found = {row.name: row for row in comparison_trends(database, comparison, kind="all", limit=500).page.rows}
    for row in rows:
        (cell,) = found[row.name].cells
        assert (repr(cell.error), repr(cell.score)) == (repr(row.out_error), repr(row.out_score))
