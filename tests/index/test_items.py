"""Items come back the same from blocks and from the rows that older versions stored."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sqlalchemy import delete, select, update

from dumpscope.domain.options import Options
from dumpscope.domain.records import State
from dumpscope.errors import DumpscopeError, NotFoundError
from dumpscope.index.comparisons.catalogue import create_comparison, find_unit, store_answer
from dumpscope.index.comparisons.store_results import UnitSides, store_unit
from dumpscope.index.dump_queries.nodes import get_node
from dumpscope.index.dump_queries.outputs import get_record, row_facts
from dumpscope.index.dump_queries.trends import dump_trends
from dumpscope.index.dump_queries.value_columns import value_columns
from dumpscope.index.dumps.catalogue import StoredRank, create_dump, stored_ranks
from dumpscope.index.dumps.items import all_items, item_columns, some_items
from dumpscope.index.dumps.load_rank import load_rank
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.pair_queries.dataflow import node_flow
from dumpscope.index.pair_queries.item_pairs import list_item_pairs
from dumpscope.index.pair_queries.node_pairs import NodeFilter, list_node_pairs
from dumpscope.index.store import codec, tables
from dumpscope.index.store.codec import number_columns, pack_states, to_json
from dumpscope.index.store.database import Database, insert
from dumpscope.index.store.item_blocks import (
    BLOCK,
    TEXTS,
    Coded,
    ItemColumns,
    join_columns,
    pack_block,
    take_rows,
    unpack_block,
)
from dumpscope.index.store.texts import intern_texts
from index.test_storage import NO_ANSWER, decoded
from index.units import make_rank, make_unit


def keep_as_rows(database: Database, rank: int) -> None:
    """Put the items of a rank where older versions had them: a row each, no block."""
    with database.read() as connection:
        items = all_items(connection, rank)

    def ids(column: Coded) -> list[int | None]:
        known = intern_texts(database, column.texts).tolist()
        return [None if code == -1 else code + 1 if code < -1 else known[code] for code in column.codes.tolist()]

    columns: dict[str, Any] = {
        "id": [tables.key(rank, number) for number in items.number.tolist()],
        **{name: getattr(items, name).tolist() for name in ("node", "role", "kind")},
        **dict(zip(("max", "min", "mean", "norm"), number_columns(items.stats, items.states), strict=True)),
        "states": pack_states(items.states).tolist(),
        "requires_grad": [None if grad < 0 else grad for grad in items.requires_grad.tolist()],
        **{name: ids(getattr(items, name)) for name in TEXTS if name != "hash"},
        "hash": [items.hash.at(row) for row in range(len(items))],
    }
    with database.write() as connection:
        insert(connection, tables.item, list(columns.values()), names=list(columns))
        connection.execute(delete(tables.item_block).where(tables.item_block.c.id.between(*tables.key_range(rank))))


def everything(database: Database, comparison: str, ranks: list[StoredRank], way: str) -> list[Any]:
    """What is told of the items of both sides, by every query that reads them. way: tells what stays in memory apart"""
    found: list[Any] = []
    for rank in ranks:
        names = load_rank(database, rank.id).nodes.names
        numbers = [0, 5, 7, rank.items - 1, rank.items + 3, *range(BLOCK - 2, BLOCK + 2)]
        with database.read() as connection:
            kept = some_items(connection, rank.id, numbers)
        columns = value_columns(database, rank, way)
        found += [
            decoded(load_rank(database, rank.id)),
            kept.number.tolist(),
            [kept.shape.at(row) for row in range(len(kept))],
            [get_node(database, rank, name) for name in (names[3], names[-1])],
            row_facts(database, rank, [0, 1, rank.nodes - 1]),
            [getattr(columns, name).tolist() for name in ("norm", "largest", "lost")],
            dump_trends(database, rank.dump, statistic="mean", part="input", kind="all").page.rows,
        ]
    unit = replace(find_unit(database, comparison, None, None), stamp=None)  # nothing stays in memory
    for word in ("dtype:float32", "dtype:*16", "shape:*x4", "shape:[]"):
        found.append([row.name for row in list_node_pairs(database, unit, filters=NodeFilter(q=word)).rows])
    assert any(found[-4:])
    found.append(node_flow(database, unit, make_rank(30).nodes.names[4]))
    return found


def stored_pair(database: Database, *, tensors: bool = False) -> tuple[str, list[StoredRank]]:
    """A comparison of two ranks of more items than a block holds, and both ranks."""
    sides = [make_rank(1100, seed=seed, tensors=tensors) for seed in (1, 2)]
    assert len(sides[0].items) > BLOCK
    dumps = [create_dump(database, name=name, path=f"/{name}") for name in ("target", "golden")]
    ids = [store_dump_rank(database, dump, side) for dump, side in zip(dumps, sides, strict=True)]
    comparison = create_comparison(database, name="t vs g", target=dumps[0], golden=dumps[1], options=Options())
    unit = make_unit(sides[0], sides[1], tensors=tensors)
    unit_id = store_unit(database, comparison, unit, UnitSides(target=ids[0], golden=ids[1]))
    store_answer(database, comparison, NO_ANSWER, units=[unit_id])
    return comparison, [stored_ranks(database, dump)[0] for dump in dumps]


@pytest.mark.parametrize("tensors", [False, True])
def test_rows_of_older_versions_tell_what_blocks_tell(database: Database, tensors: bool) -> None:
    comparison, ranks = stored_pair(database, tensors=tensors)
    blocks = everything(database, comparison, ranks, "blocks")
    for rank in ranks:
        keep_as_rows(database, rank.id)
    with database.read() as connection:
        assert connection.execute(select(tables.item_block.c.id)).first() is None
    assert str(everything(database, comparison, ranks, "rows")) == str(blocks)


NAMES = ("node", "role", "kind", "requires_grad", "states", *TEXTS, "max", "min", "mean", "norm")


@pytest.mark.parametrize("gone", ["entry", "item_block"])
def test_a_rank_that_is_being_removed_is_told_as_gone(database: Database, gone: str) -> None:
    comparison, ranks = stored_pair(database)
    unit = replace(find_unit(database, comparison, None, None), stamp=None)
    rank, node = ranks[0], make_rank(30).nodes.names[4]
    pair = get_node(database, rank, node).first_item
    table = getattr(tables, gone)
    with database.write() as connection:  # its first batch; the rank itself goes with the last one
        connection.execute(delete(table).where(table.c.id.between(tables.key(rank.id), tables.key(rank.id, 500))))
    reads: list[Callable[[], Any]] = [
        lambda: load_rank(database, rank.id),
        lambda: value_columns(database, rank, f"half {gone}"),
        lambda: get_record(database, rank, pair),
        lambda: get_node(database, rank, node),
        lambda: node_flow(database, unit, node),
        lambda: list_item_pairs(database, unit, filters=NodeFilter()),
    ]
    for read in reads:
        with pytest.raises(NotFoundError):
            read()
    row_facts(database, rank, [0, 1, rank.nodes - 1])  # tells what is left


def test_a_reader_sees_nothing_of_what_is_written_meanwhile(database: Database) -> None:
    rank = store_dump_rank(database, create_dump(database, name="run", path="/run"), make_rank(20))
    with database.read() as connection:
        before = len(some_items(connection, rank, [0, 1]))
        with database.write() as other:
            other.execute(delete(tables.item_block))
        assert len(some_items(connection, rank, [0, 1])) == before == 2
    with database.read() as connection:
        assert len(all_items(connection, rank)) == 0


ODD_HEADS: list[dict[str, Any]] = [
    *({"count": value} for value in (-1, 0, BLOCK + 1, 2.0, True, None, "9")),
    *({"first": value} for value in (-1, 10**30, None, [])),
    *({"node": value} for value in (-1, 2**31, 10**30)),
    *({"types": value} for value in (None, [], ["<i1"] * 16, [1] * 16, ["|O"] * 16, ["<f8"] * 16)),
    *({"texts": value} for value in (None, {}, [[]] * 6, ["ab"] * 7, [[1, 2, 3]] * 7, [[]] * 7)),
    {"texts": [*[["x"] * 99] * 3, ["[2,x]"] * 99, *[["x"] * 99] * 3]},
    {"deep": True},
]
"""Values of a block's head that nothing of ours writes."""
ODD_COLUMNS: dict[str, Any] = {
    "role": 6, "kind": 4, "requires_grad": 2, "states": 5, "path": -2, "dtype": 99, "data_name": -4, "max": float("nan"),
    "norm": float("inf"),
}  # fmt: skip
"""The same of its columns."""


