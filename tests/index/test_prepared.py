"""Prepared statements tell what SQLAlchemy tells of the same rows, on both databases."""

from __future__ import annotations

from typing import Final

import pytest
from sqlalchemy import Connection, bindparam, event, func, select

from dumpscope.index.comparisons.catalogue import find_unit, get_comparison
from dumpscope.index.pair_queries.collectives import collectives_of
from dumpscope.index.pair_queries.dataflow import node_flow
from dumpscope.index.pair_queries.item_pairs import get_item_pair, items_of_node
from dumpscope.index.pair_queries.node_details import node_context
from dumpscope.index.pair_queries.node_pairs import node_pair_rows, one_node_pair
from dumpscope.index.store.database import CHUNK, Database, DatabaseError, insert
from dumpscope.index.store.prepared import Prepared, number_named, some_keys, text_named
from dumpscope.index.store.tables import entry, place
from index.test_storage import store_pair

FIRST: Final = 9 << 28  # of an owner whose keys need more than 32 bits


def store(database: Database, count: int) -> list[int]:
    """Entries with rising keys; every second one has a label. Returns their keys."""
    keys = [FIRST + number for number in range(count)]
    names = ("id", "parent", "seq", "name", "children", "size", "label")
    columns = [
        keys,
        [-9] * count,
        list(range(count)),
        [f"call {number % 7}" for number in range(count)],
        [0] * count,
        [1] * count,
        [number if number % 2 else None for number in range(count)],
    ]
    with database.write() as connection:
        insert(connection, entry, columns, names=names)
    return keys


def test_rows_are_those_that_sqlalchemy_gives(database: Database) -> None:
    keys = store(database, 40)
    where = [entry.c.id.between(number_named("first"), number_named("last")), entry.c.name == text_named("name")]
    statement = select(entry).where(*where).order_by(entry.c.id.desc()).limit(3)
    given = {"first": keys[2], "last": keys[-2], "name": "call 3"}
    prepared = Prepared(statement)
    with database.read() as connection:
        expected = [tuple(row) for row in connection.execute(statement, given)]
        assert prepared.rows(connection, **given) == expected
        assert len(expected) == 3
        assert prepared.one(connection, **given) == expected[0]
        assert prepared.column(connection, **given) == [row[0] for row in expected]
        first = prepared.one(connection, **given)
        assert (first.id, first.seq, first.label, first.stack) == (keys[38], 38, None, None)
        assert prepared.one(connection, **{**given, "name": "absent"}) is None
        assert prepared.value(connection, **{**given, "name": "absent"}) is None


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
def test_each_of_many_keys_is_found_once_beside_other_values(database: Database, count: int) -> None:
    keys = store(database, 2 * CHUNK + 10)
    prepared = Prepared(
        select(entry.c.seq, (number_named("more") + entry.c.seq).label("sum"))
        .where(entry.c.id.in_(some_keys()), entry.c.seq >= 1)
        .order_by(entry.c.id)
    )
    with database.read() as connection:
        found = prepared.among(connection, keys[:count], more=1 << 40)
    assert [(row.seq, row.sum) for row in found] == [(seq, (1 << 40) + seq) for seq in range(1, count)]


def test_a_text_is_a_value_and_never_a_part_of_the_statement(database: Database) -> None:
    store(database, 7)
    named = Prepared(select(func.count()).where(entry.c.name == text_named("name")))
    with database.read() as connection:
        assert named.value(connection, name="call 3") == 1
        assert named.value(connection, name="' OR 1=1 --") == 0
        assert named.value(connection, name="100 %s %(name)s ?") == 0


def test_a_refused_statement_raises_the_error_of_all_others(database: Database) -> None:
    wrong = Prepared(
        select(place.c.id).where(func.no_such_function(place.c.id) == bindparam("value", type_=place.c.id.type))
    )
    with pytest.raises(DatabaseError, match="no_such_function"), database.read() as connection:
        wrong.rows(connection, value=1)


def test_a_call_with_its_evidence_is_read_without_building_a_statement(database: Database) -> None:
    comparison, _, _ = store_pair(database, nodes=60, tensors=True)
    built: list[str] = []

    def note(_connection: Connection, statement: object, *_: object) -> None:
        built.append(str(statement))

    event.listen(database._readers, "before_execute", note)
    unit = find_unit(database, comparison, 0, 0)
    for pair in range(0, 60, 7):
        with database.read() as connection:
            row = node_pair_rows(connection, unit, [pair])[pair]
            same = one_node_pair(connection, unit, row.address)
            items = items_of_node(connection, unit, row.pair, limit=100)
            node_context(connection, unit, row.pair)
            assert collectives_of(connection, unit, row.pair) == []
        assert same == row
        assert [get_item_pair(database, unit, item.id) for item in items] == items
        assert node_flow(database, unit, row.address).node == row
    get_comparison(database, comparison)
    assert built == []
