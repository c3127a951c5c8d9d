"""Lists by place: a page from anywhere, the place of a node, and the way down a tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dumpscope.domain.precheck import Alone
from dumpscope.domain.result import Unit
from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons.catalogue import StoredUnit, find_unit, get_comparison
from dumpscope.index.dump_queries.nodes import get_node, list_nodes
from dumpscope.index.dump_queries.prechecks import put_prechecks
from dumpscope.index.dumps.catalogue import StoredRank, find_rank, list_dumps
from dumpscope.index.pair_queries.filter_counts import filter_counts
from dumpscope.index.pair_queries.item_pairs import list_item_pairs
from dumpscope.index.pair_queries.list_positions import node_pairs_around, node_pairs_at
from dumpscope.index.pair_queries.node_pairs import NodeFilter, Sort, list_node_pairs
from dumpscope.index.pair_queries.notes import put_note
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import END, Page, Seek
from dumpscope.index.trees import row_numbers, tree_levels
from dumpscope.index.trees.tree_levels import Levels, ancestor_names, comparison_levels, dump_levels
from dumpscope.index.trees.trees import TreeRow, comparison_reveal, comparison_tree, dump_reveal, dump_tree
from index.databases import KINDS, open_empty
from index.test_queries import FILTERS
from index.test_storage import store_pair

Stored = tuple[Database, StoredUnit, Unit, StoredRank]


@pytest.fixture(scope="module", params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    database = open_empty(request.param, tmp_path_factory.mktemp("places"))
    comparison, _unit_id, unit = store_pair(database, nodes=230, tensors=True)
    ((_serial, _golden), (_other, target)) = list_dumps(database)
    yield database, find_unit(database, comparison, None, None), unit, find_rank(database, target.id, 0, 0)
    database.close()


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("sort", ["order", "-out_score", "-ratio", "name"])
def test_a_page_from_any_place_is_that_part_of_the_list(stored: Stored, filters: NodeFilter, sort: Sort) -> None:
    database, unit, _, _ = stored
    whole = list_node_pairs(database, unit, filters=filters, sort=sort, limit=500)
    total = len(whole.rows)
    assert (whole.total, whole.start) == (total, 0)
    for place in (0, 1, total // 2, total - 1, total, total + 40):
        if place < 0:
            continue
        page = node_pairs_at(database, unit, place, filters=filters, sort=sort, limit=7)
        assert page.rows == whole.rows[place : place + 7]
        assert page.keys == whole.keys[place : place + 7]
        assert (page.total, page.start) == (total, place)
        assert page.more == (place + 7 < total)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("sort", ["order", "-out_score", "name"])
def test_a_node_is_told_its_place_also_where_it_is_hidden(stored: Stored, filters: NodeFilter, sort: Sort) -> None:
    database, unit, _, _ = stored
    whole = list_node_pairs(database, unit, filters=NodeFilter(), sort=sort, limit=500)
    shown = [row.pair for row in list_node_pairs(database, unit, filters=filters, sort=sort, limit=500).rows]
    kept = set(shown)
    for place in (0, 17, 100, 229):
        row = whole.rows[place]
        before = sum(one.pair in kept for one in whole.rows[:place])
        page = node_pairs_around(database, unit, row.name, filters=filters, sort=sort, limit=1)
        assert (page.start, page.total) == (before, len(shown))
        assert [one.pair for one in page.rows] == shown[before : before + 1]


def test_a_list_is_numbered_once_and_again_after_another_judgement(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, unit, _, _ = stored
    read: list[Any] = []
    monkeypatch.setattr(
        "dumpscope.index.pair_queries.list_positions.numbers_of",
        lambda *given: read.append(given) or row_numbers.numbers_of(*given),
    )
    filters = NodeFilter(q="gelu")

    def pages(of: StoredUnit) -> None:
        for place in (0, 3):
            node_pairs_at(database, of, place, filters=filters, limit=2)

    pages(unit)
    assert len(read) == (1 if unit.stamp else 2)
    judged = _with_stamp(unit, "another judgement")
    pages(judged)
    pages(judged)
    assert len(read) == (2 if unit.stamp else 3)
    pages(_with_stamp(unit, None))  # at work: what it is changes under the reader
    assert len(read) == (4 if unit.stamp else 5)
    node_pairs_at(database, judged, 0, filters=NodeFilter())
    node_pairs_at(database, judged, 5, filters=NodeFilter(first=20, last=99))
    assert len(read) == (4 if unit.stamp else 5), "the whole run in its order has nothing to number"


def _with_stamp(unit: StoredUnit, stamp: str | None) -> StoredUnit:
    return StoredUnit(**{name: getattr(unit, name) for name in StoredUnit.__slots__} | {"stamp": stamp})


@pytest.mark.parametrize("q", ["note:any", "alone:fail"])
def test_a_list_by_notes_or_by_what_ran_alone_follows_them(tmp_path: Path, q: str) -> None:
    database = open_empty("sqlite", tmp_path)
    try:
        comparison, _unit_id, unit = store_pair(database, nodes=30)
        place = _with_stamp(find_unit(database, comparison, None, None), "done")
        wanted, name = NodeFilter(q=q), unit.target.nodes.names[7]

        def found() -> tuple[list[int], int, int]:
            listed = node_pairs_at(database, place, 0, filters=wanted)
            items = list_item_pairs(database, place, filters=wanted, sort="-score")
            counted = filter_counts(database, place, wanted)
            assert listed.total == sum(counted.verdicts.values())
            return [row.pair for row in listed.rows], items.total, listed.total

        assert found() == ([], 0, 0)
        if q == "note:any":
            put_note(database, comparison, name, "known", "")
        else:
            target = get_comparison(database, comparison).target
            alone = Alone(
                word="fail", device="cpu", here=None, recorded=None, made_up=False, after_forward=False, reason=""
            )
            put_prechecks(database, target, [(place.step, place.rank, name, alone)])
        numbers, items, total = found()
        assert (numbers, total) == ([7], 1)
        assert items == int((unit.items.pair == 7).sum())
    finally:
        database.close()


@pytest.mark.parametrize("q", ["", "softmax", "Linear.1", "no such node"])
def test_the_list_of_a_dump_has_places_too(stored: Stored, q: str) -> None:
    database, _, _, rank = stored
    whole = list_nodes(database, rank, q=q, limit=500)
    for place in (0, 5, whole.total // 2, whole.total):
        page = list_nodes(database, rank, q=q, at=place, limit=4)
        assert page.rows == whole.rows[place : place + 4]
        assert (page.start, page.total, page.more) == (place, whole.total, place + 4 < whole.total)
    every = list_nodes(database, rank, limit=500).rows
    for row in (every[0], every[99], every[-1]):
        page = list_nodes(database, rank, q=q, around=row.name, limit=1)
        assert page.start == sum(one.ordinal < row.ordinal for one in whole.rows)
        assert page.rows == [one for one in whole.rows if one.ordinal >= row.ordinal][:1]
    with pytest.raises(NotFoundError):
        list_nodes(database, rank, q=q, around="no such node")


def test_children_are_read_from_both_ends_and_around_one(stored: Stored) -> None:
    database, unit, _, rank = stored

    def pages(seek: Seek | None = None, around: int | None = None, limit: int = 7) -> list[Page[TreeRow]]:
        return [
            comparison_tree(database, unit, seek=seek, around=around, limit=limit),
            dump_tree(database, rank, seek=seek, around=around, limit=limit),
        ]

    for number, whole in enumerate(pages(limit=500)):
        assert (whole.start, whole.total, whole.before, whole.more) == (0, 23, False, False)
        last = pages(seek=END)[number]
        assert (last.rows, last.start, last.before, last.more) == (whole.rows[-7:], 16, True, False)
        earlier = pages(seek=Seek(key=last.keys[0], back=True))[number]
        assert (earlier.rows, earlier.before, earlier.more) == (whole.rows[9:16], True, True)
        for place in (0, 2, 11, 22):
            page = pages(around=whole.rows[place].entry)[number]
            start = max(place - 3, 0)
            assert (page.rows, page.start) == (whole.rows[start : start + 7], start)
            assert (page.before, page.more) == (start > 0, start + 7 < 23)
    with pytest.raises(NotFoundError):
        pages(around=2)  # a node that stands below another row


def test_levels_lead_to_a_node_with_the_rows_beside_it(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    database, unit, whole, rank = stored
    name = whole.target.nodes.names[127]
    for beside in (40, 20, 5):  # read together, one of two levels alone, both alone
        monkeypatch.setattr(tree_levels, "BESIDE", beside)
        for found, way, tree in (
            (comparison_levels(database, unit, name), comparison_reveal(database, unit, name), comparison_tree),
            (dump_levels(database, rank, name), dump_reveal(database, rank, name), dump_tree),
        ):
            assert [(level.parent, level.entry) for level in found.levels] == list(
                zip([None, *way[:-1]], way, strict=True)
            )
            assert (found.first, found.depth) == (0, len(way))
            for level in found.levels:
                owner: Any = unit if tree is comparison_tree else rank
                assert (
                    level.page.rows == tree(database, owner, parent=level.parent, around=level.entry, limit=beside).rows
                )
    with pytest.raises(NotFoundError):
        comparison_levels(database, unit, "no such node")


def test_a_long_way_is_told_in_parts(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    database, unit, whole, rank = stored
    name = whole.target.nodes.names[127]
    both = comparison_levels(database, unit, name).levels
    monkeypatch.setattr(tree_levels, "LEVELS", 1)
    parts: list[Levels] = [comparison_levels(database, unit, name, first=number) for number in range(3)]
    assert [len(part.levels) for part in parts] == [1, 1, 0]
    assert [part.levels[0] for part in parts[:2]] == both
    assert dump_levels(database, rank, name, first=1).levels[0].page.rows[7].name == name


def test_ancestors_are_named_from_the_top(stored: Stored) -> None:
    database, unit, whole, rank = stored
    entry = comparison_reveal(database, unit, whole.target.nodes.names[127])[-1]
    with database.read() as connection:
        named = ancestor_names(connection, unit, entry)
    assert named == [whole.tree.names[230 + 12]]
    assert get_node(database, rank, whole.target.nodes.names[127]).path == named