def remade(content: bytes, **odd: Any) -> bytes:
    """A block with other values in its head or in all rows of a column."""
    size = int.from_bytes(content[:4], "little")
    head, at, columns = json.loads(content[4 : 4 + size]), 4 + size, []
    for name, word in zip(NAMES, head["types"], strict=True):
        column = np.frombuffer(content, word, head["count"], at)
        at += column.nbytes
        columns.append(np.full_like(column, odd[name]) if name in odd and name not in head else column)
    text = json.dumps(head | {name: value for name, value in odd.items() if name not in NAMES or name in head}).encode()
    if "deep" in odd:
        text = b'{"count":' + b"[" * 100_000
    return zlib.compress(len(text).to_bytes(4, "little") + text + b"".join(one.tobytes() for one in columns))


def test_a_damaged_block_is_told_with_the_remedy(database: Database) -> None:
    rank = store_dump_rank(database, create_dump(database, name="run", path="/run"), make_rank(20))
    with database.read() as connection:
        whole = bytes(connection.execute(select(tables.item_block.c.columns)).scalar_one())
    content = zlib.decompress(whole)
    cut = zlib.compress(content[:-40])
    damage = [b"", whole[:50], whole[:-9] + b"123456789", cut, zlib.compress(b"\xff\xff\xff\xff")]
    damage += [remade(content, **odd) for odd in ODD_HEADS]
    damage += [remade(content, **{name: value}) for name, value in ODD_COLUMNS.items()]
    assert unpack_block(remade(content)).node.tolist() == unpack_block(whole).node.tolist()
    for damaged in damage:
        with database.write() as connection:
            connection.execute(update(tables.item_block).values(columns=damaged))
        with pytest.raises(DumpscopeError, match="damaged") as caught:
            load_rank(database, rank)
        assert caught.value.hint == "register the dump again"


