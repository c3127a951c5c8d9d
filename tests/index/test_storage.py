"""What goes into the index comes out of it, number for number."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sqlalchemy import delete, func, select

from dumpscope.domain.facts import CAUSES, Class, Verdict
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump, State, item_name
from dumpscope.domain.result import Answer, Counts, Side, Unit
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import clear_comparison, create_comparison, store_answer, stored_units
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.comparisons.store_results import (
    PARTS,
    UnitSides,
    begin_unit,
    store_part,
    store_unit,
    unit_values,
    update_classes,
    update_opinions,
)
from dumpscope.index.dump_queries.nodes import get_node
from dumpscope.index.dumps.catalogue import create_dump, stored_ranks
from dumpscope.index.dumps.load_rank import load_rank
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.store import tables, upgrade
from dumpscope.index.store.codec import (
    number_columns,
    numbers,
    pack_histograms,
    pack_makers,
    pack_producers,
    pack_states,
    storable,
    unpack_histograms,
    unpack_makers,
    unpack_producers,
    unpack_states,
)
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.index.store.rollup import sound_parents, subtree_sums
from index.units import make_rank, make_unit

NOWHERE = Side(path="", framework="", task="", level="", steps=[], ranks=[])
NO_ANSWER = Answer(
    mode="statistics", policy="default", target=NOWHERE, golden=NOWHERE, counts=Counts(), first_no=None, origins=[], settings=[],
    problems=[],
)  # fmt: skip


def decoded(dump: RankDump) -> dict[str, Any]:
    """A rank as plain values, whatever the codes are."""
    nodes, items = dump.nodes, dump.items

    def words(codes: Any, pool: list[Any]) -> list[Any]:
        return [pool[code] if code >= 0 else None for code in codes.tolist()]

    return {
        "ref": dump.ref,
        "header": dump.header,
        "problems": dump.problems,
        "names": nodes.names,
        "kind": nodes.kind.tolist(),
        "direction": nodes.direction.tolist(),
        "label": words(nodes.label, nodes.labels),
        "index": nodes.index.tolist(),
        "stack": words(nodes.stack, nodes.stacks),
        "micro": nodes.micro.tolist(),
        "tree": (dump.tree.names, dump.tree.parent.tolist(), dump.tree.order.tolist(), dump.tree.inferred),
        "node": items.node.tolist(),
        "role": items.role.tolist(),
        "path": words(items.path, items.paths),
        "item_kind": items.kind.tolist(),
        "type": words(items.type, items.types),
        "dtype": words(items.dtype, items.dtypes),
        "shape": words(items.shape, items.shapes),
        "stats": np.where(items.stat_state == State.ABSENT, 0, items.stats).tolist(),
        "state": items.stat_state.tolist(),
        "wide": {place: hex(value) for place, value in items.wide.items()},
        "grad": items.requires_grad.tolist(),
        "hash": words(items.hash, items.hashes),
        "value": words(items.value, items.values),
        "data": words(items.data_name, items.data_names),
        "item_names": [item_name(dump, item) for item in range(len(items))],
    }


def store_pair(database: Database, *, nodes: int = 60, tensors: bool = False) -> tuple[str, int, Unit]:
    target, golden = make_rank(nodes, seed=1, tensors=tensors), make_rank(nodes, seed=2, tensors=tensors)
    unit = make_unit(target, golden, tensors=tensors)
    ids = [create_dump(database, name=name, path=f"/{name}") for name in ("target", "golden")]
    sides = [store_dump_rank(database, dump_id, dump) for dump_id, dump in zip(ids, (target, golden), strict=True)]
    comparison = create_comparison(database, name="t vs g", target=ids[0], golden=ids[1], options=Options())
    unit_id = store_unit(database, comparison, unit, UnitSides(target=sides[0], golden=sides[1]))
    store_answer(database, comparison, NO_ANSWER, units=[unit_id])
    return comparison, unit_id, unit


def assert_same(one: Any, other: Any) -> None:
    for field in dataclasses.fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, field.name
            np.testing.assert_array_equal(left, right, err_msg=field.name)
        else:
            assert left == right, field.name


def test_a_task_that_is_done_again_shows_its_unit_in_place_of_the_one_before(database: Database) -> None:
    """Its worker died behind the answer, before it said so."""
    comparison, first, unit = store_pair(database)
    row = stored_units(database, comparison)[0]
    again = store_unit(database, comparison, unit, UnitSides(target=row.target, golden=row.golden))
    store_answer(database, comparison, NO_ANSWER, units=[again])
    assert [one.id for one in stored_units(database, comparison)] == [again]
    with database.read() as connection:
        assert set(connection.execute(select(tables.unit.c.id)).scalars()) == {again}, first


@pytest.mark.parametrize("tensors", [False, True])
def test_a_rank_comes_back_as_it_was_stored(database: Database, tensors: bool) -> None:
    dump = make_rank(60, tensors=tensors)
    dump_id = create_dump(database, name="run", path="/run")
    store_dump_rank(database, dump_id, make_rank(10))
    rank_id = store_dump_rank(database, dump_id, dump)
    assert [rank.id for rank in stored_ranks(database, dump_id)] == [rank_id], "storing again replaces"
    assert str(decoded(load_rank(database, rank_id))) == str(decoded(dump))


def test_an_empty_rank_is_stored(database: Database) -> None:
    dump_id = create_dump(database, name="run", path="/run")
    rank_id = store_dump_rank(database, dump_id, make_rank(0))
    assert len(load_rank(database, rank_id).nodes) == 0


def test_text_no_database_accepts_is_stored_readably(database: Database) -> None:
    dump = make_rank(2)
    names = ["a\0b", "c\ud800d"]
    dump = dataclasses.replace(
        dump,
        nodes=dataclasses.replace(dump.nodes, names=names),
        tree=dataclasses.replace(dump.tree, names=[*names, *dump.tree.names[2:]]),
    )
    dump_id = create_dump(database, name="bad\0", path="/\udcff")
    loaded = load_rank(database, store_dump_rank(database, dump_id, dump))
    assert loaded.nodes.names == ["a\u2400b", "c\ufffdd"]


@pytest.mark.parametrize("tensors", [False, True])
def test_a_unit_comes_back_as_it_was_stored(database: Database, tensors: bool) -> None:
    _comparison, unit_id, unit = store_pair(database, tensors=tensors)
    loaded = load_unit(database, unit_id)
    for part in ("pairs", "items", "tree", "item_opinions", "node_opinions"):
        assert_same(getattr(unit, part), getattr(loaded, part))
    facts, again = unit.facts, loaded.facts
    for field in ("diff", "rel", "tensor"):
        there = getattr(facts, f"{field}_state") != State.ABSENT
        np.testing.assert_array_equal(getattr(facts, field)[there], getattr(again, field)[there])
        np.testing.assert_array_equal(getattr(facts, f"{field}_state"), getattr(again, f"{field}_state"))
    for field in ("outcome", "equal", "dtype_differs", "elements", "unequal", "nonfinite_target"):
        np.testing.assert_array_equal(getattr(facts, field), getattr(again, field))
    assert facts.errors == again.errors
    assert facts.details == again.details
    assert (loaded.step, loaded.rank, loaded.mode, loaded.problems) == (unit.step, unit.rank, unit.mode, unit.problems)


def test_a_unit_that_is_stored_in_parts_comes_back_although_a_part_was_begun_before(database: Database) -> None:
    comparison, whole, unit = store_pair(database, tensors=True)
    row = stored_units(database, comparison)[0]
    again = begin_unit(database, comparison, unit_values(unit, UnitSides(target=row.target, golden=row.golden)))
    for each in (*PARTS, *PARTS):  # a worker died, and both were done again
        store_part(database, again, unit, each)
    one, other = load_unit(database, again), load_unit(database, whole)
    for part in ("pairs", "items", "tree", "item_opinions", "node_opinions"):
        assert_same(getattr(one, part), getattr(other, part))
    with database.read() as connection:
        for table in tables.UNIT_ROWS:
            counts = [
                connection.execute(select(func.count()).where(table.c.id.between(*tables.key_range(unit_id)))).scalar()
                for unit_id in (whole, again)
            ]
            assert counts[0] == counts[1], table.name


def test_new_opinions_replace_the_old_ones_and_their_sums(database: Database) -> None:
    comparison, unit_id, unit = store_pair(database)
    items = dataclasses.replace(
        unit.item_opinions,
        verdict=np.full(len(unit.items), Verdict.WARNING, dtype=np.int8),
        score=np.full(len(unit.items), 2.0),
    )
    nodes = dataclasses.replace(
        unit.node_opinions,
        verdict=np.full(len(unit.pairs), Verdict.WARNING, dtype=np.int8),
        cls=np.full(len(unit.pairs), Class.ORIGIN, dtype=np.int8),
    )
    update_opinions(database, unit_id, load_unit(database, unit_id), items, nodes)
    loaded = load_unit(database, unit_id)
    assert_same(loaded.item_opinions, items)
    assert_same(loaded.node_opinions, nodes)
    (stored,) = stored_units(database, comparison)
    assert stored.counts["warning"] == len(unit.pairs)
    assert stored.counts["no"] == 0
    assert stored.counts["classes"]["origin"] == len(unit.pairs)
    with database.read() as connection:
        top = connection.exec_driver_sql(
            f"SELECT sum(warning), sum(origin), sum(no), sum(yes) FROM place WHERE parent = -{unit_id}"
        ).one()
    assert tuple(top) == (len(unit.pairs), len(unit.pairs), 0, 0)


def test_other_classes_of_some_pairs_leave_sums_as_if_all_were_stored_again(database: Database) -> None:
    comparison, unit_id, unit = store_pair(database)
    causes = np.flatnonzero(np.isin(unit.node_opinions.cls, CAUSES)).tolist()
    others = np.flatnonzero(~np.isin(unit.node_opinions.cls, CAUSES)).tolist()
    new = {causes[0]: Class.PROPAGATED, others[0]: Class.ORIGIN, others[-1]: Class.NONFINITE, others[1]: Class.BENIGN}
    changes = {pair: int(code) for pair, code in new.items()}
    cls = unit.node_opinions.cls.copy()
    cls[list(changes)] = list(changes.values())
    update_classes(database, unit_id, changes)
    kept = (stored_units(database, comparison)[0].counts, places(database, unit_id), load_unit(database, unit_id))
    assert_same(kept[2].node_opinions, dataclasses.replace(unit.node_opinions, cls=cls))
    other, again, _ = store_pair(database)
    whole = dataclasses.replace(unit.node_opinions, cls=cls)
    update_opinions(database, again, load_unit(database, again), unit.item_opinions, whole)
    assert kept[:2] == (stored_units(database, other)[0].counts, places(database, again))


def places(database: Database, unit_id: int) -> list[int]:
    """Causes below every place of a unit."""
    first, last = tables.key_range(unit_id)
    with database.read() as connection:
        found = select(tables.place.c.origin).where(tables.place.c.id.between(first, last)).order_by(tables.place.c.id)
        return list(connection.execute(found).scalars())


def test_clearing_a_comparison_leaves_no_row_behind(database: Database) -> None:
    comparison, _unit_id, _unit = store_pair(database, tensors=True)
    clear_comparison(database, comparison)
    with database.read() as connection:
        for table in (*tables.UNIT_ROWS, tables.unit):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table.name}").scalar() == 0
        assert connection.exec_driver_sql("SELECT count(*) FROM item_block").scalar() == 2


def test_migrations_make_exactly_the_tables_the_program_uses(database: Database) -> None:
    from alembic.autogenerate import compare_metadata  # noqa: PLC0415
    from alembic.migration import MigrationContext  # noqa: PLC0415

    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []


def test_a_new_file_is_made_as_the_migrations_make_it(tmp_path: Path) -> None:
    """Its tables and indexes are word for word the same, and so is its version."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    assert upgrade.SCHEMA.read_text(encoding="utf-8") == upgrade.migrated_schema(), (
        "python -m dumpscope.index.store.upgrade"
    )
    assert upgrade.newest() == ScriptDirectory.from_config(upgrade.configuration()).get_current_head()
    for name, fill in (("made", upgrade.upgrade), ("migrated", upgrade.migrate)):
        database = Database(sqlite_url(tmp_path / name))
        with database.write() as connection:
            fill(connection)
        database.close()
    found = []
    for name in ("made", "migrated"):
        with sqlite3.connect(tmp_path / name) as connection:
            everything = connection.execute(
                "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
            ).fetchall()
            stamps = connection.execute("SELECT version_num FROM alembic_version").fetchall()
            pragmas = [connection.execute(f"PRAGMA {word}").fetchone() for word in ("auto_vacuum", "journal_mode")]
        found.append((everything, stamps, pragmas))
    assert found[0] == found[1]
    assert len(found[0][0]) > 30


