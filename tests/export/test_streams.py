"""Exports of a stored comparison: what is streamed is what is written, and its beginning waits for nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer
from dumpscope.errors import UsageError
from dumpscope.export.table.csv import csv_text as table_text
from dumpscope.export.table.unit_table import Table
from dumpscope.index.comparisons.catalogue import StoredUnit, list_comparisons
from dumpscope.index.pair_queries.node_pairs import NodeFilter
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.pipeline.results import exports
from dumpscope.pipeline.results.save import save_comparison
from dumpscope.readers import discover

Stored = tuple[Database, Answer, list[StoredUnit], Outcome]


@pytest.fixture(scope="module")
def stored(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """The two ranks of a comparison in a database."""
    names = ("dist2_stat_fault", "dist2_stat_golden")
    target, golden = (discover(dumps / name) for name in names)
    outcome = compare_layouts(target, golden, Options(), paths=names, jobs=1)
    database = Database.open(sqlite_url(tmp_path_factory.mktemp("stored") / "index.db"))
    yield (
        database,
        *exports.export_units(database, save_comparison(database, outcome, Options(), name="x"), None, None),
        outcome,
    )
    database.close()


def test_the_streamed_table_is_the_written_one_under_one_heading(stored: Stored) -> None:
    database, _, units, outcome = stored
    first, second = ("".join(table_text(Table(unit))).partition("\n") for unit in outcome.units)
    assert "".join(exports.csv_text(database, units)) == "".join([*first, second[2]])
    assert len(units) == 2


def test_the_heading_and_the_answer_come_before_a_unit_is_loaded(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, answer, units, outcome = stored
    loaded: list[int] = []
    load = exports.load_unit
    monkeypatch.setattr(exports, "load_unit", lambda held, number: loaded.append(number) or load(held, number))
    heading = next(exports.csv_text(database, units))
    assert heading == next(table_text(Table(outcome.units[0])))
    head = next(exports.json_document(database, answer, units, pairs=True))
    assert json.loads(head + "]}")["counts"]["items"] == answer.counts.items
    assert loaded == []


def test_one_unit_is_loaded_at_a_time(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    database, _, units, _ = stored
    loaded: list[int] = []
    load = exports.load_unit
    monkeypatch.setattr(exports, "load_unit", lambda held, number: loaded.append(number) or load(held, number))
    pieces = exports.csv_text(database, units)
    next(pieces)
    next(pieces)
    assert loaded == [units[0].id]
    assert "".join(pieces)
    assert loaded == [unit.id for unit in units]


def test_filters_keep_the_calls_they_describe_and_every_row_of_them(stored: Stored) -> None:
    database, answer, units, _ = stored
    filters = NodeFilter(q="linear -backward", verdicts=("no", "yes"))
    whole = list(csv.DictReader("".join(exports.csv_text(database, units)).splitlines()))
    kept = list(csv.DictReader("".join(exports.csv_text(database, units, filters)).splitlines()))
    assert kept == [row for row in whole if "linear" in row["Node"].lower() and "backward" not in row["Node"]]
    assert kept
    document = json.loads("".join(exports.json_document(database, answer, units, filters, pairs=True)))
    assert {pair["node"] for pair in document["pairs"]} == {row["Node"] for row in kept}
    suites = ElementTree.fromstring("".join(exports.junit_document(database, answer, units, filters, "x")))
    assert {case.get("name") for case in suites.findall("testsuite/testcase")} == {row["Node"] for row in kept}


def test_a_filter_that_means_nothing_is_refused_before_a_document_begins(stored: Stored) -> None:
    database, *_ = stored
    with pytest.raises(UsageError, match="there is no clas:"):
        exports.export_units(database, list_comparisons(database)[0][1].id, None, None, NodeFilter(q="clas:origin"))