numbers = st.one_of(st.floats(), st.floats(width=32), st.integers(-(2**60), 2**60).map(float))
words = st.one_of(st.none(), st.text(st.characters(blacklist_categories=()), max_size=6))
item = st.fixed_dictionaries(
    {
        "more": st.integers(0, 3),
        "numbers": st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-1, 1)),
        "stats": st.lists(st.tuples(numbers, st.booleans()), min_size=4, max_size=4),
        "texts": st.lists(words, min_size=len(TEXTS), max_size=len(TEXTS)),
        "own": st.integers(-3, -1),
    }
)


def columns_of(items: list[dict[str, Any]]) -> ItemColumns:
    stats = np.array([[value for value, _ in one["stats"]] for one in items], np.float64)
    absent = np.array([[gone for _, gone in one["stats"]] for one in items], bool)
    states = np.select(
        [absent, np.isnan(stats), np.isposinf(stats), np.isneginf(stats)],
        [State.ABSENT, State.NAN, State.POS_INF, State.NEG_INF],
        State.FINITE,
    ).astype(np.uint8)
    coded = {}
    for place, name in enumerate(TEXTS):
        if name == "shape":
            sizes = [
                [len(text)] * (len(text) % 3) if (text := one["texts"][place]) is not None else None for one in items
            ]
            for one, size in zip(items, sizes, strict=True):
                one["texts"][place] = None if size is None else to_json(size)
        texts = sorted({text for one in items if (text := one["texts"][place]) is not None})
        missing = [one["own"] if name == "data_name" else -1 for one in items]
        codes = [
            none if one["texts"][place] is None else texts.index(one["texts"][place])
            for one, none in zip(items, missing, strict=True)
        ]
        coded[name] = Coded(codes=np.array(codes, np.int32), texts=texts)
    role, kind, grad = np.array([one["numbers"] for one in items], np.int8).T
    return ItemColumns(
        number=np.arange(len(items), dtype=np.int64),
        node=np.cumsum([one["more"] for one in items]).astype(np.int32),
        role=role,
        kind=kind,
        requires_grad=grad,
        stats=np.where(states == State.FINITE, stats, 0.0),
        states=states,
        **coded,
    )