def test_a_database_of_a_newer_program_is_refused_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "index.db"
    Database.open(sqlite_url(file)).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UsageError, match="another version") as caught:
        Database.open(sqlite_url(file))
    assert caught.value.hint


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "index.db"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(UsageError, match="cannot be opened"):
        Database.open(sqlite_url(file))


@given(st.lists(st.lists(st.tuples(st.floats(), st.booleans()), min_size=4, max_size=4), max_size=20))
def test_every_state_survives_the_trip_through_nullable_columns(rows: list[list[tuple[float, bool]]]) -> None:
    values = np.array([[value for value, _ in row] for row in rows], dtype=np.float64).reshape(-1, 4)
    absent = np.array([[gone for _, gone in row] for row in rows], dtype=bool).reshape(-1, 4)
    states = np.full(values.shape, State.FINITE, dtype=np.uint8)
    states[np.isnan(values)] = State.NAN
    states[np.isposinf(values)] = State.POS_INF
    states[np.isneginf(values)] = State.NEG_INF
    states[absent] = State.ABSENT
    back = unpack_states(pack_states(states), 4)
    np.testing.assert_array_equal(back, states)
    columns = number_columns(values, states)
    assert all(value is None or np.isfinite(value) for column in columns for value in column)
    np.testing.assert_array_equal(numbers(columns, back)[~absent], values[~absent])


