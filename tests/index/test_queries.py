"""Pages of the index are the whole list, in order, once, whatever the sort, filter and page size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.domain.facts import CLASS_WORDS, VERDICT_WORDS, Class, Verdict
from dumpscope.domain.result import Unit
from dumpscope.errors import NotFoundError, UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit, find_unit
from dumpscope.index.dump_queries.nodes import get_node, list_nodes
from dumpscope.index.dumps.catalogue import StoredRank, find_rank, list_dumps
from dumpscope.index.pair_queries.dataflow import node_flow
from dumpscope.index.pair_queries.item_pairs import get_item_pair, items_of_node, list_item_pairs
from dumpscope.index.pair_queries.list_positions import node_pairs_around
from dumpscope.index.pair_queries.node_details import node_context
from dumpscope.index.pair_queries.node_pairs import NodeFilter, Sort, list_node_pairs, one_node_pair
from dumpscope.index.pair_queries.pair_columns import pair_columns, strip
from dumpscope.index.store import tables
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import END, Page, Seek
from dumpscope.index.trees.trees import comparison_reveal, comparison_tree, dump_reveal, dump_tree, label
from index.databases import KINDS, open_empty
from index.test_storage import store_pair


@pytest.fixture(scope="module", params=KINDS)
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, StoredUnit, Unit]]:
    folder: Path = tmp_path_factory.mktemp("queries")
    database = open_empty(request.param, folder)
    comparison, _unit_id, unit = store_pair(database, nodes=230, tensors=True)
    yield database, find_unit(database, comparison, None, None), unit
    database.close()


@pytest.mark.parametrize(
    "filters",
    [
        NodeFilter(),
        NodeFilter(api="softmax"),
        NodeFilter(q="linear"),
        NodeFilter(api="softmax", q="backward"),
        NodeFilter(verdicts=("no",)),
    ],
)
def test_the_worst_items_are_those_that_the_database_sorts_first(
    stored: tuple[Database, StoredUnit, Unit], filters: NodeFilter
) -> None:
    database, unit, _ = stored

    def ids(one: StoredUnit) -> list[int]:
        def page(seek: Seek | None, total: int | None) -> Page[Any]:
            return list_item_pairs(database, one, filters=filters, sort="-score", seek=seek, total=total, limit=17)

        return [row.id for row in walk(page)]

    found = ids(unit)
    assert found == ids(replace(unit, stamp=None)), (
        "while a comparison is judged nothing is kept, and the database sorts"
    )
    assert found


def walk(fetch: Callable[[Seek | None, int | None], Page[Any]]) -> list[Any]:
    """All rows, page by page, as a client would."""
    rows: list[Any] = []
    seek, total = None, None
    while True:
        page = fetch(seek, total)
        rows += page.rows
        total = page.total
        if not page.more:
            assert page.total == len(rows), "the total is true"
            return rows
        assert page.rows, "a page that has more is not empty"
        seek = Seek(key=page.keys[-1])


def truth(unit: Unit, filters: NodeFilter) -> list[int]:
    """Node pairs that a filter lets through, by brute force."""
    kept = []
    for pair in range(len(unit.pairs)):
        name = unit.target.nodes.names[pair]
        if filters.verdicts and VERDICT_WORDS[unit.node_opinions.verdict[pair]] not in filters.verdicts:
            continue
        if filters.classes and CLASS_WORDS[unit.node_opinions.cls[pair]] not in filters.classes:
            continue
        if filters.api and f".{filters.api.lower()}." not in f".{name.rsplit('.', 2)[0].lower()}.":
            continue
        if filters.q and filters.q.lower() not in name.lower():
            continue
        if not (filters.first or 0) <= pair <= (len(unit.pairs) if filters.last is None else filters.last):
            continue
        kept.append(pair)
    return kept


FILTERS = [
    NodeFilter(),
    NodeFilter(verdicts=("no",)),
    NodeFilter(verdicts=("no", "warning")),
    NodeFilter(classes=("origin",)),
    NodeFilter(classes=("origin", "propagated")),
    NodeFilter(api="softmax"),
    NodeFilter(api="so_tmax"),
    NodeFilter(api="soft\0max"),
    NodeFilter(api="Functional.softmax", verdicts=("no",)),
    NodeFilter(q="SoftMax.1"),
    NodeFilter(q="100%_"),
    NodeFilter(first=20, last=99),
    NodeFilter(q="linear", first=20, last=99),
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("sort", ["order", "-out_score", "name"])
def test_node_pages_are_the_filtered_list_in_order(
    stored: tuple[Database, StoredUnit, Unit], filters: NodeFilter, sort: Any
) -> None:
    database, place, unit = stored
    rows = walk(
        lambda seek, total: list_node_pairs(
            database, place, filters=filters, sort=sort, seek=seek, total=total, limit=17
        )
    )
    expected = truth(unit, filters)
    if sort == "name":
        expected.sort(key=lambda pair: (unit.target.nodes.names[pair], pair))
    elif sort == "-out_score":
        expected.sort(key=lambda pair: (-np.nan_to_num(unit.node_opinions.out_score[pair], nan=-1.0), pair))
    if sort == "name":  # databases collate differently; the set and the absence of repetition are what counts
        assert sorted(row.order for row in rows) == sorted(expected)
    else:
        assert [row.order for row in rows] == expected


def test_a_page_around_a_node_walks_both_ways_to_the_ends(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, place, unit = stored
    name = unit.target.nodes.names[100]
    page = node_pairs_around(database, place, name, filters=NodeFilter(), limit=20)
    assert name in [row.name for row in page.rows[8:12]]
    orders = [row.order for row in page.rows]
    first = page
    while first.before:
        first = list_node_pairs(
            database, place, filters=NodeFilter(), seek=Seek(key=first.keys[0], back=True), limit=33
        )
        orders = [row.order for row in first.rows] + orders
    while page.more:
        page = list_node_pairs(database, place, filters=NodeFilter(), seek=Seek(key=page.keys[-1]), limit=33)
        orders += [row.order for row in page.rows]
    assert orders == list(range(230))


@pytest.mark.parametrize("filters", [NodeFilter(), NodeFilter(verdicts=("no",))], ids=str)
@pytest.mark.parametrize("sort", ["order", "-out_score", "name"])
def test_the_last_page_ends_the_list_and_leads_back(
    stored: tuple[Database, StoredUnit, Unit], filters: NodeFilter, sort: Sort
) -> None:
    database, place, _ = stored
    whole = list_node_pairs(database, place, filters=filters, sort=sort, limit=500)
    last = list_node_pairs(database, place, filters=filters, sort=sort, seek=END, limit=7)
    assert [row.pair for row in last.rows] == [row.pair for row in whole.rows[-7:]]
    assert last.before
    assert not last.more
    assert last.total == whole.total
    earlier = list_node_pairs(
        database, place, filters=filters, sort=sort, seek=Seek(key=last.keys[0], back=True), limit=5
    )
    assert [row.pair for row in earlier.rows] == [row.pair for row in whole.rows[-12:-7]]


def test_a_page_around_a_hidden_node_surrounds_its_place(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, place, unit = stored
    filters = NodeFilter(verdicts=("no",))
    shown = truth(unit, filters)
    hidden = next(pair for pair in range(100, 230) if pair not in shown)
    page = node_pairs_around(database, place, unit.target.nodes.names[hidden], filters=filters, limit=2)
    below = [pair for pair in shown if pair < hidden][-1:]
    above = [pair for pair in shown if pair > hidden][:1]
    assert [row.order for row in page.rows] == below + above


ITEM_FILTERS = [
    NodeFilter(),
    NodeFilter(verdicts=("no",)),
    NodeFilter(api="softmax"),
    NodeFilter(q="softmax.1"),
    NodeFilter(q="softmax", verdicts=("no", "n/a")),
]


@pytest.mark.parametrize("filters", ITEM_FILTERS, ids=str)
@pytest.mark.parametrize("sort", ["order", "-score"])
def test_item_pages_are_the_filtered_list_in_order(
    stored: tuple[Database, StoredUnit, Unit], filters: NodeFilter, sort: Any
) -> None:
    database, place, unit = stored
    rows = walk(
        lambda seek, total: list_item_pairs(
            database, place, filters=filters, sort=sort, seek=seek, total=total, limit=61
        )
    )
    nodes = set(truth(unit, NodeFilter(api=filters.api, q=filters.q)))
    expected = [
        item
        for item in range(len(unit.items))
        if unit.items.pair[item] in nodes
        and (not filters.verdicts or VERDICT_WORDS[unit.item_opinions.verdict[item]] in filters.verdicts)
    ]
    if sort == "-score":
        expected.sort(key=lambda item: (-np.nan_to_num(unit.item_opinions.score[item], nan=-1.0, posinf=1e300), item))
    assert [row.id & (2**28 - 1) for row in rows] == expected


def test_an_item_pair_carries_both_leaves_every_number_and_its_sentence(
    stored: tuple[Database, StoredUnit, Unit],
) -> None:
    database, place, unit = stored
    page = list_item_pairs(database, place, filters=NodeFilter(), node=1, limit=10)
    first, alone = page.rows[0], page.rows[3]
    assert page.total == 4
    assert first.target is not None
    assert first.target.name == f"{unit.target.nodes.names[1]}.input.0"
    assert first.target.data_name == f"{first.target.name}.pt"
    assert first.target.shape == [2, 3]
    assert first.metrics["rel_l2"] == unit.facts.tensor[4, 6]
    assert first.metrics["min_diff"] == unit.facts.diff[4, 1]
    assert first.message
    assert alone.golden is None
    one = get_item_pair(database, place, first.id)
    assert one.detail is not None
    assert one.detail.abs_histogram == unit.facts.details[4].abs_histogram
    assert one.detail.worst_target == float("inf")


def test_exact_integers_survive_to_the_leaf(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, place, _unit = stored
    with database.read() as connection:
        dump_id = connection.exec_driver_sql(
            f"SELECT dump.id FROM dump JOIN rank_dump ON rank_dump.dump = dump.serial WHERE rank_dump.id = {place.target}"
        ).scalar_one()
    rank = find_rank(database, str(dump_id), None, None)
    node = get_node(database, rank, "Functional.linear.0.forward")
    assert node.items[2].stats[0] == 2**70


def test_roll_up_counts_of_the_tree_add_up_to_the_unit(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, place, unit = stored
    top = comparison_tree(database, place, limit=500)
    assert top.total == len(top.rows) == 23
    assert [row.order for row in top.rows] == sorted(row.order for row in top.rows)
    for word, code in (("no", Verdict.NO), ("warning", Verdict.WARNING), ("yes", Verdict.YES), ("na", Verdict.NA)):
        assert sum(getattr(row, word) for row in top.rows) == (unit.node_opinions.verdict == code).sum()
    assert sum(row.origin for row in top.rows) == (unit.node_opinions.cls == Class.ORIGIN).sum() == 1
    children = comparison_tree(database, place, parent=top.rows[0].entry, limit=3)
    assert children.more
    assert [row.name for row in children.rows] == unit.target.nodes.names[:3]
    rest = comparison_tree(database, place, parent=top.rows[0].entry, seek=Seek(key=children.keys[-1]), limit=500)
    assert len(rest.rows) == 7
    assert top.rows[0].kind == "virtual"
    assert top.rows[0].label == "layers.0 (Block)"


def test_the_way_to_a_node_begins_at_the_top(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, place, unit = stored
    way = comparison_reveal(database, place, unit.target.nodes.names[57])
    assert way == [230 + 5, 57]
    with pytest.raises(NotFoundError):
        comparison_reveal(database, place, "no such node")


def test_a_dump_is_walked_by_tree_and_by_list(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, _place, unit = stored
    ((_serial, golden), (_other, target)) = list_dumps(database)
    rank: StoredRank = find_rank(database, target.id, 0, 0)
    assert golden.name == "golden"
    names = []
    after = None
    while True:
        page = list_nodes(database, rank, after=after, limit=50)
        names += [row.name for row in page.rows]
        if not page.more:
            break
        after = page.keys[-1][0]
    assert names == unit.target.nodes.names
    assert sum(row.nodes for row in dump_tree(database, rank, limit=500).rows) == 230
    assert dump_reveal(database, rank, names[57]) == [235, 57]
    found = list_nodes(database, rank, q="SOFTMAX.3")
    assert found.total == len(found.rows) == len([name for name in names if "softmax.3" in name])
    with pytest.raises(NotFoundError, match="no step 5"):
        find_rank(database, target.id, 5, 0)


def test_a_node_without_a_stack_of_its_own_shows_its_forward_calls(
    stored: tuple[Database, StoredUnit, Unit],
) -> None:
    database, place, unit = stored
    without = int(np.flatnonzero(unit.target.nodes.stack == -1)[3])
    name = unit.target.nodes.names[without]
    assert name.endswith("backward")
    with database.read() as connection:
        context = node_context(connection, place, without)
    twin = unit.target.nodes.names.index(name.replace("backward", "forward"))
    assert tuple(context.target_stack) == unit.target.nodes.stacks[unit.target.nodes.stack[twin]]
    assert context.siblings == [name.replace("backward", "forward")]
    assert context.path == [unit.tree.names[230 + without // 10]]


@pytest.mark.parametrize("buckets", [1, 7, 230, 1000])
def test_the_strip_shows_the_worst_of_each_bucket(stored: tuple[Database, StoredUnit, Unit], buckets: int) -> None:
    database, place, unit = stored
    found = strip(pair_columns(database, place), buckets=buckets)
    assert found[0].first == 0
    assert found[-1].last == 229
    for left, right in pairwise(found):
        assert right.first == left.last + 1
    for bucket in found:
        span = range(bucket.first, bucket.last + 1)
        opinions = unit.node_opinions
        worst = max(span, key=lambda pair: (opinions.cls[pair], opinions.verdict[pair], -pair))
        assert (bucket.seq, bucket.cls) == (worst, CLASS_WORDS[opinions.cls[worst]])
        assert bucket.verdict == VERDICT_WORDS[opinions.verdict[worst]]
        scores = np.nan_to_num(opinions.out_score[list(span)], nan=-1.0)
        assert bucket.severity == (None if scores.max() < 0 else scores.max())


def test_words_nobody_knows_are_refused_with_the_known_ones(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, place, _unit = stored
    with pytest.raises(UsageError) as caught:
        list_node_pairs(database, place, filters=NodeFilter(classes=("odd",)))
    assert "origin" in (caught.value.hint or "")


def test_labels_are_short_and_relative_to_the_module_above() -> None:
    assert label("Module.layers.1.attn.Attention.forward.0", "layers.1") == "attn (Attention)"
    assert label("Module.layers.1.Block.forward.2", "") == "layers.1 (Block) #2"
    assert label("Functional.softmax.3.forward", "layers.1") == "Functional.softmax.3"
    assert label("Module.layers.1.attn.Attention.parameters_grad.0", "layers.1") == "attn parameters_grad"
    assert label("anything else", "layers.1") == "anything else"


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_found_when_keys_have_left_thirty_two_bits(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """A unit's keys begin at its id times 2**28."""
    database = open_empty(kind, tmp_path)
    request.addfinalizer(database.close)
    for _ in range(16):
        comparison, unit_id, stored = store_pair(database, nodes=12)
    assert tables.key(unit_id) >= 2**32
    unit = find_unit(database, comparison, None, None)
    name = stored.target.nodes.names[5]
    top = comparison_tree(database, unit).rows
    assert top
    assert comparison_tree(database, unit, parent=top[0].entry).total == top[0].children
    with database.read() as connection:
        row = one_node_pair(connection, unit, name)
        assert items_of_node(connection, unit, row.pair, limit=9)
        assert node_context(connection, unit, row.pair).path is not None
    for q in ("order:3..7", "err>=0", "kind:api", "note:any"):
        list_node_pairs(database, unit, filters=NodeFilter(q=q, api="linear"))
    assert list_item_pairs(database, unit, filters=NodeFilter(q=name)).rows
    assert node_flow(database, unit, name).node.name == name
    assert comparison_reveal(database, unit, name)


def test_a_key_of_the_unit_that_no_item_pair_has_is_not_found(stored: tuple[Database, StoredUnit, Unit]) -> None:
    database, unit, _ = stored
    with pytest.raises(NotFoundError):
        get_item_pair(database, unit, tables.key(unit.id, unit.items + 5))