@given(st.lists(item, min_size=1, max_size=12), st.integers(1, 12))
def test_items_survive_packing_into_blocks_of_any_size(items: list[dict[str, Any]], size: int) -> None:
    before = columns_of(items)
    blocks = [pack_block(before, slice(at, min(at + size, len(items)))) for at in range(0, len(items), size)]
    after = join_columns([unpack_block(block) for block in blocks])
    for name in ("number", "node", "role", "kind", "requires_grad", "states", "stats"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
        assert getattr(before, name).dtype == getattr(after, name).dtype
    assert np.array_equal(np.signbit(before.stats), np.signbit(after.stats))
    for name in TEXTS:
        one, other = getattr(before, name), getattr(after, name)
        for row in range(len(items)):
            assert one.at(row) == other.at(row)
            assert one.at(row) is not None or one.codes[row] == other.codes[row]


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, (1 << 16) + BLOCK + 1])
def test_items_are_found_by_their_number_at_the_ends_of_blocks(database: Database, count: int) -> None:
    rank, other = 7, 8
    base = item_columns(make_rank(20))
    rows = take_rows(base, np.arange(count) % len(base))
    whole = replace(rows, number=np.arange(count), node=(np.arange(count) // 3).astype(np.int32))
    starts = range(0, count, BLOCK)
    blocks = [pack_block(whole, slice(start, min(start + BLOCK, count))) for start in starts]
    with database.write() as connection:
        for owner in (rank, other):
            insert(connection, tables.item_block, [[tables.key(owner, start) for start in starts], blocks])
    edges = {edge + more for edge in (0, BLOCK, 2 * BLOCK, 1 << 16, count) for more in (-2, -1, 0, 1)}
    with database.read() as connection:
        found, some = all_items(connection, rank), some_items(connection, rank, edges)
        alone = [some_items(connection, rank, [edge]).number.tolist() for edge in sorted(edges)]
    assert found.number.tolist() == list(range(count))
    there = sorted(edge for edge in edges if 0 <= edge < count)
    assert (some.number.tolist(), [one for one in alone if one]) == (there, [[edge] for edge in there])
    for columns in (found, some):
        places = columns.number
        np.testing.assert_array_equal(columns.node, whole.node[places])
        np.testing.assert_array_equal(columns.stats, whole.stats[places])
        for name in TEXTS:
            one, other_one = getattr(columns, name), getattr(whole, name)
            assert [one.at(row) for row in range(len(columns))] == [other_one.at(number) for number in places.tolist()]


def test_a_few_bytes_do_not_become_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "INFLATED_LIMIT", 1000)
    assert codec.inflate(zlib.compress(bytes(1000))) == bytes(1000)
    for wrong in (zlib.compress(bytes(1001)), zlib.compress(bytes(900))[:-5], b"no stream"):
        with pytest.raises(zlib.error):
            codec.inflate(wrong)