@given(
    st.lists(st.integers(0, 2**40), min_size=23, max_size=23), st.lists(st.integers(0, 2**40), min_size=23, max_size=23)
)
def test_histograms_survive_packing(absolute: list[int], relative: list[int]) -> None:
    assert unpack_histograms(pack_histograms(absolute, relative)) == (tuple(absolute), tuple(relative))


@given(st.lists(st.lists(st.integers(-1, 40), max_size=4), max_size=40), st.randoms(use_true_random=False))
def test_data_flow_survives_packing(nodes: list[list[int]], random: Any) -> None:
    pair = np.array([node for node, makers in enumerate(nodes) for _ in makers], np.int32)
    maker = np.array([min(made, node - 1) for node, makers in enumerate(nodes) for made in makers], np.int64)
    handed = np.array([random.random() < 0.5 for _ in pair], bool)
    parts = np.where(handed, -1, maker), np.where(handed, maker, -1)
    for before, after in zip((pair, *parts), unpack_makers(pack_makers(pair, *parts)), strict=True):
        np.testing.assert_array_equal(before, after)


@given(st.lists(st.tuples(st.integers(-1, 40), st.booleans()), max_size=40))
def test_producers_survive_packing(found: list[tuple[int, bool]]) -> None:
    told = np.array([min(made, row - 1) for row, (made, _) in enumerate(found)], np.int32)
    named = np.where([sure for _, sure in found], told, -1).astype(np.int32)
    for before, after in zip((named, told), unpack_producers(pack_producers(named, told)), strict=True):
        np.testing.assert_array_equal(before, after)
        assert after.dtype == np.int32


def test_a_rank_stored_before_producers_were_kept_has_none(database: Database) -> None:
    dump_id = create_dump(database, name="run", path="/run")
    rank_id = store_dump_rank(database, dump_id, make_rank(20))
    assert (load_rank(database, rank_id).items.producer >= 0).any()
    with database.write() as connection:
        connection.execute(delete(tables.producers))
    assert (load_rank(database, rank_id).items.producer == -1).all()
    (rank,) = stored_ranks(database, dump_id)
    node = get_node(database, rank, make_rank(20).nodes.names[3])
    assert node.producers == [None] * 4


def test_a_unit_stored_without_data_flow_gets_it_when_it_is_judged_again(database: Database) -> None:
    _comparison, unit_id, unit = store_pair(database)

    def kept() -> Any:
        with database.read() as connection:
            return connection.execute(select(tables.flow.c.makers)).scalar()

    first = kept()
    with database.write() as connection:
        connection.execute(delete(tables.flow))
    update_opinions(database, unit_id, load_unit(database, unit_id), unit.item_opinions, unit.node_opinions)
    assert first is not None
    assert kept() == first


@given(st.lists(st.text(st.characters(blacklist_categories=()), max_size=8), max_size=5))
def test_storable_text_is_utf8_without_nul_and_keeps_its_length(texts: list[str]) -> None:
    clean = storable(texts)
    assert [len(text) for text in clean] == [len(text) for text in texts]
    assert b"\0" not in "".join(clean).encode()


@given(st.integers(1, 40), st.randoms())
def test_subtree_sums_equal_the_sum_over_descendants_whatever_the_parents_say(size: int, random: Any) -> None:
    order = list(range(size))
    random.shuffle(order)
    wild = [random.randrange(-1, size + 2) for _ in range(size)]
    parent, depth = sound_parents(np.array(wild, np.int32), np.array(order, np.int32))
    values = np.arange(size, dtype=np.int64)[:, None]
    expected = [0] * size
    for entry in range(size):
        above, steps = entry, 0
        while above >= 0:
            expected[above] += entry
            above = int(parent[above])
            steps += 1
            assert steps <= size, "no cycles are left"
    assert subtree_sums(parent, depth, values)[:, 0].tolist() == expected
